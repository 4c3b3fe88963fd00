"""From how many bytes on workers build faster: ``python -m benchmarks.small_builds``.

Tables of growing size are indexed in one process and in one for every core, whose start
is a part of it.  Three of the ten columns are indexed, or all of them with two kinds
each.  ``skipindex.build.runners.ALONE_BYTES`` is chosen by these figures: below it
workers are never faster.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from loky import cpu_count

import skipindex as sx
from benchmarks._report import Measure, show
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
        columns = {
            f"n{j}": rng.integers(0, 10 ** (j + 1), ROWS_PER_FILE)
            for j in range(N_NUMBERS)
        }
        texts = {
            f"s{j}": pa.array(rng.integers(0, 100 ** (j + 1), ROWS_PER_FILE)).cast(
                "string"
            )
            for j in range(N_TEXTS)
        }
        pq.write_table(pa.table({**columns, **texts}), folder / f"{i:04}.parquet")
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def seconds(folder: Path, request: Mapping[str, object], workers: int) -> float:
    """The time of one build from nothing."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    table = sx.open_table(folder)
    began = time.perf_counter()
    table.build_indexes({"*": None, **request}, workers=workers)  # type: ignore[dict-item]
    return time.perf_counter() - began


def measured(n_files: int, rounds: int) -> list[Measure]:
    """The least times of a table of so many files."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        size = write(Path(name), n_files)
        for what, request in (("three indexes", FEW), ("twenty indexes", MANY)):
            took = [
                min(seconds(Path(name), request, n) for _ in range(rounds))
                for n in (1, cpu_count())
            ]
            found.append(
                Measure(
                    what=f"{what} on {n_files} files: one process",
                    figure=took[0],
                    unit="s",
                    limit=took[1] if size < ALONE_BYTES else None,
                    note=f"{size / 1e6:.1f} MB; {took[1]:.2f} s by workers",
                )
            )
    return found


def main(files: Sequence[int] = FILES, rounds: int = 3) -> None:
    """Measure, and print the table."""
    show("small builds", [m for n in files for m in measured(n, rounds)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=FILES)
    parser.add_argument("--rounds", type=int, default=3)
    parsed = parser.parse_args()
    main(parsed.files, parsed.rounds)
