"""Writers who fail after their commit: their rows stay, or go, and no others do."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skipindex.errors import StorageError
from skipindex.log import commits
from skipindex.rewrite import arrival
from skipindex.rewrite.arrival import SaveMode
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.checks import sealed
from skipindex.storage.file_system.location import Location
from tests.rewrite.arriving import arrived, copied
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import killed_in, meanwhile
from tests.rewrite.seen import NOW, listed, rows_of, seen_by_both, totals
from tests.tables import newest_commit

EIO = OSError(5, "Input/output error")


def a_vacuum(folder: Path) -> None:
    vacuum(folder, retention=NOW)


def an_optimize(folder: Path) -> None:
    vacuum(folder, retention=NOW)
    optimized(folder, cluster_by=["x"], mode="full", rows_per_file=10)


def both(folder: Path) -> None:
    an_optimize(folder)
    vacuum(folder, retention=NOW)


def a_newer_library(folder: Path) -> None:
    """Its commit is the one after that of the writer."""
    vacuum(folder, retention=NOW)
    newest = newest_commit(folder)
    body = json.loads(newest.read_bytes())["commit"]
    newest.write_bytes(sealed("commit", {**body, "format": 99}))


def damage(folder: Path) -> None:
    vacuum(folder, retention=NOW)
    newest = newest_commit(folder)
    newest.write_bytes(newest.read_bytes()[:-9])


@pytest.mark.few(6)
@pytest.mark.parametrize("error", [EIO, KeyboardInterrupt()], ids=["EIO", "Ctrl-C"])
@pytest.mark.parametrize(
    "others", [a_vacuum, an_optimize, both, a_newer_library, damage]
)
@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
def test_a_writer_whose_commit_raises_deletes_no_rows_of_others(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: SaveMode,
    others: Callable[[Path], None],
    error: BaseException,
) -> None:
    """Others have gone on from the commit when its writer is told nothing of it."""
    whole = copied(folder, folder.with_name("whole"))
    before = rows_of(whole, listed(whole))
    arrived(whole, mode)
    after = rows_of(whole, listed(whole))

    def lost(*_: Any) -> bool:
        monkeypatch.undo()
        others(folder)
        raise error

    monkeypatch.setattr(commits, "_counts", lost)
    with warnings.catch_warnings(action="ignore"), pytest.raises(type(error)):
        arrived(folder, mode)
    now = rows_of(folder, listed(folder))
    assert now in ([after] if mode is SaveMode.OVERWRITE else [before, after])
    if others is not a_newer_library:
        with warnings.catch_warnings(action="ignore"):
            assert seen_by_both(folder)[0] == now
            vacuum(folder, retention=NOW)
            assert seen_by_both(folder) == (now, now)


def test_what_cannot_be_deleted_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = Location.delete

    def refusing(location: Location, path: str) -> None:
        if path.startswith("day=2/part-"):
            raise StorageError("EIO")
        delete(location, path)

    monkeypatch.setattr(Location, "delete", refusing)
    with (
        pytest.warns(UserWarning, match="1 files of rows that were not added"),
        killed_in(arrival, "commit"),
    ):
        arrived(folder, SaveMode.APPEND)
    assert not list((folder / "day=3").glob("part-*-0.parquet"))


def test_a_file_that_is_gone_before_it_is_visible_is_an_error(folder: Path) -> None:
    with (
        meanwhile(
            Location,
            "copy",
            lambda: next(folder.glob("day=2/_skipindex-*/*.parquet")).unlink(),
        ),
        pytest.raises(Exception, match="were deleted while they were written"),
    ):
        arrived(folder, SaveMode.OVERWRITE)
    assert totals(folder) == [3, 3]


def test_what_came_since_an_overwrite_looked_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was empty when it was listed, and is full a moment later."""
    later = folder / "day=9" / "f.parquet"
    full = next((folder / "day=1").glob("*.parquet")).read_bytes()
    sweep = arrival._sweep_marks

    def sweeping(location: Location) -> None:
        later.parent.mkdir()
        later.write_bytes(b"")
        with meanwhile(arrival, "delete_files", lambda: later.write_bytes(full)):
            sweep(location)

    monkeypatch.setattr(arrival, "_sweep_marks", sweeping)
    arrived(folder, SaveMode.OVERWRITE)
    assert later.exists()
