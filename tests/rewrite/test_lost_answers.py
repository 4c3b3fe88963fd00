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
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from skipindex.errors import CommitConflictError, TableError
from skipindex.log import Snapshot, commit
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.arrival import SaveMode
from skipindex.rewrite.expiry import expire
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.location import Location, location_of
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import listed, optimized, rows_of, seen_by_both
from tests.rewrite.killing import answer_lost_at
from tests.rewrite.test_killed import fill
from tests.tables import build

NOW = timedelta(0)
EXISTS = FileExistsError(17, "File exists")
TIMED_OUT = OSError(110, "Connection timed out")


def table(folder: Path) -> Path:
    fill(folder, 1)
    build(folder, {"x": "bitmap"})
    return folder


WRITERS: dict[str, Callable[[Path], Any]] = {
    "append": lambda folder: arrived(folder, SaveMode.APPEND),
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


@pytest.mark.parametrize("error", [EXISTS, TIMED_OUT])
@pytest.mark.parametrize("name", ["append", "overwrite", "optimize", "build"])
def test_a_commit_whose_answer_is_lost_is_made_once(
    tmp_path: Path, name: str, error: OSError
) -> None:
    plain, lossy = table(tmp_path / "plain"), table(tmp_path / "lossy")
    WRITERS[name](plain)
    with (
        link_that_loses_its_answer(error),
        warnings.catch_warnings(action="error"),
    ):
        WRITERS[name](lossy)
    wanted = seen_by_both(plain)
    assert seen_by_both(lossy) == wanted
    assert len(commits(lossy)) == len(commits(plain))
    vacuum(lossy, retention=NOW)
    vacuum(plain, retention=NOW)
    assert seen_by_both(lossy) == seen_by_both(plain)


def test_a_table_is_created_by_a_commit_whose_answer_is_lost(tmp_path: Path) -> None:
    with link_that_loses_its_answer(EXISTS):
        arrived(tmp_path / "t", SaveMode.CREATE)
    assert [rows.total() for rows in seen_by_both(tmp_path / "t")] == [6, 6]


@pytest.mark.parametrize(
    "name",
    [
        "append",
        pytest.param("overwrite", marks=pytest.mark.slow),
        pytest.param("optimize", marks=pytest.mark.slow),
        pytest.param("build", marks=pytest.mark.slow),
        pytest.param("vacuum", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_each_answer_may_be_lost(tmp_path: Path, name: str, stride: int) -> None:
    """The rows are those of before or after, and after if the writer says so."""
    write = WRITERS[name]
    plain = begun(tmp_path / "plain", name)
    before = rows_of(plain, listed(plain))
    write(plain)
    wanted = seen_by_both(plain)[0]
    for step in range(0, 200, stride):
        folder = begun(tmp_path / str(step), name)
        ended = False
        with (
            answer_lost_at(step) as calls,
            warnings.catch_warnings(action="ignore"),
            suppress(OSError, CommitConflictError, TableError),
        ):
            write(folder)
            ended = True
        ours = seen_by_both(folder)[0]
        assert ours in ([wanted] if ended else [before, wanted]), (step, calls[step:])
        vacuum(folder, retention=NOW)
        assert seen_by_both(folder) == (ours, ours), step
        if len(calls) <= step:
            break
    assert step > 3


def begun(folder: Path, name: str) -> Path:
    table(folder)
    if name == "vacuum":
        optimized(folder, cluster_by=["x"], rows_per_file=10)
    return folder


def commits(folder: Path) -> list[Path]:
    return sorted((folder / "_skipindex" / "log").glob("*.json"))


@contextmanager
def asleep_before_its_commit(meanwhile: Callable[[], Any]) -> Iterator[None]:
    """Others work while the first commit is about to be created."""
    write_new, n = Location.write_new, [0]

    def sleepy(self: Location, path: str, data: bytes) -> bool:
        if "/log/" in path:
            n[0] += 1
            if n[0] == 1:
                meanwhile()
        return write_new(self, path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Location, "write_new", sleepy)
        yield
    assert n[0]


def expired(folder: Path, *, blank: bool = False) -> None:
    """Two appends of others, and then nothing is left of the log but the newest."""
    for day in (4, 5):
        arrived(folder, SaveMode.APPEND, rows={day: {"x": [day], "i": [day]}})
    *old, _ = commits(folder)
    for path in old:
        if not blank:
            path.unlink()


@pytest.mark.parametrize("name", ["append", "build"])
def test_who_commits_under_a_number_that_was_deleted_commits_again(
    tmp_path: Path, name: str
) -> None:
    folder = table(tmp_path)
    before = rows_of(folder, listed(folder)).total()
    with asleep_before_its_commit(lambda: expired(folder)):
        WRITERS[name](folder)
    more = 6 if name == "append" else 0
    assert [n.total() for n in seen_by_both(folder)] == [before + 2 + more] * 2
    assert sum(b'"parent"' in path.read_bytes() for path in commits(folder)) > 2


def test_a_commit_that_is_deleted_before_its_writer_looks_is_made_once(
    tmp_path: Path,
) -> None:
    """The writer is told nothing by a log that has forgotten its commit."""
    folder = table(tmp_path)
    before = rows_of(folder, listed(folder)).total()
    write_new, n = Location.write_new, [0]

    def sleepy(self: Location, path: str, data: bytes) -> bool:
        made = write_new(self, path, data)
        if "/log/" in path:
            n[0] += 1
            if n[0] == 1:
                expired(folder)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Location, "write_new", sleepy)
        arrived(folder, SaveMode.APPEND)
    assert [n.total() for n in seen_by_both(folder)] == [before + 8] * 2


def test_a_clock_that_is_ahead_deletes_no_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The age of a commit is told by the clock of the file system."""
    folder = table(tmp_path)
    expired(folder, blank=True)
    later = time.time() + 8 * 86400
    monkeypatch.setattr("time.time", lambda: later)
    location = location_of(folder)

    def brief(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest, replace(base.properties, retention={"seconds": 3600.0})

    commit(location, brief, operation="test")
    there = commits(folder)
    assert expire(location) == []
    vacuum(folder)
    assert set(there) <= set(commits(folder))
