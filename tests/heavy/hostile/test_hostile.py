"""A slice of the hostile tables, and what the sweep itself would see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.heavy.hostile.templates import TABLE, canary, make
from tests.heavy.slices import run_slice


@pytest.mark.few(1)
@pytest.mark.parametrize(("first", "n"), [(0, 1), (1, 24), (10_000, 200)])
def test_hostile_tables_do_no_harm(first: int, n: int) -> None:
    done = run_slice("hostile", seed=0, first=first, n_cases=n)
    assert done.failures == []
    assert done.n == n


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
