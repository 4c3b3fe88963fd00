"""What is written again while a vacuum or an expiry is about to delete it stays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.errors import CommitConflictError
from skipindex.rewrite.arrival import SaveMode
from skipindex.rewrite.expiry import expire
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import seen_by_both
from tests.tables import build, put

OLD = time.time() - 8 * 86_400


def sweep(folder: Path) -> None:
    vacuum(folder)


def expiry(folder: Path) -> None:
    expire(location_of(folder))


@pytest.mark.parametrize("delete", [sweep, expiry])
def test_a_pack_that_is_built_again_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delete: Callable[[Path], None]
) -> None:
    """Its name is a hash of its content, so it is that of an orphan."""
    for i, name in enumerate("ab"):
        put(tmp_path / f"{name}.parquet", {"x": [20 * i + j for j in range(20)]})
    build(tmp_path, {"x": "bitmap"})
    sx.open_table(tmp_path).drop_indexes()
    for path in (tmp_path / "_skipindex").rglob("*"):
        os.utime(path, (OLD, OLD))
    build(tmp_path, {"x": "bloom"})
    sx.open_table(tmp_path).drop_indexes()
    original, pending = Location.owns, [1]

    def owns(self: Location, path: str) -> bool:
        if path.endswith(".puffin") and pending:
            pending.pop()
            build(tmp_path, {"x": "bitmap"})
        return original(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Location, "owns", owns)
        delete(tmp_path)
    assert not pending
    plan = sx.open_table(tmp_path).plan("x = 5")
    assert (plan.paths, plan.notes) == (["a.parquet"], [])


def test_a_file_is_deleted_as_it_was_listed(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    location.write("a", b"12")
    found = location.stat("a")
    assert found is not None
    os.utime(tmp_path / "a", ns=(5, found.mtime + 1))
    assert not location.delete_own(found)
    now = location.stat("a")
    assert now is not None
    assert not location.delete_own(FileInfo("a", 3, now.mtime))
    assert location.delete_own(now)
    assert not location.delete_own(now)
    (tmp_path / "b").symlink_to(put(tmp_path / "c", {"x": [1]}))
    through = location.stat("b")
    assert through is not None
    assert not location.delete_own(through)


@pytest.mark.parametrize("fraction", [0, 123_000_000])
def test_a_store_without_tags_says_no_fractions(tmp_path: Path, fraction: int) -> None:
    location = Location(str(tmp_path))
    location.write("a", b"12")
    second = 1_700_000_000 * SECOND
    os.utime(tmp_path / "a", ns=(second, second))
    assert location.delete_own(FileInfo("a", 2, second + fraction))


@pytest.mark.parametrize("call", ["move", "sync"])
def test_a_staged_file_that_is_gone_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """As after a vacuum without retention, which is told not to run beside writers."""
    folder = tmp_path / "t"
    arrived(folder, SaveMode.CREATE)
    before = seen_by_both(folder)
    original = getattr(Location, call)

    def beside_a_vacuum(self: Location, *args: object) -> object:
        vacuum(folder, retention=timedelta(0))
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Location, call, beside_a_vacuum)
        with pytest.raises(CommitConflictError, match="deleted before it was commit"):
            arrived(folder, SaveMode.APPEND)
    assert seen_by_both(folder) == before
