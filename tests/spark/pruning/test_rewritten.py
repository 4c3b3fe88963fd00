"""Queries of a table that is optimized, and not published yet."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import NOW, listed
from tests.spark.pruning.scans import files_read, with_and_without
from tests.spark.pruning.test_state_of_plans import dataset_of
from tests.tables import build, put

pytestmark = pytest.mark.spark

WISH = {"cluster_by": ["id"], "rows_per_file": 20}


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


def test_new_files_are_read_from_the_commit_on(
    pruned: SparkSession, folder: Path
) -> None:
    frame = pruned.read.parquet(str(folder)).where("id = 4")
    assert frame.count() == 1
    optimized(folder, **WISH)
    assert read(pruned, folder, "id = 4") == (1, 8)
    assert read(pruned, folder, "id >= 0") == (4, 8)
    plan = sx.last_plans(pruned)[-1]
    assert (plan.n_files, plan.n_read, plan.n_unindexed) == (4, 4, 0)
    assert read(pruned, folder, "p = 1 AND id > 12") == (2, 4)
    assert read(pruned, folder, "k = 3 AND p = 0") == (0, 4)
    assert files_read(frame.where("k < 50")) == 1
    put(folder / "p=0" / "more.parquet", {"k": [3], "id": [4]})
    assert read(pruned, folder, "id = 4") == (2, 9)
    build(folder, {"k": "bitmap", "id": "minmax"})
    optimized(folder, **WISH, mode="full")
    assert read(pruned, folder, "id = 4") == (1, 9)
    assert sx.open_table(folder).verify().ok


FRAMES: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    "input_file_name": lambda spark, folder: (
        spark.read.parquet(str(folder))
        .where("id < 25")
        .select("id", sf.input_file_name())
    ),
    "_metadata": lambda spark, folder: spark.read.parquet(str(folder)).select(
        "id", "_metadata.file_path", "_metadata.row_index"
    ),
    "a condition on _metadata": lambda spark, folder: spark.read.parquet(
        str(folder)
    ).where("_metadata.file_name = '0.parquet'"),
    "in a subquery": lambda spark, folder: spark.sql(
        f"WITH t AS (SELECT * FROM parquet.`{folder}`) SELECT id FROM t WHERE id IN "
        "(SELECT id FROM t WHERE id < 50 AND input_file_name() LIKE '%/0.parquet')"
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_rows_that_tell_of_their_files_are_those_of_old_ones(
    pruned: SparkSession, folder: Path, name: str
) -> None:
    def query() -> DataFrame:
        return FRAMES[name](pruned, folder).where("id >= 0 AND id < 30")

    before, n_before, _ = with_and_without(pruned, query)
    optimized(folder, **WISH)
    assert before
    assert with_and_without(pruned, query)[:2] == (before, n_before)


def test_a_frame_that_is_a_part_of_another_tells_of_old_files(
    pruned: SparkSession, folder: Path
) -> None:
    optimized(folder, **WISH)
    frame = pruned.read.parquet(str(folder)).where("id < 25")
    assert files_read(frame) == 2
    optimized_plan = frame._jdf.queryExecution().optimizedPlan()
    for part in (frame, dataset_of(pruned, optimized_plan)):
        named = part.select("id", sf.input_file_name())
        assert files_read(named) == 3
        assert not any("_skipindex" in name for _, name in named.collect())
    assert files_read(frame.where("id >= 0")) == 2


def test_only_all_files_of_a_rewrite_are_read_as_new_ones(
    pruned: SparkSession, folder: Path
) -> None:
    optimized(folder, **WISH)

    def of(*paths: str) -> tuple[list[Row], int, int]:
        def query() -> DataFrame:
            full = [str(folder / path) for path in paths]
            frame = pruned.read.option("basePath", str(folder)).parquet(*full)
            return frame.where("id < 1000")

        return with_and_without(pruned, query)

    assert len(of("p=0")[0]) == 40
    assert of("p=0")[1:] == (2, 4)
    assert of("p=1/1.parquet", "p=1/3.parquet")[1:] == (2, 2)
    assert of("p=0", "p=1/3.parquet")[1:] == (5, 5)
    plans = sx.last_plans(pruned)
    assert plans[-1].n_files == 5
    assert [plan.n_files for plan in plans] != [4, 5]


@pytest.mark.parametrize("side", ["hidden", "visible"])
@pytest.mark.parametrize("is_listed_before", [False, True])
def test_a_rewrite_of_which_a_file_changes_does_not_count(
    pruned: SparkSession, folder: Path, side: str, is_listed_before: bool
) -> None:
    optimized(folder, **WISH)
    frame = pruned.read.parquet(str(folder))
    assert files_read(frame.where("id = 0")) == 1
    pattern = "p=0/_skipindex-*/*" if side == "hidden" else "p=0/0.parquet"
    path = next(folder.glob(pattern))
    rows = pq.read_table(path)
    before = path.stat()
    pq.write_table(rows.set_column(1, "id", pa.array([-7] * len(rows))), path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    if not is_listed_before:
        frame = pruned.read.parquet(str(folder))
    expected = 0 if side == "hidden" else 10
    assert frame.where("id = -7").count() == expected
    assert frame.where("id >= 0 OR id = -7").count() == 80
    assert frame.where("id = 70 AND p = 1").count() == 1


def test_joins_read_new_files(pruned: SparkSession, folder: Path) -> None:
    optimized(folder, **WISH)
    keys = pruned.range(3).withColumnRenamed("id", "key")
    frame = pruned.read.parquet(str(folder)).where("id < 20")

    def query() -> DataFrame:
        return frame.join(keys, frame.id == keys.key)

    rows, some, everything = with_and_without(pruned, query, "test_joins")
    assert len(rows) == 3
    assert some <= 2 < everything == 8


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
