"""Partitions: those of a catalog, and hidden ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import PredicateError
from tests.spark.pruning.scans import files_read, rows_of, with_and_without
from tests.spark.pruning.worlds import DAYS, World
from tests.spark.reading.whole import ZONE, settings

pytestmark = pytest.mark.spark


def test_a_field_is_declared_for_all_parts(
    world_of: Callable[[str], World],
) -> None:
    opened = sx.open_table(world_of("folders").folder / "events")
    former = opened.status().derived
    again = opened.declare_derived(field="ctime", format="yyyy", timezone="UTC")
    assert again.status().derived == former
    for given in ({}, {"columns": former, "format": "yyyy"}):
        with pytest.raises(PredicateError, match="nothing to declare"):
            opened.declare_derived(**given)
    with pytest.raises(PredicateError, match="no column 'other'"):
        opened.declare_derived(field="other")


LATE = "ts >= '2021-11-15 00:00:00'"
"""Two of the six months."""
PAIR = {
    "skipindex.time.field": "ts",
    "skipindex.time.format": "yyyy-MM-dd HH:mm:ss",
    "skipindex.derived.timezone": "UTC",
}
COLUMNS = {
    "skipindex.derived.YEAR": "year(ts)",
    "skipindex.derived.month": "month(ts)",
    "skipindex.derived.timezone": "UTC",
}


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Six months from July to December 2021, in a file each, in folders of texts."""
    folder = tmp_path / "events"
    with settings(spark, {ZONE: "UTC"}):
        spark.sql(
            "CREATE TABLE events (id BIGINT, ts TIMESTAMP, year STRING, month STRING) "
            f"USING parquet PARTITIONED BY (year, month) LOCATION 'file:{folder}'"
        )
        spark.sql(
            "INSERT INTO events SELECT /*+ COALESCE(1) */ id, ts, year(ts), "
            "lpad(month(ts), 2, '0') FROM (SELECT id, timestamp'2021-07-20 10:00:00' + "
            "make_interval(0, id) AS ts FROM range(6))"
        )
        sx.enable(spark)
        try:
            yield folder
        finally:
            sx.disable(spark)
            spark.conf.unset("skipindex.enabled")
            spark.sql("DROP TABLE events")


def alter(spark: SparkSession, properties: Mapping[str, str]) -> None:
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"ALTER TABLE events SET TBLPROPERTIES ({texts})")


def n_read(spark: SparkSession, where: str = LATE, source: str = "events") -> int:
    """The files of the table that are read; the rows are those of the plain query."""
    text = f"SELECT id, ts, year, month FROM {source} WHERE {where}"
    rows, some, everything = with_and_without(spark, lambda: spark.sql(text))
    assert rows
    assert everything == 6
    return some


@pytest.mark.few(1)
@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("properties", [PAIR, COLUMNS], ids=["pair", "columns"])
def test_properties_count_from_the_next_query_on(
    spark: SparkSession, properties: Mapping[str, str]
) -> None:
    assert n_read(spark) == 6
    alter(spark, properties)
    assert n_read(spark) == 2
    keys = ", ".join(f"'{key}'" for key in properties)
    spark.sql(f"ALTER TABLE events UNSET TBLPROPERTIES ({keys})")
    assert n_read(spark) == 6


@pytest.mark.slow
@pytest.mark.usefixtures("events")
def test_a_table_that_is_opened_by_its_name_has_its_properties(
    spark: SparkSession,
) -> None:
    alter(spark, PAIR)
    table = sx.open_table("events")
    declared = {"year": "year(ts)", "month": "month(ts)"}
    assert table.status().derived == declared
    assert len(table.plan(LATE, timezone="UTC").paths) == 2
    assert sx.read("events", LATE, spark=spark).count() == 2
    sx.register(spark, "events")
    assert n_read(spark) == 2
    spark.sql("ALTER TABLE events UNSET TBLPROPERTIES ('skipindex.time.field')")
    assert n_read(spark) == 6


@pytest.mark.slow
def test_options_of_a_read_count_before_properties(
    spark: SparkSession, events: Path
) -> None:
    alter(spark, {"skipindex.derived.month": "month(nothing)"})
    assert n_read(spark) == 6
    by_name = [spark.read.options(**COLUMNS).table("events")]
    for source in (
        *(by_name if spark.version >= "4" else []),  # Spark 3 drops these options
        spark.read.options(**PAIR).parquet(str(events)),
        spark.read.options(basePath=str(events), **PAIR).parquet(f"{events}/year=2021"),
    ):
        source.createOrReplaceTempView("read_so")
        assert n_read(spark, source="read_so") == 2
    spark.catalog.dropTempView("read_so")


@pytest.mark.slow
def test_what_was_committed_counts_where_nothing_else_says_it(
    spark: SparkSession, events: Path
) -> None:
    sx.open_table(events).declare_derived({"year": "year(ts)"}, timezone="UTC")
    assert n_read(spark) == 6
    alter(spark, PAIR)
    assert n_read(spark) == 2


@pytest.mark.few(1)
@pytest.mark.usefixtures("events")
@pytest.mark.parametrize(
    ("properties", "note"),
    [
        ({"skipindex.derived.yeer": "year(ts)"}, "no partition column 'yeer'"),
        ({"skipindex.derived.year": "year("}, "'year' not used"),
        ({"skipindex.derived.year": "rand()"}, "'year' not used"),
        ({"skipindex.time.field": "nothing"}, "nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_properties_are_noted(
    spark: SparkSession, properties: Mapping[str, str], note: str
) -> None:
    alter(spark, properties)
    assert n_read(spark) == 6
    last = sx.last_plans(spark)[-1]
    assert note in f"{last.problem}{last.plan and last.plan.notes}"


@pytest.mark.usefixtures("events")
def test_partitions_in_other_folders_are_those_of_the_catalog(
    spark: SparkSession, tmp_path: Path, events: Path
) -> None:
    """The catalog's value counts, whatever the folder is named, and wherever it is."""
    alter(spark, PAIR)
    # December's rows lie in the folder that is named as July, and July's elsewhere.
    july = events / "year=2021" / "month=07"
    for month, folder in (("12", july), ("07", tmp_path / "other")):
        rows = spark.sql(f"SELECT 9L AS id, timestamp'2021-{month}-24 10:00:00' AS ts")
        rows.coalesce(1).write.mode("overwrite").parquet(str(folder))
        spark.sql(f"ALTER TABLE events DROP PARTITION (year='2021', month='{month}')")
        spark.sql(
            f"ALTER TABLE events ADD PARTITION (year='2021', month='{month}') "
            f"LOCATION 'file:{folder}'"
        )
    assert not sx.open_table("events").status().derived
    assert n_read(spark, "ts >= '2021-12-01'") == 1
    assert n_read(spark, "ts < '2021-08-01'") == 1
    # Folders that a filter of the query has left are listed, and judged by their names.
    assert n_read(spark, "year = '2021' AND ts >= '2021-12-01'") == 2


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
def catalog_events(
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


N = len(DAYS) + 1
"""The last is that of NULL, which no condition on times leaves out."""


def n_listed(session: SparkSession) -> int:
    """The files that Spark has found in folders, since it was asked last."""
    metrics = session._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
    n = int(metrics.METRIC_FILES_DISCOVERED().getCount())
    metrics.reset()
    return n


def test_folders_that_are_not_needed_are_not_listed(
    session: SparkSession, catalog_events: str
) -> None:
    session.catalog.refreshTable(catalog_events)
    n_listed(session)
    session.table(catalog_events).where("ctime >= '2023-12-01'").collect()
    assert n_listed(session) == 2
    session.table(catalog_events).where("id = 3").collect()
    assert n_listed(session) == N - 2, "Spark remembers the others"
    told = [str(plan) for plan in sx.last_plans(session)]
    assert f"2 of {N} partitions" in told[-2]
    assert f"{N} of {N} partitions" in told[-1]


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
