"""Few rows that the planner reads, and row groups in the place of files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.spark.pruning import few_rows as planned
from skipindex.spark.pruning import query_planner
from skipindex.spark.reading import frames
from tests.spark.pruning.scans import nodes, rows_of, scans, set_for
from tests.spark.pruning.worlds import TYPES
from tests.tables import made

pytestmark = pytest.mark.spark


SETTING = "skipindex.rowsFromPlanner"
N_FILES = 4
ROWS = 300


@pytest.fixture
def reading(pruned: SparkSession) -> Iterator[SparkSession]:
    pruned.conf.set(SETTING, "4m")
    yield pruned
    pruned.conf.set(SETTING, "0")


def make(folder: Path) -> None:
    """Files with all types, in folders of a date and a text."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    rows = spark.range(N_FILES * ROWS).selectExpr(*TYPES)
    write = rows.repartition(N_FILES, "id").write.mode("append")
    write.partitionBy("p", "q").parquet(str(folder))
    asked = {"id": "exact", "k": "exact", "name": "bitmap"}
    sx.build_indexes(folder, asked, workers=1)


@pytest.fixture
def folder(tmp_path: Path, reading: SparkSession) -> Path:
    """The files as the view ``t``."""
    made(tmp_path / "t", make)
    reading.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("t")
    return tmp_path / "t"


def both(
    spark: SparkSession, query: Callable[[], DataFrame]
) -> tuple[DataFrame, list[str]]:
    """A query that ran, whose rows are those without skipping, and these rows."""
    spark.conf.set("skipindex.enabled", "false")
    expected = [*map(str, rows_of(query()))]
    spark.conf.set("skipindex.enabled", "true")
    df = query()
    rows = [*map(str, rows_of(df))]
    assert rows == expected
    return df, rows


def n_scans(df: DataFrame) -> int:
    return len(scans(df))


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
    assert folder.is_dir()


def put(path: Path, columns: dict[str, pa.Array], first: int = 0) -> None:
    rows = len(next(iter(columns.values())))
    ids = pa.array(range(first, first + rows), pa.int64())
    pq.write_table(pa.table({"id": ids, **columns}), path)


def test_files_that_came_or_changed_are_read_by_spark(
    reading: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "0.parquet", {"c": pa.array([1, 2])})
    put(tmp_path / "1.parquet", {"c": pa.array([3, 4])}, first=10)
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    before = reading.read.parquet(str(tmp_path))
    assert n_scans(both(reading, lambda: before.where("id = 1"))[0]) == 0
    put(tmp_path / "2.parquet", {"c": pa.array([5, 6])}, first=1)  # not listed before
    assert both(reading, lambda: before.where("id = 1"))[1] == ["Row(id=1, c=2)"]
    after = reading.read.parquet(str(tmp_path))
    df, rows = both(reading, lambda: after.where("id = 1"))
    assert (n_scans(df), len(rows)) == (1, 2)
    put(tmp_path / "0.parquet", {"c": pa.array([7, 8, 9])}, first=1)
    changed = reading.read.parquet(str(tmp_path))
    df, rows = both(reading, lambda: changed.where("id = 1"))
    assert (n_scans(df), len(rows)) == (1, 2)


def test_a_file_that_changes_while_it_is_read(
    reading: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "0.parquet", {"c": pa.array([1, 2])})
    put(tmp_path / "1.parquet", {"c": pa.array([3, 4])}, first=10)
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    view = reading.read.parquet(str(tmp_path))
    now = planned.few_rows

    def late(*arguments: object) -> object:
        os.utime(tmp_path / "1.parquet", ns=(10**18, 10**18))  # was to be skipped
        return now(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(query_planner, "few_rows", late)
    df = view.where("id = 1")
    assert (rows_of(df), n_scans(df)) == ([(1, 2)], 1)


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

    assert folder.is_dir()
    monkeypatch.setattr(query_planner, "few_rows", fails)
    df, _ = both(reading, lambda: reading.sql("SELECT id FROM t WHERE k = 3"))
    assert n_scans(df) == 1
    assert sx.last_plans(reading)[-1].n_rows is None


def test_a_stream_reads_its_files(reading: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    put(tmp_path / "t" / "0.parquet", {"c": pa.array([1, 2])})
    sx.build_indexes(tmp_path / "t", {"id": "exact"}, workers=1)
    found: list[object] = []
    stream = (
        reading.readStream.schema("id long, c long")
        .parquet(str(tmp_path / "t"))
        .where("id = 1")
        .writeStream.foreachBatch(lambda df, _: found.extend(df.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    assert found == [(1, 2)]


def test_no_node_of_ours_reaches_executors(reading: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
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
    assert len(df.collect()) == N_FILES * ROWS // 10  # the rows of the plan


FEW = "skipindex.rowsFromPlanner"
RULES = {
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    FEW: "4m",
}
PLANNED_N_FILES, N, PLANNED_ROWS = 3, 500, 50


@pytest.fixture
def planned_reading(pruned: SparkSession) -> Iterator[SparkSession]:
    before = {name: pruned.conf.get(name, None) for name in RULES}
    for name, value in RULES.items():
        pruned.conf.set(name, value)
    yield pruned
    for name, known in before.items():
        if known is None:
            pruned.conf.unset(name)
        else:
            pruned.conf.set(name, known)


def make_planned(planned_folder: Path) -> None:
    for i in range(PLANNED_N_FILES):
        numbers = range(i * N, i * N + N)
        columns = {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array([n * 7919 % 1009 for n in numbers], pa.int64()),
            "list": [[n] for n in numbers],
        }
        path = planned_folder / f"p={i % 2}" / f"{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path, row_group_size=PLANNED_ROWS)
    sx.build_indexes(planned_folder, {"k": "exact", "id": "exact"}, workers=1)


@pytest.fixture
def planned_folder(tmp_path: Path) -> Path:
    """Files in two folders, whose statistics rule out no row group for ``k``."""

    return made(tmp_path / "t", make_planned)


def whole(spark: SparkSession, planned_folder: Path, condition: str) -> DataFrame:
    """The rows of the table without skipping, as they are when this is called."""
    spark.conf.set("skipindex.enabled", "false")
    rows = spark.read.parquet(str(planned_folder)).where(condition)
    result = spark.createDataFrame(rows.collect(), rows.schema)
    spark.conf.set("skipindex.enabled", "true")
    return result


def jobs(spark: SparkSession) -> int:
    found: int = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    return found


def is_narrow(df: DataFrame) -> bool:
    return any(node.getClass().getSimpleName() == "RowGroups" for node in nodes(df))


def test_few_rows_of_a_plan_need_no_job(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    expected = whole(planned_reading, planned_folder, "k IN (5, 700)").select("id", "p")
    plan = sx.open_table(planned_folder).plan("k IN (5, 700)")
    for df in (
        plan.read(planned_reading),
        sx.read(planned_folder, "k IN (5, 700)", spark=planned_reading),
    ):
        before = jobs(planned_reading)
        few = df.select("id", "p")
        rows = rows_of(few)
        assert jobs(planned_reading) == before
        assert rows == rows_of(expected)
        assert few.schema == expected.schema
        assert not scans(few)


def test_more_conditions_leave_fewer_rows(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    df = sx.read(planned_folder, "k < 900", spark=planned_reading).select("id")
    assert rows_of(df.where("id = 77")) == [(77,)]
    assert sx.last_plans(planned_reading)[-1].n_rows == 1


def test_a_plan_reads_row_groups(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    planned_reading.conf.set(FEW, "0")
    expected = whole(planned_reading, planned_folder, "k IN (5, 700)")
    df = sx.read(planned_folder, "k IN (5, 700)", spark=planned_reading)
    assert df.columns == expected.columns
    assert rows_of(df) == rows_of(expected)
    assert is_narrow(df)
    (scan,) = scans(df)
    assert scan.metrics().apply("numOutputRows").value() == 4 * PLANNED_ROWS
    assert rows_of(df.where("id < 0")) == []


def test_rows_that_tell_their_file_are_of_its_scan(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    for n_bytes in ("0", "4m"):
        planned_reading.conf.set(FEW, n_bytes)
        df = sx.read(planned_folder, "id = 77", spark=planned_reading)
        name = df.select(sf.input_file_name()).head()
        assert name is not None
        assert name[0].endswith("p=0/0.parquet")
        block = df.select(sf.expr("input_file_block_length()"))
        assert block.head() == ((planned_folder / "p=0/0.parquet").stat().st_size,)
        found = df.select("_metadata.file_name", "_metadata.row_index").head()
        assert found == ("0.parquet", 77)


@pytest.mark.usefixtures("planned_reading")
def test_a_session_that_is_not_enabled_reads_the_files_of_the_plan(
    spark: SparkSession, planned_folder: Path
) -> None:
    sx.disable(spark)
    df = sx.read(planned_folder, "id = 77", spark=spark).select("id")
    assert df.collect() == [(77,)]
    assert len(scans(df)) == 1
    assert not is_narrow(df)


def test_a_file_that_changed_after_the_plan(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    """It is as Spark finds it when the query runs, never a part of its rows."""
    for n_bytes in ("0", "4m"):
        planned_reading.conf.set(FEW, n_bytes)
        df = sx.read(planned_folder, "k = 5", spark=planned_reading).select("id")
        path = next(
            planned_folder.glob("p=*/" + str(df.collect()[0].id // N) + ".parquet")
        )
        table = pa.table({"id": pa.array([9, 10]), "k": pa.array([5, 6])})
        pq.write_table(table, path)
        os.utime(path, (1_000_000_000, 1_000_000_000))
        again = sx.read(planned_folder, "k = 5", spark=planned_reading).select("id")
        assert rows_of(again) == rows_of(
            whole(planned_reading, planned_folder, "k = 5").select("id")
        )


def test_files_that_spark_lists_are_pruned_too(
    planned_reading: SparkSession, planned_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_relation", lambda _: None)
    df = sx.read(planned_folder, "id = 77", spark=planned_reading).select("id")
    assert df.collect() == [(77,)]
    assert not scans(df)


def test_a_list_of_rows_is_read_by_spark(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    df = sx.read(planned_folder, "id = 77", spark=planned_reading)
    assert rows_of(df) == rows_of(whole(planned_reading, planned_folder, "id = 77"))
    assert len(scans(df)) == 1


OPEN = "spark.sql.files.openCostInBytes"
GROUPED_N_FILES, N_GROUPS, GROUPED_ROWS = 3, 10, 50
GROUPED_N = N_GROUPS * GROUPED_ROWS


def put_grouped(path: Path, first: int) -> None:
    """Rows whose ``k`` is in no order, so that no statistics rule out a row group."""
    numbers = range(first, first + GROUPED_N)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "k": pa.array([i * 7919 % 1009 for i in numbers], pa.int64()),
        "text": [f"{i:040}" for i in numbers],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=GROUPED_ROWS)


def make_grouped(grouped_folder: Path) -> None:
    for i in range(GROUPED_N_FILES):
        put_grouped(grouped_folder / f"p={i % 2}" / f"{i}.parquet", i * GROUPED_N)
    sx.build_indexes(grouped_folder, {"k": "exact", "id": "exact"}, workers=1)


@pytest.fixture
def grouped_folder(tmp_path: Path, pruned: SparkSession) -> Iterator[Path]:
    """Files in two folders, as the view ``t``; Parquet itself rules out no row group.

    No gap between row groups is small.
    """

    path = made(tmp_path / "t", make_grouped)
    with set_for(pruned, {OPEN: "0", "spark.sql.parquet.filterPushdown": "false"}):
        pruned.read.parquet(str(path)).createOrReplaceTempView("t")
        yield path


def both_grouped(spark: SparkSession, query: Callable[[], DataFrame]) -> DataFrame:
    """A query that ran, whose rows are those without skipping."""
    with set_for(spark, {"skipindex.enabled": "false"}):
        expected = rows_of(query())
    df = query()
    assert rows_of(df) == expected
    return df


def rows_read(df: DataFrame) -> int:
    """The rows that the scans of a run gave, before conditions above them."""
    return sum(scan.metrics().apply("numOutputRows").value() for scan in scans(df))


def test_small_ranges_of_files_share_a_task(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    with set_for(pruned, {"spark.sql.files.minPartitionNum": "1"}):
        df = both_grouped(
            pruned, lambda: pruned.sql("SELECT id FROM t WHERE k IN (5, 700)")
        )
    assert df.rdd.getNumPartitions() == 1


@pytest.mark.few(2)
@pytest.mark.parametrize("how", ["other", "shorter", "touched"])
def test_a_file_that_changed_is_read_whole(
    pruned: SparkSession, grouped_folder: Path, how: str
) -> None:
    """Spark and the planner have listed it before; what it holds now counts."""
    view = pruned.table("t")
    assert view.where("k = 5").count() == 2
    path = grouped_folder / "p=0" / "0.parquet"
    if how == "touched":
        path.touch()
    else:
        n = GROUPED_N if how == "other" else GROUPED_ROWS
        columns = {"id": range(n), "k": [5] * n, "text": ["x"] * n}
        pq.write_table(pa.table(columns), path, row_group_size=GROUPED_ROWS // 2)
    df = both_grouped(
        pruned, lambda: pruned.read.parquet(str(grouped_folder)).where("k = 5")
    )
    assert rows_read(df) >= 1
    both_grouped(pruned, lambda: view.where("k = 5"))


def test_a_session_without_skipping_has_no_strategy_of_ours(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    methods = pruned._jsparkSession.experimental()
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 1
    sx.disable(pruned)
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 0


def test_cached_rows_are_those_of_the_ranges(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    df = pruned.sql("SELECT * FROM t WHERE k IN (5, 700)").cache()
    try:
        both_grouped(pruned, lambda: df.where(sf.col("k") == 5))
    finally:
        df.unpersist()
