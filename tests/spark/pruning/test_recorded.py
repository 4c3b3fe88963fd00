"""Queries of sessions that are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.table import queries
from skipindex.table.queries import Asked, recorded
from tests.tables import build, put_all

pytestmark = pytest.mark.spark

FILES = [{"x": [1, 2], "s": ["a", "b"]}, {"x": [3, 4], "s": ["c", "d"]}]


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Iterator[Path]:
    build(put_all(tmp_path, FILES), {"x": "bitmap", "s": "bitmap"})
    sx.enable(spark)
    yield tmp_path
    sx.disable(spark)
    for name in (queries.SETTING, queries.LITERALS):
        spark.conf.unset(name)


def asked_of(spark: SparkSession, folder: Path) -> list[Asked]:
    sx.last_plans(spark)  # waits for what scans report
    queries.flush()
    return recorded(sx.open_table(folder).state.location)


def test_a_query_is_recorded_once(spark: SparkSession, folder: Path) -> None:
    spark.conf.set("skipindex.queries", "table")
    assert spark.read.parquet(str(folder)).where("x = 3 AND s < 'd'").count() == 1
    (asked,) = asked_of(spark, folder)
    assert "x = 3" in asked.where
    assert "s < 'd'" in asked.where
    assert (asked.files, asked.read) == (2, 1)
    assert asked.n_bytes == (folder / "1.parquet").stat().st_size
    assert asked.zone == spark.conf.get("spark.sql.session.timeZone")
    advice = sx.open_table(folder).advise(queries="log")
    assert {column.name for column in advice.columns} == {"s", "x"}


def test_no_query_is_recorded_unless_a_session_says_so(
    spark: SparkSession, folder: Path
) -> None:
    spark.read.parquet(str(folder)).where("x = 3").count()
    assert asked_of(spark, folder) == []


def test_literals_can_be_hidden(spark: SparkSession, folder: Path) -> None:
    spark.conf.set("skipindex.queries", "table")
    spark.conf.set("skipindex.queries.literals", "false")
    spark.read.parquet(str(folder)).where("s = 'secret'").count()
    (asked,) = asked_of(spark, folder)
    assert "secret" not in asked.where
    assert asked.is_hidden


def test_reads_by_a_condition_are_recorded_once(
    spark: SparkSession, folder: Path
) -> None:
    spark.conf.set("skipindex.queries", "table")
    assert sx.read(folder, "x = 3", spark=spark).count() == 1
    assert [asked.where for asked in asked_of(spark, folder)] == ["x = 3"]


def test_a_place_that_cannot_be_written_fails_no_query(
    spark: SparkSession, folder: Path
) -> None:
    spark.conf.set("skipindex.queries", "s9://no such/place")
    assert spark.read.parquet(str(folder)).where("x = 3").count() == 1
    assert sx.last_plans(spark)[-1].n_read == 1
    assert asked_of(spark, folder) == []
