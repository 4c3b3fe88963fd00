"""The columns of a table as Spark types them, and which have an index.

A column is a path of names.  A field of a struct is a column of its own, ``a.b``:
where the struct is NULL, so is the field.  Of what is repeated, lists and maps, nothing
is indexed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

from skipindex.conditions.columns import UNORDERED, ColumnInfo
from skipindex.errors import PredicateError, UnsupportedTypeError, did_you_mean
from skipindex.expressions import name_parts, stored_name
from skipindex.expressions.domain import domain_of
from skipindex.source.field_ids import (
    FieldIds,
    Names,
    is_field_id,
    paths_of,
    unmapped_name,
)
from skipindex.source.parquet.spark_json import has_default
from skipindex.source.partitions.hive import PartitionColumn, partition_domain

_OF_OTHER_FILES: Final = (
    "; they are the columns of one file: give open_table a schema with all columns"
)


@dataclass(frozen=True)
class Columns:
    """The columns of a table, found by the names that Spark accepts.

    ``by_name`` has every column under its own name, in Spark's order, and ``table`` is
    for messages.
    """

    by_name: Mapping[str, ColumnInfo]
    table: str

    @cached_property
    def leaves(self) -> list[ColumnInfo]:
        """The columns; a struct is replaced by the fields in it."""
        return [leaf for column in self.by_name.values() for leaf in column.leaves]

    def resolve(self, name: str, *, case_sensitive: bool = False) -> ColumnInfo:
        """The column that Spark finds by ``name``.

        A partition column hides a column of the files that has its name.

        Raises:
            PredicateError: there is none, or more than one.
        """
        if case_sensitive:
            result = [self.by_name[name]] if name in self.by_name else []
        else:
            folded = name.lower()
            result = [c for k, c in self.by_name.items() if k.lower() == folded]
            result = [c for c in result if c.is_partition] or result
        if len(result) == 1:
            return result[0]
        if result:
            raise PredicateError(
                f"column {name!r} is ambiguous: {[c.own_name for c in result]} (pass "
                "case_sensitive=True to tell them apart)"
            )
        raise self._none_is(name)

    def stored(self, name: str) -> ColumnInfo:
        """The column or field of that stored name."""
        result = self._stored.get(name)
        if result is None:
            raise self._none_is(name)
        return result

    def _none_is(self, name: str) -> PredicateError:
        """The error that there is no column of a name."""
        similar = did_you_mean(name, [*self.by_name, *self._stored])
        others = "" if similar else _OF_OTHER_FILES
        return PredicateError(
            f"no column {name!r} in {self.table!r}{similar} (columns: "
            f"{', '.join(self.by_name)}{others})"
        )

    def find(self, text: str) -> ColumnInfo:
        """The column that a person means who names it in a request.

        First the column with this stored name.  Then the column that SQL finds, in any
        capitals: ``a.b`` is a field of a struct, and backticks quote.  Then the column
        whose own name this is.

        Raises:
            PredicateError: there is none, or more than one.
        """
        if text in self._stored:
            return self._stored[text]
        try:
            first, *inner = name_parts(text)
            column = self.resolve(first)
            for name in inner:
                column = column.field(name)
        except PredicateError:
            # Among names that differ in capitals alone, the exact match.
            if text in self.by_name:
                return self.by_name[text]
            with suppress(PredicateError):
                return self.resolve(text)
            raise
        return column

    def is_alone(self, column: ColumnInfo) -> bool:
        """Whether the table has no other column of this name in any capitals."""
        return self._folded[column.name.lower()] == 1

    @cached_property
    def _folded(self) -> Counter[str]:
        """How many columns have a name, in any capitals."""
        return Counter(leaf.name.lower() for leaf in self.leaves)

    @cached_property
    def _stored(self) -> dict[str, ColumnInfo]:
        """The columns and the fields of structs, by their stored names."""
        rest, result = list(self.by_name.values()), {}
        while rest:
            column = rest.pop()
            result[column.name] = column
            rest += column.fields
        return result


def columns_of(
    schema: pa.Schema,
    refused: Mapping[str, str],
    partitions: list[PartitionColumn],
    places: Mapping[tuple[str, ...], tuple[str, ...]],
    ids: FieldIds | None = None,
) -> dict[str, ColumnInfo]:
    """Every column by its own name: those of the files, then the partitions.

    ``places`` says where files have a column, if it is not at its path, and ``ids`` by
    which rule they are found there.
    """
    known = _Places(schema, partitions, places, ids)
    columns = {
        field.name: _column(
            (field.name,),
            field.type,
            "",
            refused,
            known,
            has_default=has_default(field),
        )
        for field in schema
    }
    for partition in partitions:
        domain = partition_domain(partition)
        reason = "" if domain else "only Spark knows the type of the partition column"
        path = (partition.name,)
        columns[partition.name] = ColumnInfo(
            stored_name(path), domain, reason, is_partition=True, path=path, place=path
        )
    return columns


class _Places:
    """Where files have columns: ``by_path``, and all ``paths`` of the table."""

    def __init__(
        self,
        schema: pa.Schema,
        partitions: Sequence[PartitionColumn],
        by_path: Mapping[Names, Names],
        ids: FieldIds | None,
    ) -> None:
        self.by_path = by_path
        self._mapped = {} if ids is None else ids.mapped_names()
        self.paths = set[Names]()
        if by_path:
            self.paths = {*paths_of(schema), *((one.name,) for one in partitions)}

    def mapped_name(self, place: Names) -> str:
        """See ``ColumnInfo``."""
        return self._mapped.get(place, unmapped_name(place)) if self._mapped else ""


def _column(
    path: tuple[str, ...],
    dtype: pa.DataType,
    reason: str,
    refused: Mapping[str, str],
    places: _Places,
    *,
    has_default: bool,
) -> ColumnInfo:
    """A column or field, and the fields in it."""
    place, domain = places.by_path.get(path, path), None
    name = stored_name(place)
    reason = reason or refused.get(stored_name(path), "")
    if place == path and is_field_id(path[0]):
        reason = reason or "a field id has this name in tables of Iceberg"
    is_taken = place != path and place in places.paths
    if is_taken:
        name = f"of files: {name}"
    fields: tuple[ColumnInfo, ...] = ()
    if pa.types.is_struct(dtype):
        names = [dtype.field(i).name for i in range(len(dtype))]
        fields = tuple(
            _column(
                (*path, inner),
                dtype.field(i).type,
                reason or "two fields have one name" * (names.count(inner) > 1),
                refused,
                places,
                has_default=has_default,
            )
            for i, inner in enumerate(names)
        )
    if not reason:
        try:
            domain = domain_of(dtype, stored_name(path))
        except UnsupportedTypeError:
            reason = f"type {dtype} {UNORDERED}"
    if is_taken:
        reason = reason or "another column has the name that files have for it"
    return ColumnInfo(
        name,
        domain,
        reason,
        path=path,
        fields=fields,
        has_default=has_default,
        place=place,
        mapped_name=places.mapped_name(place),
    )
