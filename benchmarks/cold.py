"""The first plan of a new process: ``python -m benchmarks.cold [--files N]``.

A key is looked up in twelve files of a million rows (those of ``benchmarks.rows``) and
in many small files (those of ``benchmarks.stores``), on a local disk and on an S3
server of this machine, behind a proxy that delays every request.  Each figure is of a
process of its own, which opens the table from the log: without a cache on disk, with an
empty one, and with the one that the process before has filled.  Printed are the answers
of the store that were waited for, their bytes, the bytes of indexes that were used, and
milliseconds: of all cores to open the table and for the first plan; to import, to open
the table, of the first plan, and of the same plan again.  Of some rounds the one with
the fastest first plan counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq

import skipindex as sx
from benchmarks import rows, stores
from benchmarks.moto_server import folder_server
from benchmarks.proxy import Proxy, proxy, round_trips
from skipindex.storage.disk_cache import DIR_VARIABLE
from ssb.report import aligned

ROUNDS: Final = 5
HEAD: Final = (
    *("table", "place", "cache on disk", "waits", "KB of the store", "KB of indexes"),
    *("CPU ms", "import ms", "open ms", "first plan ms", "again ms"),
)
_PROCESS: Final = """
import json, sys, time
times = [time.perf_counter()]
import skipindex as sx
sx.open_table
times.append(time.perf_counter())
cpu = -time.process_time()
place, options, where = json.loads(sys.argv[1])
table = sx.open_table(place, storage_options=options, trust="log")
times.append(time.perf_counter())
plan = table.plan(where)
times.append(time.perf_counter())
cpu += time.process_time()
table.plan(where)
times.append(time.perf_counter())
n_bytes = sum(stage.read.n_bytes for stage in plan.stages)
print(json.dumps([len(plan.paths), n_bytes, 1000 * cpu, times]))
"""


class Looked(NamedTuple):
    """A table, and the key that is looked up: how many files have it."""

    name: str
    folder: Path
    where: str
    n_kept: int


def large(data: Path, n_files: int, n_rows: int) -> Looked:
    """Few large files."""
    folder = data / f"{n_files}-{n_rows}-{rows.GROUPS[0]}"
    rows.write(folder, rows.GROUPS[0], n_files, n_rows)
    users = pq.read_table(folder / "t" / "part-000.parquet", columns=["user"])["user"]
    where = f"user = {users[n_rows // 2]}"
    return _looked(f"{n_files} files of {n_rows:,} rows", folder, where)


def small(data: Path, n_files: int) -> Looked:
    """Many small files."""
    folder = data / f"small-{n_files}"
    if not (folder / "written").exists():
        (folder / "t").mkdir(parents=True, exist_ok=True)
        for i in range(n_files):
            (folder / "t" / f"{i:06}.parquet").write_bytes(stores.file_of(i))
        (folder / "written").touch()
    sx.build_indexes(folder / "t", stores.INDEXES, workers=1)
    where = f"key = {stores.a_row(n_files)['key']}"
    return _looked(f"{n_files:,} small files", folder, where)


def _looked(name: str, folder: Path, where: str) -> Looked:
    table = sx.open_table(folder / "t")
    if not table.state.snapshot.properties.exclusive:
        table.declare_exclusive()
    return Looked(name, folder, where, len(table.plan(where).paths))


def measured(
    looked: Looked, place: str, options: Mapping[str, Any], cache: str, slow: Proxy
) -> list[float]:
    """The figures of one process."""
    slow.taken()
    asked = json.dumps([place, dict(options), looked.where])
    done = subprocess.run(  # noqa: S603 (this Python)
        [sys.executable, "-c", _PROCESS, asked],
        env={**os.environ, DIR_VARIABLE: cache},
        stdout=subprocess.PIPE,
        check=True,
    )
    n_kept, n_bytes, cpu, times = json.loads(done.stdout)
    assert n_kept == looked.n_kept
    requests = slow.taken()
    read = sum(one.n_bytes for one in requests)
    spans = [1000 * (end - begin) for begin, end in pairwise(times)]
    return [round_trips(requests), read / 1000, n_bytes / 1000, cpu, *spans]


def figures(
    tables: Sequence[Looked], work: Path, delay: float, rounds: int
) -> Iterator[list[str]]:
    """A line for each table, place and state of the cache."""
    for looked in tables:
        (work / looked.folder.name).symlink_to(looked.folder.absolute())
    with ExitStack() as stack:
        server = stack.enter_context(folder_server(work))
        slow = stack.enter_context(proxy(server.port, delay))
        options = {**server.options, "endpoint": slow.endpoint}
        for looked in tables:
            uri = f"s3://{looked.folder.name}/t"
            for what, place, given in (
                ("local", str(looked.folder / "t"), {}),
                (f"store, {1000 * delay:.0f} ms", uri, options),
            ):
                best: dict[str, list[float]] = {}
                for number in range(rounds):
                    folder = work / f"cache-{what}-{looked.folder.name}-{number}"
                    for state in ("none", "empty", "filled"):
                        cache = "" if state == "none" else str(folder)
                        found = measured(looked, place, given, cache, slow)
                        best[state] = min(best.get(state, found), found, key=_to_plan)
                for state, found in best.items():
                    shown = [f"{one:,.0f}" for one in found[:-2]]
                    shown += [f"{one:,.1f}" for one in found[-2:]]
                    yield [looked.name, what, state, *shown]


def _to_plan(found: Sequence[float]) -> float:
    """Milliseconds to open the table and to plan."""
    return sum(found[5:7])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on tables below ``BENCH_DATA``, which are written if they are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000, help="small ones")
    parser.add_argument("--large", type=int, default=rows.FILES, help="large files")
    parser.add_argument("--rows", type=int, default=rows.ROWS, help="of a large file")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds a request")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args(arguments)
    data = Path(os.environ.get("BENCH_DATA", "data/rows"))
    tables = [large(data, args.large, args.rows), small(data, args.files)]
    with tempfile.TemporaryDirectory() as work:
        lines = list(figures(tables, Path(work), args.delay, args.rounds))
    print("\n".join(aligned([list(HEAD), *lines], left={0, 1, 2})))


if __name__ == "__main__":
    main()
