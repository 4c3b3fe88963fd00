"""Spark reads other values than files store; then a column of a file has no index."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import PlanError
from tests.spark.reading.whole import ZONE, check_law_1, check_law_7, settings
from tests.spark.semantics.stored_grid import (
    STORED,
    TYPES,
    sweep,
)
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark

MERGE = "spark.sql.parquet.mergeSchema"

NEVER_INDEXED = {"char", "lower", "months", "days"}


@pytest.mark.slow
@pytest.mark.parametrize("declared", TYPES)
def test_every_pair_of_types_in_table_and_file(
    spark: SparkSession, tmp_path: Path, declared: str
) -> None:
    """Both readers, ANSI on and off, three zones, and settings that give types."""
    pairs = [f"{declared}__{stored}" for stored in STORED]
    variations: list[dict[str, str]] = [
        {},
        {"spark.sql.ansi.enabled": "false", ZONE: "America/New_York"},
        {
            ZONE: "Asia/Kathmandu",
            "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        },
        {"spark.sql.legacy.parquet.nanosAsLong": "true"},
    ]
    judged = sweep(spark, tmp_path, pairs, variations=variations, n_values=2)
    readable = {reader: len(names) for reader, names in judged.readable.items()}
    print(f"{declared}: {judged.verdicts} verdicts, {judged.skipped} skip, {readable}")
    assert not judged.failures, "\n".join(judged.failures[:20])
    assert judged.verdicts > 0
    assert (judged.skipped == 0) == (declared in NEVER_INDEXED)


def decimals(digits: int, *values: str) -> pa.Array:
    return pa.array(map(Decimal, values), pa.decimal128(digits, 2))


NARROW: dict[str, tuple[str, pa.Array, pa.Array, list[str]]] = {
    "smallint of either reader": (
        "true false",
        pa.array([1], pa.int16()),
        pa.array([70_000], pa.int32()),
        ["v = 4464", "v < 4464", "v > 4464"],
    ),
    "tinyint of either reader": (
        "true false",
        pa.array([1], pa.int8()),
        pa.array([200], pa.uint8()),
        ["v < 0", "v = -56", "v > 1"],
    ),
    "int of the row reader": (
        "false",
        pa.array([1], pa.int32()),
        pa.array([3_000_000_000], pa.uint32()),
        ["v < 0", "v > 1"],
    ),
    "decimal of the row reader": (
        "false",
        decimals(5, "1.25"),
        decimals(10, "12345678.90"),
        ["v IS NULL", "v > 10", "v IS NOT NULL", "-v < -1000"],
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", NARROW)
def test_values_that_a_reader_cuts_or_drops(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    readers, first, second, conditions = NARROW[name]
    table = build(put_all(tmp_path, [{"v": first}, {"v": second}]), {"v": "bitmap"})
    for reader in readers.split():
        changes = {"spark__sql__parquet__enableVectorizedReader": reader}
        check_law_1(spark, table, conditions, **changes)
        check_law_7(spark, tmp_path, conditions[0], indexes={"v": "bitmap"}, **changes)


def test_merged_schemas(spark: SparkSession, tmp_path: Path) -> None:
    """The session's types count, and a plan with others is not read."""
    wide = {"v": decimals(10, "12345678.90"), "w": [5]}
    put_all(tmp_path, [{"v": decimals(5, "1.25")}, wide, {"v": decimals(5, "2.50")}])
    table = build(tmp_path, {"v": "bitmap"})
    for condition in ("-v < -1000", "CAST(v AS BIGINT) > 5000", "v = 2.50BD"):
        check_law_7(
            spark,
            tmp_path,
            condition,
            indexes={"v": "bitmap"},
            spark__sql__parquet__mergeSchema="true",
        )
    with settings(spark, {MERGE: "true"}):
        assert sx.read(table, "w = 5", spark=spark).count() == 1
        assert sx.read(table, "w IS NULL", spark=spark).count() == 2
    plan = table.plan("v > 1000")
    assert plan.paths == ["1.parquet"]
    differ = r"mergeSchema=true, and files other than .* differ in .*'v'"
    with settings(spark, {MERGE: "true"}), pytest.raises(PlanError, match=differ):
        plan.read(spark)


def test_columns_that_the_condition_does_not_name_count_for_the_schema(
    spark: SparkSession, tmp_path: Path
) -> None:
    wide = {"v": decimals(10, "12345678.90"), "w": [5]}
    put_all(tmp_path, [{"v": decimals(5, "1.25"), "w": [1]}, wide])
    table = build(tmp_path, {"w": "bitmap"})
    plan = table.plan("w = 5")
    with settings(spark, {MERGE: "true"}):
        rows = sx.read(table, "w = 5", spark=spark).collect()
        assert [tuple(row) for row in rows] == [(Decimal("12345678.90"), 5)]
        with pytest.raises(PlanError, match=r"differ in the columns \['v'\]"):
            plan.read(spark)


TYPED = {
    "spark.sql.parquet.binaryAsString": ("true", {"v": [b"a"]}, "v = 'a'"),
    "spark.sql.parquet.inferTimestampNTZ.enabled": (
        "false",
        {"v": pa.array([10**15], pa.timestamp("us"))},
        "v >= '2001-09-09 10:00:00'",
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", TYPED)
def test_settings_that_give_columns_another_type(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    value, columns, condition = TYPED[name]
    put_all(tmp_path, [columns])
    plan = build(tmp_path, {"v": "bitmap"}).plan(condition)
    session = {name.replace(".", "__"): value}
    for zone in ("UTC", "+09:00"):
        changed = {"spark__sql__session__timeZone": zone, **session}
        check_law_7(spark, tmp_path, condition, indexes={"v": "bitmap"}, **changed)
    with settings(spark, {name: value}), pytest.raises(PlanError, match="column 'v'"):
        plan.read(spark)


def test_nanoseconds_are_numbers_where_spark_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A plan that is made without a session may take them for times."""
    values = [pa.array([i], pa.timestamp("ns")) for i in (5, 7)]
    put_all(tmp_path, [{"v": value} for value in values])
    as_number = "spark.sql.legacy.parquet.nanosAsLong"
    session = {as_number.replace(".", "__"): "true"}
    for condition in ("v > 5", "v + 1 = 8", "CAST(v AS STRING) = '7'"):
        check_law_7(spark, tmp_path, condition, indexes={"v": "bitmap"}, **session)
        with settings(spark, {as_number: "true"}):
            (read,) = sx.read(tmp_path, condition, spark=spark).inputFiles()
        assert read.endswith("/1.parquet")
    plan = sx.plan_files("v > 5", table=tmp_path)
    assert plan.paths == ["1.parquet"]
    with (
        settings(spark, {as_number: "true"}),
        pytest.raises(PlanError, match="column 'v'"),
    ):
        plan.read(spark)


def test_files_that_pyarrow_rewrites_keep_the_row_metadata_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    instant = "SELECT TIMESTAMP'2020-01-01 05:00:00Z' t, INTERVAL '2' YEAR y"
    micros = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    with settings(spark, micros):
        spark.sql(instant).coalesce(1).write.parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")
    table = pq.read_table(path)
    table = table.set_column(0, "t", table["t"].cast(pa.timestamp("us")))
    for old in (tmp_path / "t").iterdir():
        old.unlink()
    put(path, table)
    table = build(tmp_path / "t", {"*": "bitmap"})
    with settings(spark, {ZONE: "+05:00"}):
        for condition in (
            "t >= '2020-01-01 10:00:00'",
            "hour(t) = 10",
            "CAST(y AS INT) = 2",
            "y = INTERVAL '2' YEAR",
        ):
            assert sx.read(table, condition, spark=spark).count() == 1, condition


@pytest.mark.few(1)
@pytest.mark.parametrize("case_sensitive", ["false", "true"])
def test_columns_that_files_spell_in_other_letters(
    spark: SparkSession, tmp_path: Path, case_sensitive: str
) -> None:
    names = ["a", "A", "a", "A"]
    put_all(tmp_path, [{name: [i, None]} for i, name in enumerate(names)])
    kept = {"a = 1": 1, "a >= 2": 2, "a IS NULL": 4, "a IS NOT NULL": 4}
    if case_sensitive == "true":  # Spark finds NULL alone in two of the files
        kept = {"a = 1": 2, "a >= 2": 3, "a IS NULL": 4, "a IS NOT NULL": 4}
    for condition, n_files in kept.items():
        plan = check_law_7(
            spark,
            tmp_path,
            condition,
            indexes={"a": "bitmap"},
            spark__sql__caseSensitive=case_sensitive,
        )
        assert len(plan.paths) == n_files, condition
