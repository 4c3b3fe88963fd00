"""Other tools between two steps of a writer, and logs that cannot be read whole.

Every row that was committed counts once, or a reader says that it cannot tell.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipindex.api import open_table
from skipindex.errors import CommitConflictError, StorageError, TableError
from skipindex.log import latest_version
from skipindex.log.replacements import Replacement
from skipindex.rewrite.arrival import SaveMode
from skipindex.rewrite.publish import Publisher
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.checks import sealed, unsealed
from skipindex.storage.file_system.local import LocalFiles
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import MANIFESTS, commit_path
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import listed, optimized, rows_of, seen_by_both
from tests.rewrite.killing import Killed
from tests.rewrite.test_killed import fill
from tests.tables import build, kept, newest_commit

NOW = timedelta(0)
DAY = 86_400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two days with 20 rows each, and an index."""
    fill(tmp_path / "t", 1)
    build(tmp_path / "t", {"x": "bitmap"})
    return tmp_path / "t"


def n_rows(folder: Path) -> int:
    return rows_of(folder, open_table(folder).paths).total()


def totals(folder: Path) -> list[int]:
    return [rows.total() for rows in seen_by_both(folder)]


def killed(*_: Any) -> None:
    raise Killed


def overwrite_killed(folder: Path, at: str = "copy") -> None:
    """Overwrite with 6 rows, and die after the commit."""
    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(Location, at, killed)
        patch.setattr("skipindex.rewrite.arrival._withdraw", lambda *_, **__: None)
        arrived(folder, SaveMode.OVERWRITE)


def age(files: Any, seconds: float) -> None:
    then = time.time() - seconds
    for path in files:
        os.utime(path, (then, then))


def purge(folder: Path) -> None:
    vacuum(folder, purge=True)


def days_pass(folder: Path) -> None:
    vacuum(folder, retention=NOW)
    age(folder.rglob("_skipindex-*/*"), 8 * DAY)
    vacuum(folder)


@pytest.mark.parametrize("step", ["_link_file", "_with_shown", "_delete_old"])
@pytest.mark.parametrize("meanwhile", [purge, days_pass])
def test_a_vacuum_that_sleeps_hides_no_row_and_brings_none_back(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Path], None],
    step: str,
) -> None:
    """Before it links, before its commit, and before it deletes."""
    optimized(folder, cluster_by=["x"], rows_per_file=10)
    original = getattr(Publisher, step)

    def late(self: Publisher, *given: Any) -> Any:
        monkeypatch.undo()
        meanwhile(folder)
        return original(self, *given)

    monkeypatch.setattr(Publisher, step, late)
    with suppress(CommitConflictError):
        vacuum(folder, retention=NOW)
    assert totals(folder) == [40, 40]
    vacuum(folder, retention=NOW)
    assert totals(folder) == [40, 40]


def compact(folder: Path, day: int) -> None:
    """What another tool does with the visible files of a partition."""
    paths = [path for path in listed(folder) if path.startswith(f"day={day}/")]
    rows = pa.concat_tables(pq.ParquetFile(folder / path).read() for path in paths)
    pq.write_table(rows, folder / f"day={day}" / "compacted.parquet")
    for path in paths:
        (folder / path).unlink()


@pytest.mark.parametrize("before", ["move", "sync"])
def test_rows_of_an_append_count_once_if_they_are_compacted_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Another tool rewrites the first file when the second is not visible yet."""
    step, calls = getattr(Location, before), []

    def compacted(self: Location, *given: Any) -> Any:
        if "_skipindex" not in str(given[-1]):
            calls.append(before)
            if len(calls) == (2 if before == "move" else 1):
                compact(folder, 2)
        return step(self, *given)

    monkeypatch.setattr(Location, before, compacted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrived(folder, SaveMode.APPEND)
    monkeypatch.undo()
    assert calls
    assert (folder / "day=2" / "compacted.parquet").exists()
    assert totals(folder) == [46, 46]
    vacuum(folder, retention=NOW)
    assert totals(folder) == [46, 46]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_commit_without_its_segments_says_which_rows_count(
    folder: Path, is_told: bool
) -> None:
    if is_told:
        full = OSError(errno.ENOSPC, "No space left on device")

        def refuse(*_: Any) -> None:
            raise full

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Location, "copy", refuse)
            with pytest.warns(match="committed to"):
                arrived(folder, SaveMode.OVERWRITE)
    else:
        overwrite_killed(folder)
    for path in (folder / MANIFESTS).glob("*.arrow"):
        path.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert n_rows(folder) == 6
        assert kept(folder, "x = -1")  # as no index is left
        arrived(folder, SaveMode.APPEND)
        assert n_rows(folder) == 12
        vacuum(folder, retention=NOW)
    assert totals(folder) == [12, 12]


ERRORS = [
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.EMFILE, "Too many open files"),
    MemoryError(),
]


def refusing(name: str, end: str, error: BaseException) -> pytest.MonkeyPatch:
    """Let a call of the file system fail for paths that end so."""
    step, patch = getattr(LocalFiles, name), pytest.MonkeyPatch()

    def refuse(self: LocalFiles, path: str, *given: Any) -> Any:
        if path.endswith(end):
            raise error
        return step(self, path, *given)

    patch.setattr(LocalFiles, name, refuse)
    return patch


@pytest.mark.filterwarnings("ignore:commit . of the table cannot be read now")
@pytest.mark.parametrize("what", ["commit", "log"])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_reader_who_cannot_read_the_log_counts_no_fewer_rows(
    folder: Path, what: str, error: BaseException
) -> None:
    overwrite_killed(folder)
    name, end = ("names", "/log") if what == "log" else ("read", newest(folder))
    patch = refusing(name, end, error)
    try:
        with pytest.raises((StorageError, MemoryError)) as told:
            n_rows(folder)
    finally:
        patch.undo()
    assert "damaged" not in str(told.value)
    assert n_rows(folder) == 6


@pytest.mark.filterwarnings("ignore:commit . of the table cannot be read now")
@pytest.mark.parametrize("what", ["commit", "log"])
def test_where_no_row_is_hidden_a_log_that_cannot_be_read_costs_indexes_alone(
    folder: Path, what: str
) -> None:
    arrived(folder, SaveMode.APPEND)
    name, end = ("names", "/log") if what == "log" else ("read", newest(folder))
    patch = refusing(name, end, ERRORS[0])
    try:
        assert n_rows(folder) == 46
    finally:
        patch.undo()


def newest(folder: Path) -> str:
    return commit_path(latest_version(location_of(folder)))


@pytest.mark.parametrize("change", [{"format": 3}, {"needs": ["something"]}])
def test_rows_that_a_newer_library_appends_are_not_left_out(
    folder: Path, change: dict[str, Any]
) -> None:
    overwrite_killed(folder)
    path = newest_commit(folder)
    path.write_bytes(sealed("commit", unsealed("commit", path.read_bytes()) | change))
    with pytest.raises(StorageError, match="it cannot be told which files count"):
        n_rows(folder)


def test_a_data_file_that_is_a_link_is_not_overwritten(
    folder: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "archive.parquet"
    pq.write_table(pa.table({"x": [1], "i": [1]}), archive)
    (folder / "day=1" / "z.parquet").symlink_to(archive)
    before = totals(folder)
    with pytest.raises(TableError, match=r"z\.parquet' is a link"):
        arrived(folder, SaveMode.OVERWRITE)
    assert totals(folder) == before


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EINVAL])
@pytest.mark.parametrize("times", [1, 1000])
def test_a_commit_that_is_listed_and_not_found_is_not_committed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int, times: int
) -> None:
    """So it is for a while where names are remembered, as by NFS."""
    overwrite_killed(folder)
    end, left, read = newest(folder), [times], LocalFiles.read

    def late(self: LocalFiles, path: str, limit: int) -> bytes:
        if path.endswith(end) and left[0]:
            left[0] -= 1
            raise OSError(code, os.strerror(code))
        return read(self, path, limit)

    monkeypatch.setattr(LocalFiles, "read", late)
    if times == 1:
        arrived(folder, SaveMode.APPEND)
    else:
        with pytest.raises(StorageError, match="so nothing was changed"):
            arrived(folder, SaveMode.APPEND)
    monkeypatch.undo()
    assert n_rows(folder) == (12 if times == 1 else 6)


def test_an_overwrite_whose_log_is_deleted_is_no_success(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = Publisher.finish

    def deleted(self: Publisher, overwrite: Replacement) -> None:
        shutil.rmtree(folder / "_skipindex")
        finish(self, overwrite)

    monkeypatch.setattr(Publisher, "finish", deleted)
    with pytest.raises(TableError, match="does not name them; nothing was added"):
        arrived(folder, SaveMode.OVERWRITE)
    monkeypatch.undo()
    assert totals(folder) == [40, 40]
    arrived(folder, SaveMode.OVERWRITE)
    assert totals(folder) == [6, 6]


def test_an_index_stays_behind_a_file_that_is_written_again_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tool replaces the visible file before it is looked at."""
    move, written = Location.move, []

    def replaced(self: Location, path: str, target: str) -> None:
        move(self, path, target)
        if "_skipindex" in target:
            return
        rows = pq.ParquetFile(folder / target).read()
        other = pa.table({"x": plus(rows["x"], 100), "i": rows["i"]})
        pq.write_table(other, folder / "other")
        assert (folder / "other").stat().st_size == (folder / target).stat().st_size
        (folder / "other").replace(folder / target)
        written.append(target)

    monkeypatch.setattr(Location, "move", replaced)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrived(folder, SaveMode.APPEND)
    monkeypatch.undo()
    assert kept(folder, "x = 103") == sorted(written)


def plus(values: pa.ChunkedArray, number: int) -> list[int]:
    return [value + number for value in values.to_pylist()]


def test_a_table_whose_creation_was_withdrawn_can_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("skipindex.rewrite.arrival.commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        arrived(tmp_path / "t", SaveMode.CREATE)
    monkeypatch.undo()
    arrived(tmp_path / "t", SaveMode.CREATE)
    assert totals(tmp_path / "t") == [6, 6]


def test_an_append_that_is_published_is_not_withdrawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have rewritten its files by then."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("skipindex.rewrite.arrival._expire", interrupted)
    with pytest.raises(KeyboardInterrupt):
        arrived(folder, SaveMode.APPEND)
    assert totals(folder) == [46, 46]
