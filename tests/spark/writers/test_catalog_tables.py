"""Appends to tables of the catalog: SQL sees the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.errors import TableError
from skipindex.source.folder.batch import Batch
from skipindex.spark.writers import append
from tests.rewrite.killing import killed_in

pytestmark = pytest.mark.spark

BY_ID = sx.Clustering(by=["id"], curve="linear")
ODD = ["a b", "it's", 'x"y', "c\\d", "e=f", "ü", "50%", "`", "_1", "${x}", "a\nb"]
"""Values that folders or SQL spell in their own ways."""


@pytest.fixture
def name(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of the catalog that lies in a folder of its name."""
    rows = spark.range(6).selectExpr("id", "CAST(id % 3 AS INT) AS day", "'a' AS t")
    writer = rows.coalesce(1).write.option("path", str(tmp_path / "parted"))
    writer.partitionBy("day", "t").saveAsTable("parted")
    sx.build_indexes("parted", {"id": "minmax"}).table.declare_layout(BY_ID)
    yield "parted"
    spark.sql("DROP TABLE parted")


def some(spark: SparkSession, day: str, text: str = "'a'") -> DataFrame:
    return spark.sql(f"SELECT 100L AS id, {day} AS day, {text} AS t")


def n_rows(spark: SparkSession, name: str) -> int:
    spark.catalog.refreshTable(name)
    return spark.table(name).count()


def test_a_new_partition_is_added_to_the_catalog(
    spark: SparkSession, name: str
) -> None:
    with warnings.catch_warnings(action="error", category=UserWarning):
        table = sx.append(some(spark, "7"), name)
        sx.append(some(spark, "1"), name)
    assert n_rows(spark, name) == 8
    assert table.plan("day = 7").count(spark) == 1
    with pytest.raises(TableError, match="column 'day' of type string to int"):
        sx.append(some(spark, "'seven'"), name)
    sx.append(some(spark, "CAST(NULL AS INT)"), f"default.{name}")
    assert n_rows(spark, name) == 9


def test_the_next_run_of_a_batch_tells_the_catalog(
    spark: SparkSession, name: str
) -> None:
    state, batch = sx.open_table(name).state, Batch("a stream", 3)
    with killed_in(append, "add_partitions"):
        append.append(some(spark, "7"), state, name=name, batch=batch)
    assert n_rows(spark, name) == 6
    append.append(some(spark, "7"), state, name=name, batch=batch)
    assert n_rows(spark, name) == 7


def test_values_that_sql_spells_otherwise(spark: SparkSession, name: str) -> None:
    rows = spark.createDataFrame(
        [(i, 9, t) for i, t in enumerate(ODD)], "id long, day int, t string"
    )
    with warnings.catch_warnings(action="error", category=UserWarning):
        sx.append(rows.coalesce(1), name)
    assert n_rows(spark, name) == 6 + len(ODD)
    found = spark.table(name).where("day = 9").select("t").collect()
    assert sorted(text for (text,) in found) == sorted(ODD)


def test_by_path_a_warning_says_what_the_catalog_lacks(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    with pytest.warns(
        UserWarning, match=r"that `default`.`parted` does not have .*7/t=a"
    ):
        sx.append(some(spark, "7"), path)
    assert n_rows(spark, name) == 6
    with warnings.catch_warnings(action="error", category=UserWarning):
        sx.append(some(spark, "7"), path)  # told once
        sx.append(some(spark, "1"), path)
    spark.sql(f"MSCK REPAIR TABLE {name}")
    assert n_rows(spark, name) == 9
    with warnings.catch_warnings(action="error", category=UserWarning):
        sx.open_table(path).optimize(spark, mode="full")
        sx.append(some(spark, "1"), path)


def test_folders_of_other_names_are_refused(spark: SparkSession, name: str) -> None:
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (day=8, t='b') LOCATION 'elsewhere'")
    with pytest.raises(TableError, match="folders of its partitions are not named"):
        sx.append(some(spark, "7"), name)


def test_a_column_that_was_added_is_appended(spark: SparkSession, name: str) -> None:
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (more STRING)")
    sx.append(some(spark, "1").selectExpr("*", "'new' AS more"), name)
    assert spark.table(name).where("more = 'new'").count() == 1
    optimized = sx.open_table(name).optimize(spark, mode="full")
    assert optimized.n_rows == 7
    optimized.table.vacuum()
    assert n_rows(spark, name) == 7
