"""A table that is refreshed after every append, by the thousand."""

from __future__ import annotations

import pytest

from tests.heavy.slices import run_slice


@pytest.mark.slow
@pytest.mark.parametrize("n_builds", [30, 1000])
def test_a_life(n_builds: int) -> None:
    """In a process of its own, whose descriptors are few."""
    done = run_slice("months", seed=1, first=0, n_cases=1, parts=[str(n_builds)])
    assert done.failures == []
    assert done.n == n_builds
