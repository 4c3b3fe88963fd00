"""Derived partition columns: the functions of other columns that they hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skipindex.expressions import Reference

PREFIX: Final = "skipindex."
"""What the properties of a catalog's table that declare its partitions begin with."""
_FUNCTIONS: Final = f"{PREFIX}derived."
_ZONE: Final = f"{_FUNCTIONS}timezone"
_FIELD: Final = f"{PREFIX}time.field"
_FORMAT: Final = f"{PREFIX}time.format"
_PARTS: Final = ("year", "month", "day", "hour")


def of_time_field(
    field: str, pattern: str | None, partitions: Sequence[str]
) -> dict[str, str]:
    """The functions that year, month, day and hour are of a time field.

    Args:
        field: a column of times; of texts, if there is a ``pattern``.
        pattern: of the texts, as Spark's ``to_timestamp`` takes it.
        partitions: the partition columns; those of other names are left out.

    >>> of_time_field("dt", "yyyy-MM-dd", ["Year", "city"])
    {'Year': "year(to_timestamp_ntz(dt, 'yyyy-MM-dd'))"}
    """
    moment = str(Reference((field,)))
    if pattern is not None:
        quoted = pattern.replace("\\", "\\\\").replace("'", "\\'")
        moment = f"to_timestamp_ntz({moment}, '{quoted}')"
    return {
        name: f"{name.lower()}({moment})"
        for name in partitions
        if name.lower() in _PARTS
    }


@dataclass(frozen=True, slots=True)
class Derived:
    """The functions that the partition columns of a table were computed by.

    Args:
        columns: by partition column, a function of a column of the files in SQL.
        timezone: of the session that wrote; None if it is not known.

    >>> sx.Derived({"year": "year(ctime)"}, "UTC").columns
    {'year': 'year(ctime)'}
    """

    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timezone: str | None = None

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], partitions: Sequence[str]
    ) -> Derived:
        """What the properties of a catalog's table, or the options of a read, declare.

        ``skipindex.derived.year`` has the function of the partition column ``year``,
        ``skipindex.derived.timezone`` the zone.  ``skipindex.time.field`` and
        ``skipindex.time.format`` are short for the functions of columns named year,
        month, day and hour.  Spark's options know no capitals, so no name has any here.

        >>> of_texts = {
        ...     "skipindex.time.field": "dt", "skipindex.time.format": "yyyy-MM-dd HH"
        ... }
        >>> sx.Derived.from_properties(of_texts, ["year"]).columns
        {'year': "year(to_timestamp_ntz(dt, 'yyyy-MM-dd HH'))"}
        """
        told = {name.lower(): value for name, value in properties.items()}
        columns: dict[str, str] = {}
        if _FIELD in told:
            columns = of_time_field(told[_FIELD], told.get(_FORMAT), partitions)
        zone = told.pop(_ZONE, None)
        names = {name.lower(): name for name in partitions}
        for name, function in told.items():
            if name.startswith(_FUNCTIONS):
                column = name.removeprefix(_FUNCTIONS)
                columns[names.get(column, column)] = function
        return cls(columns, zone)

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
