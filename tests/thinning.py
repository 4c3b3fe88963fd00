"""Cases of a family, of which a quick run takes a few."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(cases: Iterable[Any], quick: int) -> list[Any]:
    """Mark all cases slow but ``quick`` of them, which are evenly spaced.

    Args:
        cases: as ``pytest.mark.parametrize`` takes them; a tuple is several values.
        quick: the number of cases that stay in the quick run; at least 1.

    >>> [len(case.marks) for case in thinned(range(5), 2)]
    [0, 1, 0, 1, 1]
    """
    every = list(cases)
    kept = {i * len(every) // quick for i in range(quick)}
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if i in kept else pytest.mark.slow,
        )
        for i, case in enumerate(every)
    ]
