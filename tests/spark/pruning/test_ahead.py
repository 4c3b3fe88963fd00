"""Questions that are asked while Spark goes on planning, and remembered verdicts."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import set_field
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.session import _pruned
from tests.spark.compiled import java_object
from tests.spark.pruning.questions import asked, equal, put, skipped
from tests.spark.pruning.scans import files_read

IN_ALL = "id >= 0"
IN_ONE = "id BETWEEN 11 AND 12"


def test_what_is_ruled_out_is_asked_for_again(
    planner: QueryPlanner, table: Path
) -> None:
    """Only that nothing is ruled out is an answer, and told of."""
    ahead = asked(planner, table, equal("id", 15), purpose="ahead")
    assert ahead is not None
    assert not ahead.files
    assert not planner.records
    assert len(skipped(planner, table, equal("id", 15))) == 3
    assert asked(planner, table, purpose="ahead") is None
    assert [record.n_skipped for record in planner.records] == [3, 0]


def test_an_estimate_and_its_question_have_one_plan(
    planner: QueryPlanner, table: Path
) -> None:
    for purpose in ("estimate", "read"):
        skipped(planner, table, equal("id", 15), purpose=purpose)
    estimate, read = planner.records
    assert (estimate.is_estimate, read.is_estimate) == (True, False)
    assert estimate.plan is read.plan


def test_a_verdict_is_forgotten_with_its_listing(
    planner: QueryPlanner, table: Path
) -> None:
    skipped(planner, table, equal("id", 15))
    for path in sorted(table.rglob("*.parquet"))[:2]:
        path.unlink()
    put(table / "month=9/9.parquet", 10)
    sx.build_indexes(table, {"id": "bitmap"}, workers=1)
    assert skipped(planner, table, equal("id", 15)) == ["month=2/3.parquet"]


def optimized(df: DataFrame) -> DataFrame:
    """The same, when it has been optimized, and not yet listed the files."""
    df._jdf.queryExecution().optimizedPlan()
    return df


@pytest.fixture
def numbers(pruned: SparkSession, tmp_path: Path) -> DataFrame:
    """Four files of ten numbers each."""
    for i in range(4):
        put(tmp_path / f"{i}.parquet", 10 * i)
    sx.build_indexes(tmp_path, {"id": "minmax"}, workers=1)
    return pruned.read.parquet(str(tmp_path))


@pytest.mark.spark
@pytest.mark.parametrize(("condition", "n_files"), [(IN_ALL, 4), (IN_ONE, 1)])
def test_a_scan_is_told_of_once(
    pruned: SparkSession, numbers: DataFrame, condition: str, n_files: int
) -> None:
    before = len(sx.last_plans(pruned))
    assert files_read(numbers.where(condition)) == n_files
    (told,) = sx.last_plans(pruned)[before:]
    assert told.n_read == n_files


@pytest.mark.spark
def test_a_file_that_is_replaced_while_spark_plans_is_read(
    numbers: DataFrame, tmp_path: Path
) -> None:
    df = optimized(numbers.where(IN_ONE))
    time.sleep(0.3)  # so that the question has its answer
    put(tmp_path / "3.parquet", 10)
    assert df.count() == 4


@pytest.mark.spark
def test_the_moment_that_files_are_listed_counts(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """A query may run long after it was optimized."""
    for i in range(2):
        ends = pa.table({"id": [50 * i, 100]})
        pq.write_table(ends, tmp_path / f"{i}.parquet")
    sx.build_indexes(tmp_path, {"id": "minmax"}, workers=1)
    calls = _pruned[pruned.sparkContext.applicationId].calls
    set_field(calls, "aheadMillis", 100)
    df = optimized(pruned.read.parquet(str(tmp_path)).where("id = 50"))
    time.sleep(0.2)
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    assert files_read(df) == 1


@pytest.mark.spark
def test_scans_of_other_files_with_one_question_are_told_of_by_themselves(
    pruned: SparkSession, numbers: DataFrame, tmp_path: Path
) -> None:
    """They have one folder, one condition, and so one question that is asked ahead."""
    before = len(sx.last_plans(pruned))
    one = pruned.read.parquet(str(tmp_path / "0.parquet")).where(IN_ALL)
    others = [str(tmp_path / f"{i}.parquet") for i in (1, 2, 3)]
    both = one.union(pruned.read.parquet(*others).where(IN_ALL))
    assert files_read(both) == 4
    told = sx.last_plans(pruned)[before:]
    assert sorted((one.n_files, one.n_read) for one in told) == [(1, 1), (3, 3)]
    assert not any(one.n_unindexed for one in told)
    assert files_read(numbers.where(IN_ALL)) == 4


LISTER = """
package skipindex.test;

import org.apache.spark.sql.execution.QueryExecution;

public class Lister implements java.util.function.Function {
    public Object apply(final Object query) {
        Thread thread = new Thread() {
            public void run() {
                ((QueryExecution) query).toRdd().getNumPartitions();
            }
        };
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
        return null;
    }
}
"""
"""Lists the files of a query in a thread that ends, as threads of Spark's pools do."""


@pytest.mark.spark
def test_threads_of_spark_that_end_leave_nothing(
    pruned: SparkSession, numbers: DataFrame
) -> None:
    """Py4J keeps a thread and a socket for each thread of Java that calls Python."""
    gateway = pruned.sparkContext._gateway
    lister = java_object(gateway, "Lister", LISTER)

    def asked(times: int) -> int:
        for i in range(times):
            lister.apply(numbers.where(f"id = {i}")._jdf.queryExecution())
        return threading.active_count()

    before = asked(12)
    assert asked(12) < before + 12, "some that ask may come later"
    assert sx.last_plans(pruned)[-1].n_skipped == 3
