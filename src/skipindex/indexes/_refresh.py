"""Bringing the indexes of a table up to date with its files."""

from __future__ import annotations

from skipindex.indexes._remembered import wanted_of
from skipindex.indexes._runners import Progress, Runner
from skipindex.indexes.build import BuildReport, build
from skipindex.table import Table


def refresh(
    table: Table,
    *,
    runner: Runner,
    progress: Progress | None = None,
    repair: bool | None = None,
) -> BuildReport:
    """Build what new, changed and damaged files lack, and forget files that are gone.

    Nothing is chosen anew: the indexes are those that the table was to have so far,
    whether they were named or chosen.
    """
    wanted = wanted_of(table)
    return build(table, wanted, runner=runner, progress=progress, repair=repair)
