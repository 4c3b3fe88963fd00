"""Bounds on the number of matching rows of each file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from skipindex.conditions.bound_predicate import (
    ComparedColumns,
    Computed,
    Leaf,
    fold,
)
from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import NullAtom
from skipindex.expressions.bounds import Bounds
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.planning_stages import count_deferred_rows
from skipindex.planner.stages.records import MINMAX

_Counts: TypeAlias = tuple[np.ndarray, np.ndarray]
"""At least and at most so many rows of each file."""


@dataclass(frozen=True, slots=True, eq=False)
class RowCounts:
    """The least and greatest number of matching rows of every file of a table.

    Args:
        lower: the number of rows that certainly match.
        upper: the number of rows that may match; -1 if the row count is not known.
    """

    lower: np.ndarray
    upper: np.ndarray

    @property
    def exact(self) -> np.ndarray:
        """The files whose number of matching rows is known."""
        same: np.ndarray = self.lower == self.upper
        return same

    @property
    def total(self) -> tuple[int, int | None]:
        """The same for all files together; None is "not known"."""
        lower = int(self.lower.sum())
        return lower, None if (self.upper < 0).any() else int(self.upper.sum())


def row_counts(evaluation: Evaluation) -> RowCounts:
    """The bounds that ``evaluation`` proves; a skipped file has no row that matches.

    The rows of files that certainly hold a match are counted now, if not yet done.
    """
    count_deferred_rows(evaluation)
    counts = evaluation.table.n_rows
    n_rows = counts.or_else(0)
    lower, upper = np.zeros_like(n_rows), counts.or_else(-1).copy()
    files = np.flatnonzero(evaluation.possible & ~evaluation.certain & (n_rows > 0))
    if _has_nulls(evaluation):
        lower[files], upper[files] = _by_null_counts(evaluation, files)
    for file, verdict in evaluation.rows.items():
        lower[file] = max(lower[file], verdict.lower)
        upper[file] = min(upper[file], verdict.upper)
    certain = evaluation.certain & counts.known
    lower[certain] = upper[certain] = n_rows[certain]
    deleted = evaluation.table.deleted
    if deleted is not None:
        least, most = deleted
        lower = (lower - most).clip(0)
        upper = np.where(counts.known, np.minimum(upper, n_rows - least), upper)
    lower[~evaluation.possible] = upper[~evaluation.possible] = 0
    return RowCounts(lower, upper)


def _has_nulls(evaluation: Evaluation) -> bool:
    """Whether statistics may be asked, and count NULLs in a column of the predicate."""
    may_ask = evaluation.kinds is None or MINMAX in evaluation.kinds
    stats = map(evaluation.table.stats, evaluation.columns.values())
    return may_ask and any(one.nulls.above_zero().any() for one in stats)


def _by_null_counts(evaluation: Evaluation, files: np.ndarray) -> _Counts:
    """The bounds by statistics: a condition may be TRUE for all values but not NULL."""
    n_rows = evaluation.table.n_rows.or_else(0, at=files)

    def rows_of(bounds: Bounds[Mask]) -> _Counts:
        lower, upper = bounds.lower[files], bounds.upper[files]
        return np.where(lower, n_rows, 0), np.where(upper, n_rows, 0)

    def of_leaf(leaf: Leaf | Computed) -> _Counts:
        record = evaluation.leaves[leaf]
        lower, upper = rows_of(record.bounds)
        stats = evaluation.table.stats(record.column)
        nulls = stats.nulls.or_else(0, at=files)
        known = nulls > 0
        if isinstance(leaf, Computed) or not known.any():
            return lower, upper
        if isinstance(leaf.atom, NullAtom):
            most = np.where(known, nulls, n_rows)
        else:
            most = np.where(known, n_rows - nulls, n_rows)
            known &= stats.every_value(leaf.atom)[files]
        return np.maximum(lower, np.where(known, most, 0)), np.minimum(upper, most)

    def both(a: _Counts, b: _Counts) -> _Counts:
        return (a[0] + b[0] - n_rows).clip(0), np.minimum(a[1], b[1])

    def either(a: _Counts, b: _Counts) -> _Counts:
        return np.maximum(a[0], b[0]), np.minimum(a[1] + b[1], n_rows)

    unsure = Bounds(evaluation.no_file, evaluation.every_file)
    return fold(
        evaluation.tree,
        leaf=of_leaf,
        all_of=lambda parts: reduce(both, parts),
        any_of=lambda parts: reduce(either, parts),
        constant=lambda value: (n_rows * value, n_rows * value),
        unknown=lambda node: rows_of(
            evaluation.records[node].bounds
            if isinstance(node, ComparedColumns)
            else unsure
        ),
    )
