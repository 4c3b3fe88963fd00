"""Files to read: what is known of their rows, and what is left to check of each.

A residual is TRUE for the same rows of its file as the whole predicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from skipindex.planner.bound_predicate import (
    BoundPredicate,
    Computed,
    Leaf,
    TruthValue,
    text_of,
    with_leaves,
)
from skipindex.planner.simplify import simplify
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.row_counts import RowCounts


class Verdict(Enum):
    """What is known of a file that is read."""

    ALL = "all rows match"
    READ = "some rows may match"


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file to read.

    Args:
        path: relative to the table.
        size: in bytes.
        n_rows: None if no index knows the file.
        verdict: whether every row is known to match.
        residual: the SQL that the reader must still check, ``TRUE`` if none.
        matching: between how many and how many rows match; None if unknown.
    """

    path: str
    size: int
    n_rows: int | None
    verdict: Verdict
    residual: str
    matching: tuple[int, int] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "verdict": self.verdict.value}


def task_of(found: Evaluation, counts: RowCounts, file: int) -> FileTask:
    """The task of reading ``file``, by its position in the table.

    Args:
        found: what the stages found out.
        counts: between how many and how many rows of every file match.
        file: one that is read.
    """
    table, certain = found.table, bool(found.certain[file])
    n_rows = int(table.n_rows[file])
    matching = int(counts.lower[file]), int(counts.upper[file])
    return FileTask(
        path=table.paths[file],
        size=int(table.sizes[file]),
        n_rows=n_rows if n_rows >= 0 else None,
        verdict=Verdict.ALL if certain else Verdict.READ,
        residual="TRUE" if certain else text_of(_residual(found, file)),
        matching=matching if n_rows >= 0 else None,
    )


def _residual(found: Evaluation, file: int) -> BoundPredicate:
    """The tree without what is certain of the file's every row."""

    def of_leaf(leaf: Leaf | Computed) -> BoundPredicate:
        bounds = found.leaves[leaf].bounds
        if bounds.lower[file] or not bounds.upper[file]:
            return TruthValue(bool(bounds.lower[file]))
        return leaf

    return simplify(with_leaves(found.tree, of_leaf))
