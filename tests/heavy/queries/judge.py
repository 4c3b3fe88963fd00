"""Compares the two runs of a script."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from tests.heavy.queries.player import LATE, Outcome
from tests.heavy.queries.scripts import Script
from tests.heavy.queries.tables import Made

HAS_INDEXES = ("whole", "part", "stale", "rewritten")


@dataclass
class Tally:
    """What has been seen.

    Args:
        queries: answers that were compared.
        n_by_floats: scripts that were compared again without Parquet's filters.
        filters: answers under a condition, of a table with indexes.
        skipped: those of them for which fewer files were read.
    """

    queries: int = 0
    n_by_floats: int = 0
    filters: int = 0
    skipped: int = 0

    def add(self, script: Script, made: Made, runs: Runs) -> None:
        """Count one case that is right."""
        for step, on, off in zip(script.steps, *runs, strict=True):
            if step.kind not in ("sql", "collect", "count", "together"):
                continue
            self.queries += 1
            if not off.error and off.n_files and made.fate in HAS_INDEXES:
                self.filters += 1
                self.skipped += on.n_files < off.n_files


Runs = tuple[list[Outcome], list[Outcome]]
"""With skipping on, and off."""


def difference(script: Script, runs: Runs) -> str:
    """What is not the same; empty if all is."""
    for step, on, off in zip(script.steps, *runs, strict=True):
        if step.kind == "together":
            on, off = _without_errors(on, off)  # noqa: PLW2901
        told = compared(on, off, limited=bool(step.draft.within))
        if told:
            return f"{step.kind} {step.name} {step.value}: {told}"
        if on.error and step.kind in ("do", "write", "frame"):
            return ""  # what follows it stands on nothing
    return ""


def _without_errors(on: Outcome, off: Outcome) -> tuple[Outcome, Outcome]:
    """Queries at once, without those that fail by a row when skipping is off."""
    failed = [one.removesuffix(LATE) for one in off.rows or [] if one.endswith(LATE)]

    def rest(outcome: Outcome) -> Outcome:
        rows = [row for row in outcome.rows or [] if not row.startswith(tuple(failed))]
        return replace(outcome, rows=rows)

    return rest(on), rest(off)


def drops_by_floats(runs: Runs, made: Made) -> bool:
    """Whether Spark's reader itself may have dropped rows, by NaN or a signed zero.

    What it drops depends on the row groups, so that it is other rows of other files.
    """
    floats = [name for name, kind in made.kinds.items() if kind.family == "float"]
    compared = re.compile(rf"(?<!Null)\(({'|'.join(floats) or '-'})\b")
    return any(compared.search(one.filters) for run in runs for one in run)


def compared(on: Outcome, off: Outcome, *, limited: bool) -> str:
    """What is not the same of one step; empty if all is.

    Args:
        on: what it gave with skipping on.
        off: what it gave without.
        limited: whether a LIMIT may choose among rows.
    """
    if off.error and on.error:
        both_run = off.at_run and on.at_run
        if off.error != on.error and not both_run:
            return f"another error: {off.error} off, {on.error} on\n{on.told}"
        return ""
    if off.error:
        # Rows of files that are not read cannot raise what evaluation raises.
        return "" if off.at_run else f"no error with skipping on: {off.error}"
    if on.error:
        raced = limited and on.at_run
        return "" if raced else f"an error with skipping on: {on.error}\n{on.told}"
    if on.rows is None or off.rows is None:
        return ""
    if limited:
        return _limited(on, off)
    return "" if on.rows == off.rows else _rows(on.rows, off.rows)


def _limited(on: Outcome, off: Outcome) -> str:
    assert on.rows is not None
    assert off.rows is not None
    if len(on.rows) != len(off.rows):
        return f"{len(off.rows)} rows under LIMIT off, {len(on.rows)} on"
    more = Counter(on.rows) - Counter(off.among or [])
    return f"rows that are not there: {list(more)[:3]}" if more else ""


def _rows(on: list[str], off: list[str]) -> str:
    lost, more = Counter(off) - Counter(on), Counter(on) - Counter(off)
    if not lost and not more:
        return f"another order: {on[:3]} on, {off[:3]} off"
    return (
        f"{len(off)} rows off, {len(on)} on; {sum(lost.values())} are lost: "
        f"{list(lost)[:3]}; {sum(more.values())} too many: {list(more)[:3]}"
    )
