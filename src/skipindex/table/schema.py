"""The columns of a table as Spark types them, and which have an index.

A field of a struct is a column of its own, ``a.b``: where the struct is NULL, so is
the field.  Of what is repeated, lists and maps, nothing is indexed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from skipindex.errors import PredicateError, UnsupportedTypeError
from skipindex.expressions import Reference
from skipindex.expressions.domain import Domain, domain_of
from skipindex.table.partitions.hive import PartitionColumn, partition_domain


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


def columns_of(
    schema: pa.Schema, refused: Mapping[str, str], partitions: list[PartitionColumn]
) -> dict[str, ColumnInfo]:
    """Every column by its name: those of the files, then the partitions."""
    columns = {}
    taken = {*schema.names, *(partition.name for partition in partitions)}
    for field in schema:
        column = _column((field.name,), field.type, "", refused, taken)
        columns[field.name] = replace(column, name=field.name, path=())
    for partition in partitions:
        domain = partition_domain(partition)
        reason = "" if domain else "only Spark can tell the partition column's type"
        columns[partition.name] = ColumnInfo(
            partition.name, domain, reason, is_partition=True
        )
    return columns


def _column(
    path: tuple[str, ...],
    dtype: pa.DataType,
    reason: str,
    refused: Mapping[str, str],
    taken: Collection[str],
) -> ColumnInfo:
    """A column or field, and the fields in it."""
    name, domain = str(Reference(path)), None
    reason = reason or refused.get(name, "")
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
                refused,
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
