"""Growing a query tree over the codes of a sample.

Greedy, as in Yang et al., "Qd-tree: Learning Data Layouts for Big Data Analytics"
(SIGMOD 2020), section 4: of all cuts at a literal of a query take the one that
lets the queries skip most, judged by the bounds that min/max would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from skipindex.layout.weights import Weights
from skipindex.layout.workload.what_if import Boxes, CodeMatrix, WhatIf

RowNumbers: TypeAlias = npt.NDArray[np.int64]

LEAST_FILL: Final = 2 / 3
MOST_FILL: Final = 3 / 2
"""A file holds between these shares of an even one, as far as a cut decides it.

A set of rows with room for one file only is never cut, so that a tree makes as
many files as it was asked for, and no small ones.
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A fork: rows whose code of ``column`` is at least ``code`` go to ``high``.

    A branch is the place of a node, or below 0 the complement of the place of a leaf.
    """

    column: int
    code: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, eq=False)
class GrownLeaf:
    """Rows of the sample that share ``n_files`` files from ``first_file`` on."""

    rows: RowNumbers
    first_file: int
    n_files: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a set of rows falls apart, and the files of its low side."""

    column: int
    code: int
    low_files: int


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

    def grow(self) -> tuple[list[Node], list[GrownLeaf]]:
        """The tree: every node before its branches, the leaves from low to high.

        Columns after those of ``what_if`` are the groups.
        """
        nodes: list[Node] = []
        leaves: list[GrownLeaf] = []

        def grown(rows: RowNumbers, first_file: int, n_files: int) -> int:
            cut = self._cut(rows, n_files)
            if cut is None:
                leaves.append(GrownLeaf(rows, first_file, n_files))
                return ~(len(leaves) - 1)
            is_high = self._column(cut.column)[rows] >= cut.code
            n_low = cut.low_files
            at = len(nodes)
            nodes.append(Node(cut.column, cut.code, 0, 0))
            low = grown(rows[~is_high], first_file, n_low)
            high = grown(rows[is_high], first_file + n_low, n_files - n_low)
            nodes[at] = replace(nodes[at], low=low, high=high)
            return at

        grown(np.arange(self.codes.shape[1]), 0, self.n_files)
        return nodes, leaves

    def _cut(self, rows: RowNumbers, n_files: int) -> _Cut | None:
        if n_files == 1 or not len(rows):
            return None
        return self._between_groups(rows, n_files) or self._best_cut(rows, n_files)

    def _column(self, number: int) -> npt.NDArray[np.uint16]:
        n_asked = len(self.codes)
        if number < n_asked:
            found: npt.NDArray[np.uint16] = self.codes[number]
            return found
        return self.groups[number - n_asked]

    def _between_groups(self, rows: RowNumbers, n_files: int) -> _Cut | None:
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

    def _best_cut(self, rows: RowNumbers, n_files: int) -> _Cut | None:
        """The cut that saves the queries most files, if any saves one."""
        codes, loads = self.codes[:, rows], self.loads[rows]
        whole = self.what_if.hits(Boxes.of_runs(codes, np.zeros(1, np.int64)))[:, 0]
        best, least = None, float(whole @ self.what_if.weights) * n_files
        for column in range(len(codes)) if whole.any() else ():
            found, cost = self._best_at(column, codes, loads, n_files)
            if cost < least:
                best, least = found, cost
        return best

    def _best_at(
        self, column: int, codes: CodeMatrix, loads: Weights, n_files: int
    ) -> tuple[_Cut | None, float]:
        """The best cut at one column, and the files that the queries then read."""
        counts = np.bincount(codes[column])
        present = np.flatnonzero(counts)
        if len(present) < 2:
            return None, np.inf
        below = np.cumsum(np.bincount(codes[column], loads)[present])
        total, below = float(below[-1]), below[:-1]
        low_files = np.rint(below * (n_files / total)).astype(np.int64)
        low_files = np.clip(low_files, 1, n_files - 1)
        high_files = n_files - low_files
        share = float(self.loads.sum()) / self.n_files
        # If the cut above was uneven, the same imbalance is allowed here.
        least = min(LEAST_FILL * share, total / n_files)
        most = max(MOST_FILL * share, total / n_files)
        is_even = np.ones(len(below), bool)
        for sizes in (below / low_files, (total - below) / high_files):
            is_even &= (sizes >= least) & (sizes <= most)
        if not is_even.any():
            return None, np.inf
        order = np.argsort(codes[column], kind="stable")
        starts = np.concatenate(([0], np.cumsum(counts[present])[:-1]))
        boxes = Boxes.of_runs(codes[:, order], starts)
        low = self.what_if.hits(boxes.growing()[:-1])
        high = self.what_if.hits(boxes.growing(backwards=True)[1:])
        weights = self.what_if.weights
        costs = (weights @ low) * low_files + (weights @ high) * high_files
        costs[~is_even] = np.inf
        at = int(costs.argmin())
        cut = _Cut(column, int(present[at + 1]), int(low_files[at]))
        return cut, float(costs[at])
