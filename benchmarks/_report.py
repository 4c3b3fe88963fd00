"""Tables of figures, and which of them missed their limits.

A figure counts as a ratio to its limit or reference, measured in the same run, so
that a busy or slow machine does not look like slow code.
"""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from ssb.report import aligned

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure.

    Args:
        what: it is; the same words in every run, without figures that change.
        figure: that was measured.
        unit: of the figure and the limit.
        limit: or reference of the same run; None if there is none.
        note: what the limit is, or anything else.
        at_least: the figure should be at least the limit, and not at most.
    """

    what: str
    figure: float
    unit: str = ""
    limit: float | None = None
    note: str = ""
    at_least: bool = field(default=False, kw_only=True)

    @property
    def ratio(self) -> float | None:
        """The figure to the limit."""
        if self.limit is None:
            return None
        if not self.limit:
            return 1.0 if not self.figure else float("inf")
        return self.figure / self.limit

    @property
    def badness(self) -> float | None:
        """The ratio or its inverse: more is worse, and 1 is just within the limit."""
        if self.ratio is None or not self.at_least:
            return self.ratio
        return 1 / self.ratio if self.ratio else float("inf")

    @property
    def verdict(self) -> str:
        """``ok`` or ``missed``; nothing where there is no limit."""
        if self.badness is None:
            return ""
        return "ok" if self.badness <= 1 else "missed"


_missed: Final[list[str]] = []
"""What missed its limit in this run."""


def show(title: str, measures: Sequence[Measure]) -> None:
    """Print a table, and remember what missed its limit."""
    _missed.extend(f"{title}: {m.what}" for m in measures if m.verdict == "missed")
    print(f"\n{table_of(title, measures)}", flush=True)


def table_of(title: str, measures: Sequence[Measure]) -> str:
    """The measures in lines of one width."""
    rows = [("what", "figure", "limit", "ratio", "", "")]
    for m in measures:
        ratio = "" if m.ratio is None else f"{m.ratio:.3g}"
        limit = "" if m.limit is None else f"{'>=' if m.at_least else '<='} {_text(m)}"
        figure = f"{m.figure:,.4g} {m.unit}".rstrip()
        rows.append((m.what, figure, limit, ratio, m.verdict, m.note))
    lines = aligned(rows, left={0, 4, 5})
    return "\n".join([title, "-" * max(map(len, lines)), *lines])


def _text(measure: Measure) -> str:
    return f"{measure.limit:,.4g} {measure.unit}".rstrip()


def missed() -> list[str]:
    """A line for every measure of this run that missed its limit."""
    return list(_missed)


def best_seconds(
    call: Callable[[], object],
    *,
    rounds: int = 7,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The least time of some calls; one more, before them, may warm up."""
    if warm_up:
        call()
    best = float("inf")
    for _ in range(rounds):
        began = clock()
        call()
        best = min(best, clock() - began)
    return best


def alone(call: Callable[..., T], *arguments: object) -> T:
    """The result of a call in a process that does nothing else."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments)


def peak_bytes() -> int:
    """The most memory that this process has had."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024
