"""Figures with their limits, as one table for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured.

    Args:
        what: in a few words.
        value: in ``unit``.
        unit: of the value and of the limit.
        limit: that it should not pass, or None.
        note: what else to know.
    """

    what: str
    value: float
    unit: str
    limit: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The value as a share of its limit; above 1 it is missed."""
        return None if self.limit is None else self.value / self.limit


@dataclass(slots=True)
class Table:
    """Figures under a title; prints itself as lines of equal columns."""

    title: str
    figures: list[Figure] = field(default_factory=list)

    def add(
        self,
        what: str,
        value: float,
        unit: str,
        *,
        limit: float | None = None,
        note: str = "",
    ) -> None:
        """Append one figure."""
        self.figures.append(Figure(what, value, unit, limit, note))

    def __str__(self) -> str:
        width = max([20, *(len(figure.what) for figure in self.figures)])
        head = f"{'':<{width}}{'value':>11} {'unit':<8}{'limit':>9}{'ratio':>7}"
        lines = [self.title, head]
        for figure in self.figures:
            limit = "" if figure.limit is None else f"{figure.limit:,.4g}"
            ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
            lines.append(
                f"{figure.what:<{width}}{figure.value:>11,.4g} {figure.unit:<8}"
                f"{limit:>9}{ratio:>7}  {figure.note}".rstrip()
            )
        return "\n".join(lines)


def best_seconds(call: Callable[[], object], *, rounds: int = 7) -> float:
    """The least wall time of some calls; one more, before them, warms up."""
    call()
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best
