"""What a build takes of the memory that it may: ``python -m benchmarks.build_memory``.

Each build runs in a process of its own, whose peak is that of the system for it.
Tables have what takes memory: texts of a megabyte, near-unique texts and integers, and
so many columns that statistics alone are a load.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from benchmarks._report import Measure, alone, peak_bytes, show
from skipindex.build.column_requests import Request
from skipindex.build.memory import memory_bytes

LIMITS: Final = ("300MB", "1GB", "4GB")


def long_texts(path: Path) -> None:
    """900 texts of a megabyte in one row group, in a file of some kilobytes."""
    schema = pa.schema([("text", pa.large_string())])
    body = "x" * 10**6
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False
    ) as file:
        chunks = [
            pa.array([f"{i + j:09}{body}" for j in range(50)], pa.large_string())
            for i in range(0, 900, 50)
        ]
        file.write_table(pa.table([pa.chunked_array(chunks)], schema))


def near_unique(path: Path) -> None:
    """Four million texts of 24 bytes, and as many integers."""
    rng = np.random.default_rng(1)
    n = 1_000_000
    schema = pa.schema([("number", pa.int64()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as file:
        for _ in range(4):
            raw = pa.py_buffer(rng.bytes(12 * n).hex().encode())
            ends = pa.py_buffer(np.arange(n + 1, dtype=np.int32) * 24)
            text = pa.Array.from_buffers(pa.string(), n, [None, ends, raw])
            numbers = pa.array(rng.integers(0, 1 << 60, n))
            file.write_table(pa.table([numbers, text], schema))


def wide(path: Path) -> None:
    """Two thousand columns of a thousand rows."""
    rng = np.random.default_rng(1)
    columns = {f"c{i:04}": rng.integers(0, 10**6, 1000) for i in range(2000)}
    pq.write_table(pa.table(columns), path)


@dataclass(frozen=True, slots=True)
class Job:
    """A table, and what is built on it."""

    what: str
    write: Callable[[Path], None]
    request: Request


JOBS: Final = (
    Job("statistics of long texts", long_texts, {"text": ["minmax"]}),
    Job("filters on long texts", long_texts, {"text": ["bloom"]}),
    Job("bitmaps on long texts", long_texts, {"text": ["bitmap"]}),
    Job("filters on near-unique texts", near_unique, {"text": ["bloom"]}),
    Job("bitmaps on near-unique texts", near_unique, {"text": ["bitmap"]}),
    Job("words and pieces", near_unique, {"text": ["token_bloom", "ngram_bloom"]}),
    Job("codes of near-unique integers", near_unique, {"number": ["exact"]}),
    Job("bitmaps on 2,000 columns", wide, {"*": ["bitmap"]}),
)


def build(folder: str, request: Request, memory: str) -> tuple[int, int]:
    """Build; the peak in bytes and how many notes the report has."""
    report = sx.build_indexes(folder, request, workers=1, memory=memory)
    return peak_bytes(), len(report.notes)


def measured(job: Job, memory: str) -> Measure:
    """The peak of a build under a limit."""
    with tempfile.TemporaryDirectory() as name:
        job.write(Path(name) / "0.parquet")
        peak, notes = alone(build, name, job.request, memory)
    note = "too large: noted, not built" if notes else ""
    limit = memory_bytes(memory) / 10**6
    return Measure(f"{job.what}, {memory=}", peak / 10**6, "MB", limit, note)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", nargs="+", default=LIMITS)
    limits = parser.parse_args(arguments).limits
    show("memory of a build", [measured(job, one) for job in JOBS for one in limits])


if __name__ == "__main__":
    main(sys.argv[1:])
