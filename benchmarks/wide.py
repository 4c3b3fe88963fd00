"""What a column costs in a table of thousands: ``python -m benchmarks.wide``.

One file of 20 rows has the columns, half of them numbers and half texts.  The CPU time
of a build of statistics and of one bitmap, of a build of a bitmap on every column, and
of opening the table is compared with that of a quarter of the columns: it should take
about four times as long.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from benchmarks._report import Measure, show

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
    began = time.process_time()
    call()
    return time.process_time() - began


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


def main(n_columns: int = N_COLUMNS) -> None:
    """Measure, and print the table."""
    few, many = times(n_columns // SHARE), times(n_columns)
    found = [
        Measure(
            what=what,
            figure=took,
            unit="s",
            limit=None if what.startswith("pyarrow") else MOST * few[what],
            note=f"{took / few[what]:.1f} times {SHARE} times fewer columns",
        )
        for what, took in many.items()
    ]
    show(f"{n_columns} columns", found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=N_COLUMNS)
    main(parser.parse_args().columns)
