"""What min/max per file would let the queries of a workload skip, on a sample.

A query sees a file's bounds only through the comparisons that it makes, so each
column is coded by the steps at the queries' literals: few small integers, over
which the answer is the planner's own, and exact for the rows of the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.conditions.bound_predicate import BoundPredicate, Computed, Leaf, fold
from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import NullAtom
from skipindex.layout.cuts import FileNumbers
from skipindex.layout.workload.conditions import true_codes
from skipindex.layout.workload.steps import Codes, Steps
from skipindex.layout.workload.workload import BoundWorkload

CodeMatrix: TypeAlias = Codes
"""A row for each column, a column for each row of the sample."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The extents of sets of rows, one column each, one row for each column.

    ``low`` and ``high`` are the least and the greatest code of a value, both 0
    where every row is NULL.
    """

    low: CodeMatrix
    high: CodeMatrix
    nulls: Mask

    @classmethod
    def of_runs(cls, codes: CodeMatrix, starts: npt.NDArray[np.integer]) -> Boxes:
        """The extents of runs of rows that begin at ``starts``."""
        lowest = np.minimum.reduceat(codes, starts, axis=1)
        high = np.maximum.reduceat(codes, starts, axis=1)
        nulls = lowest == 0
        if not nulls.any():
            return cls(lowest, high, nulls)
        # For the minimum, NULL (code 0) counts as the greatest number.
        low = np.minimum.reduceat(codes - np.uint16(1), starts, axis=1) + np.uint16(1)
        return cls(low, high, nulls)


class WhatIf:
    """The queries of a workload over codes.

    Attributes:
        steps: of every column, at the literals of the queries.
        weights: of the queries.
    """

    def __init__(self, workload: BoundWorkload) -> None:
        """Takes the steps of every column from the queries."""
        literals = workload.literals()
        self.steps = [
            Steps.of(name, domain, literals[name])
            for name, domain in workload.domains.items()
        ]
        self.weights = workload.weights
        self._trees = workload.trees
        self._rows: Mapping[str, int] = {
            steps.column: i for i, steps in enumerate(self.steps)
        }

    def codes(self, sample: pa.Table) -> CodeMatrix:
        """The codes of a sample of the table."""
        return np.stack([s.codes(sample.column(s.column)) for s in self.steps])

    def hits(self, boxes: Boxes) -> Mask:
        """A row for each query: which sets min/max could not skip."""
        n = boxes.low.shape[1]

        def possible(tree: BoundPredicate) -> Mask | np.bool_:
            return fold(
                tree,
                leaf=lambda leaf: self._may_hold(leaf, boxes),
                all_of=lambda masks: reduce(np.logical_and, masks),
                any_of=lambda masks: reduce(np.logical_or, masks),
                constant=np.bool_,
                unknown=lambda _: np.bool_(True),
            )

        return np.stack([np.broadcast_to(possible(tree), n) for tree in self._trees])

    def n_read(self, codes: CodeMatrix, files: FileNumbers) -> npt.NDArray[np.int64]:
        """How many files each query would read, if rows were in ``files``."""
        order = np.argsort(files, kind="stable")
        ordered = files[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        boxes = Boxes.of_runs(codes[:, order], starts)
        counts: npt.NDArray[np.int64] = self.hits(boxes).sum(axis=1)
        return counts

    def score(self, codes: CodeMatrix, files: FileNumbers) -> float:
        """The files read in all, each query as often as it runs."""
        return float(self.n_read(codes, files) @ self.weights)

    def _may_hold(self, leaf: Leaf | Computed, boxes: Boxes) -> Mask | np.bool_:
        """Which sets may hold a row for which the leaf is TRUE, by their bounds."""
        if isinstance(leaf, Computed):  # bounds say little of functions
            return np.bool_(True)
        row = self._rows[leaf.column]
        low, high = boxes.low[row], boxes.high[row]
        mask: Mask = np.zeros(len(low), np.bool_)
        if isinstance(leaf.atom, NullAtom):
            mask |= boxes.nulls[row]
        for first, stop in true_codes(leaf.atom, self.steps[row]):
            mask |= (high >= first) & (low < stop)
        return mask
