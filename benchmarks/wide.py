"""What a column costs in a table of thousands: ``python -m benchmarks.wide``.

One file of 20 rows has the columns, half of them numbers and half texts.  The CPU time
of a build of statistics and of one bitmap, of a build of a bitmap on every column, and
of opening the table is compared with that of a quarter of the columns: it should take
about four times as long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show

N_COLUMNS: Final = 5000
N_ROWS: Final = 20
SHARE: Final = 4
MOST: Final = 6.0
"""How many times as long four times the columns may take."""


def write(path: Path, n_columns: int) -> None:
    """Write a file with columns of both types."""
    rng = np.random.default_rng(0)
    columns: dict[str, object] = {}
    for i in range(n_columns):
        values = rng.integers(0, 1000, N_ROWS)
        columns[f"c{i:05}"] = [f"v{n}" for n in values] if i % 2 else values
    pq.write_table(pa.table(columns), path)


def cpu_seconds(call: Callable[[], object]) -> float:
    """The CPU time of a call."""
    return best_seconds(call, rounds=1, warm_up=False, clock=time.process_time)


def times(n_columns: int) -> dict[str, float]:
    """What is done with a table of so many columns, and how long it takes."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name) / "0.parquet", n_columns)
        table = sx.open_table(name)
        return {
            "pyarrow reads all": cpu_seconds(lambda: pq.read_table(name)),
            "build of statistics": cpu_seconds(
                lambda: table.build_indexes({"c00000": "bitmap"}, workers=1)
            ),
            "build of a bitmap on each": cpu_seconds(
                lambda: sx.build_indexes(name, {"*": "bitmap"}, workers=1)
            ),
            "opening": cpu_seconds(lambda: sx.open_table(name)),
        }


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=N_COLUMNS)
    n_columns = parser.parse_args(arguments).columns
    few, measures = times(n_columns // SHARE), []
    for what, took in times(n_columns).items():
        limit = None if what.startswith("pyarrow") else MOST * few[what]
        note = f"{took / few[what]:.1f} times {SHARE} times fewer columns"
        measures.append(Measure(what, took, "s", limit, note))
    show(f"{n_columns} columns", measures)


if __name__ == "__main__":
    main(sys.argv[1:])
