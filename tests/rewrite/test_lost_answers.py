"""Writers whose answers are lost, and writers who sleep between two steps.

A file system that does what it is asked and then says that it failed, or that the name
is taken, as NFS may for ``link``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.errors import CommitConflictError, TableError
from skipindex.rewrite.expiry import expire
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.location import Location, location_of
from tests.rewrite.arriving import arrived, copied
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import answer_lost_at, meanwhile
from tests.rewrite.seen import NOW, listed, rows_of, seen_by_both, totals
from tests.tables import build

EXISTS = FileExistsError(17, "File exists")
TIMED_OUT = OSError(110, "Connection timed out")


WRITERS: dict[str, Callable[[Path], Any]] = {
    "append": lambda folder: arrived(folder, SaveMode.APPEND),
    "batch": lambda folder: arrived(folder, SaveMode.APPEND, batch=Batch("q", 1)),
    "overwrite": lambda folder: arrived(folder, SaveMode.OVERWRITE),
    "optimize": lambda folder: optimized(folder, cluster_by=["x"], rows_per_file=10),
    "build": lambda folder: build(folder, {"i": "bitmap"}),
    "vacuum": lambda folder: vacuum(folder, retention=NOW),
}


@contextmanager
def link_that_loses_its_answer(error: OSError) -> Iterator[None]:
    """The first link into the log succeeds, and says that it failed."""
    link, n = os.link, [0]

    def lossy(source: Any, target: Any, **options: Any) -> None:
        link(source, target, **options)
        if "/log/" in str(target):
            n[0] += 1
            if n[0] == 1:
                raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", lossy)
        yield
    assert n[0]


@pytest.mark.few(5)
@pytest.mark.parametrize("error", [EXISTS, TIMED_OUT])
@pytest.mark.parametrize("name", ["append", "batch", "overwrite", "optimize", "build"])
def test_a_commit_whose_answer_is_lost_is_made_once(
    folder: Path, name: str, error: OSError
) -> None:
    plain = copied(folder, folder.with_name("plain"))
    WRITERS[name](plain)
    with link_that_loses_its_answer(error), warnings.catch_warnings(action="error"):
        WRITERS[name](folder)
    assert seen_by_both(folder) == seen_by_both(plain)
    assert len(commits(folder)) == len(commits(plain))
    vacuum(folder, retention=NOW)
    vacuum(plain, retention=NOW)
    assert seen_by_both(folder) == seen_by_both(plain)


def test_a_table_is_created_by_a_commit_whose_answer_is_lost(tmp_path: Path) -> None:
    with link_that_loses_its_answer(EXISTS):
        arrived(tmp_path / "t", SaveMode.CREATE)
    assert totals(tmp_path / "t") == [6, 6]


@pytest.mark.parametrize(
    "name",
    [
        "append",
        "batch",
        *(pytest.param(name, marks=pytest.mark.slow) for name in [*WRITERS][2:]),
    ],
)
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_each_answer_may_be_lost(
    folder: Path, tmp_path: Path, name: str, stride: int
) -> None:
    """The rows are those of before or after, and after if the writer says so."""
    write = WRITERS[name]
    if name == "vacuum":
        optimized(folder, cluster_by=["x"], rows_per_file=10)
    plain = copied(folder, tmp_path / "plain")
    before = rows_of(plain, listed(plain))
    write(plain)
    wanted = seen_by_both(plain)[0]
    for step in range(0, 200, stride):
        here = copied(folder, tmp_path / str(step))
        ended = False
        with (
            answer_lost_at(step) as calls,
            warnings.catch_warnings(action="ignore"),
            suppress(OSError, CommitConflictError, TableError),
        ):
            write(here)
            ended = True
        ours = seen_by_both(here)[0]
        assert ours in ([wanted] if ended else [before, wanted]), (step, calls[step:])
        vacuum(here, retention=NOW)
        assert seen_by_both(here) == (ours, ours), step
        if len(calls) <= step:
            break
    assert step > 3


def commits(folder: Path) -> list[Path]:
    return sorted((folder / "_skipindex" / "log").glob("*.json"))


def appended(folder: Path) -> None:
    """Two appends of others."""
    for day in (4, 5):
        arrived(folder, SaveMode.APPEND, rows={day: {"x": [day], "i": [day]}})


def expired(folder: Path) -> None:
    """The same, and then nothing is left of the log but the newest commit."""
    appended(folder)
    for path in commits(folder)[:-1]:
        path.unlink()


def is_of_log(_: Location, path: str, __: bytes) -> bool:
    return "/log/" in path


@pytest.mark.parametrize("name", ["append", "build"])
def test_who_commits_under_a_number_that_was_deleted_commits_again(
    folder: Path, name: str
) -> None:
    with meanwhile(Location, "write_new", lambda: expired(folder), where=is_of_log):
        WRITERS[name](folder)
    assert totals(folder) == [40 + 2 + (6 if name == "append" else 0)] * 2
    assert sum(b'"parent"' in path.read_bytes() for path in commits(folder)) > 2


def test_a_commit_that_is_deleted_before_its_writer_looks_is_made_once(
    folder: Path,
) -> None:
    """The writer is told nothing by a log that has forgotten its commit."""
    with meanwhile(
        Location, "write_new", lambda: expired(folder), where=is_of_log, after=True
    ):
        arrived(folder, SaveMode.APPEND)
    assert totals(folder) == [48, 48]


def test_a_clock_that_is_ahead_deletes_no_history(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The age of a commit is told by the clock of the file system."""
    appended(folder)
    later = time.time() + 8 * 86400
    monkeypatch.setattr("time.time", lambda: later)
    sx.open_table(folder).declare_retention(timedelta(hours=1))
    there = commits(folder)
    assert expire(location_of(folder)) == []
    vacuum(folder)
    assert set(there) <= set(commits(folder))
