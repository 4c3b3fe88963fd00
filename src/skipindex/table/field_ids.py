"""Columns of files that are known by a number, whatever a file calls them.

Iceberg gives every column and every field of a struct a number, which stays when it is
renamed and is never used again (the Iceberg specification, "Column Projection").  So an
index is stored under the number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from skipindex.errors import UnsupportedTypeError

_NUMBER: Final = b"PARQUET:field_id"
_NAME: Final = re.compile(r"field-id#\d+", re.ASCII)

Names = tuple[str, ...]
"""The path of a column: its name, then those of fields of structs."""


def field_id_name(number: int) -> str:
    """The name under which a column with this number is stored."""
    return f"field-id#{number}"


def field_id_of(name: str) -> int:
    """The number of a column that is stored under such a name."""
    return int(name.rpartition("#")[2])


def is_field_id(name: str) -> bool:
    """Whether a column of that name would be taken for one that has a number."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class FieldIds:
    """What gives the columns of a file their numbers.

    Args:
        by_name: the numbers of the columns of a file that has none in it, by path.
    """

    by_name: Mapping[Names, int]

    def places(self, schema: pa.Schema) -> dict[Names, Names]:
        """The path of every column and field by the path of its names' numbers.

        A column without a number is omitted, as Iceberg does not read it.

        Raises:
            UnsupportedTypeError: the file has no numbers, and ``by_name`` none for it.
        """
        fields = _fields(schema, ())
        numbers = {path: number_of(field) for path, field in fields}
        if set(numbers.values()) == {None}:
            numbers = {path: self.by_name.get(path) for path, _ in fields}
        if not any(n is not None for n in numbers.values()):
            raise UnsupportedTypeError(
                "its columns have no field ids, and the table maps no names to them"
            )
        result: dict[Names, Names] = {}
        for path, _ in fields:
            parts = [numbers[path[: i + 1]] for i in range(len(path))]
            known = [field_id_name(n) for n in parts if n is not None]
            if len(known) == len(path):
                result[tuple(known)] = path
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
