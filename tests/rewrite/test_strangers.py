"""Other tools between two steps of a writer, and logs that cannot be read whole.

Every row that was committed counts once, or a reader says that it cannot tell.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipindex.api import open_table
from skipindex.errors import CommitConflictError, StorageError, TableError
from skipindex.log import commits, latest_version
from skipindex.rewrite import arrival
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder import new_files
from skipindex.source.folder.new_files import SaveMode
from skipindex.source.folder.publish import Publisher
from skipindex.storage.checks import sealed, unsealed
from skipindex.storage.file_system.local import LocalFiles
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import MANIFESTS, commit_path
from tests.rewrite.arriving import arrived, copied, overwrite_killed
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import killed_in, meanwhile
from tests.rewrite.seen import (
    NOW,
    check_rows,
    check_total,
    listed,
    rows_of,
    seen_by_both,
    totals,
)
from tests.tables import kept, newest_commit, set_mtime


def n_rows(folder: Path) -> int:
    return rows_of(folder, open_table(folder).paths).total()


def purge(folder: Path) -> None:
    vacuum(folder, purge=True)


def days_pass(folder: Path) -> None:
    vacuum(folder, retention=NOW)
    for path in folder.rglob("_skipindex-*/*"):
        set_mtime(path, time.time() - 8 * 86_400)
    vacuum(folder)


@pytest.mark.few(3)
@pytest.mark.parametrize("step", ["_link_file", "_with_shown", "_delete_old"])
@pytest.mark.parametrize("others", [purge, days_pass])
def test_a_vacuum_that_sleeps_hides_no_row_and_brings_none_back(
    folder: Path, others: Callable[[Path], None], step: str
) -> None:
    """Before it links, before its commit, and before it deletes."""
    optimized(folder, cluster_by=["x"], rows_per_file=10)
    before = rows_of(folder, listed(folder))
    with (
        meanwhile(Publisher, step, lambda: others(folder)),
        suppress(CommitConflictError),
    ):
        vacuum(folder, retention=NOW)
    check_rows(folder, before)


def compact(folder: Path, day: int) -> None:
    """What another tool does with the visible files of a partition."""
    paths = [path for path in listed(folder) if path.startswith(f"day={day}/")]
    rows = pa.concat_tables(pq.ParquetFile(folder / path).read() for path in paths)
    pq.write_table(rows, folder / f"day={day}" / "compacted.parquet")
    for path in paths:
        (folder / path).unlink()


@pytest.mark.parametrize("step", ["move", "sync"])
def test_rows_of_an_append_count_once_if_they_are_compacted_at_once(
    folder: Path, step: str
) -> None:
    """Another tool rewrites the first file when the second is not visible yet."""

    def is_last(_: Location, *given: Any) -> bool:
        return "_skipindex" not in (text := str(given[-1])) and (
            step == "sync" or "day=3" in text
        )

    with (
        meanwhile(Location, step, lambda: compact(folder, 2), where=is_last),
        warnings.catch_warnings(action="ignore"),
    ):
        arrived(folder, SaveMode.APPEND)
    assert (folder / "day=2" / "compacted.parquet").exists()
    check_total(folder, 46)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_commit_without_its_segments_says_which_rows_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if is_told:
        with monkeypatch.context() as patch:
            patch.setattr(Location, "copy", refuse)
            with pytest.warns(match="committed to"):
                arrived(folder, SaveMode.OVERWRITE)
    else:
        overwrite_killed(folder)
    for path in (folder / MANIFESTS).glob("*.arrow"):
        path.unlink()
    with warnings.catch_warnings(action="ignore"):
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


@contextmanager
def unreadable(
    folder: Path, what: str, error: BaseException, times: int = 1000
) -> Iterator[None]:
    """Let the log, or its newest commit, not be read: always, or so many times."""
    name, end = ("names", "/log") if what == "log" else ("read", newest(folder))
    step, left = getattr(LocalFiles, name), [times]

    def refuse(self: LocalFiles, path: str, *given: Any) -> Any:
        if path.endswith(end) and left[0]:
            left[0] -= 1
            raise error
        return step(self, path, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalFiles, name, refuse)
        yield


@pytest.mark.filterwarnings("ignore:commit . of the table cannot be read now")
@pytest.mark.parametrize("what", ["commit", "log"])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_reader_who_cannot_read_the_log_counts_no_fewer_rows(
    folder: Path, what: str, error: BaseException
) -> None:
    overwrite_killed(folder)
    with (
        unreadable(folder, what, error),
        pytest.raises((StorageError, MemoryError)) as told,
    ):
        n_rows(folder)
    assert "damaged" not in str(told.value)
    assert n_rows(folder) == 6


@pytest.mark.filterwarnings("ignore:commit . of the table cannot be read now")
@pytest.mark.parametrize("what", ["commit", "log"])
def test_where_no_row_is_hidden_a_log_that_cannot_be_read_costs_indexes_alone(
    folder: Path, what: str
) -> None:
    arrived(folder, SaveMode.APPEND)
    with unreadable(folder, what, ERRORS[0]):
        assert n_rows(folder) == 46


def newest(folder: Path) -> str:
    return commit_path(latest_version(location_of(folder)))


@pytest.mark.parametrize("change", [{"format": 3}, {"needs": ["something"]}])
def test_rows_that_a_newer_library_appends_are_not_left_out(
    folder: Path, change: dict[str, Any]
) -> None:
    overwrite_killed(folder)
    path = newest_commit(folder)
    path.write_bytes(sealed("commit", unsealed("commit", path.read_bytes()) | change))
    with pytest.raises(StorageError, match="it is unknown which files count"):
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
def test_a_commit_that_is_listed_and_not_found_is_not_committed_over(
    folder: Path, code: int
) -> None:
    """So it is for a while where names are remembered, as by NFS."""
    overwrite_killed(folder)
    error = OSError(code, os.strerror(code))
    with (
        unreadable(folder, "commit", error),
        pytest.raises(StorageError, match="so nothing was changed"),
    ):
        arrived(folder, SaveMode.APPEND)
    assert n_rows(folder) == 6
    with unreadable(folder, "commit", error, times=1):
        arrived(folder, SaveMode.APPEND)
    assert n_rows(folder) == 12


def test_an_overwrite_whose_log_is_deleted_is_no_success(folder: Path) -> None:
    with (
        meanwhile(Publisher, "finish", lambda: shutil.rmtree(folder / "_skipindex")),
        pytest.raises(TableError, match="does not name them; nothing was added"),
    ):
        arrived(folder, SaveMode.OVERWRITE)
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
        later = pa.array([x + 100 for x in rows["x"].to_pylist()])
        pq.write_table(rows.set_column(0, "x", later), folder / "other")
        assert (folder / "other").stat().st_size == (folder / target).stat().st_size
        (folder / "other").replace(folder / target)
        written.append(target)

    monkeypatch.setattr(Location, "move", replaced)
    with warnings.catch_warnings(action="ignore"):
        arrived(folder, SaveMode.APPEND)
    assert kept(folder, "x = 103") == sorted(written)


def test_a_table_whose_creation_was_withdrawn_can_be_created(tmp_path: Path) -> None:
    with killed_in(new_files, "commit"):
        arrived(tmp_path / "t", SaveMode.CREATE)
    arrived(tmp_path / "t", SaveMode.CREATE)
    assert totals(tmp_path / "t") == [6, 6]


def test_an_append_that_is_published_is_not_withdrawn(folder: Path) -> None:
    """Others may have rewritten its files by then."""
    with killed_in(arrival, "_expire"):
        arrived(folder, SaveMode.APPEND)
    assert totals(folder) == [46, 46]


# Writers who fail after their commit: their rows stay, or go, and no others do


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


@pytest.mark.few(3)
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
        killed_in(new_files, "commit"),
    ):
        arrived(folder, SaveMode.APPEND)
    assert not list((folder / "day=3").glob("part-*-0.parquet"))


def test_a_file_that_is_gone_before_it_is_visible_is_an_error(folder: Path) -> None:
    with (
        meanwhile(
            Location,
            "copy",
            lambda: next(folder.glob("day=2/_skipindex-*/*.hidden")).unlink(),
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
    sweep = new_files._sweep_marks

    def sweeping(location: Location) -> None:
        later.parent.mkdir()
        later.write_bytes(b"")
        with meanwhile(new_files, "delete_files", lambda: later.write_bytes(full)):
            sweep(location)

    monkeypatch.setattr(new_files, "_sweep_marks", sweeping)
    arrived(folder, SaveMode.OVERWRITE)
    assert later.exists()
