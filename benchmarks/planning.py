"""How long a plan takes: ``python -m benchmarks.planning [--folder F] [--quick]``.

Tables of 100, 1,000 and 10,000 small files with real packs, 1,000,000 files of
synthetic statistics, the row-level AND of a range and an equality over files of
60,000 rows, and two columns of files of 500,000 rows that are compared.  All of it is
warm; each figure is the best of a few calls.
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
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyroaring import BitMap

import skipindex as sx
from benchmarks._manifests import manifest_of
from benchmarks._report import Measure, best_seconds, show
from skipindex.api import set_cache_bytes
from skipindex.log import Snapshot
from skipindex.planner.stages.pack_cache import MIN_CACHE_BYTES
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.table import Observed, TableState

N_KEYS = 100_000
ROWS = 60_000
LARGE_ROWS = 500_000
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


def statistics_table(n_files: int) -> sx.Table:
    """A table of statistics alone: two columns of integers, the first clustered."""
    rng = np.random.default_rng(1)
    lows = {
        "x": np.sort(rng.integers(0, 1 << 40, n_files)),
        "y": rng.integers(0, 1 << 20, n_files),
    }
    bounds = {
        name: (pa.array(low), pa.array(low + 10_000)) for name, low in lows.items()
    }
    paths = [f"{i:07}.parquet" for i in range(n_files)]
    schema = pa.schema([(name, pa.int64()) for name in lows])
    listing = [FileInfo(path, 1_000_000, 1) for path in paths]
    snapshot = Snapshot(0, manifest_of(paths, bounds))
    observed = Observed(listing, schema, {}, paths[0], snapshot)
    return sx.Table(TableState(Location("/nowhere"), observed))


def planning(table: sx.Table, condition: str, rounds: int) -> tuple[float, sx.Plan]:
    """Milliseconds of a warm plan, and the plan."""
    plan = table.plan(condition)
    seconds = best_seconds(lambda: table.plan(condition), rounds=rounds)
    return seconds * 1e3, plan


def small_files(folder: Path, n_files: int, rounds: int) -> Iterator[Measure]:
    """Planning over many small files with merged packs."""
    make_small_files(folder, n_files)
    kinds = {"key": "bit_sliced", "city": "bitmap", "day": "bitmap", "id": "bloom"}
    sx.build_indexes(folder, kinds)
    table = sx.open_table(folder).compact_indexes()
    some = pq.read_table(folder / "000007.parquet").slice(5, 1).to_pylist()[0]
    key, number = some["key"], some["id"]
    named = f"{n_files:,} files"
    for what, condition, limit in (
        ("one-column =", f"key = {key}", 5.0 if n_files == 10_000 else None),
        ("= of no file", "city = 'CITY 0999'", None),
        ("clustered range", "day BETWEEN 100 AND 101", None),
        ("range AND =", f"day BETWEEN 100 AND 120 AND key = {key}", None),
        ("= of a bloom", f"id = {number}", 5.0 if n_files == 10_000 else None),
    ):
        ms, plan = planning(table, condition, rounds)
        note = f"{len(plan.paths):,} files kept"
        yield Measure(
            what=f"{named}, {what}", figure=ms, unit="ms", limit=limit, note=note
        )


def statistics(n_files: int, rounds: int) -> Measure:
    """Planning by min/max alone."""
    table = statistics_table(n_files)
    condition = f"x BETWEEN {1 << 38} AND {1 << 39} AND y < 100000"
    ms, plan = planning(table, condition, rounds)
    kept = int(plan.evaluation.possible.sum())
    return Measure(
        what=f"{n_files:,} files, min/max of two columns",
        figure=ms,
        unit="ms",
        limit=10.0 if n_files == 1_000_000 else None,
        note=f"{kept:,} files kept",
    )


def rows(folder: Path, n_files: int, rounds: int) -> Iterator[Measure]:
    """The row-level AND, and what CRoaring needs for the bitmaps of its range."""
    make_large_files(folder, n_files)
    sx.build_indexes(folder, {"a": "bit_sliced", "b": "bitmap"})
    table = sx.open_table(folder)
    value = EQUAL_STEP * 50 + EQUAL
    kinds = ["minmax", "bit_sliced", "bitmap"]  # a file map leaves counting for later
    for what, condition, limit in (
        ("a range AND an =", f"a BETWEEN 300 AND 399 AND b = {value}", 70.0),
        ("an =", f"b = {value}", None),
        ("a range", "a BETWEEN 300 AND 399", None),
    ):

        def plan(condition: str = condition) -> tuple[int, int | None]:
            return table.plan(condition, kinds=kinds).count_bounds

        for source, n_bytes in (("warm", 1 << 30), ("from the page cache", 0)):
            set_cache_bytes(n_bytes)
            micros = best_seconds(plan, rounds=rounds) * 1e6 / n_files
            read = table.plan(condition, kinds=kinds).stages[-1].read
            yield Measure(
                what=f"a file of {ROWS:,} rows, {what}, {source}",
                figure=micros,
                unit="us",
                limit=limit if n_bytes else None,
                note=(
                    f"{read.bitmaps / n_files:.0f} bitmaps, "
                    f"{read.n_bytes / n_files:,.0f} B, of which "
                    f"{read.cached_bytes / n_files:,.0f} in memory"
                ),
            )
    set_cache_bytes(MIN_CACHE_BYTES)
    rng = np.random.default_rng(1)
    dense = BitMap(np.flatnonzero(rng.random(ROWS) < 0.5).tolist()).serialize()

    def deserialize() -> None:
        for _ in range(10_000):
            BitMap.deserialize(dense)

    what = "reference: 10 dense bitmaps deserialized"
    micros = best_seconds(deserialize, rounds=rounds) * 1e6 / 1_000
    yield Measure(what=what, figure=micros, unit="us")


def compared_columns(folder: Path, n_files: int, rounds: int) -> Iterator[Measure]:
    """Two columns of days, of which one row of one file compares so."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    for i in range(n_files):
        promised = 8_000 + rng.integers(0, 30, LARGE_ROWS)
        shipped = promised - rng.integers(0, 15, LARGE_ROWS)
        if i == n_files // 2:
            shipped[-1] = promised[-1] + 1
        columns = {"shipped": shipped, "promised": promised}
        pq.write_table(pa.table(columns), folder / f"{i:06}.parquet")
    late = ds.field("shipped") > ds.field("promised")
    read = best_seconds(
        lambda: ds.dataset(folder, format="parquet").to_table(filter=late),
        rounds=rounds,
    )
    for kind in ("bitmap", "bit_sliced"):
        sx.build_indexes(folder, {"*": kind})
        table = sx.open_table(folder)
        forced = ["minmax", kind]

        def plan(table: sx.Table = table, kinds: Sequence[str] = forced) -> None:
            assert len(table.plan("shipped > promised", kinds=kinds).paths) == 1

        seconds = best_seconds(plan, rounds=rounds)
        yield Measure(
            what=f"a file of {LARGE_ROWS:,} rows, two columns of days, {kind}",
            figure=seconds * 1e3 / n_files,
            unit="ms",
            note=f"{seconds / read:.1f} times what Arrow takes, of a file in memory",
        )


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to write (temporary)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the files")
    options = parser.parse_args(arguments)
    scale = 10 if options.quick else 1
    rounds = 3 if options.quick else 9
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        measures: list[Measure] = []
        for n_files in (100, 1_000, 10_000):
            n = max(20, n_files // scale)
            measures += small_files(folder / f"small{n_files}", n, rounds)
        measures.append(statistics(1_000_000 // scale, rounds))
        measures += rows(folder / "large", 1_000 // scale, rounds)
        measures += compared_columns(folder / "days", max(2, 20 // scale), rounds)
    show("planning: warm, best of a few", measures)


if __name__ == "__main__":
    main(sys.argv[1:])
