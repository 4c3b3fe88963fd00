"""Scans of one table that list other files are told apart within a query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.spark.pruning.scans import rows_of
from tests.spark.pruning.test_state_of_plans import write

pytestmark = pytest.mark.spark


@pytest.fixture
def parts(pruned: SparkSession, tmp_path: Path) -> SparkSession:
    """Two views of a file each of one table, a view of both before a third came."""
    first = {"k": [1, 2, 3], "v": ["a"] * 3}
    large = {"k": list(range(100)), "v": ["x" * 900 + str(i) for i in range(100)]}
    table = write(tmp_path / "t", first, large)
    for name, path in (("d1", "0.parquet"), ("d2", "1.parquet"), ("old", "")):
        pruned.read.parquet(f"{table}/{path}").createOrReplaceTempView(name)
    pruned.sql("SELECT * FROM old").collect()
    pq.write_table(pa.table({"k": [7] * 5, "v": ["n"] * 5}), f"{table}/2.parquet")
    sx.build_indexes(table, {"k": "bitmap"}, workers=1)
    pruned.read.parquet(table).createOrReplaceTempView("new")
    return pruned


def check(spark: SparkSession, query: Callable[[], DataFrame]) -> None:
    spark.conf.set("skipindex.enabled", "false")
    expected = rows_of(query())
    spark.conf.set("skipindex.enabled", "true")
    assert rows_of(query()) == expected


PAIRS = [("d1", "d2"), ("d2", "d1"), ("old", "new"), ("new", "old"), ("d1", "new")]


@pytest.mark.few(2)
@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.parametrize(
    "what",
    [
        "count(*) FROM {} WHERE k >= 0",
        "max(k) FROM {}",
        "EXISTS (SELECT * FROM {} WHERE k = 50)",
        "k FROM {} WHERE k = 7 ORDER BY k LIMIT 9",
    ],
)
def test_results_are_of_the_files_that_a_scan_lists(
    parts: SparkSession, one: str, two: str, what: str
) -> None:
    texts = [f"(SELECT {what.format(name)})" for name in (one, two)]
    parts.conf.set("skipindex.answers", "true")
    try:
        check(parts, lambda: parts.sql(" UNION ALL ".join(texts)))
    finally:
        parts.conf.unset("skipindex.answers")


def test_sizes_are_of_the_files_that_a_scan_lists(
    parts: SparkSession, tmp_path: Path
) -> None:
    query = "SELECT d1.k FROM d1 JOIN d2 ON d1.k = d2.k WHERE d1.k > 0 AND d2.k > 0"
    plan = parts.sql(query)._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    for i in range(leaves.size()):
        location = leaves.apply(i).relation().location()
        name = location.rootPaths().apply(0).getName()
        assert location.sizeInBytes() == (tmp_path / "t" / name).stat().st_size


def test_keys_are_of_the_files_that_a_side_lists(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """Spark has a broadcast of the one listing, and a shuffle of the other."""
    filler = ["x" * 3000 + str(i) for i in range(10)]
    files = [{"k": [i] * 10, "v": filler} for i in range(8)]
    fact = write(tmp_path / "fact", *files)
    sx.build_indexes(fact, {"k": "bitmap"}, workers=1)
    side = write(tmp_path / "side", {"k": [1], "n": ["c"]})
    old = pruned.read.parquet(side)
    pq.write_table(pa.table({"k": [3], "n": ["c"]}), f"{side}/1.parquet")
    new = pruned.read.parquet(side)

    def joined(frame: DataFrame, hint: str) -> DataFrame:
        wanted = frame.where("n = 'c'").hint(hint)
        return pruned.read.parquet(fact).join(wanted, "k").selectExpr("k", f"'{hint}'")

    check(pruned, lambda: joined(old, "broadcast").union(joined(new, "merge")))
    check(pruned, lambda: joined(new, "broadcast").union(joined(old, "merge")))
