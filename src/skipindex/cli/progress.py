"""How far a command is: a bar in a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from skipindex.build.runners import Progress as Report

_LINE_SECONDS: Final = 10.0
"""How often a log gets a line."""


@contextmanager
def shown(what: str, unit: str, *, quiet: bool) -> Iterator[Report | None]:
    """What is to be called with the number of units done and of all; None tells none.

    It is told on stderr from the beginning on.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(what, unit) as report:
            yield report
    else:
        yield _Lines(what, unit)


@contextmanager
def _bar(what: str, unit: str) -> Iterator[Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True) as drawn:
        task = drawn.add_task(what, total=None)
        yield lambda done, total: drawn.update(task, completed=done, total=total)


class _Rate(ProgressColumn):
    """How many units are done in a second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """See ``ProgressColumn``."""
        rate = task.speed
        told = f"{self._unit}" if rate is None else f"{self._unit}, {rate:.1f}/s"
        return Text(told)


class _Lines:
    """A line now and then: first, last, and every ten seconds between."""

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._began = time.monotonic()
        self._next = self._began

    def __call__(self, done: int, total: int) -> None:
        """Tell it, unless that was just done."""
        now = time.monotonic()
        if now < self._next and done < total:
            return
        self._next = now + _LINE_SECONDS
        seconds = now - self._began
        text = f"{self._what}: {done:,} of {total:,} {self._unit}, {seconds:.0f} s"
        if 0 < done < total:
            left = seconds * (total - done) / done
            text += (
                f", {done / max(seconds, 1e-9):.1f} {self._unit}/s, {left:.0f} s left"
            )
        sys.stderr.write(f"skipindex: {text}\n")
        sys.stderr.flush()
