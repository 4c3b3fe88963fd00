"""The job that runs a side of a join for its keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.spark.pruning.scans import files_read
from tests.spark.versions import FAILED

pytestmark = pytest.mark.spark

N_FILES = 12


def days(path: Path, *ks: int) -> None:
    """A file of a dimension whose rows all have the name ``d``."""
    path.parent.mkdir(exist_ok=True)
    columns = {"k": pa.array(ks, pa.int32()), "name": ["d"] * len(ks)}
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fact in twelve files, each with a key of its own, and a dimension of two."""
    (tmp_path / "fact").mkdir()
    for i in range(N_FILES):
        columns = {"k": pa.array([i] * 9, pa.int32()), "v": ["x" * 999 + str(i)] * 9}
        pq.write_table(pa.table(columns), tmp_path / f"fact/{i:02}.parquet")
    sx.build_indexes(tmp_path / "fact", {"k": "bitmap"}, workers=1)
    days(tmp_path / "days/0.parquet", 0, 1)
    return tmp_path


class Star:
    """The tables as they are now."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def days(self, condition: str) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "days")).where(condition)

    def joined(self, side: DataFrame) -> DataFrame:
        fact = self.spark.read.parquet(str(self.folder / "fact"))
        return fact.join(side, "k").groupBy("k").count().orderBy("k")


@pytest.fixture
def star(pruned: SparkSession, folder: Path) -> Star:
    return Star(pruned, folder)


def keys_of(df: DataFrame) -> list[int]:
    return [row.k for row in df.collect()]


OPTIMIZED = "name IS NOT NULL AND name = 'd' AND k IS NOT NULL"
"""The condition of the side when Spark has optimized the join."""


@pytest.mark.few(1)
@pytest.mark.parametrize("columns", [["k"], ["k", "name"]])
def test_keys_do_not_come_from_a_cache_of_a_former_listing(
    star: Star, columns: list[str]
) -> None:
    """For Spark two scans of a folder are equal, whatever files they list."""
    cached = star.days(OPTIMIZED).select(*columns).cache()
    whole = star.days(OPTIMIZED).cache()
    assert (cached.count(), whole.count()) == (2, 2)
    try:
        days(star.folder / "days/1.parquet", 7, 8)  # by a process of its own
        df = star.joined(star.days("name = 'd'"))
        assert keys_of(df) == [0, 1, 7, 8]
        assert files_read(df, "/fact") == 4
    finally:
        cached.unpersist(blocking=True)
        whole.unpersist(blocking=True)


@pytest.mark.slow
def test_a_frame_that_is_cached_after_the_query_was_planned_gives_no_keys(
    star: Star,
) -> None:
    former = star.days(OPTIMIZED).select("k")
    days(star.folder / "days/1.parquet", 7, 8)
    df = star.joined(star.days("name = 'd'"))
    df._jdf.queryExecution().optimizedPlan()
    former.cache()
    assert former.count() == 2
    try:
        assert keys_of(df) == [0, 1, 7, 8]
    finally:
        former.unpersist(blocking=True)


@pytest.mark.parametrize("is_new_first", [False, True])
def test_two_listings_of_a_dimension_in_one_query(
    star: Star, *, is_new_first: bool
) -> None:
    """Spark broadcasts one of them and takes it for both, as their folder is one."""
    sides = [star.days("name = 'd'").withColumnRenamed("name", "one")]
    days(star.folder / "days/1.parquet", 7, 8)
    sides.append(star.days("name = 'd'").withColumnRenamed("name", "two"))
    if is_new_first:
        sides.reverse()
    fact = star.spark.read.parquet(str(star.folder / "fact"))

    def joined() -> list[int]:
        df = fact.join(sides[0], "k").join(sides[1], "k")
        return sorted({row.k for row in df.select("k").collect()})

    found = joined()
    star.spark.conf.set("skipindex.enabled", "false")
    assert found == joined()


@pytest.mark.few(1)
@pytest.mark.parametrize("adds", [False, True])
def test_a_cache_that_the_query_reads_itself_gives_its_rows_and_no_keys(
    star: Star, *, adds: bool
) -> None:
    side = star.days("name = 'd'").cache()
    assert side.count() == 2
    try:
        if adds:
            days(star.folder / "days/1.parquet", 7, 8)
        df = star.joined(side)
        assert keys_of(df) == [0, 1]
        assert files_read(df, "/fact") == N_FILES
    finally:
        side.unpersist(blocking=True)


def test_a_side_with_a_join_gives_its_keys(star: Star) -> None:
    days(star.folder / "days/1.parquet", 7, 8)
    days(star.folder / "more/0.parquet", 1, 8, 9)
    more = star.spark.read.parquet(str(star.folder / "more"))
    df = star.joined(star.days("name = 'd'").join(more, "k", "left_semi"))
    assert keys_of(df) == [1, 8]
    assert files_read(df, "/fact") == 2


COMPUTED = "aggregate(sequence(1, int(n)), 0L, (a, x) -> a + x % 7) > k"
"""Takes seconds for each row, and is true."""


@pytest.fixture
def slow(star: Star) -> Iterator[Callable[[int], DataFrame]]:
    """A join with a side whose rows take as long as a number says."""
    (star.folder / "slow").mkdir()

    def join(n: int) -> DataFrame:
        columns = {"k": pa.array(range(5), pa.int32()), "n": pa.array([n] * 5)}
        pq.write_table(pa.table(columns), star.folder / "slow/0.parquet")
        side = star.spark.read.parquet(str(star.folder / "slow"))
        return star.joined(side.where(COMPUTED))

    settings = {
        "skipindex.timeLimit": "60",
        # Else Spark would run the side for itself at the same time.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.enabled": "false",
    }
    for name, value in settings.items():
        star.spark.conf.set(name, value)
    yield join
    for name in settings:
        star.spark.conf.unset(name)


@pytest.mark.slow
def test_a_query_that_is_cancelled_fails_while_its_keys_are_computed(
    star: Star, slow: Callable[[int], DataFrame]
) -> None:
    df = slow(3_000_000)
    context = star.spark.sparkContext
    failed: list[str] = []

    def run() -> None:
        context.setJobGroup("cancelled", "", interruptOnCancel=False)
        try:
            df.collect()
        except FAILED as error:
            failed.append(str(error))

    thread = InheritableThread(target=run)
    thread.start()
    tracker = context.statusTracker()
    end = time.monotonic() + 60
    while time.monotonic() < end and not tracker.getActiveJobsIds():
        time.sleep(0.05)
    time.sleep(0.2)
    begun = tracker.getJobIdsForGroup("cancelled")
    context.cancelJobGroup("cancelled")
    thread.join(120)
    assert begun
    assert failed
    assert "cancelled" in failed[0]
    assert tracker.getJobIdsForGroup("cancelled") == begun
    assert keys_of(slow(10)) == [0, 1, 2, 3, 4]
