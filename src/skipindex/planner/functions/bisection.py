"""Bisection over integers: functions are inverted without a second definition."""

from __future__ import annotations

from collections.abc import Callable


def least_integer(low: int, high: int, reached: Callable[[int], bool]) -> int | None:
    """The least of ``low .. high`` for which ``reached``, None if there is none.

    Args:
        low: the first.
        high: the last; any distance from ``low``, which ``bisect`` does not allow.
        reached: from some integer on, and for none before it.
    """
    stop = high + 1
    while low < stop:
        middle = (low + stop) // 2
        if reached(middle):
            stop = middle
        else:
            low = middle + 1
    return low if low <= high else None
