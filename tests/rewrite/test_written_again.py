"""What is written again while a vacuum or an expiry is about to delete it stays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import CommitConflictError
from skipindex.rewrite.expiry import expire
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.new_files import SaveMode
from skipindex.source.folder.publish import Publisher
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import Killed, killed_in, meanwhile
from tests.rewrite.seen import (
    NOW,
    check_rows,
    everything,
    listed,
    seen_alike,
    seen_by_both,
    totals,
)
from tests.tables import build, put, set_mtime

OLD = time.time() - 8 * 86_400


def sweep(folder: Path) -> None:
    vacuum(folder)


def expiry(folder: Path) -> None:
    expire(location_of(folder))


def replaced(folder: Path, n_days: int) -> Path:
    """Files of two rows, which an optimize has replaced."""
    for day in range(1, n_days + 1):
        put(folder / f"day-{day}.parquet", {"x": [1, 2], "i": [day] * 2})
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"], rows_per_file=100)
    return folder


@pytest.mark.parametrize("delete", [sweep, expiry])
def test_a_pack_that_is_built_again_is_not_deleted(
    tmp_path: Path, delete: Callable[[Path], None]
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
    with meanwhile(
        Location,
        "owns",
        lambda: build(tmp_path, {"x": "bitmap"}),
        where=lambda _, path: path.endswith(".puffin"),
    ):
        delete(tmp_path)
    plan = sx.open_table(tmp_path).plan("x = 5")
    assert (plan.paths, plan.notes) == (["a.parquet"], [])


def test_a_file_is_deleted_as_it_was_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location(str(tmp_path))
    location.write("a", b"12")
    found = location.stat("a")
    assert found is not None
    os.utime(tmp_path / "a", ns=(5, found.mtime + 1))
    assert not location.delete_own(found)
    with monkeypatch.context() as patch:  # it is looked at once more when it is aside
        patch.setattr(Location, "stat", lambda *_: found)
        assert not location.delete_own(found)
    assert everything(tmp_path) == {"a"}
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


@pytest.mark.parametrize(("call", "number"), [("move", 1), ("sync", 1), ("stat", 3)])
def test_a_staged_file_that_is_gone_is_a_conflict(
    folder: Path, call: str, number: int
) -> None:
    """As after a vacuum without retention, which is told not to run beside writers.

    A file is looked at twice when it is moved, and then at the commit.
    """
    before, calls = seen_by_both(folder), []

    def is_it(_: Location, path: Any, *__: Any) -> bool:
        if call != "stat" or ("_skipindex-" in path and (folder / path).exists()):
            calls.append(path)
        return len(calls) == number

    with (
        meanwhile(Location, call, lambda: vacuum(folder, retention=NOW), where=is_it),
        pytest.raises(CommitConflictError, match="deleted before it was commit"),
    ):
        arrived(folder, SaveMode.APPEND)
    assert seen_by_both(folder) == before


def test_an_index_does_not_follow_a_file_that_is_written_in_place(
    tmp_path: Path,
) -> None:
    """Both names of a published file are one file until its hidden name is gone."""
    folder = tmp_path / "t"
    arrived(folder, SaveMode.CREATE, rows={1: {"x": range(20), "i": [1] * 20}})
    before = set(listed(folder))
    optimized(folder, cluster_by=["x"], rows_per_file=40)
    with killed_in(Publisher, "_with_shown"):
        vacuum(folder, retention=NOW)
    (path,) = set(listed(folder)) - before
    value, again = corrected(folder / path)
    with (folder / path).open("r+b") as file:  # in place: the hidden name has it too
        file.write(again)
    vacuum(folder, retention=NOW)
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


@pytest.mark.parametrize("is_written", [True, False])
def test_a_file_that_was_aside_when_a_vacuum_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """One that another job wrote just before gets its name back, and no other does."""
    before = seen_by_both(replaced(tmp_path, 3))[0]
    rename, aside = Path.rename, tmp_path / "day-2.parquet"

    def dying(self: Path, target: Path) -> Path:
        if self != aside:
            return rename(self, target)
        if is_written:
            put(aside, {"x": [5, 6, 7], "i": [2] * 3})
        rename(self, target)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        with pytest.raises(Killed):
            vacuum(tmp_path, retention=NOW)
    assert not aside.exists()
    if is_written:
        vacuum(tmp_path)
        assert pq.read_table(aside)["x"].to_pylist() == [5, 6, 7]
        seen_alike(tmp_path)
    else:
        vacuum(tmp_path, retention=NOW)
        check_rows(tmp_path, before)
    assert not list(tmp_path.glob("*.aside"))


@pytest.mark.parametrize("whose", ["the vacuum", "the writer"])
@pytest.mark.parametrize("days", [-8, 8])
def test_the_retention_goes_by_the_clock_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str, days: int
) -> None:
    """A host may be a week ahead of the store, or behind it."""
    real = time.time

    def of_host(name: str) -> None:
        shift = days * 86_400 if name == whose else 0
        monkeypatch.setattr(time, "time", lambda: real() + shift)

    of_host("the writer")
    opened = sx.open_table(replaced(tmp_path, 2)).paths
    optimized(tmp_path, cluster_by=["i"], rows_per_file=1)
    for path in opened:  # which count from when they became trash
        set_mtime(tmp_path / path, OLD)
    of_host("the vacuum")
    assert vacuum(tmp_path).published == 0
    assert all((tmp_path / path).exists() for path in opened)
    assert vacuum(tmp_path, retention=NOW).published == 4
    assert not any((tmp_path / path).exists() for path in opened)


def test_a_vacuum_goes_on_where_another_ends_the_publication(tmp_path: Path) -> None:
    replaced(tmp_path, 2)
    left = put(tmp_path / "_skipindex/staging/killed/part.parquet", {"x": [1]})
    os.utime(left, (OLD, OLD))
    with meanwhile(Publisher, "_with_shown", lambda: vacuum(tmp_path, retention=NOW)):
        vacuum(tmp_path, retention=NOW)
    assert not left.exists()
    assert totals(tmp_path) == [4, 4]
