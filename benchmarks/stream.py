"""A stream that is killed again and again: its rows, its files, and its price.

::

    python -m benchmarks.stream [--batches N] [--rows N] [--out FOLDER] [--picture SVG]

A process writes a stream by ``skipindex.sink``, and is killed with all that it started
within the tenth batch that it begins.  Whenever it is dead the files that a query reads
are counted, and after every fifth kill ``maintain`` runs.  The table at the end has the
rows that are there twice or not at all, the files that a query reads beside those of a
full clustering, and the seconds of a batch beside those of ``append``, in turns.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from ssb.session import local_session

KILL_EVERY: Final = 10  # batches
MAINTAIN_EVERY: Final = 5  # kills
N_PAIRS: Final = 20  # batches by sink, and as many by append
_LIMIT: Final = 300.0  # seconds without a batch, after which the stream hangs


def write_source(folder: Path, n_batches: int, n_rows: int) -> None:
    """One file for each batch, whose rows are numbered through all of them."""
    folder.mkdir(parents=True)
    chooser = np.random.default_rng(1)
    for batch in range(n_batches):
        columns = {
            "id": np.arange(batch * n_rows, (batch + 1) * n_rows),
            "customer": chooser.integers(0, 3000, n_rows, np.int32),
            "part": chooser.integers(0, 20000, n_rows, np.int32),
            "quantity": chooser.integers(0, 50, n_rows, np.int32),
        }
        pq.write_table(pa.table(columns), folder / f"{batch:05}.parquet")


def create(spark: SparkSession, source: Path, path: Path, rows_per_file: int) -> None:
    """The table without rows."""
    layout = sx.Clustering(by=["customer", "part"], rows_per_file=rows_per_file)
    rows = spark.read.parquet(str(source)).limit(0)
    indexes = {"customer": "exact", "part": "exact"}
    sx.write_table(rows, path, layout=layout, indexes=indexes)


def run_stream(
    spark: SparkSession,
    source: Path,
    checkpoint: Path,
    write: Callable[[DataFrame, int], None],
) -> None:
    """Write the files that are new, one a batch."""
    schema = spark.read.parquet(str(source)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    batches = reader.parquet(str(source)).writeStream.foreachBatch(write)
    batches = batches.option("checkpointLocation", str(checkpoint))
    batches.trigger(availableNow=True).start().awaitTermination()


def child(folder: Path) -> None:
    """The process that is killed: it tells when a batch begins, and when it is done."""
    spark = session()
    sink = sx.sink(folder / "table")

    def write(df: DataFrame, number: int) -> None:
        began = time.perf_counter()
        print(f"begin {number}", flush=True)
        sink(df, number)
        print(f"done {number} {time.perf_counter() - began}", flush=True)

    run_stream(spark, folder / "source", folder / "checkpoint", write)


def session() -> SparkSession:
    """A session for batches that are small."""
    spark = local_session("stream", memory="2g")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    return spark


def live(folder: Path, chooser: random.Random) -> tuple[int | None, float]:
    """Run the stream to its end, or kill it within a later batch; the batch, if so.

    The kill comes after a part of the seconds that the batch before took, so that each
    step of a batch is met; the second number is these seconds.
    """
    command = [sys.executable, "-m", "benchmarks.stream", "--child", str(folder)]
    process = subprocess.Popen(  # noqa: S603 (this very module)
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    seconds, n_done = 1.0, 0
    assert process.stdout is not None
    for line in process.stdout:
        match line.split():
            case ["done", _, took]:
                seconds, n_done = float(took), n_done + 1
            case ["begin", number] if n_done >= KILL_EVERY - 1:
                wait = seconds * chooser.uniform(0, 1.1)
                time.sleep(wait)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return int(number), wait
    if process.wait(_LIMIT):
        raise RuntimeError(f"the stream ended with exit code {process.returncode}")
    return None, 0.0


def files_read(path: Path, chooser: random.Random) -> float:
    """The files that a query reads, on average."""
    table, n_files, n_queries = sx.open_table(path), 0, 40
    for _ in range(n_queries // 2):
        customer, part = chooser.randrange(3000), chooser.randrange(20000)
        ranges = (
            f"customer BETWEEN {customer} AND {customer + 30}",
            f"part BETWEEN {part} AND {part + 200}",
        )
        n_files += sum(len(table.plan(where).paths) for where in ranges)
    return n_files / n_queries


def price(spark: SparkSession, folder: Path, rows_per_file: int) -> list[float]:
    """Of pairs of batches, the seconds by ``sink`` for each second by ``append``."""
    source, seconds = folder / "pairs", dict[str, list[float]]()
    write_source(source, 2 * N_PAIRS + 2, rows_per_file)
    for name in ("sunk", "appended"):
        create(spark, source, folder / name, rows_per_file)
    sink = sx.sink(folder / "sunk")

    def write(df: DataFrame, number: int) -> None:
        began = time.perf_counter()
        name = ("sunk", "appended")[number % 2]
        if number % 2:
            sx.append(df, folder / "appended")
        else:
            sink(df, number)
        seconds.setdefault(name, []).append(time.perf_counter() - began)

    run_stream(spark, source, folder / "pairs-checkpoint", write)
    both = zip(seconds["sunk"], seconds["appended"], strict=True)
    return [a / b for a, b in both][1:]  # the first compiles


def picture(reads: Sequence[tuple[int, float]], full: float) -> str:
    """The files that a query reads, batch by batch."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    from ssb.report.charts import style, svg  # noqa: PLC0415 (it needs the extra)

    with style():
        figure = Figure(figsize=(9, 3.4))
        axes = figure.add_subplot()
        axes.plot(*zip(*reads, strict=True), marker="o", label="a stream, maintained")
        axes.axhline(full, linestyle="--", label="clustered as a whole")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("batch")
        axes.set_ylabel("files a query reads")
        axes.legend()
        return svg(figure)


def main(arguments: Sequence[str] = ()) -> None:
    """Let the stream live, and print what it wrote."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("data/stream"))
    parser.add_argument("--picture", type=Path, metavar="SVG")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        child(options.child)
        return
    folder, chooser = options.out.absolute(), random.Random(1)
    shutil.rmtree(folder, ignore_errors=True)
    path, spark = folder / "table", session()
    write_source(folder / "source", options.batches, options.rows)
    create(spark, folder / "source", path, options.rows)
    ratios = price(spark, folder, options.rows)
    reads, kills, rewritten = list[tuple[int, float]](), 0, 0
    while (killed := live(folder, chooser))[0] is not None:
        batch, wait = killed
        kills += 1
        read = files_read(path, chooser)
        reads.append((batch or 0, read))
        print(f"killed {wait:.2f} s after batch {batch} began: {read:.1f} files")
        if kills % MAINTAIN_EVERY == 0:
            report = sx.maintain(path, spark=spark, workers=1)
            rewritten += sum(
                s.n_bytes // 2 for s in report.steps if s.step == "cluster"
            )
            reads.append((batch or 0, files_read(path, chooser)))
            print(f"maintain: {reads[-1][1]:.1f} files", flush=True)
    sx.maintain(path, spark=spark, workers=1)
    last = files_read(path, random.Random(2))
    ids = sx.open_table(path).plan("id >= 0").to_arrow(columns=["id"]).to_table()["id"]
    counts = np.bincount(ids.to_numpy(), minlength=options.batches * options.rows)
    listed = spark.read.parquet(str(path)).count()
    sx.open_table(path).optimize(spark, mode="full")
    full = files_read(path, random.Random(2))
    print("| what | figure |")
    print("|---|---|")
    print(f"| batches, rows, kills | {options.batches}, {len(ids):,}, {kills} |")
    print(f"| rows twice, rows lost | {(counts > 1).sum()}, {(counts == 0).sum()} |")
    print(f"| rows for readers that list the folder | {listed:,} |")
    print(f"| files a query reads, after maintain | {last:.1f} |")
    print(f"| the same, clustered as a whole | {full:.1f} |")
    print(f"| bytes rewritten | {rewritten / 1e6:.1f} MB |")
    median = statistics.median(ratios)
    print(f"| a batch by sink / by append, median of pairs | {median:.2f} |")
    if options.picture:
        options.picture.write_text(picture(reads, full), "utf-8")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
