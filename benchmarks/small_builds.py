"""From how many bytes on workers build faster: ``python -m benchmarks.small_builds``.

Tables of growing size are indexed in one process and in one for every core, whose start
is a part of it.  Three of the ten columns are indexed, or all of them with two kinds
each.  ``skipindex.build.runners.ALONE_BYTES`` is chosen by these figures: below it
workers are never faster.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from loky import cpu_count

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show
from skipindex.build.runners import ALONE_BYTES
from skipindex.storage.file_system.names import FOLDER

N_NUMBERS: Final = 7
N_TEXTS: Final = 3
ROWS_PER_FILE: Final = 25_000
FILES: Final = (5, 10, 20, 40, 80, 160)
FEW: Final = {"n0": "bitmap", "n6": "bit_sliced", "s1": "bloom"}
MANY: Final[Mapping[str, Sequence[str]]] = {
    **{f"n{i}": ["bloom", "bit_sliced"] for i in range(N_NUMBERS)},
    **{f"s{i}": ["bloom", "bitmap"] for i in range(N_TEXTS)},
}


def write(folder: Path, n_files: int) -> int:
    """Write the files of a table; their bytes."""
    rng = np.random.default_rng(0)
    for i in range(n_files):
        columns = {}
        for j in range(N_NUMBERS):
            columns[f"n{j}"] = pa.array(rng.integers(0, 10 ** (j + 1), ROWS_PER_FILE))
        for j in range(N_TEXTS):
            numbers = pa.array(rng.integers(0, 100 ** (j + 1), ROWS_PER_FILE))
            columns[f"s{j}"] = numbers.cast("string")
        pq.write_table(pa.table(columns), folder / f"{i:04}.parquet")
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def measured(n_files: int, rounds: int) -> list[Measure]:
    """The least times of a table of so many files."""
    measures = []
    with tempfile.TemporaryDirectory() as name:
        size = write(Path(name), n_files)

        def build(request: Mapping[str, Any], workers: int) -> None:
            shutil.rmtree(Path(name, FOLDER), ignore_errors=True)
            sx.build_indexes(name, {"*": None, **request}, workers=workers)

        for what, request in (("three indexes", FEW), ("twenty indexes", MANY)):
            alone, shared = (
                best_seconds(partial(build, request, n), rounds=rounds, warm_up=False)
                for n in (1, cpu_count())
            )
            limit = shared if size < ALONE_BYTES else None
            note = f"{size / 1e6:.1f} MB; {shared:.2f} s by workers"
            measures.append(
                Measure(
                    f"{what} on {n_files} files: one process", alone, "s", limit, note
                )
            )
    return measures


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=FILES)
    parser.add_argument("--rounds", type=int, default=3)
    parsed = parser.parse_args(arguments)
    show("small builds", [m for n in parsed.files for m in measured(n, parsed.rounds)])


if __name__ == "__main__":
    main(sys.argv[1:])
