"""What a plan asks of an object store: ``python -m benchmarks.stores [--files N]``.

A table of small files lies on localbucket's S3 server of this machine, behind a proxy
that delays every request.  For each condition the table is opened and planned with
nothing cached: by a listing, and from the log.  Printed are the answers that were
waited for, one after another, the requests, the bytes and the time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from benchmarks.moto_server import folder_server
from benchmarks.proxy import Request, proxy, round_trips
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.source import Trust
from skipindex.storage.disk_cache import set_cache_dir
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.uris import StorageOptions
from ssb.report import aligned

ROWS: Final = 200
TRUSTS: Final[tuple[Trust, ...]] = ("listing", "log")
N_KEYS: Final = 1_000_000
INDEXES: Final = {"key": ["bitmap"], "day": ["bitmap"], "city": ["bloom"]}
CONDITIONS: Final = (
    ("statistics alone", "day < 0"),
    ("one row", "key = {key}"),
    ("AND of two indexes", "key = {key} AND day = {day}"),
    ("Bloom filter, then rows", "city = '{city}' AND key = {key}"),
    ("a range in every file", "key BETWEEN 1000 AND 3000"),
)


def file_of(i: int) -> bytes:
    """One file: keys of the whole range, days of a few, and a city of its own."""
    rng = np.random.default_rng(i)
    keys = rng.integers(0, N_KEYS, ROWS)
    columns = {
        "key": keys,
        "day": i // 100 + rng.integers(0, 5, ROWS),
        "city": [f"CITY {n:05}" for n in rng.integers(0, 50_000, ROWS)],
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def a_row(n_files: int) -> dict[str, str]:
    """The values of a row in the middle of a table."""
    half = pq.read_table(pa.BufferReader(file_of(n_files // 2)))
    (row,) = half.slice(7, 1).to_pylist()
    return {name: str(value) for name, value in row.items()}


def fill(uri: str, options: StorageOptions, n_files: int) -> dict[str, str]:
    """Write the table, and build its indexes; the values of one row."""
    place = location_of(uri, options)

    def write(i: int) -> None:
        place.write(f"{i:06}.parquet", file_of(i))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(n_files)))
    report = sx.build_indexes(uri, INDEXES, workers=1, storage_options=options)
    report.table.declare_exclusive()
    return a_row(n_files)


def line(what: str, condition: str, n: Sequence[object]) -> list[str]:
    """One row of the printed table."""
    return [what, condition, *(f"{value:,}" for value in n)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="of the table")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds a request")
    args = parser.parse_args(arguments)
    set_cache_dir(None)
    rows = [
        ["", "condition", "kept", "waits", "requests", "later pages", "bytes", "ms"]
    ]
    with (
        tempfile.TemporaryDirectory() as work,
        folder_server(Path(work)) as server,
        proxy(server.port, args.delay) as slow,
    ):
        Path(work, "bucket", "t").mkdir(parents=True)
        uri = "s3://bucket/t"
        values = fill(uri, server.options, args.files)
        options = {**server.options, "endpoint": slow.endpoint}
        for (what, text), trust in product(CONDITIONS, TRUSTS):
            condition = text.format(**values)
            slow.taken()
            began = time.perf_counter()
            with CacheSession() as session:
                table = sx.open_table(uri, storage_options=options, trust=trust)
                plan = table.plan(condition, session=session)
            seconds = time.perf_counter() - began
            requests: list[Request] = slow.taken()
            figures = [
                len(plan.paths),
                round_trips(requests),
                len(requests),
                sum(one.is_later_page for one in requests),
                sum(one.n_bytes for one in requests),
                round(1000 * seconds),
            ]
            rows.append(line(f"{what}, {trust}", condition, figures))
    print(f"{args.files:,} files, {1000 * args.delay:.0f} ms a request, nothing cached")
    print("\n".join(aligned(rows)))


if __name__ == "__main__":
    main()
