"""A session that skips nothing, and records what it would skip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.table import queries
from tests.spark.pruning.scans import files_of_run, files_read
from tests.tables import put

pytestmark = pytest.mark.spark

N_ROWS = {"user = 2": 1, "user = 13 AND day = 1": 1, "user = 3": 1, "city <> 'Rome'": 4}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for i in range(4):
        rows = {"user": [i, i + 10], "city": ["Oslo", "Rome"]}
        put(tmp_path / "t" / f"day={i % 2}" / f"{i}.parquet", rows)
    sx.build_indexes(tmp_path / "t", {"user": "bitmap"}, workers=1)
    return tmp_path / "t"


@pytest.fixture
def observing(spark: SparkSession) -> Iterator[SparkSession]:
    sx.enable(spark, observe=True)
    yield spark
    spark.conf.unset("skipindex.enabled")
    sx.disable(spark)


def test_nothing_is_skipped_and_all_is_recorded(
    observing: SparkSession, path: Path
) -> None:
    frame = observing.read.parquet(str(path))
    for where, n_rows in N_ROWS.items():
        df = frame.where(where)
        assert len(df.collect()) == n_rows
        partitions = 2 if "day" in where else 4
        assert files_of_run(df) == partitions
        (*_, plan) = sx.last_plans(observing)
        assert plan.is_observed
        assert (plan.n_files, plan.n_read) == (4, 4 if "city" in where else 1)
        assert f"{plan.n_read} of 4 files would be read" in str(plan)
    joined = frame.where("user = 1").join(frame.where("user IN (1, 2)"), "user")
    assert joined.count() == 1
    queries._WRITER.flush()
    report = sx.open_table(path).usage()
    assert (report.n_queries, report.n_files, report.n_read) == (6, 24, 9)
    assert report.n_verified > 0
    assert report.violations == ()
    first, *_, least = report.conditions
    assert (first.where, first.n_queries, first.n_read) == ("`user` = ?", 2, 2)
    assert (least.n_queries, least.n_files, least.n_read) == (1, 4, 4)
    assert "no file skipped, 1 times: NOT (city = ?)" in str(report)


def test_the_next_queries_of_the_session_skip_again(
    observing: SparkSession, path: Path
) -> None:
    observing.conf.set("skipindex.enabled", "true")
    df = observing.read.parquet(str(path)).where("user = 2")
    assert df.count() == 1
    assert files_read(df) == 1
    assert not sx.last_plans(observing)[-1].is_observed


def test_a_plan_that_fails_is_recorded_and_the_query_runs(
    observing: SparkSession, path: Path
) -> None:
    for file in (path / "_skipindex" / "log").iterdir():
        file.write_bytes(b"damaged")
    df = observing.read.parquet(str(path)).where("user = 2")
    assert df.count() == 1
    assert sx.last_plans(observing)[-1].n_skipped == 0
