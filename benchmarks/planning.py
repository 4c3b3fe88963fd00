"""How long a plan takes: ``python -m benchmarks.planning [--folder F] [--quick]``.

A table of 10,000 small files with real packs, and the row-level AND of a range and an
equality over files of 60,000 rows.  All of it is warm; each figure is the best of a
few calls.  Plans by statistics alone are those of ``benchmarks.scale``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show
from skipindex.api import set_cache_bytes
from skipindex.planner.stages.pack_cache import MIN_CACHE_BYTES

N_KEYS = 100_000
ROWS = 60_000
EQUAL = 50
"""A value of ``b``, whose values are ``EQUAL_STEP * n + EQUAL``."""
EQUAL_STEP = 977


def make_small_files(folder: Path, n_files: int) -> None:
    """Files whose bounds tell nothing: a few of many keys, and always both extremes."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    days = rng.integers(0, 300, n_files)
    for i in range(n_files):
        keys = rng.integers(0, N_KEYS, 30)
        keys[:2] = 0, N_KEYS
        columns = {
            "key": keys,
            "day": days[i] + rng.integers(0, 5, 30),
            "city": [f"CITY {n:03}" for n in rng.integers(0, 250, 30)],
            "id": rng.integers(0, 1 << 62, 30),
        }
        pq.write_table(pa.table(columns), folder / f"{i:06}.parquet")


def make_large_files(folder: Path, n_files: int) -> None:
    """Files of 60,000 rows; every fiftieth is the same bytes under another name."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    for i in range(min(n_files, 50)):
        columns = {
            "a": rng.integers(0, 1000, ROWS),
            "b": rng.integers(0, 1000, ROWS) * EQUAL_STEP + EQUAL,
        }
        pq.write_table(pa.table(columns), folder / f"{i:06}.parquet")
    for i in range(50, n_files):
        os.link(folder / f"{i % 50:06}.parquet", folder / f"{i:06}.parquet")


def small_files(folder: Path, n_files: int, rounds: int) -> Iterator[Measure]:
    """Planning over many small files with merged packs."""
    make_small_files(folder, n_files)
    kinds = {"key": "bit_sliced", "city": "bitmap", "day": "bitmap", "id": "bloom"}
    sx.build_indexes(folder, kinds)
    table = sx.open_table(folder).compact_indexes()
    some = pq.read_table(folder / "000007.parquet").slice(5, 1).to_pylist()[0]
    key, number = some["key"], some["id"]
    for what, condition, limit in (
        ("one-column =", f"key = {key}", 5.0),
        ("= of no file", "city = 'CITY 0999'", None),
        ("clustered range", "day BETWEEN 100 AND 101", None),
        ("range AND =", f"day BETWEEN 100 AND 120 AND key = {key}", None),
        ("= of a bloom", f"id = {number}", 5.0),
    ):
        note = f"{len(table.plan(condition).paths):,} files kept"
        ms = 1e3 * best_seconds(lambda: table.plan(condition), rounds=rounds)  # noqa: B023 (called here)
        yield Measure(f"{n_files:,} files, {what}", ms, "ms", limit, note)


def rows(folder: Path, n_files: int, rounds: int) -> Iterator[Measure]:
    """The row-level AND, and what CRoaring needs for the bitmaps of its range."""
    make_large_files(folder, n_files)
    sx.build_indexes(folder, {"a": "bit_sliced", "b": "bitmap"})
    table = sx.open_table(folder)
    condition = f"a BETWEEN 300 AND 399 AND b = {EQUAL_STEP * 50 + EQUAL}"
    kinds = ["minmax", "bit_sliced", "bitmap"]  # a file map leaves counting for later

    def plan() -> tuple[int, int | None]:
        return table.plan(condition, kinds=kinds).count_bounds

    set_cache_bytes(1 << 30)
    micros = best_seconds(plan, rounds=rounds) * 1e6 / n_files
    read = table.plan(condition, kinds=kinds).stages[-1].read
    note = f"{read.bitmaps / n_files:.0f} bitmaps, {read.n_bytes / n_files:,.0f} B"
    set_cache_bytes(MIN_CACHE_BYTES)
    what = f"a file of {ROWS:,} rows, a range AND an ="
    yield Measure(what, micros, "us", 70.0, note)
    rng = np.random.default_rng(1)
    dense = BitMap(np.flatnonzero(rng.random(ROWS) < 0.5).tolist()).serialize()

    def deserialize() -> None:
        for _ in range(10_000):
            BitMap.deserialize(dense)

    micros = best_seconds(deserialize, rounds=rounds) * 1e6 / 1_000
    yield Measure("reference: 10 dense bitmaps deserialized", micros, "us")


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to write (temporary)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the files")
    options = parser.parse_args(arguments)
    scale, rounds = (10, 3) if options.quick else (1, 9)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        measures = [*small_files(folder / "small", 10_000 // scale, rounds)]
        measures += rows(folder / "large", 1_000 // scale, rounds)
    show("planning: warm, best of a few", measures)


if __name__ == "__main__":
    main(sys.argv[1:])
