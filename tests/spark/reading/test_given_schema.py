"""A given schema and mergeSchema: Spark's rows and columns."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import skipindex as sx
from skipindex.errors import PlanError
from tests.spark.reading.whole import NO_PUSHDOWN, columns, rows, rows_of_each, settings
from tests.tables import put

pytestmark = pytest.mark.spark

MERGE = {**NO_PUSHDOWN, "spark.sql.parquet.mergeSchema": "true"}
CONDITIONS = (
    *("w = 5", "w IS NULL", "w IS NOT NULL", "NOT (w = 5)", "w <=> NULL OR v > 100"),
    *("-v < -1000", "CAST(v AS BIGINT) > 5000", "t.b = 2", "t.b IS NULL", "p = 1"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of three ages."""
    old = pa.array([Decimal("1.25")], pa.decimal128(5, 2))
    new = pa.array([Decimal("12345678.90")], pa.decimal128(10, 2))
    t = pa.array([{"a": 1}])
    put(tmp_path / "p=1" / "0.parquet", {"v": old, "t": t})
    put(tmp_path / "p=1" / "1.parquet", {"v": new, "w": [5]})
    put(tmp_path / "p=2" / "2.parquet", {"w": [6], "t": pa.array([{"a": 1, "b": 2}])})
    return tmp_path


def check(spark: SparkSession, table: sx.Table | Path, schema: StructType) -> None:
    folder = table.state.location.full("") if isinstance(table, sx.Table) else table
    whole = spark.read.schema(schema).parquet(f"file:{folder}")
    for condition, wanted in zip(
        CONDITIONS, rows_of_each(whole, CONDITIONS), strict=True
    ):
        found = sx.read(table, condition, spark=spark)
        assert columns(found) == columns(whole), condition
        assert rows(found) == wanted, condition
        low, high = sx.plan_files(
            condition, table=sx.open_table(table), timezone="UTC"
        ).count_bounds
        assert low <= len(wanted)
        assert high is None or len(wanted) <= high


@pytest.mark.slow
def test_with_merge_schema_the_columns_are_those_of_all_files(
    spark: SparkSession, folder: Path
) -> None:
    with settings(spark, MERGE):
        merged = spark.read.parquet(f"file:{folder}").schema
        opened = sx.open_table(folder, schema=merged)
        sx.build_indexes(opened, {"*": ["bitmap"]}, workers=1)
        whole = spark.read.parquet(f"file:{folder}")
        for condition, wanted in zip(
            CONDITIONS, rows_of_each(whole, CONDITIONS), strict=True
        ):
            found = sx.read(folder, condition, spark=spark)
            assert columns(found) == columns(whole)
            assert rows(found) == wanted, condition


def test_a_plan_for_one_footer_is_refused_where_schemas_are_merged(
    spark: SparkSession, folder: Path
) -> None:
    plan = sx.plan_files("v > 1", table=folder)
    with (
        settings(spark, MERGE),
        pytest.raises(PlanError, match=r"differ in the columns \['t', 'v', 'w'\]"),
    ):
        plan.read(spark)


def test_where_all_files_are_alike_merging_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    for i in (1, 2):
        folder = tmp_path / f"p={i}" / "q=__HIVE_DEFAULT_PARTITION__"
        put(folder / "f.parquet", {"v": [i]})
    plan = sx.plan_files("v > 1", table=tmp_path)
    with settings(spark, MERGE):
        whole = spark.read.parquet(f"file:{tmp_path}").where("v > 1")
        for found in (plan.read(spark), sx.read(tmp_path, "v > 1", spark=spark)):
            assert columns(found) == columns(whole)
            assert rows(found) == rows(whole)


def test_merging_is_seen_where_spark_types_the_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "p=0x10" / "f.parquet", {"v": [1]})
    put(tmp_path / "p=0x11" / "f.parquet", {"v": [1], "w": [2]})
    plan = sx.plan_files("v = 1", table=tmp_path)
    with settings(spark, MERGE), pytest.raises(PlanError, match=r"columns \['w'\]"):
        plan.read(spark)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["spark", "arrow"])
def test_a_given_schema_reads_as_it_does_in_spark(
    spark: SparkSession, folder: Path, form: str
) -> None:
    spelled = "w BIGINT, p INT, v DECIMAL(10,2), t STRUCT<a: BIGINT, b: BIGINT>"
    schema = spark.createDataFrame([], spelled).schema
    given = schema
    if form == "arrow":
        t = pa.struct([("a", pa.int64()), ("b", pa.int64())])
        given = pa.schema(
            [
                ("w", pa.int64()),
                ("p", pa.int32()),
                ("v", pa.decimal128(10, 2)),
                ("t", t),
            ]
        )
    opened = sx.open_table(folder, schema=given)
    with settings(spark, NO_PUSHDOWN):
        check(spark, opened, schema)
        table = sx.build_indexes(opened, {"*": ["bitmap"]}, workers=1).table
        assert table.plan("w = 6").paths == ["p=2/2.parquet"]
        assert table.plan("t.b = 2").paths == ["p=2/2.parquet"]
        assert table.plan("w IS NULL").paths == ["p=1/0.parquet"]
        check(spark, table, schema)


@pytest.mark.slow
def test_a_footer_that_names_a_missing_column_reads_as_in_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    fields = [
        {"name": name, "type": "long", "nullable": True, "metadata": metadata}
        for name, metadata in (("a", {}), ("c", {}), ("d", {"EXISTS_DEFAULT": "7"}))
    ]
    text = json.dumps({"type": "struct", "fields": fields})
    key = b"org.apache.spark.sql.parquet.row.metadata"
    written = {key: text.encode(), b"org.apache.spark.version": b"4.3.0"}
    put(tmp_path / "0.parquet", pa.table({"a": [1]}).replace_schema_metadata(written))
    put(tmp_path / "1.parquet", {"a": [2], "c": [3], "d": [8]})
    sx.build_indexes(tmp_path, {"*": "bitmap"}, workers=1)
    with settings(spark, NO_PUSHDOWN):
        for condition in ("c IS NULL", "c = 3", "d = 7", "d = 8", "d IS NULL", "a = 1"):
            whole = spark.read.parquet(f"file:{tmp_path}").where(condition)
            found = sx.read(tmp_path, condition, spark=spark)
            assert columns(found) == columns(whole)
            assert rows(found) == rows(whole), condition
