"""Plans by the rules of a time zone, beside Spark's own answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.conditions.functions.zones import offsets_here
from skipindex.planner.plan import plan_files
from skipindex.spark.reading import read as reading
from skipindex.spark.reading.read import offsets_in
from tests.conditions.functions.test_wall_clocks import ZONES, changes, shifted
from tests.spark.reading.whole import NO_PUSHDOWN, ZONE, rows, settings
from tests.tables import build, put_all

pytestmark = pytest.mark.spark

UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE")
FORMS = (
    *("t >= '{wall}'", "t = TIMESTAMP '{wall}'", "t <> TIMESTAMP '{wall} {zone}'"),
    *("t < DATE '{day}'", "t IN (TIMESTAMP '{wall}', TIMESTAMP '{day} 00:00:00')"),
    *("CAST(t AS DATE) = DATE '{day}'", "CAST(t AS DATE) <> DATE '{day}'"),
    *(
        "year(t) = {year}",
        "hour(t) = 2",
        "t <=> '{wall}'",
        "CAST(t AS STRING) > '{day}'",
    ),
    *("date_trunc('{unit}', t) <= TIMESTAMP '{wall}'",),
    *("date_trunc('{unit}', t) = date_trunc('{unit}', TIMESTAMP '{wall}')",),
    *("date_trunc('{unit}', d) > TIMESTAMP '{wall}'",),
    *("date_trunc('{unit}', n) >= TIMESTAMP '{wall}'",),
    *("CAST(n AS TIMESTAMP) < TIMESTAMP '{wall}'", "CAST(d AS TIMESTAMP) > '{wall}'"),
    *("n >= TIMESTAMP '{wall}'", "n <> TIMESTAMP '{wall} {zone}'"),
    *("n IN (TIMESTAMP '{wall}')", "n < TIMESTAMP '{wall}'", "n >= '{wall}'"),
    *("CAST(n AS TIMESTAMP) = '{wall}'", "CAST(t AS TIMESTAMP_NTZ) >= '{wall}'"),
    *("t + INTERVAL 1 DAY < '{wall}'", "t - INTERVAL '1 12' DAY TO HOUR >= '{wall}'"),
    *("last_day(t) > DATE '{day}'", "date_format(t, 'yyyy-MM-dd HH') < '{wall}'"),
)


def conditions(zone: str, change: int, random_: random.Random) -> Iterator[str]:
    rules = ZoneInfo(zone)
    for form in FORMS:
        second = change + random_.choice([0, 0, 1800, -1800, 3600, -3600, 86_400, -900])
        wall = datetime.fromtimestamp(second, rules).replace(tzinfo=None)
        wall += timedelta(seconds=random_.choice([0, 0, 0, 900, -900, 3600, -3600]))
        yield form.format(
            wall=wall.isoformat(sep=" "),
            day=wall.date() + timedelta(days=random_.choice([0, 0, 1])),
            year=wall.year,
            zone=zone,
            unit=random_.choice(UNITS),
        )


@pytest.mark.few(1)
@pytest.mark.parametrize("zone", ZONES)
def test_rows_around_changes_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    random_ = random.Random(zone)
    near = random_.sample(changes(zone), min(3, len(changes(zone))))
    moments = [
        datetime.fromtimestamp(change, UTC) + timedelta(minutes=30 * n, seconds=n % 2)
        for change in near
        for n in (-100, -48, *range(-4, 5), 48, 100)
    ]
    clocks = [
        moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for moment in moments
    ]
    skipped = [clock + timedelta(minutes=30) for clock in clocks]
    kind = pa.timestamp("us", "UTC")
    files = [
        {
            "i": [i],
            "t": pa.array([moments[i]], kind),
            "n": pa.array([skipped[i]], pa.timestamp("us")),
            "d": pa.array([clocks[i].date()], pa.date32()),
        }
        for i in range(len(moments))
    ]
    put_all(tmp_path, files)
    table = build(tmp_path, {"*": "bitmap"})
    texts = [text for one in near for text in conditions(zone, one, random_)]
    with settings(spark, {**NO_PUSHDOWN, ZONE: zone}):
        tests = [sf.expr(text).alias(f"c{n}") for n, text in enumerate(texts)]
        judged = spark.read.parquet(str(tmp_path)).select("i", *tests).collect()
        there = offsets_in(spark)
    found: Counter[str] = Counter()
    for n, text in enumerate(texts):
        wanted = {row["i"] for row in judged if row[f"c{n}"]}
        plan = table.plan(text, timezone=zone).under(there)
        kept = {int(path.partition(".")[0]) for path in plan.paths}
        assert kept >= wanted, text
        low, high = plan.count_bounds
        assert low <= len(wanted), text
        assert high is None or len(wanted) <= high, text
        try:
            arrow = plan.to_arrow().to_table()["i"].to_pylist()
        except sx.PlanError:
            continue
        found[text.partition(" ")[0]] += 1
        assert set(arrow) == wanted, text
    assert found["t"] > 10, "literals are exact for all engines"


def built_from(folder: Path, first: datetime, step: timedelta) -> sx.Table:
    """A file for each of 48 moments."""
    kind = pa.timestamp("us", "UTC")
    moments = [first + n * step for n in range(48)]
    put_all(folder, [{"t": pa.array([moment], kind)} for moment in moments])
    return build(folder, {"t": "bitmap"})


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "condition",
    ["t >= '2024-01-05 10:00:00'", "hour(t) >= 0 AND CAST(t AS DATE) = '2024-01-05'"],
)
def test_no_row_is_lost_where_java_has_other_rules(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
) -> None:
    first = datetime(2024, 1, 4, 12, tzinfo=UTC)
    table = built_from(tmp_path, first, timedelta(hours=1))
    zone = "Europe/Berlin"
    with settings(spark, {**NO_PUSHDOWN, ZONE: zone}):
        whole = spark.read.parquet(str(tmp_path)).where(condition)
        plan = plan_files(condition, table=table.state, timezone=zone, offsets=shifted)
        right = table.plan(condition, timezone=zone)
        assert set(right.paths) != set(plan.paths)
        assert right.under(offsets_in(spark)) is right
        assert rows(plan.read(spark)) == rows(whole)
        assert plan.count(spark) == whole.count()
        monkeypatch.setattr(reading, "plan_files", partial(plan_files, offsets=shifted))
        assert rows(sx.read(table, condition, spark=spark)) == rows(whole)
        assert len(plan.read(spark).inputFiles()) == len(right.paths)


@pytest.mark.few(1)
@pytest.mark.parametrize("zone", ["EST", "MST", "Etc/GMT+1", "CET", "EST5EDT"])
def test_names_that_java_takes_for_its_own_zones(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    first = datetime(2024, 7, 5, tzinfo=UTC)
    table = built_from(tmp_path, first, timedelta(minutes=30))
    condition = "t >= '2024-07-05 10:00:00' AND hour(t) < 24"
    with settings(spark, {**NO_PUSHDOWN, ZONE: zone}):
        whole = spark.read.parquet(str(tmp_path)).where(condition)
        assert rows(sx.read(table, condition, spark=spark)) == rows(whole)
        assert whole.count() == table.plan(condition, timezone=zone).count(spark)


def test_a_zone_that_java_has_not_is_unknown_there(spark: SparkSession) -> None:
    there = offsets_in(spark)
    assert there("Mars/Olympus", 0, 86_400) is None
    assert there("Europe/Berlin", 0, 86_400) == offsets_here("Europe/Berlin", 0, 86_400)
