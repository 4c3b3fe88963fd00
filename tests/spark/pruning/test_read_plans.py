"""Plans that an enabled session reads: the rule sees the query around them too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.spark.reading import frames
from tests.spark.pruning.scans import nodes, rows_of, scans
from tests.tables import made

pytestmark = pytest.mark.spark

FEW = "skipindex.rowsFromPlanner"
RULES = {
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    FEW: "4m",
}
N_FILES, N, ROWS = 3, 500, 50


@pytest.fixture
def reading(pruned: SparkSession) -> Iterator[SparkSession]:
    before = {name: pruned.conf.get(name, None) for name in RULES}
    for name, value in RULES.items():
        pruned.conf.set(name, value)
    yield pruned
    for name, known in before.items():
        if known is None:
            pruned.conf.unset(name)
        else:
            pruned.conf.set(name, known)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files in two folders, whose statistics rule out no row group for ``k``."""

    def make(folder: Path) -> None:
        for i in range(N_FILES):
            numbers = range(i * N, i * N + N)
            columns = {
                "id": pa.array(numbers, pa.int64()),
                "k": pa.array([n * 7919 % 1009 for n in numbers], pa.int64()),
                "list": [[n] for n in numbers],
            }
            path = folder / f"p={i % 2}" / f"{i}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), path, row_group_size=ROWS)
        sx.build_indexes(folder, {"k": "exact", "id": "exact"}, workers=1)

    return made(tmp_path / "t", make)


def whole(spark: SparkSession, folder: Path, condition: str) -> DataFrame:
    """The rows of the table without skipping, as they are when this is called."""
    spark.conf.set("skipindex.enabled", "false")
    rows = spark.read.parquet(str(folder)).where(condition)
    result = spark.createDataFrame(rows.collect(), rows.schema)
    spark.conf.set("skipindex.enabled", "true")
    return result


def jobs(spark: SparkSession) -> int:
    found: int = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    return found


def is_narrow(df: DataFrame) -> bool:
    return any(node.getClass().getSimpleName() == "RowGroups" for node in nodes(df))


def test_few_rows_of_a_plan_need_no_job(reading: SparkSession, folder: Path) -> None:
    expected = whole(reading, folder, "k IN (5, 700)").select("id", "p")
    plan = sx.open_table(folder).plan("k IN (5, 700)")
    for df in (plan.read(reading), sx.read(folder, "k IN (5, 700)", spark=reading)):
        before = jobs(reading)
        few = df.select("id", "p")
        rows = rows_of(few)
        assert jobs(reading) == before
        assert rows == rows_of(expected)
        assert few.schema == expected.schema
        assert not scans(few)


def test_more_conditions_leave_fewer_rows(reading: SparkSession, folder: Path) -> None:
    df = sx.read(folder, "k < 900", spark=reading).select("id")
    assert rows_of(df.where("id = 77")) == [(77,)]
    assert sx.last_plans(reading)[-1].n_rows == 1


def test_a_plan_reads_row_groups(reading: SparkSession, folder: Path) -> None:
    reading.conf.set(FEW, "0")
    expected = whole(reading, folder, "k IN (5, 700)")
    df = sx.read(folder, "k IN (5, 700)", spark=reading)
    assert df.columns == expected.columns
    assert rows_of(df) == rows_of(expected)
    assert is_narrow(df)
    (scan,) = scans(df)
    assert scan.metrics().apply("numOutputRows").value() == 4 * ROWS
    assert rows_of(df.where("id < 0")) == []


def test_rows_that_tell_their_file_are_of_its_scan(
    reading: SparkSession, folder: Path
) -> None:
    for n_bytes in ("0", "4m"):
        reading.conf.set(FEW, n_bytes)
        df = sx.read(folder, "id = 77", spark=reading)
        name = df.select(sf.input_file_name()).head()
        assert name is not None
        assert name[0].endswith("p=0/0.parquet")
        block = df.select(sf.expr("input_file_block_length()"))
        assert block.head() == ((folder / "p=0/0.parquet").stat().st_size,)
        found = df.select("_metadata.file_name", "_metadata.row_index").head()
        assert found == ("0.parquet", 77)


@pytest.mark.usefixtures("reading")
def test_a_session_that_is_not_enabled_reads_the_files_of_the_plan(
    spark: SparkSession, folder: Path
) -> None:
    sx.disable(spark)
    df = sx.read(folder, "id = 77", spark=spark).select("id")
    assert df.collect() == [(77,)]
    assert len(scans(df)) == 1
    assert not is_narrow(df)


def test_a_file_that_changed_after_the_plan(
    reading: SparkSession, folder: Path
) -> None:
    """It is as Spark finds it when the query runs, never a part of its rows."""
    for n_bytes in ("0", "4m"):
        reading.conf.set(FEW, n_bytes)
        df = sx.read(folder, "k = 5", spark=reading).select("id")
        path = next(folder.glob("p=*/" + str(df.collect()[0].id // N) + ".parquet"))
        table = pa.table({"id": pa.array([9, 10]), "k": pa.array([5, 6])})
        pq.write_table(table, path)
        os.utime(path, (1_000_000_000, 1_000_000_000))
        again = sx.read(folder, "k = 5", spark=reading).select("id")
        assert rows_of(again) == rows_of(whole(reading, folder, "k = 5").select("id"))


def test_files_that_spark_lists_are_pruned_too(
    reading: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_relation", lambda _: None)
    df = sx.read(folder, "id = 77", spark=reading).select("id")
    assert df.collect() == [(77,)]
    assert not scans(df)


def test_a_list_of_rows_is_read_by_spark(reading: SparkSession, folder: Path) -> None:
    df = sx.read(folder, "id = 77", spark=reading)
    assert rows_of(df) == rows_of(whole(reading, folder, "id = 77"))
    assert len(scans(df)) == 1
