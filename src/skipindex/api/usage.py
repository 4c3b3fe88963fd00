"""What the recorded queries of a table read, and what they would read without it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from skipindex.errors import SkipIndexError
from skipindex.notebook import InNotebook
from skipindex.planner.plan import plan_files
from skipindex.planner.recorded import shape_of
from skipindex.table import TableState
from skipindex.table.queries import Asked, recorded

_MOST: Final = 20
"""Conditions that a report has, at most."""
_FILES: Final = 10
"""Files of each plan that are compared with its verdicts, skipped ones first."""


@dataclass(frozen=True, slots=True)
class ConditionUsage:
    """The queries whose conditions differ in literals alone.

    Args:
        where: the condition; ``?`` stands for literals.
        n_queries: how many queries had it.
        n_files: the files that these queries listed, all together.
        n_read: those of them that can hold a match.
    """

    where: str
    n_queries: int
    n_files: int
    n_read: int


@dataclass(frozen=True, slots=True)
class UsageReport(InNotebook):
    """What the recorded queries of a table skipped, or would skip.

    Args:
        table: the folder of the table.
        days: the days that the queries are of.
        n_queries: the number of recorded queries.
        n_files: the files that they listed, all together.
        n_read: those of them that can hold a match.
        n_bytes: the bytes of the others, by the mean size of the table's files now.
        conditions: those that skip most files, and then those that skip none.
        n_verified: the files whose rows were compared with a plan of today.
        violations: what these rows show, and a plan says otherwise; no row was lost if
            it is empty.
    """

    table: str
    days: float
    n_queries: int
    n_files: int
    n_read: int
    n_bytes: int
    conditions: tuple[ConditionUsage, ...]
    n_verified: int
    violations: tuple[str, ...]

    def __str__(self) -> str:
        skipped = self.n_files - self.n_read
        lines = [
            f"{self.table}: {self.n_queries:,} queries of the last {self.days:g} days",
            f"  {skipped:,} of {self.n_files:,} files skipped ({self.n_bytes:,} bytes)",
        ]
        for one in self.conditions:
            left = one.n_files - one.n_read
            what = f"{left:,} of {one.n_files:,} files" if left else "no file"
            lines.append(f"  {what} skipped, {one.n_queries:,} times: {one.where}")
        wrong = len(self.violations)
        lines.append(
            f"  {self.n_verified:,} files compared with plans: "
            + (f"{wrong} verdicts are wrong" if wrong else "every verdict is right")
        )
        return "\n".join([*lines, *(f"  {text}" for text in self.violations)])


def usage_of(
    state: TableState, *, queries: str, days: float, verify: int
) -> UsageReport:
    """See ``Table.usage``."""
    every = recorded(state.location, queries, since=time.time() - days * 86400)
    groups: dict[str, list[Asked]] = {}
    for asked in every:
        groups.setdefault(shape_of(asked.where), []).append(asked)
    conditions = [
        ConditionUsage(
            where,
            len(some),
            sum(one.files for one in some),
            sum(one.read for one in some),
        )
        for where, some in groups.items()
    ]
    conditions.sort(key=lambda one: (one.n_read - one.n_files, -one.n_queries))
    n_files = sum(one.n_files for one in conditions)
    n_read = sum(one.n_read for one in conditions)
    mean = state.n_bytes / max(1, len(state))
    n_verified, violations = _verified(state, every, verify)
    return UsageReport(
        state.folder,
        days,
        len(every),
        n_files,
        n_read,
        int(mean * (n_files - n_read)),
        tuple(conditions[:_MOST]),
        n_verified,
        violations,
    )


def _verified(
    state: TableState, every: Sequence[Asked], most: int
) -> tuple[int, tuple[str, ...]]:
    """Compare plans of the newest conditions with the rows of some files."""
    newest = {asked.where: asked.zone for asked in every if not asked.is_hidden}
    n_files, violations = 0, []
    for where, zone in list(reversed(newest.items()))[:most]:
        with suppress(SkipIndexError):  # of a column that no longer exists
            report = plan_files(where, table=state, timezone=zone).verify(sample=_FILES)
            n_files += report.checked
            violations += [
                f"{where}: {one.path}: {one.claim}, but {one.actual}"
                for one in report.violations
            ]
    return n_files, tuple(violations)
