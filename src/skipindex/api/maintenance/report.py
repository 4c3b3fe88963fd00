"""What maintenance did, or would do, and what it gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from skipindex.notebook import InNotebook, bars
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import RUNS
from skipindex.table.queries import lines_of

MAX_RUNS_BYTES: Final = 1 << 20
"""Bytes of the record of runs."""
MOST_SHAPES: Final = 100
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Run:
    """One step that was taken, as the table's record of runs has it.

    Args:
        at: when it ended, in seconds since 1970.
        step: its name.
        n_bytes: the bytes that it read and wrote.
        seconds: wall time.
        before: the bytes that the recorded queries read before it.
        after: the same after it.
        expected: the bytes that it was expected to spare.
        shapes: of the queries that indexes were chosen for, by marks.
    """

    at: float
    step: str
    n_bytes: int
    seconds: float
    before: int
    after: int
    expected: int
    shapes: dict[str, int]

    @classmethod
    def of(cls, record: Any) -> Run | None:
        """The run of a line; None if it is of another form."""
        if not isinstance(record, dict) or record.keys() != set(cls.__slots__):
            return None
        shapes = record["shapes"]
        numbers = [record[n] for n in set(cls.__slots__) - {"step", "shapes"}]
        is_good = (
            isinstance(record["step"], str)
            and isinstance(shapes, dict)
            and len(shapes) <= MOST_SHAPES
            and all(
                type(n) in {int, float} and 0 <= n < 2**53
                for n in (*numbers, *shapes.values())
            )
        )
        return cls(**record) if is_good else None


def runs_of(table: Location) -> list[Run]:
    """The recorded runs of a table, the oldest first."""
    every = map(Run.of, lines_of(table, RUNS, 2 * MAX_RUNS_BYTES))
    return sorted((run for run in every if run), key=lambda run: run.at)


def picture_of(table: Location) -> str:
    """The bytes that queries read before and after each run, as bars; or nothing."""
    runs = [run for run in runs_of(table) if run.before][-_SHOWN:]
    if not runs:
        return ""
    title = (
        f"what recorded queries read after the last {len(runs)} steps of maintenance, "
        "beside before each"
    )
    return bars([run.after / run.before for run in runs], title).svg


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step.

    Args:
        step: its name: ``refresh``, ``merge``, ``cluster``, ``advise`` or ``vacuum``.
        table: the folder of the table.
        n_bytes: the bytes that it read and wrote; before it ran, its price.
        seconds: wall time; before it ran, by what such steps took on this table.
        gain: bytes that the recorded queries do not read any more; before it ran, an
            estimate.
        done: whether it ran.
        note: what it did, or why it did not run.
    """

    step: str
    table: str
    n_bytes: int
    seconds: float
    gain: int
    done: bool
    note: str

    def __str__(self) -> str:
        price = f"{self.n_bytes / 1e6:.1f} MB, {self.seconds:.1f} s"
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
        drift: the part of the queries whose shapes are new since indexes were chosen.
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
    drift: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

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
        max((one.drift for one in reports), default=0.0),
        tuple(f"{one.table}: {note}" for one in reports for note in one.notes),
    )
