"""Packing things of different weight into bins and runs of a limited weight."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence


def pack(weights: Sequence[int], limit: int) -> list[list[int]]:
    """Bins of positions whose weights sum to at most ``limit``; few of them.

    Best fit, heaviest first (at most 11/9 of the fewest possible bins, and one:
    D. S. Johnson, 1973).  What is heavier than ``limit`` has a bin for itself.
    Bins and their positions are in ascending order.
    """
    room: list[tuple[int, int]] = []
    bins: list[list[int]] = []
    for item in sorted(range(len(weights)), key=lambda i: (-weights[i], i)):
        at = bisect_left(room, (weights[item], -1))
        if at == len(room):
            bins.append([item])
            left, number = limit - weights[item], len(bins) - 1
        else:
            left, number = room.pop(at)
            bins[number].append(item)
            left -= weights[item]
        insort(room, (left, number))
    return sorted(sorted(items) for items in bins)


def runs(weights: Sequence[int], limit: int) -> list[list[int]]:
    """Positions in order, in runs that end as soon as they weigh ``limit``.

    So every run but the last weighs ``limit`` or more, and would not without its
    last position.
    """
    result: list[list[int]] = [[]]
    total = 0
    for item, weight in enumerate(weights):
        if total >= limit:
            result.append([])
            total = 0
        result[-1].append(item)
        total += weight
    return result if weights else []
