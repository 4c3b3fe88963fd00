"""Growing a query tree over the codes of a sample.

Greedy, as in Yang et al., "Qd-tree: Learning Data Layouts for Big Data Analytics"
(SIGMOD 2020), section 4: of all cuts at a literal of a query take the one that
lets the queries skip most, judged by the bounds that min/max would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from skipindex.layout.weights import Weights
from skipindex.layout.workload.what_if import Boxes, CodeMatrix, Mask, WhatIf

Rows: TypeAlias = npt.NDArray[np.int64]

LEAST_FILL: Final = 2 / 3
MOST_FILL: Final = 3 / 2
"""A file holds between these shares of an even one, as far as a cut decides it.

A set of rows with room for one file only is never cut, so that a tree makes as
many files as it was asked for, and no small ones.
"""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows whose code of a column is at least ``code`` go to ``high``."""

    column: int
    code: int
    low: Branch
    high: Branch


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Rows of the sample that share ``n_files`` files."""

    rows: Rows
    n_files: int


Branch: TypeAlias = Split | Leaf


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a set of rows falls apart, and the files of its low side."""

    column: int
    code: int
    low_files: int


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """The cuts of one set of rows at one column."""

    codes: npt.NDArray[np.int64]
    low_files: npt.NDArray[np.int64]
    is_even: Mask
    """Both sides have files that are neither too small nor too large."""
    low: Boxes
    high: Boxes


@dataclass(frozen=True, slots=True, eq=False)
class Grower:
    """Cuts a sample into sets of rows.

    Args:
        what_if: the queries.
        codes: of the sample, for the columns of ``what_if``.
        groups: of the sample, for columns whose values share a file only where
            they have too few rows to fill one; they are cut before all others.
        loads: what each row of the sample stands for.
        n_files: to make.
    """

    what_if: WhatIf
    codes: CodeMatrix
    groups: Sequence[npt.NDArray[np.uint16]]
    loads: Weights
    n_files: int

    def grow(self) -> Branch:
        """The tree; columns after those of ``what_if`` are the groups."""
        return self._grow(np.arange(self.codes.shape[1]), self.n_files)

    def _grow(self, rows: Rows, n_files: int) -> Branch:
        if n_files == 1 or not len(rows):
            return Leaf(rows, n_files)
        cut = self._between_groups(rows, n_files) or self._best_cut(rows, n_files)
        if cut is None:
            return Leaf(rows, n_files)
        is_high = self._column(cut.column)[rows] >= cut.code
        low = self._grow(rows[~is_high], cut.low_files)
        high = self._grow(rows[is_high], n_files - cut.low_files)
        return Split(cut.column, cut.code, low, high)

    def _column(self, number: int) -> npt.NDArray[np.uint16]:
        n_asked = len(self.codes)
        if number < n_asked:
            found: npt.NDArray[np.uint16] = self.codes[number]
            return found
        return self.groups[number - n_asked]

    def _between_groups(self, rows: Rows, n_files: int) -> _Cut | None:
        """The cut that halves the rows between two values of a group."""
        for i, column in enumerate(self.groups):
            present = np.flatnonzero(np.bincount(column[rows]))
            if len(present) < 2:
                continue
            below = np.cumsum(np.bincount(column[rows], self.loads[rows])[present])
            at = int(np.abs(below[:-1] - below[-1] / 2).argmin())
            share = below[at] * n_files / below[-1]
            low_files = int(np.clip(np.rint(share), 1, n_files - 1))
            return _Cut(len(self.codes) + i, int(present[at + 1]), low_files)
        return None

    def _best_cut(self, rows: Rows, n_files: int) -> _Cut | None:
        """The cut that saves the queries most files, if any saves one."""
        codes = self.codes[:, rows]
        whole = self.what_if.hits(Boxes.of_runs(codes, np.zeros(1, np.int64)))[:, 0]
        if not whole.any():
            return None
        cost = float(whole @ self.what_if.weights) * n_files
        best, least = None, cost
        for column in range(len(codes)):
            found = self._candidates(codes, self.loads[rows], column, n_files)
            if found is None or not found.is_even.any():
                continue
            weights = self.what_if.weights
            costs = (weights @ self.what_if.hits(found.low)) * found.low_files
            costs += (weights @ self.what_if.hits(found.high)) * (
                n_files - found.low_files
            )
            costs[~found.is_even] = np.inf
            at = int(costs.argmin())
            if costs[at] < least:
                least = float(costs[at])
                best = _Cut(column, int(found.codes[at]), int(found.low_files[at]))
        return best

    def _candidates(
        self, codes: CodeMatrix, loads: Weights, column: int, n_files: int
    ) -> _Candidates | None:
        counts = np.bincount(codes[column])
        present = np.flatnonzero(counts)
        if len(present) < 2:
            return None
        order = np.argsort(codes[column], kind="stable")
        starts = np.concatenate(([0], np.cumsum(counts[present])[:-1]))
        boxes = Boxes.of_runs(codes[:, order], starts)
        below = np.cumsum(np.bincount(codes[column], loads)[present])
        total, below = float(below[-1]), below[:-1]
        low_files = np.rint(below * (n_files / total)).astype(np.int64)
        low_files = np.clip(low_files, 1, n_files - 1)
        share = float(self.loads.sum()) / self.n_files
        # If the cut above was uneven, the same imbalance is allowed here.
        least = min(LEAST_FILL * share, total / n_files)
        most = max(MOST_FILL * share, total / n_files)
        is_even = np.ones(len(below), bool)
        for sizes in (below / low_files, (total - below) / (n_files - low_files)):
            is_even &= (sizes >= least) & (sizes <= most)
        return _Candidates(
            present[1:],
            low_files,
            is_even,
            boxes.growing()[slice(None, -1)],
            boxes.growing(backwards=True)[slice(1, None)],
        )
