"""What maintenance did, or would do, and what it gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skipindex.notebook import InNotebook


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step.

    Args:
        step: its name: ``refresh``, ``merge``, ``cluster``, ``advise`` or ``vacuum``;
            or ``open``, of a table that cannot be opened.
        table: the folder of the table.
        n_bytes: the bytes that it read and wrote; before it ran, an estimate.
        seconds: wall time; 0 if it did not run.
        gain: bytes that the recorded queries do not read any more; 0 before it ran.
        done: whether it ran.
        note: what it did, or why it did not run.
        failed: whether it ended in an error; that another writer committed first, is
            none.
    """

    step: str
    table: str
    n_bytes: int
    seconds: float
    gain: int
    done: bool
    note: str
    failed: bool = False

    def __str__(self) -> str:
        if self.failed:
            return f"{self.step}: {self.note}"
        took = f", {self.seconds:.1f} s" if self.seconds else ""
        price = f"{'' if took else 'about '}{self.n_bytes / 1e6:.1f} MB{took}"
        gain = f", {self.gain / 1e6:.1f} MB fewer for the queries" if self.gain else ""
        return f"{self.step}: {price}{gain}: {self.note}"


@dataclass(frozen=True, slots=True)
class MaintainReport(InNotebook):
    """What maintenance did, or of a dry run, what it would do.

    Args:
        table: the folder of the table, or of the tables.
        steps: the steps in their order, also those that did not run.
        n_queries: the recorded queries that count.
        days: the days that they are of.
        bytes_before: the bytes that these queries read before.
        bytes_after: the bytes that they would read now.
        n_bytes: the bytes that the steps read and wrote.
        seconds: wall time.
        dry_run: whether nothing was changed.
        notes: what maintenance cannot do here, and why.
    """

    table: str
    steps: tuple[StepReport, ...]
    n_queries: int
    days: float
    bytes_before: int
    bytes_after: int
    n_bytes: int
    seconds: float
    dry_run: bool
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self._headline(), *map(str, self.steps), *self.notes])

    def _headline(self) -> str:
        ran = [one for one in self.steps if one.done]
        if self.dry_run:
            n = len(self.steps)
            what = f"would take {n} steps" if n else "nothing to do"
        elif not ran:
            what = "nothing was done"
        else:
            what = f"cost {self.n_bytes / 1e6:.1f} MB, {self.seconds:.1f} s"
        if not self.bytes_before:
            return f"{self.table}: {what}"
        fewer = 1 - self.bytes_after / self.bytes_before
        of = f"the {self.n_queries:,} queries of the last {self.days:g} days"
        would = "read" if self.dry_run or not ran else "would have read"
        result = (
            f"{self.bytes_before / 1e6:.1f} MB"
            if self.dry_run or not ran
            else f"{fewer:.0%} fewer bytes"
        )
        return f"{self.table}: {of} {would} {result}; {what}"


def summed(
    folder: str, reports: Sequence[MaintainReport], seconds: float
) -> MaintainReport:
    """The reports of many tables as one."""
    return MaintainReport(
        folder,
        tuple(step for one in reports for step in one.steps),
        sum(one.n_queries for one in reports),
        max((one.days for one in reports), default=0.0),
        sum(one.bytes_before for one in reports),
        sum(one.bytes_after for one in reports),
        sum(one.n_bytes for one in reports),
        seconds,
        any(one.dry_run for one in reports),
        tuple(f"{one.table}: {note}" for one in reports for note in one.notes),
    )
