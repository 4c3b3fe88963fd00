"""Streams: each row of each batch is in the table once, wherever the writer dies."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.errors import EngineError, LayoutError, TableError
from tests.rewrite.killing import Killed, killed_at
from tests.rewrite.seen import everything

pytestmark = pytest.mark.spark

N_FILES, N_ROWS = 3, 20
FEWEST = 10
"""Changes of the file system that a batch makes, at least."""
Sink = Callable[[DataFrame, int], None]


@pytest.fixture(scope="module")
def arriving(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arriving") / "files"
    for i in range(N_FILES):
        rows = spark.range(i * N_ROWS, (i + 1) * N_ROWS, numPartitions=1)
        rows.selectExpr("id", "id % 3 AS k").write.mode("append").parquet(str(folder))
    return folder


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Path:
    rows = spark.range(0).selectExpr("id", "id % 3 AS k")
    layout = sx.Clustering(by=["id"], rows_per_file=1000)
    sx.write_table(rows, tmp_path / "t", layout=layout, indexes={"k": "bitmap"})
    return tmp_path / "t"


def run(spark: SparkSession, arriving: Path, path: Path, sink: Sink) -> None:
    """Run the stream until no file is left, or it fails."""
    stream = (
        spark.readStream.schema("id long, k long")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(arriving))
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(path.with_name("checkpoint")))
        .trigger(availableNow=True)
    )
    stream.start().awaitTermination()


def dying(sink: Sink, number: int, step: int, *, after: bool) -> Sink:
    """The sink of a process that is killed in one of its batches."""

    def add(df: DataFrame, n: int) -> None:
        if n != number:
            return sink(df, n)
        try:
            with killed_at(step, after=after):
                return sink(df, n)
        except Killed as error:
            raise RuntimeError("killed") from error

    return add


def check(spark: SparkSession, path: Path, n_rows: int = N_FILES * N_ROWS) -> None:
    """Every row once: for Spark alone, and by the log."""
    ids = [row.id for row in spark.read.parquet(str(path)).collect()]
    assert sorted(ids) == [*range(n_rows)]
    table = sx.open_table(path)
    assert table.state.index_gaps == {}
    assert table.plan("id >= 0").count() == n_rows
    assert table.plan("k = 1").read(spark).count() == len(range(1, n_rows, 3))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("step", "after"),
    [(6, True), (2, False), *((n, n % 4 < 2) for n in range(12))],
)
def test_a_stream_that_is_killed_goes_on_where_it_was(
    spark: SparkSession, arriving: Path, path: Path, step: int, after: bool
) -> None:
    def sink() -> Sink:  # of a new process
        return sx.sink(path)

    dies = pytest.raises(StreamingQueryException, match="killed")
    with dies if step < FEWEST else suppress(StreamingQueryException):
        run(spark, arriving, path, dying(sink(), 1, step, after=after))
    n = sx.open_table(path).plan("id >= 0").read(spark).count()
    assert n in (N_ROWS, 2 * N_ROWS, N_FILES * N_ROWS)
    run(spark, arriving, path, sink())
    check(spark, path)


def test_what_fails_adds_nothing_and_says_why(
    spark: SparkSession,
    arriving: Path,
    path: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(EngineError, match="this is none"):
        sx.sink(path)(spark.range(3), 0)
    with pytest.raises(TableError, match="no such table"):
        sx.sink(tmp_path / "nothing")
    with pytest.raises(LayoutError, match="has no layout of its own"):
        sx.sink(arriving)
    sink = sx.sink(path)
    run(spark, arriving, path, lambda df, n: sink(df, n) if n < 2 else None)
    check(spark, path, 2 * N_ROWS)
    files = everything(path)

    def tried(add: Sink) -> str:
        checkpoint = path.with_name("checkpoint")
        for folder in ("commits", "offsets"):
            for file in (checkpoint / folder).glob("*2*"):
                file.unlink()
        with pytest.raises(StreamingQueryException) as error:
            run(spark, arriving, path, add)
        return str(error.value)

    other = tried(lambda df, n: sink(df.selectExpr("CAST(id AS STRING) AS id"), n))
    assert "cannot append" in other
    assert "older than batch 1" in tried(lambda df, _: sink(df, 0))
    newest = max((path / "_skipindex" / "log").glob("*.json"))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-9])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "commit . of the table is damaged")
        assert "is damaged, and may be that of batch 2" in tried(sink)
    newest.write_bytes(whole)
    assert everything(path) == files
    shutil.rmtree(path)
    sx.write_table(
        spark.range(0).selectExpr("id", "id % 3 AS k"),
        path,
        layout=sx.Clustering(by=["id"]),
    )
    files = everything(path)
    assert "was replaced, or its log was lost, after batch 1" in tried(sink)
    assert everything(path) == files
