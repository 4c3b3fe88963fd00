"""Columns of files that are known by a number, whatever a file calls them.

Iceberg gives every column and every field of a struct a number, which stays when it is
renamed and is never used again (the Iceberg specification, "Column Projection").  So an
index is stored under the number.

A file may have no numbers, and the table maps names to them.  What it maps can change,
by a rename or by hand, so an index of such a file is stored under the mapped names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions import stored_name

_NUMBER: Final = b"PARQUET:field_id"
_PREFIX: Final = "field-id:"

Names = tuple[str, ...]
"""The path of a column: its name, then those of fields of structs."""


def field_id_name(number: int) -> str:
    """The name under which a column with this number is stored."""
    return f"{_PREFIX}{number}"


def field_id_of(name: str) -> int:
    """The number of a column that is stored under such a name."""
    return int(name.removeprefix(_PREFIX))


def is_field_id(name: str) -> bool:
    """Whether a column of that name would be taken for one that has a number."""
    return name.startswith(_PREFIX)


def mapped_name(names: Sequence[str]) -> str:
    """The name under which a column is stored to which a table maps these names."""
    return f"{_PREFIX}names:{json.dumps(names)}"


def unmapped_name(place: Names) -> str:
    """The name under which a column is stored to which a table maps no name."""
    return mapped_name(()) + stored_name(place)


@dataclass(frozen=True, slots=True)
class FieldIds:
    """What gives the columns of a file their numbers.

    Args:
        by_name: the numbers of the columns of a file that has none in it, by path.
    """

    by_name: Mapping[Names, int]

    def mapped_names(self) -> dict[Names, str]:
        """The names under which columns of files without numbers are stored, by place.

        A name consists of those that the table maps to the column, and so stays true of
        a file when the table maps others.
        """
        names: dict[Names, list[str]] = {}
        for path in sorted(self.by_name):
            numbers = [self.by_name.get(path[: i + 1]) for i in range(len(path))]
            place = tuple(field_id_name(n) for n in numbers if n is not None)
            if len(place) == len(path):
                names.setdefault(place, []).append(stored_name(path))
        return {place: mapped_name(mine) for place, mine in names.items()}

    def are_mapped(self, schema: pa.Schema) -> bool:
        """Whether the columns of a file are known by their names, as it has no numbers.

        Raises:
            UnsupportedTypeError: it has some, so that readers of Iceberg differ.
        """
        if not self.by_name:
            return False
        numbers = [number_of(field) for field in _all_fields(schema)]
        if None in numbers and set(numbers) != {None}:
            raise UnsupportedTypeError(
                "only some of its columns have field ids: some readers use these, and "
                "others the names that the table maps"
            )
        return None in numbers

    def places(self, schema: pa.Schema) -> dict[Names, Names]:
        """The path of every column and field by the path of its names' numbers.

        A column without a number is omitted, as Iceberg does not read it.

        Raises:
            UnsupportedTypeError: no column has a number, only some have, or two have
                the same.
        """
        fields = _fields(schema, ())
        numbers = {path: number_of(field) for path, field in fields}
        if self.are_mapped(schema):
            numbers = {path: self.by_name.get(path) for path, _ in fields}
        if not any(n is not None for n in numbers.values()):
            raise UnsupportedTypeError(
                "its columns have no field ids, and the table maps no names to them"
            )
        result: dict[Names, Names] = {}
        for path, _ in fields:
            parts = [numbers[path[: i + 1]] for i in range(len(path))]
            known = tuple(field_id_name(n) for n in parts if n is not None)
            if len(known) < len(path):
                continue
            if known in result:
                raise UnsupportedTypeError(
                    f"its columns {stored_name(result[known])!r} and "
                    f"{stored_name(path)!r} have one field id"
                )
            result[known] = path
        return result


def paths_of(schema: pa.Schema) -> list[Names]:
    """The paths of all columns, and of the fields of structs."""
    return [path for path, _ in _fields(schema, ())]


def leaves_of(schema: pa.Schema) -> list[tuple[Names, pa.DataType]]:
    """The paths and types of all columns; a struct is replaced by its fields."""
    every = ((path, field.type) for path, field in _fields(schema, ()))
    return [(path, dtype) for path, dtype in every if not pa.types.is_struct(dtype)]


def _fields(
    parent: pa.Schema | pa.StructType, path: Names
) -> list[tuple[Names, pa.Field]]:
    """All columns, and fields of structs, with their paths."""
    result: list[tuple[Names, pa.Field]] = []
    for field in parent:
        here = (*path, field.name)
        result.append((here, field))
        if pa.types.is_struct(field.type):
            result += _fields(field.type, here)
    return result


def _all_fields(parent: pa.Schema | pa.DataType) -> Iterator[pa.Field]:
    """All columns and what they consist of: fields, items of lists, keys and values."""
    if isinstance(parent, pa.MapType):
        fields = [parent.key_field, parent.item_field]
    elif isinstance(parent, pa.Schema) or pa.types.is_struct(parent):
        fields = list(parent)
    else:
        fields = [parent.field(i) for i in range(parent.num_fields)]
    for field in fields:
        yield field
        yield from _all_fields(field.type)


def number_of(field: pa.Field) -> int | None:
    """The number of a column in the schema of a file; None if it has none."""
    text = (field.metadata or {}).get(_NUMBER)
    return None if text is None else int(text)


def renamed(schema: pa.Schema, places: Mapping[Names, Names]) -> pa.Schema:
    """The schema of a file, its columns named by their numbers.

    Those without one keep their names, behind a mark that no column asks for.
    """
    names = {path: name[-1] for name, path in places.items()}

    def of(field: pa.Field, parent: Names) -> pa.Field:
        path = (*parent, field.name)
        if pa.types.is_struct(field.type):
            inner = [of(one, path) for one in field.type]
            field = field.with_type(pa.struct(inner))
        return field.with_name(names.get(path, f"no field id: {field.name}"))

    return pa.schema([of(field, ()) for field in schema], metadata=schema.metadata)
