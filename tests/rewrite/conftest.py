"""The table that many of these tests begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rewrite.arriving import fill
from tests.tables import build, made


def make(folder: Path) -> None:
    """Two days with 20 rows each, and an index."""
    build(fill(folder, 1), {"x": "bitmap"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The table of ``make``."""
    return made(tmp_path / "t", make)
