"""Declarations of what partition columns were computed from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from skipindex.expressions.names import quoted
from skipindex.table.partitions.derived import Derived

_COLUMN: Final = "skipindex.derived."
_ZONE: Final = "skipindex.derived.timezone"
_FIELD: Final = "skipindex.time.field"
_FORMAT: Final = "skipindex.time.format"
_PARTS: Final[Mapping[str, str]] = {
    "year": "year",
    "month": "month",
    "day": "dayofmonth",
    "hour": "hour",
}
"""The function of a time that a partition column of this name holds."""


def parts_of_time(
    field: str, layout: str | None, partitions: Iterable[str], schema: pa.Schema
) -> dict[str, str]:
    """The functions that partition columns named year, month, day and hour hold.

    ``field`` is a column of the files, whose texts are of the format ``layout``; of a
    column of times it does not count.
    """
    time = quoted(field)
    kinds = {f.type for f in schema if f.name.lower() == field.lower()}
    if layout is not None and not any(map(pa.types.is_temporal, kinds)):
        text = re.sub(r"(['\\])", r"\\\1", layout)
        time = f"to_timestamp_ntz({time}, '{text}')"
    names = [name for name in partitions if name.lower() in _PARTS]
    # Where there is none, the plan says that there is no partition column of the name.
    return {name: f"{_PARTS[name.lower()]}({time})" for name in names or ["year"]}


def derived_by(
    properties: Mapping[str, str], partitions: Iterable[str], schema: pa.Schema
) -> Derived | None:
    """The declaration in the options of a read, or in the properties of a table.

    Args:
        properties: by name in small letters; others than ours do not count.
        partitions: the names of the partition columns.
        schema: of the files, whatever else it has.

    Returns:
        None if nothing is declared.  Nothing is checked: plans report what is not true
        of any table.
    """
    columns: dict[str, str] = {}
    if _FIELD in properties:
        layout = properties.get(_FORMAT)
        columns = parts_of_time(properties[_FIELD], layout, partitions, schema)
    own = {name.lower(): name for name in columns}
    for key, text in properties.items():
        if key.startswith(_COLUMN) and key != _ZONE:
            name = key.removeprefix(_COLUMN)
            columns[own.get(name, name)] = text
    return Derived(columns, properties.get(_ZONE)) if columns else None
