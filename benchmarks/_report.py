"""Tables of figures beside their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure.

    Args:
        what: it is; the same words in every run, without figures that change.
        figure: that was measured.
        unit: of the figure and the limit.
        limit: or reference of the same run; None if there is none.
        at_least: the figure should be at least the limit, and not at most.
        note: what the limit is, or anything else.
    """

    what: str
    figure: float
    unit: str = ""
    limit: float | None = None
    at_least: bool = False
    note: str = ""


def show(title: str, measures: Sequence[Measure]) -> None:
    """Print a table."""
    print(f"\n{title}\n{'-' * len(title)}")
    width = max(len(m.what) for m in measures)
    for m in measures:
        limit = ""
        if m.limit:
            word = ">=" if m.at_least else "<="
            limit = f"{word} {m.limit:,.4g} (ratio {m.figure / m.limit:.3g})"
        figure = f"{m.figure:,.4g} {m.unit}"
        print(f"{m.what:<{width}}  {figure:>18}  {limit:<24}  {m.note}".rstrip())
