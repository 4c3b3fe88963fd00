"""A slice of the sweep that kills writers and then damages the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rewrite.kill_and_damage import WRITERS, sweep


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["vacuum of two", "optimize"])
def test_every_row_counts_once_whatever_is_lost(tmp_path: Path, name: str) -> None:
    told = dict(sweep(name, tmp_path, stride=127))
    assert len(told) > 5
    assert {case: problem for case, problem in told.items() if problem} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_every_row_counts_once_at_each_step(tmp_path: Path, name: str) -> None:
    told = dict(sweep(name, tmp_path))
    assert {case: problem for case, problem in told.items() if problem} == {}
