"""Queries of a table that is optimized, and not published yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import NOW, listed
from tests.spark.pruning.scans import with_and_without
from tests.tables import build, put

pytestmark = pytest.mark.spark

WISH = {"cluster_by": ["id"], "rows_per_file": 10}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files whose least and greatest ``k`` say nothing, and the bitmaps all."""
    for i in range(8):
        rows = {"k": [-1, i, 100, *[i] * 7], "id": list(range(i * 10, i * 10 + 10))}
        put(tmp_path / f"p={i % 2}" / f"{i}.parquet", rows)
    build(tmp_path, {"k": "bitmap", "id": "minmax"})
    return tmp_path


def read(spark: SparkSession, folder: Path, where: str) -> tuple[int, int]:
    def query() -> DataFrame:
        return spark.read.parquet(str(folder)).where(where)

    _, some, everything = with_and_without(spark, query)
    return some, everything


def test_old_files_keep_their_indexes_until_they_go(
    pruned: SparkSession, folder: Path
) -> None:
    assert read(pruned, folder, "k = 3") == (1, 8)
    frame = pruned.read.parquet(str(folder)).where("k = 3")
    optimized(folder, **WISH)
    assert read(pruned, folder, "k = 3") == (1, 8)
    put(folder / "p=0" / "more.parquet", {"k": [3], "id": [80]})
    assert read(pruned, folder, "k = 3") == (2, 9)
    build(folder, {"k": "bitmap", "id": "minmax"})
    assert read(pruned, folder, "k = 4") == (1, 9)
    optimized(folder, **{**WISH, "rows_per_file": 20}, mode="full")
    assert read(pruned, folder, "k = 4") == (1, 9)
    assert frame.count() == 8
    table = sx.open_table(folder)
    assert table.status().vanished_files == 0
    assert table.verify().ok
    table.vacuum(retention=NOW)
    paths = sx.open_table(folder).state.snapshot.manifest.paths
    assert sorted(paths) == sorted(listed(folder))
    some, everything = read(pruned, folder, "id = 4")
    assert some == 1 < everything == len(paths)


def test_what_changes_indexes_changes_those_of_old_files_too(
    pruned: SparkSession, folder: Path
) -> None:
    for i in range(8, 12):  # each with a pack of its own
        put(folder / "p=0" / f"{i}.parquet", {"k": [-1, i, 100], "id": [80 + i] * 3})
        build(folder, {"k": "bitmap", "id": "minmax"})
    optimized(folder, **WISH)
    table = sx.open_table(folder).compact_indexes(max_files=10**6, max_bytes=2**40)
    assert table.verify().ok
    assert read(pruned, folder, "k = 3") == (1, 12)
    assert read(pruned, folder, "k IN (3, 9)") == (2, 12)
    table = table.build_indexes({"k": "bit_sliced"}).table.drop_indexes(
        kinds=["bitmap"]
    )
    assert {one.kind for one in table.indexes} == {"bit_sliced", "minmax"}
    for _ in range(2):
        assert table.verify().ok
        read(pruned, folder, "k IN (3, 9)")
        table.vacuum(retention=NOW)
        table = table.refresh()
    assert read(pruned, folder, "k = 3")[0] < len(table)


def test_an_old_file_that_others_overwrite_is_read(
    pruned: SparkSession, folder: Path
) -> None:
    optimized(folder, **WISH)
    put(folder / "p=1" / "1.parquet", {"k": [3], "id": [10]})
    assert read(pruned, folder, "k = 3") == (2, 8)
    (folder / "p=1" / "3.parquet").unlink()
    assert read(pruned, folder, "k = 3") == (1, 7)


def test_a_registered_table_is_what_spark_lists(
    pruned: SparkSession, folder: Path
) -> None:
    table = sx.open_table(folder)
    sx.register(pruned, table)
    optimized(folder, **WISH)
    assert read(pruned, folder, "k = 3") == (1, 8)
    top = "SELECT id FROM parquet.`{}` ORDER BY id DESC LIMIT 1"
    assert pruned.sql(top.format(folder)).first() == (79,)
