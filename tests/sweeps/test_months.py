"""A table that is refreshed after every append, by the thousand."""

from __future__ import annotations

import subprocess
import sys

import pytest


def live(n_builds: int) -> str:
    """In a process of its own, whose descriptors are few."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sweeps.months", "--builds", str(n_builds)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_month() -> None:
    assert "30 builds" in live(30)


@pytest.mark.slow
def test_years() -> None:
    assert "1000 builds" in live(1000)
