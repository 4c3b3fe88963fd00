"""What the planner is told of a scan, and the tables that a scan is looked up in."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.pruning.session import _pruned
from tests.spark.pruning.questions import put
from tests.spark.pruning.scans import files_read

pytestmark = pytest.mark.spark


def test_files_that_came_after_the_indexes(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """They are read; the plan counts them, and says so."""
    for i in range(4):
        put(tmp_path / f"{i}.parquet", 10 * i)
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    assert files_read(pruned.read.parquet(str(tmp_path)).where("id = 15")) == 1
    for i in range(4, 7):
        put(tmp_path / f"{i}.parquet", 10 * i)
    for condition, n_read in (("id = 15", 4), ("id >= 0", 7)):
        df = pruned.read.parquet(str(tmp_path)).where(condition)
        assert files_read(df) == n_read
        told = sx.last_plans(pruned)[-1]
        assert (told.n_files, told.n_read, told.n_unindexed) == (7, n_read, 3)
        assert "3 have no index yet" in str(told)


def test_files_without_an_index_are_counted_at_each_query(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """Also once the table was listed again, until it is refreshed."""
    for i in range(6):
        put(tmp_path / f"month={i % 2}" / f"{i}.parquet", 10 * i)
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    put(tmp_path / "month=0" / "6.parquet", 60)
    put(tmp_path / "month=1" / "1.parquet", 500)  # another file now
    counts = {"id = 35": 2, "month = 0": 1, "month = 1": 1, "month = 0 AND id = 5": 1}
    for _ in range(2):
        for condition, n_unindexed in counts.items():
            df = pruned.read.parquet(str(tmp_path)).where(condition)
            n_read = files_read(df)
            told = sx.last_plans(pruned)[-1]
            found = (told.n_read, told.n_unindexed)
            assert found == (n_read, n_unindexed), condition
            assert "month" not in condition or "month" in told.condition
    sx.open_table(tmp_path).refresh_indexes(workers=1)
    for condition in counts:
        files_read(pruned.read.parquet(str(tmp_path)).where(condition))
        assert sx.last_plans(pruned)[-1].n_unindexed == 0


def test_files_that_a_filter_of_partitions_leaves(
    pruned: SparkSession, tmp_path: Path
) -> None:
    for i in range(12):
        put(tmp_path / f"month={i % 4 + 1}" / f"{i}.parquet", 10 * i)
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    frame = pruned.read.parquet(str(tmp_path))
    for condition, n_read in (("id = 15", 1), ("id >= 0", 3), ("id = 25", 0)):
        assert files_read(frame.where(f"month = 2 AND {condition}")) == n_read
        told = sx.last_plans(pruned)[-1]
        assert (told.n_files, told.n_read, told.n_unindexed) == (3, n_read, 0)
        assert "month = 2" in told.condition


def lookups(spark: SparkSession) -> int:
    found: int = _pruned[spark.sparkContext.applicationId].calls.lookups()
    return found


@pytest.fixture
def store(pruned: SparkSession, tmp_path: Path) -> str:
    """A file system that is not the local one; its folder is ``tmp_path``."""
    conf = pruned.sparkContext._jsc.hadoopConfiguration()
    name = f"t{abs(hash(tmp_path))}"
    conf.set(f"fs.viewfs.mounttable.{name}.link./x", f"file://{tmp_path}")
    return f"viewfs://{name}/x"


def partitions(folder: Path, n: int) -> None:
    for i in range(n):
        put(folder / f"p={i}" / "0.parquet", 10 * i)


@pytest.mark.slow
def test_a_table_without_indexes_is_looked_up_once(
    pruned: SparkSession, tmp_path: Path, store: str
) -> None:
    partitions(tmp_path / "plain", 40)
    before = lookups(pruned)
    paths = [f"{store}/plain/p={i}" for i in range(40)]
    for frame in (
        pruned.read.parquet(*paths),
        pruned.read.parquet(f"{store}/plain"),
        pruned.read.parquet(*[f"{path}/0.parquet" for path in paths]),
        pruned.read.parquet(*paths[:30]),
    ):
        assert frame.where("id = 75").count() == 1
    assert lookups(pruned) == before + 1


@pytest.mark.slow
def test_a_catalog_table_without_indexes_is_looked_up_once(
    pruned: SparkSession, tmp_path: Path, store: str
) -> None:
    partitions(tmp_path / "listed", 12)
    pruned.sql(
        "CREATE TABLE listed (id BIGINT, p INT) USING parquet PARTITIONED BY (p) "
        f"LOCATION '{store}/listed'"
    )
    try:
        pruned.sql("ALTER TABLE listed RECOVER PARTITIONS")
        before = lookups(pruned)
        for condition in ("p = 3", "p > 4", "p < 4 AND id < 99", "id = 7"):
            assert pruned.sql(f"SELECT * FROM listed WHERE {condition}").count()
        assert lookups(pruned) == before + 1
    finally:
        pruned.sql("DROP TABLE listed")


def test_a_scan_of_many_folders_asks_for_none(
    pruned: SparkSession, tmp_path: Path, store: str
) -> None:
    for i in range(12):
        put(tmp_path / f"day{i}" / "0.parquet", 10 * i)
    before = lookups(pruned)
    paths = [f"{store}/day{i}" for i in range(12)]
    assert pruned.read.parquet(*paths).where("id = 75").count() == 1
    assert lookups(pruned) == before


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "paths",
    [
        ["t"],
        ["t/p=1", "t/p=3"],
        ["t/p=3"],
        ["t/p=3/0.parquet"],
        ["t/p=3/0.parquet", "t/p=1/0.parquet"],
        ["other", "t/p=3", "t/p=2"],
    ],
)
def test_the_table_of_partitions_and_files(
    pruned: SparkSession, tmp_path: Path, paths: list[str]
) -> None:
    partitions(tmp_path / "t", 5)
    partitions(tmp_path / "other", 2)
    sx.build_indexes(tmp_path / "t", {"id": "bitmap"}, workers=1)
    frame = pruned.read.option("recursiveFileLookup", "true").parquet(
        *[str(tmp_path / path) for path in paths]
    )
    others = 2 if "other" in paths else 0
    assert files_read(frame.where("id = 35")) == 1 + others
    assert files_read(frame.where("id = 335")) == others


def test_a_partition_with_indexes_of_its_own(
    pruned: SparkSession, tmp_path: Path
) -> None:
    for i in range(3):
        put(tmp_path / "t/year=1" / f"month={i}" / "0.parquet", 10 * i)
    sx.build_indexes(tmp_path / "t/year=1", {"id": "bitmap"}, workers=1)
    months = [str(tmp_path / f"t/year=1/month={i}") for i in range(3)]
    assert files_read(pruned.read.parquet(*months).where("id = 5")) == 1


def test_files_of_another_place_with_the_same_path(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """A mirror may have files of the same path, size and time, and other rows."""
    conf = pruned.sparkContext._jsc.hadoopConfiguration()
    name = f"m{abs(hash(tmp_path))}"
    for folder, first in (("t", 200), ("mirror", 100)):
        (tmp_path / folder).mkdir()
        numbers = pa.table({"id": list(range(first, first + 10))})
        pq.write_table(numbers, tmp_path / folder / "0.parquet", compression="none")
    sx.build_indexes(tmp_path / "t", {"id": "bitmap"}, workers=1)
    stamp = (tmp_path / "t/0.parquet").stat()
    os.utime(tmp_path / "mirror/0.parquet", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert (tmp_path / "mirror/0.parquet").stat().st_size == stamp.st_size
    conf.set(
        f"fs.viewfs.mounttable.{name}.link.{tmp_path}/t", f"file://{tmp_path}/mirror"
    )
    paths = [str(tmp_path / "t"), f"viewfs://{name}{tmp_path}/t"]
    frame = pruned.read.parquet(*paths)
    assert frame.where("id = 105").count() == 1
    assert frame.where("id = 205").count() == 1
