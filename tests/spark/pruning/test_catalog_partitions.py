"""Partitions of a catalog's table are left out before their files are listed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.spark.pruning.scans import files_read, rows_of
from tests.spark.reading.whole import ZONE, settings

pytestmark = pytest.mark.spark

FIRST = date(2021, 11, 28)
DAYS = [FIRST + timedelta(67 * i) for i in range(12)]
SWITCH = "skipindex.enabled"
DECLARED = {
    "skipindex.derived.year": "year(ctime)",
    "skipindex.derived.month": "month(ctime)",
    "skipindex.derived.day": "dayofmonth(ctime)",
    "skipindex.derived.timezone": "UTC",
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with settings(spark, {ZONE: "UTC"}):
        yield spark


@pytest.fixture(scope="module", params=["string", "int"])
def events(
    session: SparkSession,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """A partition a day, and one of NULL; with no index."""
    session.sql("DROP TABLE IF EXISTS events")
    root = tmp_path_factory.mktemp("catalog") / "events"
    kind = request.param
    declared = ", ".join(f"'{key}' = '{value}'" for key, value in DECLARED.items())
    session.sql(
        "CREATE TABLE events (id INT, ctime TIMESTAMP, "
        f"year {kind}, month {kind}, day {kind}) USING parquet "
        f"PARTITIONED BY (year, month, day) LOCATION 'file:{root}' "
        f"TBLPROPERTIES ({declared})"
    )
    moments = [datetime.combine(day, time(hour)) for day in DAYS for hour in (0, 12)]
    rows = [(i, moment) for i, moment in enumerate([*moments, None])]
    made = session.createDataFrame(rows, "id int, ctime timestamp").selectExpr(
        "*", *(f"CAST({part}(ctime) AS {kind})" for part in ("year", "month", "day"))
    )
    made.repartition(1).createOrReplaceTempView("made")
    session.sql("INSERT INTO events SELECT * FROM made")
    sx.enable(session)
    yield "events"
    sx.disable(session)
    session.sql("DROP TABLE events")


def of(session: SparkSession, condition: str) -> tuple[int, str]:
    """The number of files that are read, and the filters of partitions."""
    text = f"SELECT id, ctime, year, day FROM events WHERE {condition}"
    found = session.sql(text)
    rows = rows_of(found)
    n_files = files_read(session.sql(text))
    plan = session.sql(text)._jdf.queryExecution().executedPlan().toString()
    session.conf.set(SWITCH, "false")
    try:
        assert rows_of(session.sql(text)) == rows
    finally:
        session.conf.unset(SWITCH)
    return n_files, plan.split("PartitionFilters: [")[1].split("]")[0]


N = len(DAYS) + 1
"""The last is that of NULL, which no condition on times leaves out."""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("condition", "n_files"),
    [
        (
            "ctime > '2022-11-30 12:00:00'",
            1 + sum(str(d) >= "2022-11-30" for d in DAYS),
        ),
        ("'2022-01-30' >= ctime", 2),
        ("ctime = '2022-10-29 12:00:00'", 2),
        ("ctime > '2030-01-01'", 1),
        ("ctime > '2022-11-30' AND year = 2023", 6),
        ("ctime < '2022-01-01' OR ctime >= '2023-12-01'", 3),
        ("ctime IS NULL", N),
        ("id = 3", N),
    ],
)
def test_a_range_of_times_is_a_filter_of_partitions(
    session: SparkSession, events: str, condition: str, n_files: int
) -> None:
    found, shown = of(session, condition)
    assert found == n_files
    assert bool(shown) == (n_files < N)


def n_listed(session: SparkSession) -> int:
    """The files that Spark has found in folders, since it was asked last."""
    metrics = session._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
    n = int(metrics.METRIC_FILES_DISCOVERED().getCount())
    metrics.reset()
    return n


def test_folders_that_are_not_needed_are_not_listed(
    session: SparkSession, events: str
) -> None:
    session.catalog.refreshTable(events)
    n_listed(session)
    session.table(events).where("ctime >= '2023-12-01'").collect()
    assert n_listed(session) == 2
    session.table(events).where("id = 3").collect()
    assert n_listed(session) == N - 2, "Spark remembers the others"
    told = [str(plan) for plan in sx.last_plans(session)]
    assert f"2 of {N} partitions" in told[-2]
    assert f"{N} of {N} partitions" in told[-1]


@pytest.mark.few(1)
def test_subqueries_joins_and_views(session: SparkSession, events: str) -> None:
    session.sql(
        "CREATE OR REPLACE TEMP VIEW late AS SELECT * FROM events "
        "WHERE ctime >= '2023-12-01'"
    )
    text = (
        "SELECT l.id, e.id AS other FROM late l JOIN events e ON l.day = e.day "
        "WHERE e.ctime < '2022-01-01' OR e.id IN (SELECT max(id) FROM late)"
    )
    found = rows_of(session.sql(text))
    session.conf.set(SWITCH, "false")
    try:
        assert rows_of(session.sql(text)) == found
    finally:
        session.conf.unset(SWITCH)


def test_a_partition_that_came_after_the_plan_is_read(
    session: SparkSession, tmp_path: Path
) -> None:
    """Spark lists partitions when a query runs, and may have planned it long before."""
    session.sql("DROP TABLE IF EXISTS growing")
    session.sql(
        "CREATE TABLE growing (id INT, at TIMESTAMP, day DATE) USING parquet "
        f"PARTITIONED BY (day) LOCATION 'file:{tmp_path}/growing' TBLPROPERTIES "
        "('skipindex.derived.day' = 'date(at)', 'skipindex.derived.timezone' = 'UTC')"
    )

    def add(number: int) -> None:
        day = f"2022-01-{number:02}"
        session.sql(
            f"INSERT INTO growing SELECT {number}, TIMESTAMP '{day} 12:00:00', "
            f"DATE '{day}'"
        )

    for number in (1, 2, 5):
        add(number)
    sx.enable(session)
    planned = session.table("growing").where("at > '2022-01-02'")
    plan = planned._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [day" in plan
    add(4)
    assert sorted(row.id for row in planned.collect()) == [2, 4, 5]
    assert files_read(session.table("growing").where("at > '2022-01-02'")) == 3
    session.sql("DROP TABLE growing")


FUNCTIONS = {
    "INT": ("n DIV 3", "n {} {n}"),
    "BIGINT": ("CAST(n AS BIGINT)", "n {} {n}"),
    "DATE": ("CAST(d AS DATE)", "d {} DATE '2024-02-20' + INTERVAL {n} DAY"),
    "STRING": ("substring(s, 1, 1)", "s {} chr({n} + 70)"),
}
"""By type of a partition column, what it is made of, and a condition on that."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_spark_finds_the_partitions_of_drawn_conditions(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Many values become a range, of numbers below zero too, and NULL stays."""
    function, form = FUNCTIONS[kind]
    session.sql("DROP TABLE IF EXISTS drawn")
    session.sql(
        f"CREATE TABLE drawn (n INT, d TIMESTAMP, s STRING, p {kind}) USING parquet "
        f"PARTITIONED BY (p) LOCATION 'file:{tmp_path}/drawn' TBLPROPERTIES ("
        f"'skipindex.derived.p' = '{function}', 'skipindex.derived.timezone' = 'UTC')"
    )
    session.range(-30, 31).selectExpr(
        "IF(id = 30, NULL, CAST(id AS INT)) AS n",
        "IF(id = 30, NULL, TIMESTAMP '2024-02-20' + make_interval(0, 0, 0, id)) AS d",
        "IF(id = 30, NULL, chr(id + 70)) AS s",
    ).coalesce(1).createOrReplaceTempView("rows")
    session.sql(f"INSERT INTO drawn SELECT *, CAST({function} AS {kind}) FROM rows")
    n_partitions = session.sql("SHOW PARTITIONS drawn").count()
    sx.enable(session)
    rng = random.Random(kind)
    skipped = 0
    for _ in range(6):
        parts = [
            form.format(rng.choice(["<", "<=", ">", ">=", "=", "<>"]), n=n)
            for n in rng.sample(range(-32, 32), 2)
        ]
        condition = f"({parts[0]}) {rng.choice(['AND', 'OR'])} ({parts[1]})"
        text = f"SELECT n, p FROM drawn WHERE {condition}"
        found = rows_of(session.sql(text))
        n_read = files_read(session.sql(text))
        session.conf.set(SWITCH, "false")
        assert rows_of(session.sql(text)) == found, condition
        session.conf.unset(SWITCH)
        n_wanted = len({row.p for row in found})
        assert n_wanted <= n_read <= n_wanted + 3, condition
        skipped += n_partitions - n_read
    assert skipped > n_partitions
    session.sql("DROP TABLE drawn")
