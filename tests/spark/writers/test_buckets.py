"""Bucketed tables stay as they are: Spark takes the bucket of a file from its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.cli import main
from skipindex.errors import TableError
from tests.rewrite.seen import everything

pytestmark = pytest.mark.spark

BY_K = sx.Clustering(by=["k"])
REFUSED = "cannot write files into .*: it is bucketed, .* Spark could not read"
Door = Callable[[DataFrame, Path], Any]


@pytest.fixture(scope="module")
def bucketed(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("bucketed") / "t"
    rows = spark.range(40).selectExpr("id", "id % 5 AS k", "id % 2 AS p")
    writer = rows.write.bucketBy(2, "k").partitionBy("p").option("path", str(folder))
    writer.saveAsTable("in_buckets")
    sx.build_indexes(folder, {"k": "bitmap"}, workers=1)
    yield folder
    spark.sql("DROP TABLE in_buckets")


DOORS: dict[str, Door] = {
    "optimize": lambda df, path: sx.open_table(path).optimize(
        df.sparkSession, layout=BY_K, in_place=True
    ),
    "optimize by name": lambda df, _: sx.open_table("in_buckets").optimize(
        df.sparkSession, layout=BY_K, in_place=True
    ),
    "optimize for a workload": lambda df, path: sx.open_table(path).optimize(
        df.sparkSession, layout=sx.Workload(["k = 1"]), in_place=True
    ),
    "declare_layout": lambda _, path: sx.open_table(path).declare_layout(BY_K),
    "append": sx.append,
    "overwrite": lambda df, path: sx.write_table(
        df, path, partition_by=["p"], overwrite=True
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("door", DOORS)
def test_no_file_is_written_into_a_bucketed_table(
    spark: SparkSession, bucketed: Path, door: str
) -> None:
    rows = spark.range(1).selectExpr("id", "id AS k", "id AS p")
    before = everything(bucketed)
    with pytest.raises(TableError, match=REFUSED):
        DOORS[door](rows, bucketed)
    assert everything(bucketed) == before
    assert spark.table("in_buckets").where("k = 1").count() == 8


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "text", ["OPTIMIZE {} ZORDER BY (k)", "ALTER TABLE {} DISTRIBUTED BY ZORDER (k)"]
)
@pytest.mark.parametrize("by_name", [True, False])
def test_statements_refuse_too(
    spark: SparkSession,
    bucketed: Path,
    text: str,
    by_name: bool,
) -> None:
    sx.enable(spark)
    try:
        with pytest.raises(PySparkException, match=REFUSED):
            spark.sql(text.format("in_buckets" if by_name else f"'{bucketed}'"))
    finally:
        sx.disable(spark)


def test_the_command_line_refuses_too(
    spark: SparkSession, bucketed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = main(["optimize", str(bucketed), "--by", "k", "--in-place"])
    assert found == 2
    assert "it is bucketed" in capsys.readouterr().err


def test_a_copy_of_a_bucketed_table_is_optimized(
    spark: SparkSession, bucketed: Path, tmp_path: Path
) -> None:
    copy = sx.open_table(bucketed).optimize(spark, layout=BY_K, into=tmp_path / "t")
    assert copy.table.plan("k = 1").count(spark) == 8


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name",
    [
        "data_00000.parquet",
        "part-00000_00001.parquet",
        "part-00000-0123456789abcdef0123456789abcdef-0.snappy.parquet",
        "part-00000-6cf75dc7-f26f-4b9c-b1eb-ea84872d5cf6-c000.snappy.parquet",
    ],
)
def test_names_that_are_not_those_of_buckets(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "t"
    sx.write_table(spark.range(3).coalesce(1), folder, indexes={"*": "minmax"})
    (data,) = folder.glob("*.parquet")
    data.rename(folder / name)
    sx.open_table(folder).declare_layout(sx.Clustering(by=["id"]))
