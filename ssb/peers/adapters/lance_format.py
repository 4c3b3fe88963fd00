"""Lance: an index a column, by row, in a format of its own.

The columns that are asked for are written as Lance, one fragment a file.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from ssb.files import size_of
from ssb.peers.interface import Answer, CannotSayError, Cost, library, version_of
from ssb.queries import Query

FEW: Final = 2000
"""Values of a column that is worth a bitmap for each of them."""
_SCANNED: Final = re.compile(r"fragments_scanned=(\d+)")
_INDEX: Final = re.compile(r"ScalarIndexQuery: elapsed=([\d.]+)(ns|µs|ms|s)\b")
_SECONDS: Final = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def columns_with_few_values(
    files: Sequence[Path], columns: Sequence[str]
) -> frozenset[str]:
    """The columns with at most ``FEW`` values."""
    table = pads.dataset([str(file) for file in files]).to_table(columns=list(columns))
    return frozenset(
        name for name in columns if pc.count_distinct(table[name]).as_py() <= FEW
    )


class LancePeer:
    """Fragments scanned, with a bitmap or a B-tree on every column."""

    name, unit = "Lance", "fragments"

    def __init__(self, work: Path) -> None:
        self._lance = library("lance")
        self.version = version_of("pylance")
        self._folder = work / "lance"
        self._dataset: Any = None
        self._columns: Sequence[str] = ()

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:
        """Copy the columns; the time is that of the indexes alone."""
        shutil.rmtree(self._folder, ignore_errors=True)
        for i, file in enumerate(files):
            rows = pq.read_table(file, columns=list(columns))
            mode = "append" if i else "create"
            self._lance.write_dataset(rows, str(self._folder), mode=mode)
        few = columns_with_few_values(files, columns)
        dataset = self._lance.dataset(str(self._folder))
        began = time.perf_counter()
        for column in columns:
            kind = "BITMAP" if column in few else "BTREE"
            dataset.create_scalar_index(column, index_type=kind)
        seconds = time.perf_counter() - began
        self._columns = list(columns[:1])
        self._dataset = self._lance.dataset(str(self._folder))
        n_copied = size_of(self._folder / "data")
        note = f"bitmaps and B-trees; and a copy of {n_copied / 1e6:.0f} MB as Lance"
        return Cost(seconds, size_of(self._folder / "_indices"), note)

    def ask(self, query: Query) -> Answer:
        """Read the rows, and ask what was scanned; the time is that of the indexes."""
        of = len(self._dataset.get_fragments())
        rows = self._dataset.count_rows(filter=query.where)
        scanner = self._dataset.scanner(columns=self._columns, filter=query.where)
        text = scanner.analyze_plan()
        scanned = [int(n) for n in _SCANNED.findall(text)]
        if not scanned:
            raise CannotSayError(f"Lance {self.version} does not say what it scanned")
        found = _INDEX.search(text)
        seconds = float(found[1]) * _SECONDS[found[2]] if found else None
        return Answer(max(scanned), of, seconds, rows)
