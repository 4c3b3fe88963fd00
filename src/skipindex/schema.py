"""The columns of a Parquet file as Spark types them, and which have an index.

A field of a struct is a column of its own, ``a.b``: where the struct is NULL, so is
the field.  Of what is repeated, lists and maps, nothing is indexed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.domain import Domain, domain_of
from skipindex.errors import PredicateError, UnsupportedTypeError
from skipindex.partitions import PartitionColumn, partition_domain
from skipindex.predicate import Reference

ROW_METADATA: Final = b"org.apache.spark.sql.parquet.row.metadata"
"""Where a footer keeps the schema that Spark wrote the file with, as JSON."""
_CHAR_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_SPARK_VERSION: Final = b"org.apache.spark.version"
_HYBRID: Final = frozenset(
    {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}
)
_CHAR: Final = re.compile(r"(?<!var)char\(")


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """One column of a table, or one field of a struct.

    Args:
        name: as the schema spells it; of a field, the path as SQL writes it.
        domain: the order of its values; None if it cannot be indexed.
        reason: why not, for explanations; empty if it can.
        is_partition: its values stand in the paths.
        path: of a field, the names from the column inwards; otherwise empty.
        fields: of a struct.
    """

    name: str
    domain: Domain | None
    reason: str = ""
    is_partition: bool = False
    path: tuple[str, ...] = ()
    fields: tuple[ColumnInfo, ...] = ()

    @property
    def leaves(self) -> list[ColumnInfo]:
        """The column itself, or what is inside of it that is no struct."""
        if not self.fields:
            return [self]
        return [leaf for inner in self.fields for leaf in inner.leaves]

    def field(self, name: str) -> ColumnInfo:
        """The field that Spark would take ``name`` for.

        One that is spelled so, else one that is but for capitals: which of the two
        Spark goes by is the session's affair, and it refuses what it cannot tell.

        Raises:
            PredicateError: there is none, or more than one.
        """
        if not self.fields:
            raise PredicateError(
                f"no field {name!r}: column {self.name!r} is no struct"
            )
        exact = [inner for inner in self.fields if inner.path[-1] == name]
        folded = name.lower()
        alike = [f for f in self.fields if f.path[-1].lower() == folded]
        found = exact or alike
        if len(found) != 1:
            problem = "ambiguous field" if found else "no field"
            names = ", ".join(inner.path[-1] for inner in self.fields)
            raise PredicateError(
                f"{problem} {name!r} of column {self.name!r} (fields: {names})"
            )
        return found[0]


def arrow_schema(file: pq.ParquetFile) -> tuple[pa.Schema, dict[str, str]]:
    """The top-level columns as Spark types them, and why some cannot be indexed.

    INT96 comes out as a timestamp in UTC, which is what Spark makes of it.
    """
    leaves = map(file.schema.column, range(len(file.schema)))
    schema = pa.schema([_with_instants(field, leaves) for field in file.schema_arrow])
    metadata = file.metadata.metadata or {}
    refused = not_by_bytes(metadata)
    old = metadata.get(_SPARK_VERSION, b"9") < b"3.1"
    for field in schema if old or _HYBRID & metadata.keys() else ():
        if _holds_times(field.type):
            refused[field.name] = "the file holds dates of the old hybrid calendar"
    return schema, refused


def _with_instants(field: pa.Field, leaves: Iterator[Any]) -> pa.Field:
    """The field with instants for INT96; ``leaves`` are those of Parquet, in order."""
    dtype = field.type
    if pa.types.is_struct(dtype):
        inner = [_with_instants(dtype.field(i), leaves) for i in range(len(dtype))]
        return field.with_type(pa.struct(inner))
    if _is_repeated(dtype):
        for i in range(dtype.num_fields):
            _with_instants(dtype.field(i), leaves)
        return field
    leaf = next(leaves, None)
    if leaf is None or leaf.physical_type != "INT96":
        return field
    return field.with_type(pa.timestamp("us", "UTC"))


def _is_repeated(dtype: pa.DataType) -> bool:
    types = pa.types
    lists = types.is_list(dtype) or types.is_large_list(dtype)
    return bool(lists or types.is_fixed_size_list(dtype) or types.is_map(dtype))


def _holds_times(dtype: pa.DataType) -> bool:
    if pa.types.is_struct(dtype):
        return any(_holds_times(dtype.field(i).type) for i in range(len(dtype)))
    return bool(pa.types.is_temporal(dtype))


def not_by_bytes(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    """Text columns that Spark does not compare as they are stored, and why."""
    text = metadata.get(ROW_METADATA, b'{"fields": []}')
    refused = {}
    try:
        for field in json.loads(text)["fields"]:
            notes = field.get("metadata", {})
            spelled = json.dumps(field["type"]).lower()
            if "__COLLATIONS" in notes or "collate" in spelled:
                refused[field["name"]] = "the column has a collation"
            elif _CHAR.search(str(notes.get(_CHAR_TYPE, field["type"]))):
                refused[field["name"]] = "Spark pads a CHAR column to compare it"
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}  # what Spark cannot read either, it goes by the Parquet types
    return refused


def lacks(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a file of this schema has no such column or field, in any capitals.

    Spark then reads NULL in every row.  A name in other capitals is another matter:
    what Spark makes of it depends on the session.
    """
    fields = list(schema)
    for name in path:
        alike = [field for field in fields if field.name.lower() == name.lower()]
        if not alike:
            return True
        if [field.name for field in alike] != [name]:
            return False
        dtype = alike[0].type
        if not pa.types.is_struct(dtype):
            return False
        fields = [dtype.field(i) for i in range(len(dtype))]
    return False


def columns_of(
    schema: pa.Schema, refused: Mapping[str, str], partitions: list[PartitionColumn]
) -> dict[str, ColumnInfo]:
    """Every column by its name: those of the files, then the partitions."""
    columns = {}
    taken = {*schema.names, *(partition.name for partition in partitions)}
    for field in schema:
        reason = refused.get(field.name, "")
        columns[field.name] = replace(
            _column((field.name,), field.type, reason, taken), name=field.name, path=()
        )
    for partition in partitions:
        domain = partition_domain(partition)
        reason = "" if domain else "only Spark can tell the partition column's type"
        columns[partition.name] = ColumnInfo(
            partition.name, domain, reason, is_partition=True
        )
    return columns


def _column(
    path: tuple[str, ...], dtype: pa.DataType, reason: str, taken: Collection[str]
) -> ColumnInfo:
    """A column or field, and what is inside of it."""
    name, domain = str(Reference(path)), None
    if len(path) > 1 and name in taken:
        reason = "a column has the very name of the field"
    fields: tuple[ColumnInfo, ...] = ()
    if pa.types.is_struct(dtype):
        names = [dtype.field(i).name for i in range(len(dtype))]
        fields = tuple(
            _column(
                (*path, inner),
                dtype.field(i).type,
                reason or "two fields have one name" * (names.count(inner) > 1),
                taken,
            )
            for i, inner in enumerate(names)
        )
    if not reason:
        try:
            domain = domain_of(dtype, name)
        except UnsupportedTypeError:
            reason = f"type {dtype} has no order that Spark shares"
    return ColumnInfo(name, domain, reason, path=path, fields=fields)
