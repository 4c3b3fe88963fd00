"""A few random histories of Iceberg tables; the sweep ``iceberg`` has others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.iceberg.histories import History


@pytest.mark.parametrize("seed", range(4))
def test_every_snapshot_has_its_own_rows(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "t", seed)
    done = []
    for act in history.steps(10):
        done.append(act)
        for _ in range(2):
            assert history.check() == "", done
    assert history.n_checks > 5
