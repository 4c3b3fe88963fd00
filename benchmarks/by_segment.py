"""Plans over more files than memory should hold: segment by segment, and by Spark.

``python -m benchmarks.by_segment [--files N] [--spark]``.  The log is written a segment
at a time, so that no process ever holds all statistics.  A process of its own plans, of
which the most memory is printed.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._manifests import manifest_of
from benchmarks._report import Measure, show
from benchmarks.scale import bounds_of
from skipindex.api import plan_by_segment
from skipindex.storage.checks import sealed
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import commit_path
from skipindex.storage.log import FORMAT
from skipindex.storage.log.compaction import FULL
from skipindex.storage.log.segments import nothing, write_changed
from skipindex.storage.manifest import with_column
from skipindex.storage.properties import NO_PROPERTIES

SIZES: Final = (10_000_000,)


def conditions(n_files: int) -> dict[str, str]:
    """A few conditions, by what they are."""
    at = n_files // 2 * 1_000
    return {
        "number =": f"id = {at}",
        "string =": f"user = 'user-{at:010}'",
        "AND of three": "n > 500000 AND city = 'CITY 100' AND total < 0",
        "a tenth of all files": "n < 100000",
    }


def write_log(folder: Path, n_files: int) -> float:
    """Write the log of so many files, of which the first alone exists; megabytes."""
    location = location_of(folder)
    schema = pa.schema([(name, low.type) for name, (low, _) in bounds_of(2).items()])
    segments = []
    for at in range(0, n_files, FULL):
        end = min(at + FULL, n_files)
        paths = [f"part-{i:010}.parquet" for i in range(at, end)]
        manifest = manifest_of(paths, bounds_of(n_files, at, end))
        if not at:
            pq.write_table(schema.empty_table(), folder / paths[0])
            manifest = replace(manifest, files=_with_mark(manifest.files, location))
        stored = write_changed(location, nothing(), manifest, forget=False)
        segments += [segment.to_json() for segment in stored.segments]
    body = {
        "format": FORMAT,
        "operation": "benchmark",
        "time": "2026-01-01T00:00:00Z",
        "segments": segments,
        "properties": replace(NO_PROPERTIES, exclusive={"commit": 0}).to_json(),
    }
    location.write_new(commit_path(0), sealed("commit", body))
    n_bytes = sum(int(segment["size"]) for segment in segments)
    return n_bytes / 1e6


def _with_mark(files: pa.Table, location: Location) -> pa.Table:
    """The size and time of the first file are those on disk."""
    info = location.stat(files["path"][0].as_py())
    assert info is not None
    for name, value in (("size", info.size), ("mtime", info.mtime)):
        rest = files[name].slice(1).combine_chunks()
        first = pa.array([value], pa.int64())
        files = with_column(files, name, pa.concat_arrays([first, rest]))
    return files


def planned(folder: str, condition: str) -> tuple[float, int, int, float]:
    """Seconds of a plan in this process, files kept and all, megabytes at most."""
    began = time.perf_counter()
    kept = plan_by_segment(condition, table=folder)
    seconds = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return seconds, len(kept), kept.n_files, most


def measures(n_files: int, folder: Path, *, spark: bool) -> Iterator[Measure]:
    """What it takes to write, and to plan over, the log of so many files."""
    began = time.perf_counter()
    n_mb = write_log(folder, n_files)
    seconds = time.perf_counter() - began
    yield Measure(what="make and write the log", figure=seconds, unit="s")
    note = f"{n_mb * 1e6 / n_files:.0f} B a file"
    yield Measure(what="segments", figure=n_mb, unit="MB", note=note)
    for what, condition in conditions(n_files).items():
        # A process of its own for each, as the most memory is that of all its life.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            args = str(folder), condition
            seconds, n_kept, n_all, most = pool.submit(planned, *args).result()
        assert n_all == n_files, "a segment was not read"
        note = f"{n_kept:,} files kept, at most {most:,.0f} MB"
        where = f"one process: {what}"
        yield Measure(what=where, figure=seconds, unit="s", note=note)
    if spark:
        yield from _by_spark(n_files, folder)


def _by_spark(n_files: int, folder: Path) -> Iterator[Measure]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[2]").config(
        "spark.ui.enabled", "false"
    )
    session = builder.getOrCreate()
    try:
        for what, condition in conditions(n_files).items():
            began = time.perf_counter()
            kept = plan_by_segment(condition, table=folder, spark=session)
            seconds = time.perf_counter() - began
            assert kept.n_files == n_files, "a segment was not read"
            note = f"{len(kept):,} files kept"
            where = f"Spark, 2 tasks at a time: {what}"
            yield Measure(what=where, figure=seconds, unit="s", note=note)
    finally:
        session.stop()


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.by_segment", description=__doc__
    )
    parser.add_argument("--files", type=int, nargs="+", default=SIZES)
    parser.add_argument("--folder", type=Path, help="where to write (temporary)")
    parser.add_argument("--spark", action="store_true", help="also as a Spark job")
    options = parser.parse_args(arguments)
    for n_files in options.files:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            found = list(measures(n_files, Path(name), spark=options.spark))
        show(f"by segment: {n_files:,} files", found)


if __name__ == "__main__":
    main(sys.argv[1:])
