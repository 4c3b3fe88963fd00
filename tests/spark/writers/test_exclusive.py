"""Tables that Spark writes and that are opened from their log."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.storage.file_system.location import Location

pytestmark = pytest.mark.spark


def test_a_table_is_written_appended_to_and_read_without_a_listing(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = str(tmp_path / "t")
    df = spark.range(60).selectExpr("id % 7 AS city", "id AS price")
    layout = sx.Clustering(by=["city"], rows_per_file=15)
    indexes = {"city": "bitmap"}
    sx.write_table(df, folder, layout=layout, indexes=indexes, exclusive=True)
    original = Location.list
    looked: list[str] = []

    def watched(self: Location, below: str = "") -> object:
        looked.append(below)
        return original(self, below)

    with mock.patch.object(Location, "list", watched):
        table = sx.append(df, sx.open_table(folder, trust="log"))
        found = table.plan("city = 3")
    assert all(below.startswith("_skipindex/staging/") for below in looked)
    assert table.paths == sx.open_table(folder).paths
    whole = spark.read.parquet(folder).where("city = 3")
    assert sorted(found.read(spark).collect()) == sorted(whole.collect())


@pytest.mark.slow
def test_a_rewritten_table_stays_exclusive(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    df = spark.range(120).selectExpr("id % 7 AS city", "id % 60 AS price")
    layout = sx.Clustering(by=["city"], rows_per_file=15)
    table = sx.write_table(df, folder, layout=layout, exclusive=True)
    layout = sx.Clustering(by=["price"])
    report = table.optimize(spark, layout=layout, in_place=True, mode="full")
    assert report.table.state.snapshot.is_exclusive
    again = sx.open_table(folder, trust="log").plan("price = 7")
    assert len(again.read(spark).collect()) == 2
