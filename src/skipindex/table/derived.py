"""Derived partition columns: functions of data columns, and where they are declared."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from skipindex.expressions.names import quoted

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


@dataclass(frozen=True, slots=True)
class Derived:
    """The functions by which the partition columns of a table were computed.

    A function may parse a time from text, as ``to_timestamp(dt, 'yyyy-MM-dd')`` does.
    Texts that Spark's parser refuses are in the partition of NULL.  With
    ``spark.sql.legacy.timeParserPolicy=LEGACY``, and without a pattern, Spark accepts
    more texts.  Then comparisons by ``<`` and ``>`` skip no folder.  Times before the
    year 1 that ``date_format`` wrote under that setting, without a sign, are not found.

    Args:
        columns: by partition column, a function of a column of the files, in SQL.
        timezone: the time zone of the session that wrote; None if it is not known.

    >>> sx.Derived({"year": "year(ctime)"}, "UTC").columns
    {'year': 'year(ctime)'}
    """

    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timezone: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The table property ``derived``."""
        return {"columns": dict(self.columns), "zone": self.timezone}

    @classmethod
    def from_json(cls, value: Any) -> Derived:
        """The inverse of ``to_json``; any other value declares nothing."""
        try:
            columns, zone = dict(value["columns"]), value["zone"]
        except (KeyError, TypeError, ValueError):
            return cls()
        texts = all(isinstance(v, str) for v in [*columns, *columns.values()])
        known = zone is None or isinstance(zone, str)
        return cls(columns, zone) if texts and known else cls()


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
