"""Bringing the indexes of a table up to date with its files."""

from __future__ import annotations

from skipindex.build.builder import BuildReport, build
from skipindex.build.requested import wanted_of
from skipindex.build.runners import Progress, Runner
from skipindex.table import TableState


def refresh(
    table: TableState,
    *,
    runner: Runner,
    progress: Progress | None = None,
    repair: bool | None = None,
) -> BuildReport[TableState]:
    """Build what new, changed and damaged files lack, and forget files that are gone.

    The indexes are those that the table was asked to have so far, whether they were
    named or chosen; no new choice is made.
    """
    wanted = wanted_of(table)
    return build(table, wanted, runner=runner, progress=progress, repair=repair)
