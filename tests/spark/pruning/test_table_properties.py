"""Tables whose properties, or whose options of a read, say what folders are made of.

No file has an index, and no table is registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.spark.pruning.scans import with_and_without
from tests.spark.reading.whole import ZONE, settings

pytestmark = pytest.mark.spark

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
