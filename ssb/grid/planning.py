"""Planning level of a cell: plans of all queries against the truth; no Spark query."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

import skipindex as sx
from skipindex.planner.plan import Plan
from skipindex.planner.stages.pack_cache import CacheSession
from ssb.grid.records import QueryFigures
from ssb.queries import Query

WARM_PLANS: Final = 3
"""Plans of each query after the first."""

Truth = Mapping[str, Collection[str]]
"""By query, the names of the files that hold a matching row."""


def plan_all(
    table: sx.Table, groups: Mapping[str, Sequence[Query]], truth: Truth
) -> tuple[QueryFigures, ...]:
    """Plan every query on a table, cold and warm.

    Args:
        table: with the indexes of the cell.
        groups: the queries, by the name of their group.
        truth: of this table.
    """
    return tuple(
        _figures(table, query, group, truth.get(query.name, ()))
        for group, queries in groups.items()
        for query in queries
    )


def _figures(
    table: sx.Table, query: Query, group: str, needed: Collection[str]
) -> QueryFigures:
    with CacheSession() as session:
        _, cold = timed_plan(table, query.where, session)
        warm: list[float] = []
        stages: list[dict[str, float]] = []
        for _ in range(WARM_PLANS):
            plan, seconds = timed_plan(table, query.where, session)
            warm.append(seconds)
            stages.append({stage.name: stage.seconds for stage in plan.stages})
        kept = {Path(path).name for path in plan.paths}
        last = plan.stages[-1]
        return QueryFigures(
            query=query.name,
            group=group,
            kept=len(kept),
            n_bytes=int(last.n_bytes),
            lost=len(set(needed) - kept),
            cold=cold,
            warm=median(warm),
            stages={name: median(s[name] for s in stages) for name in stages[0]},
            funnel={stage.name: int(stage.n_files) for stage in plan.stages},
        )


def timed_plan(
    table: sx.Table, where: str, session: CacheSession
) -> tuple[Plan, float]:
    """A plan, and the seconds until its files are known."""
    began = time.perf_counter()
    plan = table.plan(where, session=session)
    len(plan.paths)
    return plan, time.perf_counter() - began
