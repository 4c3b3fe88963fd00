"""Partitions: those of a catalog, and hidden ones."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import PredicateError
from tests.spark.pruning.scans import files_read, rows_of, set_for, with_and_without
from tests.spark.pruning.worlds import World
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


@pytest.fixture
def session(pruned: SparkSession) -> Iterator[SparkSession]:
    with settings(pruned, {ZONE: "UTC"}):
        yield pruned


def n_listed(session: SparkSession) -> int:
    """The files that Spark has found in folders, since it was asked last."""
    metrics = session._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
    n = int(metrics.METRIC_FILES_DISCOVERED().getCount())
    metrics.reset()
    return n


def test_folders_that_are_not_needed_are_not_listed(
    world_of: Callable[[str], World], pruned: SparkSession
) -> None:
    session = world_of("folders").session
    session.catalog.refreshTable("by_string")
    n_listed(session)
    session.table("by_string").where("ctime >= '2023-12-01'").collect()
    assert n_listed(session) == 2
    session.table("by_string").where("id = 3").collect()
    assert n_listed(session) == 11, "Spark remembers the others"
    told = [str(plan) for plan in sx.last_plans(pruned)]
    assert "2 of 13 partitions" in told[-2]
    assert "13 of 13 partitions" in told[-1]


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
        with set_for(session, {"skipindex.enabled": "false"}):
            assert rows_of(session.sql(text)) == found, condition
        n_wanted = len({row.p for row in found})
        assert n_wanted <= n_read <= n_wanted + 3, condition
        skipped += n_partitions - n_read
    assert skipped > n_partitions
    session.sql("DROP TABLE drawn")


# A table of Hive's metastore, in a process of its own, whose texts of times became
# folders: the table and the queries of the article that hidden partitions come from.
ROOT: Final = Path(__file__).parents[3]


SESSION: Final = """
import json, os, sys
import skipindex as sx
from ssb.session import local_session

here = os.getcwd()
spark = local_session("hive", cores=2, memory="1g", conf={
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.warehouse.dir": f"{here}/warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL":
        f"jdbc:derby:;databaseName={here}/metastore;create=true",
    "spark.driver.extraJavaOptions": f"-Dderby.system.home={here}",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.session.timeZone": "UTC",
})

def of(condition):
    found = spark.sql(f"SELECT id, dt FROM hts WHERE {condition}")
    rows = sorted(map(tuple, found.collect()))
    plan = found._jdf.queryExecution().executedPlan()
    scan = plan
    while scan.getClass().getSimpleName() != "FileSourceScanExec":
        scan = scan.children().head()
    shown = plan.toString().split("PartitionFilters: [")[1]
    return rows, scan.metrics().apply("numFiles").value(), shown.split("]")[0]

spark.sql('''CREATE TABLE hts (id STRING, dt STRING)
    PARTITIONED BY (year STRING, month STRING, day STRING) STORED AS PARQUET
    TBLPROPERTIES ('skipindex.time.field' = 'dt',
                   'skipindex.time.format' = 'yyyy-MM-dd HH:mm:ss')''')
"""


PROGRAM: Final = """
texts = ["2021-12-11 08:00:00", "2021-12-12 00:00:00", "2022-11-29 23:59:59",
         "2022-11-30 11:00:00", "2022-11-30 13:00:00", "2022-12-01 00:00:00",
         "2023-01-01 10:00:00"]
rows = [(str(i), text, *text[:10].split("-")) for i, text in enumerate(texts)]
names = ["id", "dt", "year", "month", "day"]
spark.createDataFrame(rows, names).coalesce(1).createOrReplaceTempView("made")
spark.sql("INSERT INTO hts SELECT * FROM made")

found = []
for condition in json.loads(sys.argv[1]):
    plain = of(condition)
    sx.enable(spark)
    found.append([condition, plain, of(condition)])
    sx.disable(spark)
table = sx.open_table("default.hts")
print(json.dumps([found, table.status().derived, len(table)]))
spark.stop()
"""


AT: Final = "2022-11-30 12:00:00"


READ: Final = {
    f"dt > '{AT}'": 3,
    f"dt >= '{AT}'": 3,
    f"'{AT}' < dt": 3,
    f"dt < '{AT}'": 4,
    "substring(dt, 1, 10) >= '2021-12-12'": 5,
    "dt = '2022-12-01 00:00:00'": 1,
    "dt LIKE '2022-11%'": 2,
    f"to_timestamp(dt) > TIMESTAMP '{AT}'": 3,
    "concat(year, month, day) >= '20221130'": 3,
    "year = '2022' AND dt > '2022-12'": 1,
    "id = '3'": 6,
}
"""Conditions, and how many of the six folders are read."""


MANY: Final = """
from datetime import date, timedelta

first = date(1998, 1, 1)
days = [str(first + timedelta(i)).split("-") for i in range(10_000)]
one = "PARTITION (year = '{}', month = '{}', day = '{}')"
spark.sql("ALTER TABLE hts ADD " + "\\n".join(one.format(*day) for day in days))
texts = ["1998-01-01 08:00:00", "2021-12-12 00:00:00", "2022-11-30 11:00:00",
         "2022-11-30 13:00:00", "2022-12-01 00:00:00", "2025-05-18 23:59:59"]
rows = [(str(i), text, *text[:10].split("-")) for i, text in enumerate(texts)]
names = ["id", "dt", "year", "month", "day"]
spark.createDataFrame(rows, names).coalesce(1).createOrReplaceTempView("made")
spark.sql("INSERT INTO hts SELECT * FROM made")
metrics = spark._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics

def listed(condition):
    metrics.reset()
    found = of(condition)
    fetched = metrics.METRIC_PARTITIONS_FETCHED().getCount()
    return fetched, metrics.METRIC_FILES_DISCOVERED().getCount(), *found

conditions = json.loads(sys.argv[1])
sx.enable(spark)
found = []
for condition in conditions:
    spark.catalog.refreshTable("hts")
    found.append([condition, listed(condition)])
sx.disable(spark)
print(json.dumps([found, listed(conditions[0]), len(days)]))
spark.stop()
"""


LISTED: Final = {
    f"dt > '{AT}' AND dt < '2022-12-03'": (3, 2, "34"),
    "dt BETWEEN '2022-11-30 00:00:00' AND '2022-11-30 12:00:00'": (1, 1, "2"),
    "to_date(dt, 'yyyy-MM-dd HH:mm:ss') = DATE '2025-05-18'": (1, 1, "5"),
    "substring(dt, 1, 4) = '2021'": (365, 1, "1"),
    "dt < '1998-02' OR dt >= '2025-05-01'": (31 + 18, 2, "05"),
    f"dt > '{AT}'": (901, 3, "345"),
}
"""Of 10,000 partitions those that can match, their files, and the rows."""


def run(folder: Path, program: str, conditions: Iterable[str]) -> Any:
    """What a program says of conditions, in a process and a metastore of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION + program, json.dumps(list(conditions))],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([f"{ROOT}/src", str(ROOT)])},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.slow
def test_the_articles_example_reads_the_folders_that_can_match(tmp_path: Path) -> None:
    found, derived, n_files = run(tmp_path, PROGRAM, READ)
    for condition, plain, skipping in found:
        rows, n_read, shown = skipping
        assert rows == plain[0], condition
        assert n_read == READ[condition], (condition, shown)
        if "year" not in condition:
            assert plain[1:] == [6, ""]
            assert bool(shown) == (n_read < 6), condition
    moment = "to_timestamp_ntz(dt, 'yyyy-MM-dd HH:mm:ss')"
    parts: dict[str, Any] = {"year": "year", "month": "month", "day": "dayofmonth"}
    assert derived == {name: f"{part}({moment})" for name, part in parts.items()}
    assert n_files == 6


@pytest.mark.slow
def test_of_many_partitions_those_are_listed_that_can_match(tmp_path: Path) -> None:
    """The metastore gives no others, and no other folder is listed."""
    found, plain, n_partitions = run(tmp_path, MANY, LISTED)
    assert len(found) == len(LISTED)
    for condition, (*listed, rows, n_read, _) in found:
        n_fetched, n_files, wanted = LISTED[condition]
        assert listed == [n_fetched, n_files], condition
        assert n_read == n_files, condition
        assert [row[0] for row in rows] == list(wanted), condition
    assert plain[0] == n_partitions
    assert plain[2] == found[0][1][2]
