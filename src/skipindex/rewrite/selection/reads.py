"""The files that a workload's queries read, from statistics alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skipindex.errors import SkipIndexError
from skipindex.layout import Workload
from skipindex.planner.plan import plan_files
from skipindex.rewrite.selection.target import Target
from skipindex.table import TableState


@dataclass(frozen=True, slots=True)
class Reads:
    """What a workload reads of a table.

    Args:
        shares: for each file that is read at all, the fraction of queries that read it,
            by weight.
        mean: the files that a query reads, on average by weight.
    """

    shares: Mapping[str, float]
    mean: float

    @classmethod
    def of(
        cls, table: TableState, target: Target, queries: Workload | None = None
    ) -> Reads | None:
        """The reads of queries, else of the layout's workload; None if it has none."""
        workload = queries
        if workload is None:
            if "workload" not in target.known:
                return None
            workload = Workload.from_json(target.known["workload"])
        total = sum(workload.weights)
        shares: dict[str, float] = {}
        for query, weight in zip(workload.queries, workload.weights, strict=True):
            try:
                plan = plan_files(
                    query, table=table, timezone=workload.timezone, kinds={"minmax"}
                )
            except SkipIndexError:  # of a column that no longer exists
                return None
            for path in plan.paths:
                shares[path] = shares.get(path, 0.0) + weight / total
        return cls(shares, sum(shares.values()))
