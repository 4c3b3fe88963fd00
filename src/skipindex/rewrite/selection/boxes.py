"""Bounding boxes of files over the clustering columns, from statistics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from skipindex.layout.curves import hilbert
from skipindex.layout.ordering import Positions
from skipindex.rewrite.selection.target import EligibleFile
from skipindex.table import TableState
from skipindex.table.statistics.overlap import ranked

_POINTS: Final = 2048
"""Files in whose middle others are counted; of more files, it is one of several."""
_BLOCK: Final = 128
"""Middles that are compared with all files at a time."""
_ANYWHERE: Final = int(np.iinfo(np.int64).max)
"""The greatest rank of a file whose values are not known."""
_BITS: Final = 60
"""The most bits of a position along the curve."""
_ALIKE: Final = 0.5
"""The fraction of a cube's files in one place, above which they are not told
apart by the clustering columns."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The ranges of files, a column of ranks for each clustering column.

    A file without statistics of a column, or without a value of it, may lie anywhere.

    Args:
        rows: the row of each file, by its path.
        low: the ranks of the least values.
        high: the ranks of the greatest values.
    """

    rows: Mapping[str, int]
    low: Positions
    high: Positions

    @classmethod
    def of(cls, table: TableState, columns: Collection[str]) -> Boxes:
        """The boxes of all files of a table."""
        shape = len(table), len(columns)
        low = np.zeros(shape, np.int64)
        high = np.full(shape, _ANYWHERE)
        for i, name in enumerate(columns):
            stats = table.stats(table.resolve(name))
            known = stats.bounded & stats.can_value
            if known.any():
                low[known, i], high[known, i] = ranked(stats)
        return cls({path: i for i, path in enumerate(table.paths)}, low, high)

    def meeting(
        self, files: Iterable[EligibleFile], others: Iterable[EligibleFile]
    ) -> list[EligibleFile]:
        """The files that meet the least box around the others, in every column."""
        result = list(files)
        mine, around = self._rows(result), self._rows(others)
        low, high = self.low[around].min(axis=0), self.high[around].max(axis=0)
        meet = ((self.low[mine] <= high) & (self.high[mine] >= low)).all(axis=1)
        return [file for file, meets in zip(result, meet, strict=True) if meets]

    def along(self, files: Iterable[EligibleFile]) -> Positions:
        """The numbers of the files in the order of their middles along a curve."""
        middles = self._middles(self._rows(files))
        n_columns = middles.shape[1]
        if not n_columns:
            return np.arange(len(middles))
        ranks = [np.unique(column, return_inverse=True)[1] for column in middles.T]
        wide = [max(1, int(rank.max()).bit_length()) for rank in ranks]
        bits = [min(width, _BITS // n_columns) for width in wide]
        kept = [r >> (w - b) for r, w, b in zip(ranks, wide, bits, strict=True)]
        return np.argsort(hilbert(kept, bits=bits), kind="stable")

    def volumes(self, files: Iterable[EligibleFile]) -> npt.NDArray[np.float64]:
        """The fraction of the space that the box of each file takes."""
        rows = self._rows(files)
        most = np.where(self.high < _ANYWHERE, self.high, 0).max(axis=0)
        sides = np.minimum(self.high[rows], most) - self.low[rows] + 1
        return np.asarray(np.prod(sides / (most + 1), axis=1))

    def layers(
        self,
        files: Sequence[EligibleFile],
        cubes: Sequence[int],
        levels: Sequence[int],
    ) -> tuple[npt.NDArray[np.float64], Positions]:
        """The number of cubes that overlap each file, and the lowest level there.

        Places are the middles of the files; the number is the average of those that a
        file holds.  ``cubes`` and ``levels`` have those of each file.  It is 1 where a
        cube was clustered and its files lie in one place all the same, so nothing tells
        them apart.
        """
        numbers = np.unique(np.asarray(cubes, np.int64), return_inverse=True)[1]
        level = np.asarray(levels, np.int64)
        depth, mine, lowest = self._held(files, numbers, level)
        n_files = np.bincount(numbers)
        alike = np.bincount(numbers, weights=mine) > _ALIKE * n_files**2
        apart = np.flatnonzero(~(alike & (n_files > 1))[numbers])
        if len(apart) < len(files):
            depth, lowest = np.ones(len(files)), level.copy()
            if len(apart):
                some = [files[int(i)] for i in apart]
                numbers = np.unique(numbers[apart], return_inverse=True)[1]
                result = self._held(some, numbers, level[apart])
                depth[apart], _, lowest[apart] = result
        return depth, lowest

    def _held(
        self, files: Sequence[EligibleFile], cubes: Positions, levels: Positions
    ) -> tuple[npt.NDArray[np.float64], Positions, Positions]:
        """Cubes where each file lies; files of its cube and levels in its middle."""
        rows = self._rows(files)
        order = self.along(files)
        step = -(-len(files) // _POINTS)
        asked = order[::step]
        by_cube = np.argsort(cubes, kind="stable")
        starts = np.searchsorted(cubes[by_cube], np.arange(cubes.max() + 1))
        low, high = self.low[rows[by_cube]], self.high[rows[by_cube]]
        middles = self._middles(rows)
        total, n_held = np.zeros((2, len(files)))
        n_cubes, n_mine, lowest = np.empty((3, len(asked)), np.int64)
        for at in range(0, len(asked), _BLOCK):
            block = slice(at, at + _BLOCK)
            some = asked[block]
            holds = np.ones((len(some), len(files)), bool)
            for i in range(low.shape[1]):
                point = middles[some, i][:, None]
                holds &= (low[:, i] <= point) & (high[:, i] >= point)
            counts = np.add.reduceat(holds, starts, axis=1, dtype=np.int64)
            n_cubes[block] = (counts > 0).sum(axis=1)
            n_mine[block] = counts[np.arange(len(some)), cubes[some]]
            lowest[block] = np.where(holds, levels[by_cube], _ANYWHERE).min(axis=1)
            total[by_cube] += n_cubes[block] @ holds
            n_held[by_cube] += holds.sum(axis=0)
        # A file that holds no middle that was requested is as its neighbour.
        near = np.empty((3, len(files)), np.int64)
        each = np.repeat([n_cubes, n_mine, lowest], step, axis=1)
        near[:, order] = each[:, : len(files)]
        depth = np.where(n_held, total / np.maximum(n_held, 1), near[0])
        return depth, near[1], near[2]

    def _middles(self, rows: Positions) -> np.ndarray:
        return self.low[rows] / 2 + self.high[rows] / 2

    def _rows(self, files: Iterable[EligibleFile]) -> Positions:
        return np.array([self.rows[file.path] for file in files], np.int64)
