"""What calls tell of how far they are."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.api import progress as shown
from skipindex.api.types import Progress
from tests.tables import put_all


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [{"a": [i, i + 1], "s": ["x", "y"]} for i in range(5)]
    return put_all(tmp_path / "t", files)


def parts(values: list[Progress]) -> dict[tuple[str, str], list[int]]:
    """How many were done, by what was counted; each part begins with 0 and ends."""
    found: dict[tuple[str, str], list[int]] = {}
    for one in values:
        found.setdefault((one.what, one.unit), []).append(one.done)
    for one in values:
        done = found[one.what, one.unit]
        assert done == sorted(set(done))
        assert (done[0], done[-1]) == (0, one.total)
    return found


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_call_counts_from_nothing_to_all(folder: Path, workers: int) -> None:
    values: list[Progress] = []
    sx.build_indexes(folder, queries=["s = 'x'"], progress=values.append)
    assert list(parts(values)) == [
        ("sampling", "files"),
        ("measuring", "columns"),
        ("asking", "questions"),
        ("planning", "queries"),
        ("indexing", "files"),
    ]
    values.clear()
    table = sx.open_table(folder)
    report = table.build_indexes(
        {"a": "bitmap"}, workers=workers, progress=values.append
    )
    table = report.table
    assert parts(values).keys() == {("indexing", "files")}
    assert values[-1].total == 5
    values.clear()
    (folder / "0.parquet").unlink()
    (folder / "1.parquet").rename(folder / "9.parquet")
    table.refresh_indexes(workers=workers, progress=values.append)
    assert values[-1].total == 1
    values.clear()
    sx.open_table(folder).verify(workers=workers, progress=values.append)
    assert parts(values).keys() == {("checking", "parts")}
    values.clear()
    table.advise(progress=values.append)
    assert next(iter(parts(values))) == ("sampling", "files")


def test_rate_and_time_left() -> None:
    now = Progress("indexing", "files", 1000, 4000, 20.0)
    assert (now.rate, now.left) == (50.0, 60.0)
    assert str(now) == ("indexing: 1,000 of 4,000 files, 20 s, 50.0 files/s, 60 s left")
    nothing = Progress("indexing", "files", 0, 4000, 20.0)
    assert (nothing.rate, nothing.left) == (None, None)
    assert str(nothing) == "indexing: 0 of 4,000 files, 20 s"


def test_true_is_lines_where_there_is_no_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sx.build_indexes(folder, {"a": "bitmap"}, workers=1, progress=True)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "skipindex: indexing: 0 of 5 files, 0 s"
    assert told[-1].startswith("skipindex: indexing: 5 of 5 files, ")
    sx.build_indexes(folder, {"s": "bloom"}, workers=1, progress=False)
    assert capsys.readouterr().err == ""


def test_true_is_a_bar_in_a_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    sx.build_indexes(folder, {"a": "bitmap"}, workers=1, progress=True)
    told = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert re.search(r"indexing .*5/5 files", told)


def test_without_rich_a_terminal_gets_lines(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(shown, "find_spec", lambda _name: None)
    sx.build_indexes(folder, {"a": "bitmap"}, workers=1, progress=True)
    assert "indexing: 5 of 5 files" in capsys.readouterr().err


def test_the_log_has_lines_without_any_progress(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "skipindex")
    sx.build_indexes(folder, {"a": "bitmap"}, workers=1)
    assert len(caplog.messages) == 1, "the report alone, as it took no time"
    caplog.clear()
    monkeypatch.setattr(shown, "_LOG_SECONDS", -1)
    sx.build_indexes(folder, {"s": "bloom"}, workers=1)
    assert caplog.messages[0] == "indexing: 0 of 5 files, 0 s"
    assert len(caplog.messages) == 6 + 1
