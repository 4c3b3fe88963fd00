"""Maintenance that clusters, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import skipindex as sx
from skipindex.api.maintenance import steps
from skipindex.api.maintenance.policy import Budget, BudgetLike, Policy
from skipindex.api.maintenance.run import maintain_all
from skipindex.build.runners import LocalRunner
from skipindex.rewrite.optimize import optimize_files
from skipindex.table import queries
from skipindex.table.queries import Recording
from tests.rewrite.arrow_writer import arrow_writer

if TYPE_CHECKING:
    from pyiceberg.table import Table as Iceberg

POLICY = {"least_queries": 5, "max_bytes_ratio": 100.0}


@contextmanager
def without_spark() -> Iterator[None]:
    """Rows are rewritten by pyarrow, and few packs are many."""

    def optimize(_: Any, state: Any, asked: Any, **__: Any) -> Any:
        writer = arrow_writer(sx.Table(state))
        return optimize_files(state, asked, writer=writer, runner=LocalRunner(1))

    with (
        mock.patch("skipindex.spark.writers.optimize.optimize", optimize),
        mock.patch.object(steps, "CROWD", 2),
    ):
        yield


def maintain(
    table: Path | Iceberg | sx.Table, budget: BudgetLike = None, **policy: Any
) -> list[str]:
    """One run, which may cluster; the steps that it took."""
    state = sx.open_table(table).state.refresh()
    (report,) = maintain_all(
        [(state.folder, lambda: state)],
        Policy.of({**POLICY, **policy}),
        Budget.of(budget),
        dry_run=False,
        session=lambda: None,  # type: ignore[arg-type, return-value]
        workers=1,
    )
    return [step.step for step in report.steps if step.done]


def record(table: sx.Table, where: str) -> None:
    """So many queries with a condition that maintenance chooses by it."""
    for _ in range(2 * int(POLICY["least_queries"])):
        Recording("table").add(
            table.state.location,
            where,
            zone=None,
            files=5,
            read=5,
            n_bytes=9,
            seconds=0.1,
        )
    queries.flush()
