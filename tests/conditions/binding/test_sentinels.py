"""The first and the last day of all, which people write for "ever" and "never".

Zones move their clocks out of the years that dates of Python have.  That is no error,
and no row is lost: in ``every.txt`` of the catalogue, and here of folders.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import skipindex as sx
from tests.conditions.catalogue.entries import entries
from tests.tables import build, kept, put, put_all

CLOCKS = [
    datetime(1, 1, 1),
    datetime(2020, 2, 29, 12),
    datetime(9999, 12, 31, 23, 59, 59),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
]


TEXTS = [one.text for one in entries("every") if one.zone == "+18:00"]


def conditions(column: str) -> list[str]:
    """Those of the catalogue on instants, of a column."""
    return [re.sub(r"\bts\b", column, text) for text in TEXTS if "ts" in text]


def test_no_zone_is_known(tmp_path: Path) -> None:
    """Whatever the offset is, no row is lost."""
    dtype = pa.timestamp("us", "UTC")
    moments = [pa.array([clock.replace(tzinfo=UTC)], dtype) for clock in CLOCKS]
    table = build(put_all(tmp_path, [{"ts": one} for one in moments]), {"ts": "bitmap"})
    for text in conditions("ts"):
        low, high = table.plan(text).count_bounds
        assert 0 <= low <= (4 if high is None else high), text
    for text in ("ts > '2020-02-28' AND ts < '2020-03-02'", "ts < '9999-12-31'"):
        assert kept(table, text) == table.paths


@pytest.mark.few(6)
@pytest.mark.parametrize("zone", ["UTC", "+18:00", "America/New_York", None])
@pytest.mark.parametrize("declared", ["UTC", "-18:00", "Asia/Tokyo", None])
def test_folders_of_the_sentinels(
    tmp_path: Path, zone: str | None, declared: str | None
) -> None:
    """Columns of folders, and folders that were made of a column, in UTC."""
    for i, clock in enumerate(CLOCKS):
        day, time = str(clock)[:19].split(" ")
        folder = f"day={day}/at={day} {time.replace(':', '%3A')}"
        moment = pa.array([clock.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))
        put(tmp_path / folder / f"{i}.parquet", {"ts": moment})
    derived = sx.Derived({"day": "CAST(ts AS DATE)"}, declared)
    table = sx.open_table(tmp_path, derived=derived)
    for text in (*conditions("ts"), *conditions("at")):
        table.plan(text, timezone=zone)
    for clock in CLOCKS if declared in {"UTC", None} else []:
        found = kept(table, f"ts = TIMESTAMP '{clock}Z'", timezone=zone)
        assert any(f"day={str(clock)[:10]}/" in path for path in found), clock
    last = kept(table, f"day >= '{date.max}'", timezone=zone)
    assert [path[-9:] for path in last] == ["2.parquet", "3.parquet"]
