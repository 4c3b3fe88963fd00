"""Files that several conditions rule out together, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skipindex.conditions.bound_predicate import (
    AllOf,
    BoundPredicate,
    Judged,
    comparisons,
    evaluate,
    leaves,
    shorten,
    text_of,
)
from skipindex.expressions.arrays import Mask
from skipindex.expressions.bounds import Bounds
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.records import ROWS


@dataclass(frozen=True, slots=True)
class TogetherReport:
    """Files where rows fulfil single conditions, as far as is known, but no row all.

    Args:
        text: the conditions that were combined, in SQL.
        n_files: the files that they rule out, besides those that one of them is known
            to rule out alone.
        kinds: the index kinds that say so.
    """

    text: str
    n_files: int
    kinds: tuple[str, ...]

    def to_text(self) -> list[str]:
        """For people."""
        asked = ", ".join(self.kinds)
        return [
            f"  together, row by row: {asked} ruled out {self.n_files} more files",
            f"    no row of these files matches {shorten(self.text)}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def together(evaluation: Evaluation) -> TogetherReport | None:
    """What the conditions rule out together; None if it is no file."""
    alone = _alone(evaluation)
    empty = [file for file, rows in evaluation.rows.items() if not rows.upper]
    files = [file for file in empty if alone[file]]
    if not files:
        return None
    kinds = dict.fromkeys(
        kind for file in files for kind in evaluation.rows[file].kinds
    )
    return TogetherReport(text_of(_combined(evaluation)), len(files), tuple(kinds))


def _alone(evaluation: Evaluation) -> Mask:
    """The files that the conditions leave if each is known of alone."""

    def bounds(node: Judged) -> Bounds[Mask]:
        record = evaluation.records[node]
        upper = record.bounds.upper
        nowhere = record.removed_by.get(ROWS)
        left = upper if nowhere is None else upper & ~nowhere
        return Bounds(evaluation.no_file, left)

    return evaluate(
        evaluation.tree,
        bounds,
        nothing=evaluation.no_file,
        everything=evaluation.every_file,
        is_empty=lambda mask: not np.any(mask),
    ).upper


def _combined(evaluation: Evaluation) -> BoundPredicate:
    """The conditions of an AND whose rows indexes know; the whole, if it is no AND."""
    if not isinstance(evaluation.tree, AllOf):
        return evaluation.tree
    asked = tuple(
        child
        for child in evaluation.tree.children
        if any(comparisons(child))
        or any(
            evaluation.reader.has(evaluation.leaves[leaf].column, positional=True)
            for leaf in leaves(child)
        )
    )
    return AllOf(asked) if len(asked) > 1 else evaluation.tree
