"""Derived partitions, declared in one time zone and asked in another.

The folders are made of Spark's own values in the one zone, and the truth is Spark's in
the other: at the ends of years, months, days and hours, at summer time, in the years of
local mean time, and around a day that a zone skipped.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.spark.reading.whole import ZONE, settings
from tests.spark.versions import frame_of
from tests.tables import put

pytestmark = pytest.mark.spark

HOUR = timedelta(hours=1)
CORNERS = [
    *("1992-02-29 00:00", "2020-01-01 00:00", "2021-01-01 00:00", "2024-02-01 00:00"),
    *("2024-03-10 07:30", "2024-11-03 05:30", "2024-11-03 06:30", "2024-03-31 01:00"),
    *("2011-12-30 10:00", "2011-12-31 10:00", "1883-11-18 17:00", "1700-01-01 00:00"),
    *("1844-12-31 16:00", "1582-10-10 00:00", "1937-06-30 23:40"),
]
MOMENTS = [
    datetime.fromisoformat(corner).replace(tzinfo=UTC) + shift
    for corner in CORNERS
    for shift in (-17 * HOUR, -6 * HOUR, -1 * HOUR, 0 * HOUR, 2 * HOUR, 9 * HOUR)
]
FUNCTIONS = [
    *("year(ts)", "month(ts)", "day(ts)", "hour(ts)", "minute(ts)", "quarter(ts)"),
    *("dayofweek(ts)", "dayofyear(ts)", "weekofyear(ts)", "weekday(ts)"),
    *("CAST(ts AS DATE)", "to_date(ts)", "trunc(ts, 'MM')", "last_day(ts)"),
    *("date_format(ts, 'yyyy-MM')", "CAST(ts AS STRING)", "substring(ts, 1, 7)"),
    *("date_add(ts, 1)", "month(date_trunc('MONTH', ts))", "hour(ts) % 12"),
    *("bigint(ts)", "date_format(CAST(ts AS DATE), 'yyyy-MM-dd')"),
]
ZONES = [
    *("UTC", "+05:30", "America/New_York", "Europe/Amsterdam", "Pacific/Apia"),
    *("Asia/Manila", None),
]
"""None is a zone that was not told."""
UNTOLD = "Asia/Tokyo"


def values(
    spark: SparkSession, functions: Sequence[str], zones: Sequence[str | None]
) -> Mapping[tuple[str, str | None], Sequence[str]]:
    """What Spark makes of the moments, by function and zone, as text."""
    rows = pa.table({"ts": pa.array(MOMENTS, pa.timestamp("us", "UTC"))})
    found: dict[tuple[str, str | None], Sequence[str]] = {}
    for zone in zones:
        with settings(spark, {ZONE: zone or UNTOLD}):
            frame = frame_of(spark, rows).coalesce(1)
            texts = [f"CAST({f} AS STRING) AS c{i}" for i, f in enumerate(functions)]
            lines = frame.selectExpr(*texts).collect()
        found |= {(f, zone): [r[i] for r in lines] for i, f in enumerate(functions)}
    return found


def sweep(
    spark: SparkSession,
    folder: Path,
    functions: Sequence[str],
    zones: Sequence[str | None],
) -> tuple[int, int]:
    """How many plans were right, and how many folders they skipped."""
    made = values(spark, functions, zones)
    right = skipped = 0
    for n, (function, declared) in enumerate(itertools.product(functions, zones)):
        folders = defaultdict(list)
        for i, value in enumerate(made[function, declared]):
            folders[f"p={value.replace(':', '%3A')}"].append(i)
        place = folder / f"{n}"
        for name, rows in folders.items():
            moments = pa.array([MOMENTS[i] for i in rows], pa.timestamp("us", "UTC"))
            put(place / name / "f.parquet", {"ts": moments})
        table = sx.open_table(place, derived=sx.Derived({"p": function}, declared))
        for asked in zones:
            said = made[function, asked]
            for wanted in sorted(set(said))[::9]:
                literal = wanted if wanted.lstrip("-").isdecimal() else f"'{wanted}'"
                for text, truth in (
                    (f"{function} = {literal}", [v == wanted for v in said]),
                    (f"{function} != {literal}", [v != wanted for v in said]),
                ):
                    plan = table.plan(text, timezone=asked, kinds=["file_map"])
                    kept = {path.partition("/")[0] for path in plan.paths}
                    for name, rows in folders.items():
                        matching = any(truth[i] for i in rows)
                        where = f"{text} in {asked}, declared in {declared}: {name}"
                        assert name in kept or not matching, where
                    right += 1
                    skipped += len(folders) - len(kept)
    return right, skipped


def test_a_folder_of_one_zone_is_none_of_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    zones = ["UTC", "America/New_York", None]
    right, skipped = sweep(spark, tmp_path, ["month(ts)", "hour(ts)"], zones)
    assert right > 20
    assert skipped > 20


def test_the_same_zone_by_another_name_answers(tmp_path: Path) -> None:
    """Tight: a fixed offset is a zone, whatever it is called; so is a name."""
    for month in (1, 2):
        moment = pa.array(
            [datetime(2024, month, 9, tzinfo=UTC)], pa.timestamp("us", "UTC")
        )
        put(tmp_path / f"m={month}" / "f.parquet", {"ts": moment})
    for declared, asked, files in (
        ("UTC", "Z", 1),
        ("UTC", "+00:00", 1),
        ("+05:30", "UTC+05:30", 1),
        ("America/New_York", "America/New_York", 1),
        ("UTC", "America/New_York", 2),
        ("UTC", "+01:00", 2),
        ("UTC", None, 2),
        (None, "UTC", 2),
        (None, None, 2),
    ):
        table = sx.open_table(
            tmp_path, derived=sx.Derived({"m": "month(ts)"}, declared)
        )
        plan = table.plan("month(TS) = 1", timezone=asked)
        assert len(plan.paths) == files, (declared, asked)


@pytest.mark.slow
def test_every_function_in_every_pair_of_zones(
    spark: SparkSession, tmp_path: Path
) -> None:
    right, skipped = sweep(spark, tmp_path, FUNCTIONS, ZONES)
    print(f"{right} plans right, {skipped} folders skipped")
    assert right > 3000
    assert skipped > 3000
