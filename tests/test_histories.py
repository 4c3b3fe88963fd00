"""A few random histories of Delta and Iceberg tables; sweeps go on with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.delta.histories import DeltaHistory
from tests.iceberg.histories import IcebergHistory


@pytest.mark.parametrize("kind", [DeltaHistory, IcebergHistory])
@pytest.mark.parametrize("seed", range(4))
def test_every_version_has_its_own_rows(
    tmp_path: Path, seed: int, kind: type[DeltaHistory | IcebergHistory]
) -> None:
    history = kind(tmp_path / "t", seed)
    done = []
    for act in history.steps(10):
        done.append(act)
        for _ in range(2):
            assert history.check() == "", done
    assert history.n_checks > 5
