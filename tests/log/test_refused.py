"""Damaged is what was read and fails a check; what cannot be read now is refused."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from crc32c import crc32c

from skipindex.errors import CorruptIndexError, StorageError
from skipindex.log import (
    latest_version,
    manifest,
    newest_for_writer,
    newest_snapshot,
    properties,
)
from skipindex.source import commit
from skipindex.source.folder.replacements import Replacement
from skipindex.storage import checks
from skipindex.storage.checks import RefusedError, canonical, unsealed
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import LOG, MANIFESTS, commit_path
from tests.log.pieces import saying
from tests.log.test_log import add
from tests.rewrite.killing import meanwhile

HIDDEN = f"_skipindex-{'ab' * 16}-0/part-0.parquet"
ERRORS: list[Exception] = [
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.ESTALE, "Stale file handle"),
    OSError("HDFS connection failed"),
    PermissionError(errno.EACCES, "Permission denied"),
    TimeoutError("no answer"),
    MemoryError(),
    RecursionError("maximum recursion depth exceeded"),
    pa.ArrowMemoryError("malloc of size 1 failed"),
    pa.ArrowCancelled("cancelled"),
    ValueError("of a client of some store"),
    RuntimeError("of a client of some store"),
]


@pytest.fixture
def location(tmp_path: Path) -> Location:
    location = Location(str(tmp_path))
    for name in ("f", "g"):
        commit(location, add(name), operation="test")
    return location


@contextmanager
def unreadable(is_it: Callable[[str], bool], error: Exception) -> Iterator[None]:
    """Let no file be read of whose path this is true."""
    original = Location.read

    def read(self: Location, path: str, limit: int) -> bytes:
        if is_it(path):
            raise error
        return original(self, path, limit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Location, "read", read)
        yield


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("folder", [LOG, MANIFESTS])
def test_what_cannot_be_read_now_is_not_written_over(
    location: Location, error: Exception, folder: str
) -> None:
    def is_new(path: str) -> bool:
        return path.startswith(folder) and path != commit_path(0)

    with unreadable(is_new, error):
        assert newest_snapshot(location).notes, "a reader goes on, and says so"
        with pytest.raises(StorageError, match="so nothing was changed") as told:
            commit(location, saying(), operation="test")
    assert "\n" not in str(told.value)
    assert latest_version(location) == 1


@pytest.mark.parametrize("error", [MemoryError(), RecursionError()], ids=repr)
@pytest.mark.parametrize("check", ["canonical", "check_files", "checked_packs"])
def test_what_cannot_be_checked_now_is_not_written_over(
    location: Location, monkeypatch: pytest.MonkeyPatch, error: Exception, check: str
) -> None:
    def short(*_: Any) -> None:
        raise error

    for module in (checks, manifest):
        if check in vars(module):
            monkeypatch.setattr(module, check, short)
    with pytest.raises(StorageError, match="so nothing was changed"):
        commit(location, saying(), operation="test")
    assert latest_version(location) == 1


def test_a_property_that_cannot_be_checked_now_is_not_dropped(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = {"cluster_by": ["x"]}
    commit(location, saying(layout=layout), operation="test")

    def short(_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setitem(properties._CHECKS, "layout", short)
        with pytest.raises(StorageError, match="so nothing was changed"):
            commit(location, saying(), operation="test")
    assert newest_snapshot(location).properties.layout == layout


def spoil_text(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def make_large(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(checks.MAX_COMMIT + 1)


def nest(path: Path) -> None:
    path.write_bytes(b'{"commit": ' + b"[" * 100_000)


@pytest.mark.parametrize("spoil", [Path.unlink, spoil_text, make_large, nest])
def test_what_is_damaged_is_passed_over(
    location: Location, spoil: Callable[[Path], None]
) -> None:
    spoil(Path(location.full(commit_path(1))))
    found = newest_for_writer(location)
    assert (found.version, found.refused) == (0, False)


def test_deep_nesting_is_told_from_a_deep_stack() -> None:
    """Brackets in texts are none, and 64 levels are no reason to give up."""
    deep: Any = {"text": '["\\"[['}
    for _ in range(checks._MAX_DEPTH + 1):
        deep = {"deeper": deep}
    data = json.dumps({"commit": deep, "crc32c": crc32c(canonical(deep))}).encode()
    with pytest.raises(CorruptIndexError, match="nested more than 64 deep"):
        unsealed("commit", data)

    whole = json.dumps({"commit": {"a": '[[["'}, "crc32c": 0}).encode()

    def at_the_end_of_the_stack() -> None:
        try:
            at_the_end_of_the_stack()
        except RecursionError:
            unsealed("commit", whole)

    with pytest.raises((RefusedError, RecursionError)):
        at_the_end_of_the_stack()


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("answer", [False, StorageError("no answer")], ids=repr)
def test_a_commit_that_cannot_be_read_now_is_not_taken_for_another(
    location: Location,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    answer: bool | Exception,
) -> None:
    """The answer to the create was lost, or said that the number is taken."""
    write_new = Location.write_new

    def lossy(self: Location, path: str, data: bytes) -> bool:
        assert write_new(self, path, data)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with monkeypatch.context() as patch, unreadable(commit_path(2).__eq__, error):
        patch.setattr(Location, "write_new", lossy)
        with pytest.raises(StorageError, match="cannot determine who wrote"):
            commit(location, add("h"), operation="test")
    assert latest_version(location) == 2, "it has not committed once more"
    assert newest_snapshot(location).manifest.paths == ["f", "g", "h"]


@pytest.mark.parametrize("n", [1, 40])
def test_a_number_that_another_commit_took_is_none_of_ours(
    location: Location, n: int
) -> None:
    """Whether that has fewer bytes than ours or more."""
    layout = {"cluster_by": [f"other{i}" for i in range(n)]}

    def other() -> None:
        commit(location, saying(layout=layout), operation="test")

    with meanwhile(Location, "write_new", other):
        commit(location, add("h"), operation="test")
    assert latest_version(location) == 3
    assert newest_snapshot(location).manifest.paths == ["f", "g", "h"]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_whether_a_commit_counts_is_not_guessed(
    location: Location, error: Exception
) -> None:
    """The commit after it says so, if it can be read."""

    def other() -> None:
        commit(location, add("i"), operation="test")

    with (
        meanwhile(Location, "write_new", other, after=True),
        unreadable(commit_path(3).__eq__, error),
        pytest.raises(StorageError, match="cannot determine whether"),
    ):
        commit(location, add("h"), operation="test")
    assert latest_version(location) == 3
    assert newest_snapshot(location).manifest.paths == ["f", "g", "h", "i"]


@pytest.mark.parametrize("fraction", [0, 123_000_000])
def test_a_listing_that_says_fractions_of_a_second_is_no_copy(fraction: int) -> None:
    """A store says none where it is asked for one object."""
    hidden = FileInfo(HIDDEN, 9, 1_700_000_100 * SECOND, "h")
    old = FileInfo("f", 5, 1_700_000_000 * SECOND, "a")
    one = Replacement((old,), (hidden,), 1.0)
    again = FileInfo("f", 5, 1_700_000_050 * SECOND, "b")
    there = {HIDDEN: replace(hidden, mtime=hidden.mtime + fraction), "f": again}
    assert one.left(there) == []
    # A real copy has other seconds, and then the size tells.
    there[HIDDEN] = replace(hidden, mtime=hidden.mtime + 5 * SECOND)
    assert one.left(there) == [again]
