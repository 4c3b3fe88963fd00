"""Pruning for ORDER BY with LIMIT: files that hold none of the first rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skipindex.expressions.arrays import Mask
from skipindex.planner.plan import Plan
from skipindex.planner.stages.limit import needed
from skipindex.planner.stages.row_counts import RowCounts
from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator
from skipindex.spark.pruning.protocol import First
from skipindex.spark.pruning.tables import ScannedTable


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The rows of a scan that a query needs, as ``TopRows.java`` asks for them.

    Args:
        n: so many; 1 or more.
        order_by: the first key of their order, in SQL; None is any rows.
    """

    n: int
    order_by: str | None

    @classmethod
    def of(cls, asked: First | None, columns: Mapping[str, str]) -> FirstRows | None:
        """What a question asks; None is all rows, or an order that is not known."""
        if asked is None:
            return None
        order = asked.order
        if order is None:
            return cls(asked.n, None)
        (node,) = read_nodes(order.column)
        column = Translator(columns).column(node)
        if column is None:
            return None
        return cls(asked.n, f"{column} {order.direction} {order.nulls}")

    def __str__(self) -> str:
        order = "" if self.order_by is None else f"ORDER BY {self.order_by} "
        return f"{order}LIMIT {self.n}"


def needed_files(plan: Plan, table: ScannedTable, listed: Mask) -> tuple[Mask, bool]:
    """The files that may hold one of the first rows, and whether they are all it takes.

    Rows count where they certainly match, in a file that Spark reads as it was judged:
    ``listed`` are those that it lists unchanged.  Enough of any rows need no other
    file, also none that is not known, or has changed.
    """
    result, counts = plan.evaluation, plan.row_counts
    column, n = None, plan.row_limit.limit or 0
    for key in plan.row_limit.order_by[:1]:
        column = result.table.resolve(
            key.column.parts[0], case_sensitive=plan.session.case_sensitive
        )

    def with_matches(lower: np.ndarray) -> Mask:
        bounds = RowCounts(lower, counts.upper)
        return needed(result, bounds, plan.row_limit, column).mask

    lower = np.where(listed & result.possible, counts.lower, 0)
    if column is not None and np.array_equal(with_matches(lower), result.possible):
        return result.possible, False
    counted = np.flatnonzero(lower)
    lower[counted[~table.unchanged(counted)]] = 0
    return with_matches(lower), column is None and bool(lower.sum() >= n)
