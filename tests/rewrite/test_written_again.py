"""What is written again while a vacuum or an expiry is about to delete it stays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import CommitConflictError
from skipindex.rewrite.arrival import SaveMode
from skipindex.rewrite.expiry import expire
from skipindex.rewrite.publish import Publisher
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import listed, optimized, seen_by_both
from tests.rewrite.killing import Killed
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


def test_an_index_does_not_follow_a_file_that_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both names of a published file are one file until its hidden name is gone."""
    rows = {1: {"x": range(20), "i": [1] * 20}}
    arrived(tmp_path / "t", SaveMode.CREATE, rows=rows)
    folder = tmp_path / "t"
    before = set(listed(folder))
    optimized(folder, cluster_by=["x"], rows_per_file=40)

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_with_shown", killed)
        with pytest.raises(Killed):
            vacuum(folder, retention=timedelta(0))
    (path,) = [path for path in listed(folder) if path not in before]
    value, again = corrected(folder / path)
    with (folder / path).open("r+b") as file:  # in place: the hidden name has it too
        file.write(again)
    vacuum(folder, retention=timedelta(0))
    assert sx.open_table(folder).plan(f"x = {value}").paths == [path]


def corrected(path: Path) -> tuple[int, bytes]:
    """The file with another value of x and the same size; that value."""
    table = pq.ParquetFile(path).read()
    for value in range(30, 400):
        values = table["x"].to_pylist()
        values[10] = value
        sink = pa.BufferOutputStream()
        pq.write_table(table.set_column(0, "x", pa.array(values, "int64")), sink)
        data = sink.getvalue().to_pybytes()
        if len(data) == path.stat().st_size:
            return value, data
    raise AssertionError("no value leaves the size as it is")


def test_a_file_that_was_aside_when_a_vacuum_died_gets_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job has written it between the look of the vacuum and the rename."""
    for day in (1, 2, 3):
        put(tmp_path / f"day-{day}.parquet", {"x": [1, 2], "i": [day] * 2})
    build(tmp_path, {"x": "bitmap"})
    optimized(tmp_path, cluster_by=["x"], rows_per_file=100)
    rename, written = Path.rename, tmp_path / "day-2.parquet"

    def dying(self: Path, target: Path) -> Path:
        if self != written:
            return rename(self, target)
        put(written, {"x": [5, 6, 7], "i": [2] * 3})
        rename(self, target)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        with pytest.raises(Killed):
            vacuum(tmp_path, retention=timedelta(0))
    assert not written.exists()
    vacuum(tmp_path)
    assert pq.read_table(written)["x"].to_pylist() == [5, 6, 7]
    assert seen_by_both(tmp_path)[0] == seen_by_both(tmp_path)[1]
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".aside"]


def test_a_file_that_was_to_be_deleted_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (1, 2, 3):
        put(tmp_path / f"day-{day}.parquet", {"x": [1, 2], "i": [day] * 2})
    build(tmp_path, {"x": "bitmap"})
    optimized(tmp_path, cluster_by=["x"], rows_per_file=100)
    before = seen_by_both(tmp_path)[0]
    rename = Path.rename

    def dying(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        if self.name == "day-2.parquet":
            raise Killed
        return moved

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        with pytest.raises(Killed):
            vacuum(tmp_path, retention=timedelta(0))
    for _ in range(2):
        vacuum(tmp_path, retention=timedelta(0))
        assert seen_by_both(tmp_path) == (before, before)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".aside"]


@pytest.mark.parametrize("whose", ["the vacuum", "the writer"])
@pytest.mark.parametrize("days", [-8, 8])
def test_the_retention_goes_by_the_clock_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str, days: int
) -> None:
    """A host may be a week ahead of the store, or behind it."""
    for day in (1, 2):
        put(tmp_path / f"day-{day}.parquet", {"x": [1, 2], "i": [day] * 2})
    build(tmp_path, {"x": "bitmap"})
    real = time.time

    def of_host(name: str) -> None:
        shift = days * 86_400 if name == whose else 0
        monkeypatch.setattr(time, "time", lambda: real() + shift)

    of_host("the writer")
    optimized(tmp_path, cluster_by=["x"], rows_per_file=100)
    opened = sx.open_table(tmp_path).paths
    optimized(tmp_path, cluster_by=["i"], rows_per_file=1)
    of_host("the vacuum")
    assert vacuum(tmp_path).published == 0
    assert all((tmp_path / path).exists() for path in opened)
    assert vacuum(tmp_path, retention=timedelta(0)).published == 4
    assert not any((tmp_path / path).exists() for path in opened)


def test_a_vacuum_goes_on_where_another_ends_the_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (1, 2):
        put(tmp_path / f"day-{day}.parquet", {"x": [1, 2], "i": [day] * 2})
    build(tmp_path, {"x": "bitmap"})
    optimized(tmp_path, cluster_by=["x"], rows_per_file=100)
    left = put(tmp_path / "_skipindex/staging/killed/part.parquet", {"x": [1]})
    os.utime(left, (OLD, OLD))
    shown, faster = Publisher._with_shown, [True]

    def beaten(self: Publisher, *args: Any, **options: Any) -> Any:
        if faster and faster.pop():
            vacuum(tmp_path, retention=timedelta(0))
        return shown(self, *args, **options)

    monkeypatch.setattr(Publisher, "_with_shown", beaten)
    vacuum(tmp_path, retention=timedelta(0))
    assert not faster
    assert not left.exists()
    ours, theirs = seen_by_both(tmp_path)
    assert ours == theirs
    assert ours.total() == 4
