"""Modification times beyond what 64 bits of nanoseconds hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.rewrite.arrival import SaveMode
from skipindex.storage.file_system.file_info import SECOND, mark_of
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import seen_by_both
from tests.tables import build, put

YEAR = 366 * 86_400 * SECOND
FAR = st.integers(-(10**12), 10**12).map(lambda seconds: seconds * SECOND)


@given(FAR, st.integers(-140 * YEAR, 140 * YEAR))
def test_times_that_differ_have_marks_that_differ(mtime: int, later: int) -> None:
    mark, other = mark_of(mtime), mark_of(mtime + later)
    assert -(2**63) < mark < 2**63
    assert (mark == other) == (later == 0)
    assert (mark >= 0) == (mtime >= 0)


@pytest.mark.parametrize("year", [1600, 1677, 2262, 2263, 2400])
def test_a_file_of_any_time_is_read_and_indexed(tmp_path: Path, year: int) -> None:
    folder = tmp_path / "t"
    path = put(folder / "day=2" / "a.parquet", {"x": [1, 2], "i": [2, 2]})
    seconds = int((year - 1970) * 365.2425 * 86_400)
    try:
        os.utime(path, (seconds, seconds))
    except OSError:
        pytest.skip("no such time on this file system")
    build(folder, {"x": "bitmap"})
    assert sx.open_table(folder).paths == ["day=2/a.parquet"]
    arrived(folder, SaveMode.APPEND)
    assert seen_by_both(folder)[0].total() == 8
    arrived(folder, SaveMode.OVERWRITE)
    assert seen_by_both(folder)[1].total() == 6
