"""A file that was modified in this very tick of the clock is not trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.file_info import SECOND, Clock, FileInfo, mark_of
from skipindex.storage.file_system.location import Location
from tests.rewrite.arriving import arrived
from tests.rewrite.seen import seen_by_both
from tests.tables import build, put

FILE = FileInfo("f", 1, 5 * SECOND)


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, without making them."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def clock(times: Sequence[int]) -> Clock:
    """A clock that shows these times, in seconds, the last one for ever."""
    left = list(times)

    def now() -> int:
        return (left.pop(0) if len(left) > 1 else left[0]) * SECOND

    return Clock(now)


@pytest.mark.parametrize(
    ("times", "has_passed", "n_pauses"),
    [
        ([6], True, 0),
        ([5, 6], True, 1),
        ([4, 5, 5, 6], True, 3),
        ([5], False, 6),
        ([4], False, 6),
        ([1], False, 0),
    ],
)
def test_a_tick_that_goes_on_is_waited_for(
    paused: list[float], times: Sequence[int], has_passed: bool, n_pauses: int
) -> None:
    """The same tick is not enough: another write would have the same time."""
    assert clock(times).has_passed(FILE) is has_passed
    assert len(paused) == n_pauses
    assert clock([5]).has_passed(replace(FILE, tag="a tag needs no time"))


def test_one_look_serves_many_files(paused: list[float]) -> None:
    one = clock([9, 1])
    assert all(one.has_passed(FileInfo("f", 1, i * SECOND)) for i in range(9))
    assert not paused


def test_the_time_of_a_folder_is_learned_without_a_trace(tmp_path: Path) -> None:
    before = time.time_ns() - SECOND
    assert before < Location(str(tmp_path)).now() < time.time_ns() + SECOND
    assert [path.name for path in tmp_path.rglob("*")] == ["_skipindex"]


def test_a_file_of_the_future_is_read_until_its_time_has_passed(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"x": [1]})
    ahead = time.time() + 3600
    os.utime(tmp_path / "f.parquet", (ahead, ahead))
    report = sx.build_indexes(tmp_path, {"x": "bitmap"}, workers=1)
    assert "modified too recently" in str(report)
    assert sx.plan_files("x = 7", table=tmp_path).paths == ["f.parquet"]
    os.utime(tmp_path / "f.parquet", (1, 1))
    table = sx.build_indexes(tmp_path, {"x": "bitmap"}, workers=1).table
    assert table.plan("x = 7").paths == []


def test_files_that_are_overwritten_at_once_are_not_skipped(tmp_path: Path) -> None:
    """On the clock of this machine, which counts in milliseconds."""
    for i in range(5):
        folder = tmp_path / str(i)
        put(folder / "f.parquet", {"x": [1]})
        sx.build_indexes(folder, {"x": "bitmap"}, workers=1)
        put(folder / "f.parquet", {"x": [7]})
        assert sx.plan_files("x = 7", table=folder).paths == ["f.parquet"]


# Modification times beyond what 64 bits of nanoseconds hold


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
