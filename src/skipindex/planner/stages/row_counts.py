"""How many rows of every file match: from what the stages found to numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.planning_stages import count_deferred_rows


@dataclass(frozen=True, slots=True, eq=False)
class RowCounts:
    """Between how many and how many rows of every file of a table match.

    Args:
        lower: rows that certainly match.
        upper: rows that may match; -1 where the file's row count is not known.
    """

    lower: np.ndarray
    upper: np.ndarray

    @property
    def exact(self) -> np.ndarray:
        """The files of which the number is known."""
        same: np.ndarray = self.lower == self.upper
        return same

    @property
    def total(self) -> tuple[int, int | None]:
        """The same for all files together; None is "not known"."""
        lower = int(self.lower.sum())
        return lower, None if (self.upper < 0).any() else int(self.upper.sum())


def row_counts(found: Evaluation) -> RowCounts:
    """The bounds that ``found`` proves; a skipped file has no row that matches.

    The rows of files that surely hold a match are looked at now, if they were not yet.
    """
    count_deferred_rows(found)
    n_rows = found.table.n_rows.astype(np.int64)
    lower, upper = np.zeros_like(n_rows), n_rows.copy()
    for file, verdict in found.rows.items():
        lower[file], upper[file] = verdict.lower, verdict.upper
    certain = found.certain & (n_rows >= 0)
    lower[certain] = upper[certain] = n_rows[certain]
    lower[~found.possible] = upper[~found.possible] = 0
    return RowCounts(lower, upper)
