"""What writers store of times, as readers other than Spark see it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx

pytestmark = pytest.mark.spark

UTC = dt.UTC
TIMES = [
    dt.datetime(1, 1, 2, tzinfo=UTC),
    dt.datetime(1500, 3, 1, 12, tzinfo=UTC),
    dt.datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=UTC),
    dt.datetime(9999, 12, 30, tzinfo=UTC),
]
"""Nanoseconds since 1970 in 64 bits reach from 1677 to 2262."""
INSTANT = pa.timestamp("us", "UTC")
SETTINGS = {
    "spark.sql.parquet.outputTimestampType": ["INT96", "TIMESTAMP_MILLIS"],
    "spark.sql.parquet.datetimeRebaseModeInWrite": ["LEGACY", "EXCEPTION"],
}


def seen(folder: Path) -> tuple[pa.DataType, list[dt.datetime], str]:
    """The type and the times that Arrow sees, and the type that DuckDB does."""
    paths = [str(path) for path in folder.rglob("*.parquet")]
    rows = ds.dataset(paths).to_table()["t"]
    connection = duckdb.connect()
    kind = connection.read_parquet(paths).select("t").types[0]
    return rows.type, sorted(rows.to_pylist()), str(kind)


AS_STORED = (INSTANT, TIMES, "TIMESTAMP WITH TIME ZONE")


@pytest.fixture(params=[(k, v) for k, values in SETTINGS.items() for v in values])
def session(
    request: pytest.FixtureRequest, spark: SparkSession
) -> Iterator[SparkSession]:
    """A session that would store times in another way."""
    name, value = request.param
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    yield spark
    assert spark.conf.get(name) == value, "it stays the caller's"
    spark.conf.set(name, before)


@pytest.mark.few(2)
def test_rows_have_the_times_that_parquet_defines(
    session: SparkSession, tmp_path: Path
) -> None:
    rows = session.createDataFrame([(t,) for t in TIMES[:2]], "t timestamp")
    more = session.createDataFrame([(t,) for t in TIMES[2:]], "t timestamp")
    table = sx.write_table(rows.coalesce(1), tmp_path / "t", indexes={"t": "minmax"})
    sx.append(more.coalesce(1), table)
    assert seen(tmp_path / "t") == AS_STORED


@pytest.mark.few(1)
def test_what_a_caller_observes_is_told(session: SparkSession, tmp_path: Path) -> None:
    seen_rows = Observation()
    rows = session.createDataFrame([(t,) for t in TIMES], "t timestamp").coalesce(1)
    counted = rows.observe(seen_rows, sf.count(sf.lit(1)).alias("n"))
    sx.write_table(counted, tmp_path / "t", indexes={"t": "minmax"})
    assert seen(tmp_path / "t") == AS_STORED
    waiting = ThreadPoolExecutor(1).submit(lambda: seen_rows.get["n"])
    assert waiting.result(timeout=30) == len(TIMES)


@pytest.mark.few(2)
def test_files_of_pyarrow_keep_their_times(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for i, t in enumerate(TIMES):
        rows = pa.table({"i": [i], "t": pa.array([t], INSTANT)})
        pq.write_table(rows, folder / f"{i}.parquet")
    assert seen(folder) == AS_STORED
    optimized = sx.open_table(folder).optimize(session, in_place=True)
    assert optimized.files_out == 1
    optimized.table.vacuum(retention=dt.timedelta(0))
    assert seen(folder) == AS_STORED


def test_times_of_one_table_are_of_one_kind(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Engines take 96 bits for a time without a zone, and would shift the others."""
    folder = tmp_path / "t"
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    rows = spark.createDataFrame([(t,) for t in TIMES[2:3]], "t timestamp")
    rows.coalesce(1).write.parquet(str(folder))
    rows.coalesce(1).write.mode("append").parquet(str(folder))
    before = seen(folder)
    assert before[0] == pa.timestamp("ns")
    optimized = sx.open_table(folder).optimize(spark, in_place=True)
    optimized.table.vacuum(retention=dt.timedelta(0))
    assert seen(folder) == before
    sx.append(rows.coalesce(1), folder)
    assert seen(folder) == (before[0], before[1] + before[1][:1], before[2])


def test_a_copy_says_which_types_it_has_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    rows = pa.table({"u": pa.array([7], pa.uint16()), "n": [1]})
    pq.write_table(rows, tmp_path / "t" / "0.parquet")
    table = sx.open_table(tmp_path / "t")
    copy = table.optimize(spark, into=tmp_path / "copy")
    assert copy.notes == ("the copy has a type of Spark for u (uint16)",)
    left = table.optimize(spark, layout=sx.Clustering(by=["n"]), in_place=True)
    assert (left.files_in, left.files_left) == (0, 1)
