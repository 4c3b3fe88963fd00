"""The table that many of these tests begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rewrite.arriving import fill
from tests.tables import build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two days with 20 rows each, and an index."""
    fill(tmp_path / "t", 1)
    build(tmp_path / "t", {"x": "bitmap"})
    return tmp_path / "t"
