"""Where files lie in the space of the clustering columns, by their statistics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from skipindex.layout.ordering import Positions
from skipindex.rewrite.selection.target import EligibleFile
from skipindex.table import TableState
from skipindex.table.statistics.overlap import ranked


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
        high = np.full(shape, np.iinfo(np.int64).max)
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
        found = list(files)
        mine, around = (
            [self.rows[file.path] for file in side] for side in (found, others)
        )
        low, high = self.low[around].min(axis=0), self.high[around].max(axis=0)
        meet = ((self.low[mine] <= high) & (self.high[mine] >= low)).all(axis=1)
        return [file for file, meets in zip(found, meet, strict=True) if meets]
