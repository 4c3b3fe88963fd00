"""A slice of the hostile tables, and what the sweep itself would see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sweeps.hostile.__main__ import run
from tests.sweeps.hostile.templates import TABLE, canary, make


@pytest.mark.parametrize("n", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_hostile_tables_do_no_harm(tmp_path: Path, n: int) -> None:
    told = list(run(0, n, tmp_path))
    assert len(told) == n
    assert [case for case in told if case["wrong"]] == []


@pytest.mark.slow
def test_more_hostile_tables_do_no_harm(tmp_path: Path) -> None:
    told = list(run(10_000, 10_200, tmp_path))
    assert [case for case in told if case["wrong"]] == []


def test_what_is_touched_is_seen(tmp_path: Path) -> None:
    """The test of the test."""
    make("plain", tmp_path)
    before = canary(tmp_path)
    assert "victim.txt" in before
    (tmp_path / TABLE / "_mine" / "a.parquet").write_text("touched")
    (tmp_path / "home" / "thesis.tex").unlink()
    after = canary(tmp_path)
    changed = {path for path in before if before.get(path) != after.get(path)}
    assert changed == {f"{TABLE}/_mine/a.parquet", "home/thesis.tex"}
