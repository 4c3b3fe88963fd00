"""Cutting a sequence of weighted items into runs of nearly equal weight."""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Weights: TypeAlias = npt.NDArray[np.float64]


def split_by_weight(weights: Weights, n_runs: int) -> list[int]:
    """Where each of ``min(n_runs, len(weights))`` runs begins.

    Every run has an item.  An item that is heavier than a run counts as exactly one
    run, wherever it stands, so the others get as many runs as it does not need.
    A run ends where it is nearest to an even share of what is left.
    """
    n_items = len(weights)
    if n_runs >= n_items:
        return list(range(n_items))
    before = [0.0, *np.cumsum(np.minimum(weights, _cap(weights, n_runs))).tolist()]
    starts = [0]
    for n_left in range(n_runs, 1, -1):
        start = starts[-1]
        last_end = n_items - (n_left - 1)  # one item is left for each later run
        goal = before[start] + (before[n_items] - before[start]) / n_left
        end = min(max(bisect_left(before, goal, start + 1), start + 1), last_end)
        if end > start + 1 and goal - before[end - 1] <= before[end] - goal:
            end -= 1
        starts.append(end)
    return starts


def _cap(weights: Weights, n_runs: int) -> float:
    """The fraction of a run if each heavier item has its own run."""
    descending = np.sort(weights)[::-1][:n_runs]
    taken = np.concatenate(([0.0], np.cumsum(descending)[:-1]))
    shares = (weights.sum() - taken) / np.arange(n_runs, 0, -1)
    # With k heavy items the share is shares[k]; the first k that leaves none.
    return float(shares[np.argmax(descending <= shares)])
