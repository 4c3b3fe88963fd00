"""Derived partition columns: functions of data columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
