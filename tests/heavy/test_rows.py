"""A few cases of the sweep of rows, of each writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.heavy.rows import WRITERS, compared


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_by_pages_are_those_of_a_full_read(writer: str, tmp_path: Path) -> None:
    pytest.importorskip(writer)
    done = 0
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        n, failure = compared(writer, seed, folder)
        assert failure == ""
        done += n
    assert done
