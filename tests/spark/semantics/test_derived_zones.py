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


def ranked(value: str) -> tuple[int, str]:
    """A number, a date or a text, by its order."""
    return (int(value), "") if value.lstrip("-").isdecimal() else (0, value)


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
                same = [v == wanted for v in said]
                above = [ranked(v) > ranked(wanted) for v in said]
                for text, truth in (
                    (f"{function} = {literal}", same),
                    (f"{function} != {literal}", [not one for one in same]),
                    (f"{function} > {literal}", above),
                    (f"{function} <= {literal}", [not one for one in above]),
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


ODD_YEARS = (-12022, -2022, -2021, -1, 0, 1, 999, 1582, 2022, 9999, 10000, 12022)


@pytest.mark.few(2)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
@pytest.mark.parametrize("policy", ["CORRECTED", "LEGACY"])
def test_years_that_sort_otherwise_as_texts_are_kept(
    spark: SparkSession, tmp_path: Path, zone: str, kind: str, policy: str
) -> None:
    """Years below 0 and above 9999 have signs; the query's session may show none."""
    days = [(year - 1970) * 365.2425 + 150 for year in ODD_YEARS]
    numbers = [int(day) for day in days]
    pattern = "'yyyy-MM'"
    literals = ("'2021-06'", "'-2'", "'+12022-05'", "'0000-06'", "'9999-05'")
    conditions = [
        f"date_format(c, {pattern}) {operator} {literal}"
        for operator in ("<", ">=", "=", "!=")
        for literal in literals
    ]
    made = [(number,) for number in numbers]
    cast = f"CAST(date_from_unix_date(n) AS {kind})"
    frame = spark.createDataFrame(made, "n int").selectExpr("n", f"{cast} AS c")

    def told(policy: str, terms: Sequence[str]) -> list[list[str]]:
        wanted = {ZONE: zone, "spark.sql.legacy.timeParserPolicy": policy}
        with settings(spark, wanted):
            texts = [f"CAST({term} AS STRING)" for term in terms]
            return [list(row) for row in frame.coalesce(1).selectExpr(*texts).collect()]

    shown = [text for (text,) in told("CORRECTED", [f"date_format(c, {pattern})"])]
    values = frame.selectExpr("unix_date(c)" if kind == "DATE" else "unix_micros(c)")
    with settings(spark, {ZONE: zone}):
        plain = [row[0] for row in values.coalesce(1).collect()]
    arrow = pa.date32() if kind == "DATE" else pa.timestamp("us", "UTC")
    width = pa.int32() if kind == "DATE" else pa.int64()
    for name, value in zip(shown, plain, strict=True):
        column = pa.array([value], width).cast(arrow)
        put(tmp_path / f"p={name}/f.parquet", {"c": column}, write_statistics=False)
    declared = sx.Derived({"p": f"date_format(c, {pattern})"}, zone)
    table = sx.open_table(tmp_path, derived=declared)
    truths = told(policy, conditions)
    now = ODD_YEARS.index(2022)
    for i, condition in enumerate(conditions):
        paths = table.plan(condition, timezone=zone).paths
        lost = [
            name
            for name, truth in zip(shown, truths, strict=True)
            if truth[i] == "true" and f"p={name}/f.parquet" not in paths
        ]
        assert not lost, condition
        if zone == "UTC":
            is_kept = f"p={shown[now]}/f.parquet" in paths
            assert is_kept == (truths[now][i] == "true"), condition


@pytest.mark.slow
def test_every_function_in_every_pair_of_zones(
    spark: SparkSession, tmp_path: Path
) -> None:
    right, skipped = sweep(spark, tmp_path, FUNCTIONS, ZONES)
    print(f"{right} plans right, {skipped} folders skipped")
    assert right > 3000
    assert skipped > 3000
