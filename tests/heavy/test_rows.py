"""A case of the sweep of rows, of each writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.heavy.rows import WRITERS, compared


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_by_pages_are_those_of_a_full_read(writer: str, tmp_path: Path) -> None:
    pytest.importorskip(writer)
    done, failure = compared(writer, 1, tmp_path)
    assert failure == ""
    assert done
