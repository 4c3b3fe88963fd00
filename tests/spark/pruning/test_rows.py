"""Few rows that the planner reads, and row groups, where no query says it by itself.

The queries are in `queries/rows.txt` and `queries/groups.txt`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.spark.pruning import query_planner
from skipindex.spark.reading import frames
from tests.spark.pruning.costs import n_jobs
from tests.spark.pruning.scans import nodes, rows_of, same_rows, scans, set_for

pytestmark = pytest.mark.spark


SETTING = "skipindex.rowsFromPlanner"
RULES = {
    SETTING: "4m",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.parquet.filterPushdown": "false",
}


@pytest.fixture
def reading(pruned: SparkSession) -> Iterator[SparkSession]:
    with set_for(pruned, RULES):
        yield pruned


@pytest.fixture
def folder(copied: Callable[..., Path], reading: SparkSession) -> Path:
    """Files with all types, as the view ``t``."""
    found = copied("rows")
    reading.read.parquet(str(found)).createOrReplaceTempView("t")
    return found


@pytest.fixture
def grouped(copied: Callable[..., Path], reading: SparkSession) -> Path:
    """Files in two folders, of row groups of fifty rows, as the view ``t``."""
    found = copied("groups")
    reading.read.parquet(str(found)).createOrReplaceTempView("t")
    return found


def test_rows_are_written_and_cached(
    reading: SparkSession, folder: Path, tmp_path: Path
) -> None:
    few = reading.sql("SELECT id, name, p FROM t WHERE k = 3")
    expected = rows_of(few)
    few.write.parquet(str(tmp_path / "copy"))
    assert rows_of(reading.read.parquet(str(tmp_path / "copy"))) == expected
    few.cache()
    try:
        assert rows_of(few.where("id > 0")) == rows_of(few)
    finally:
        few.unpersist()


@pytest.mark.few(1)
@pytest.mark.parametrize("error", [MemoryError, OSError, ValueError])
def test_a_planner_that_fails_leaves_the_scan(
    reading: SparkSession,
    folder: Path,
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(query_planner, "few_rows", fails)
    df = same_rows(reading, lambda: reading.sql("SELECT id FROM t WHERE k = 3"))
    assert len(scans(df)) == 1
    assert sx.last_plans(reading)[-1].n_rows is None


def test_no_node_of_ours_reaches_executors(reading: SparkSession, folder: Path) -> None:
    df = reading.sql("SELECT id FROM t WHERE k = 3")
    df.collect()
    (ours, theirs) = nodes(df)
    assert ours.getClass().getName() == "skipindex.LocalRows"
    jvm = reading._jvm
    assert jvm is not None
    stored = jvm.org.apache.commons.lang3.SerializationUtils.serialize(ours)
    assert b"skipindex" not in bytes(stored)
    assert theirs.getClass().getSimpleName() == "LocalTableScanExec"
    assert theirs.sameResult(ours)
    shutil.rmtree(folder)
    assert len(df.collect()) == 120  # the rows of the plan


def whole(spark: SparkSession, folder: Path, condition: str) -> DataFrame:
    """The rows of the table without skipping, as they are when this is called."""
    with set_for(spark, {"skipindex.enabled": "false"}):
        rows = spark.read.parquet(str(folder)).where(condition)
        return spark.createDataFrame(rows.collect(), rows.schema)


def is_narrow(df: DataFrame) -> bool:
    return any(node.getClass().getSimpleName() == "RowGroups" for node in nodes(df))


def test_few_rows_of_a_plan_need_no_job(reading: SparkSession, grouped: Path) -> None:
    expected = whole(reading, grouped, "k IN (5, 700)").select("id", "p")
    plan = sx.open_table(grouped).plan("k IN (5, 700)")
    for df in (
        plan.read(reading),
        sx.read(grouped, "k IN (5, 700)", spark=reading),
    ):
        before = n_jobs(reading)
        few = df.select("id", "p")
        rows = rows_of(few)
        assert n_jobs(reading) == before
        assert rows == rows_of(expected)
        assert few.schema == expected.schema
        assert not scans(few)


def test_more_conditions_leave_fewer_rows(reading: SparkSession, grouped: Path) -> None:
    df = sx.read(grouped, "k < 900", spark=reading).select("id")
    assert rows_of(df.where("id = 77")) == [(77,)]
    assert sx.last_plans(reading)[-1].n_rows == 1


def test_a_plan_reads_row_groups(reading: SparkSession, grouped: Path) -> None:
    reading.conf.set(SETTING, "0")
    expected = whole(reading, grouped, "k IN (5, 700)")
    df = sx.read(grouped, "k IN (5, 700)", spark=reading)
    assert df.columns == expected.columns
    assert rows_of(df) == rows_of(expected)
    assert is_narrow(df)
    (scan,) = scans(df)
    assert scan.metrics().apply("numOutputRows").value() == 4 * 50
    assert rows_of(df.where("id < 0")) == []


def test_rows_that_tell_their_file_are_of_its_scan(
    reading: SparkSession, grouped: Path
) -> None:
    for n_bytes in ("0", "4m"):
        reading.conf.set(SETTING, n_bytes)
        df = sx.read(grouped, "id = 77", spark=reading)
        name = df.select(sf.input_file_name()).head()
        assert name is not None
        assert name[0].endswith("p=0/0.parquet")
        block = df.select(sf.expr("input_file_block_length()"))
        assert block.head() == ((grouped / "p=0/0.parquet").stat().st_size,)
        found = df.select("_metadata.file_name", "_metadata.row_index").head()
        assert found == ("0.parquet", 77)


def test_a_session_that_is_not_enabled_reads_the_files_of_the_plan(
    spark: SparkSession, grouped: Path
) -> None:
    sx.disable(spark)
    df = sx.read(grouped, "id = 77", spark=spark).select("id")
    assert df.collect() == [(77,)]
    assert len(scans(df)) == 1
    assert not is_narrow(df)


def test_files_that_spark_lists_are_pruned_too(
    reading: SparkSession, grouped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_relation", lambda _: None)
    df = sx.read(grouped, "id = 77", spark=reading).select("id")
    assert df.collect() == [(77,)]
    assert not scans(df)


def test_small_ranges_of_files_share_a_task(
    reading: SparkSession, grouped: Path
) -> None:
    with set_for(reading, {SETTING: "0"}):
        df = same_rows(
            reading, lambda: reading.sql("SELECT id FROM t WHERE k IN (5, 700)")
        )
    assert df.rdd.getNumPartitions() == 1


def test_a_session_without_skipping_has_no_strategy_of_ours(
    reading: SparkSession, grouped: Path
) -> None:
    methods = reading._jsparkSession.experimental()
    reading.sql("SELECT id FROM t WHERE k = 5").collect()
    reading.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 1
    sx.disable(reading)
    reading.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 0
