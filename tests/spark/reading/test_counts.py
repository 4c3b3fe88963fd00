"""Counts, limits and proofs through Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skipindex.errors import PlanError
from tests.spark.reading.whole import ZONE, settings
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [
        {
            "a": pa.array([None if n == 3 else 10 * i + n for n in range(10)]),
            "f": pa.array([n / 4 if n else float("nan") for n in range(10)]),
            "s": [f"v{n % 3}" for n in range(10)],
        }
        for i in range(4)
    ]
    put_all(tmp_path, files)
    put(tmp_path / "odd name%20[1].parquet", files[2])
    return tmp_path


def test_a_count_reads_only_files_that_are_not_decided(
    spark: SparkSession, folder: Path
) -> None:
    table = build(folder, {"a": "bitmap", "s": "bitmap"})
    exact = table.plan("a < 28 AND s = 'v1'")
    whole = spark.read.option("__globPaths__", "false").parquet(f"file:{folder}")
    expected = whole.where("a < 28 AND s = 'v1'").count()
    assert exact.count() == exact.count(spark) == expected
    partly = table.plan("a < 28 AND md5(s) = md5('v1')")
    assert partly.count_bounds == (0, 32)
    with pytest.raises(PlanError, match="in 4 files is not known"):
        partly.count()
    # The file that is decided is gone, and not missed.
    (folder / "3.parquet").unlink()
    assert partly.count(spark) == expected
    with pytest.raises(PlanError, match="time zone"):
        table.plan("md5(s) = md5('v1')", timezone="Asia/Tokyo").count(spark)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "order", ["a", "a DESC", "a NULLS LAST", "a DESC NULLS FIRST", "f", "f DESC", "s"]
)
def test_the_first_rows_are_those_of_the_whole_table(
    spark: SparkSession, folder: Path, order: str
) -> None:
    table = build(folder, {"a": "bitmap", "s": "bitmap"})
    plan = table.plan("s <> 'v0'", limit=5, order_by=[order, "a", "f"])
    whole = spark.read.option("__globPaths__", "false").parquet(f"file:{folder}")
    whole.createOrReplaceTempView("whole_table")
    expected = spark.sql(
        f"SELECT * FROM whole_table WHERE s <> 'v0' ORDER BY {order}, a, f LIMIT 5"
    )
    assert list(map(repr, plan.read(spark).collect())) == list(
        map(repr, expected.collect())
    )


def test_a_limit_alone_gives_so_many_rows(spark: SparkSession, folder: Path) -> None:
    for indexes in ({}, {"a": "bitmap"}):  # statistics have the number of NULLs
        plan = build(folder, indexes).plan("a >= 0", limit=7)
        assert len(plan.paths) == 1
        assert plan.read(spark).count() == 7


def test_spark_verifies_a_plan(spark: SparkSession, folder: Path) -> None:
    table = build(folder, {"a": "bitmap", "s": "bitmap"})
    plan = table.plan("a > 12 AND s = 'v1' AND f > 0.5")
    report = plan.verify(spark=spark)
    assert report.is_right
    assert report.checked == 5
    assert plan.verify(spark=spark, sample=0).checked == 0
    zoned = table.plan("a > 12", timezone="UTC")
    with settings(spark, {ZONE: "Asia/Tokyo"}), pytest.raises(PlanError):
        zoned.verify(spark=spark)


def test_spark_finds_a_lie(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = build(folder, {"a": "bitmap"}).plan("a > 25")
    monkeypatch.setattr(plan, "where", "a > 15")
    report = plan.verify(spark=spark)
    wrong = {v.path: (v.claim, v.actual) for v in report.violations}
    assert wrong == {
        "1.parquet": ("no row matches", "4 rows match"),
        "2.parquet": ("at most 4 rows match", "9 rows match"),
        "odd name%20[1].parquet": ("at most 4 rows match", "9 rows match"),
    }
