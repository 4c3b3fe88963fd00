"""A file that is created only if absent, where the file system has no hard links."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from skipindex.api import set_commit_lock
from skipindex.errors import StorageError
from skipindex.storage.file_system import local
from skipindex.storage.file_system.arrow_files import ArrowFiles
from skipindex.storage.file_system.location import FileInfo, Location
from tests.rewrite.killing import meanwhile
from tests.storage.test_commit_lock import ThreadLock

NONE = [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS]
NO_FILE = FileInfo("", 0, 0)
OTHERS = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES]


def _names(codes: list[int]) -> list[str]:
    return [errno.errorcode[code] for code in codes]


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    yield
    set_commit_lock(None)


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def failure(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def no_links(patch: pytest.MonkeyPatch, code: int = errno.EPERM) -> None:
    patch.setattr(os, "link", raising(failure(code)))


def no_renames(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(local, "renamed_unless_there", lambda *_: None)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def with_links(_: pytest.MonkeyPatch) -> None:
    """The first choice."""


def with_a_lock(patch: pytest.MonkeyPatch) -> None:
    no_links(patch)
    no_renames(patch)
    set_commit_lock(ThreadLock())


WAYS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "links": with_links,
    "renames": no_links,
    "a lock": with_a_lock,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_name_is_given_once_and_to_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Another writer looks at each call of the system that makes or names a file."""
    WAYS[way](monkeypatch)
    location = Location(str(tmp_path))
    seen = set[bytes]()

    def looking(name: str) -> None:
        original = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            found = original(*args, **named)
            seen.add(files(tmp_path).get("1.json", b"none"))
            return found

        monkeypatch.setattr(os, name, call)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", os.link)
        for name in ("open", "fsync", "link", "replace", "rename", "unlink"):
            looking(name)
        assert location.write_new("log/1.json", b"mine")
        assert not location.write_new("log/1.json", b"yours")
    assert seen <= {b"none", b"mine"}
    assert files(tmp_path) == {"1.json": b"mine"}


@pytest.mark.parametrize("code", NONE, ids=_names(NONE))
def test_a_rename_that_replaces_nothing_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    no_links(monkeypatch, code)
    location = Location(str(tmp_path))
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "0").symlink_to("nowhere")
    assert not location.write_new("log/0", b"1"), "a link has the name"
    assert location.write_new("log/1", b"1")
    assert files(tmp_path) == {"1": b"1"}


def test_without_either_a_lock_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_links(monkeypatch)
    no_renames(monkeypatch)
    location = Location(str(tmp_path))
    with pytest.raises(StorageError, match=r"neither hard links.*set_commit_lock"):
        location.write_new("log/1", b"1")
    assert files(tmp_path) == {}
    lock = ThreadLock()
    set_commit_lock(lock)
    assert location.write_new("log/1", b"1")
    assert not location.write_new("log/1", b"2")
    assert lock.names == [f"{tmp_path}/log/1"] * 2
    assert files(tmp_path) == {"1": b"1"}


@pytest.mark.parametrize("code", OTHERS, ids=_names(OTHERS))
@pytest.mark.parametrize("call", ["link", "rename"])
def test_a_full_or_failing_disk_is_no_lack_of_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, call: str
) -> None:
    class Libc:
        """A system whose rename fails."""

        def renameat2(self, *_: object) -> int:
            ctypes.set_errno(code)
            return -1

    no_links(monkeypatch, code if call == "link" else errno.EPERM)
    if call == "rename":
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc())
    set_commit_lock(OneWriter())
    location = Location(str(tmp_path))
    with pytest.raises(StorageError, match=os.strerror(code)):
        location.write_new("log/1", b"1")
    assert files(tmp_path) == {}


class OneWriter:
    """A lock that is free at all times."""

    def held(self, name: str) -> nullcontext[None]:
        return nullcontext()


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EIO, errno.EACCES])
def test_a_name_that_cannot_be_looked_at_is_not_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    taken = tmp_path / "1.json"
    taken.write_bytes(b"of another writer")
    (tmp_path / "source").write_bytes(b"mine")
    with_a_lock(monkeypatch)
    lstat = os.lstat

    def refusing(path: Any, **named: Any) -> os.stat_result:
        if str(path) == str(taken):
            raise failure(code)
        return lstat(path, **named)

    monkeypatch.setattr(os, "lstat", refusing)
    monkeypatch.setattr(Path, "lstat", refusing)
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        local.link_new(taken, b"mine")
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        local.link_or_copy(str(tmp_path / "source"), taken)
    assert files(tmp_path) == {"1.json": b"of another writer", "source": b"mine"}


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_file_that_was_put_aside_gets_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Under the name that it has aside, the next vacuum would delete it."""
    path = tmp_path / "f"
    path.write_bytes(b"of another writer")
    listed = replace(Location(str(tmp_path)).stat("f") or NO_FILE, size=1)
    no_links(monkeypatch, code)
    monkeypatch.setattr(local, "renamed_unless_there", raising(failure(code)))
    assert not local.delete_aside(path, listed)
    assert files(tmp_path) == {"f": b"of another writer"}


class Hdfs:
    """A file system of pyarrow that is no local disk, with calls of its own."""

    type_name = "hdfs"

    def __init__(self, **calls: Callable[..., Any]) -> None:
        self._files = pafs.LocalFileSystem()
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self._files, name)

    def get_file_info(self, asked: Any) -> Any:
        """As in Arrow's ``hdfs.cc``: what cannot be looked at is "not found"."""
        if "get_file_info" not in self._calls:
            return self._files.get_file_info(asked)
        if isinstance(asked, str):
            return pafs.FileInfo(asked, pafs.FileType.NotFound)
        return [] if asked.allow_not_found else self._calls["get_file_info"]()


@pytest.fixture
def on_hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def files_on(**calls: Callable[..., Any]) -> ArrowFiles:
        files = Hdfs(**calls)
        monkeypatch.setattr(ArrowFiles, "_files", property(lambda _: files))
        return ArrowFiles(f"hdfs://host{tmp_path}", str(tmp_path))

    return files_on


def copy_a_half(_: str, target: str) -> None:
    Path(target).write_bytes(b"wh")
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "dying", [{"copy_file": copy_a_half}, {"move": raising(KeyboardInterrupt())}]
)
def test_a_copy_on_hdfs_has_its_name_once_it_is_whole(
    tmp_path: Path, on_hdfs: Any, dying: dict[str, Any]
) -> None:
    (tmp_path / "source").write_bytes(b"whole")
    with pytest.raises(KeyboardInterrupt):
        on_hdfs(**dying).copy("source", "day=1/f")
    assert files(tmp_path / "day=1") == {}
    there = on_hdfs()
    assert there.copy("source", "day=1/f")
    assert not there.copy("source", "day=1/f")
    assert files(tmp_path / "day=1") == {"f": b"whole"}
    with pytest.raises(FileNotFoundError):
        there.copy("gone", "day=1/g")


def test_hdfs_needs_a_lock_for_a_file_that_is_created_only_if_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_hdfs: Any
) -> None:
    """pyarrow deletes what has the name, where HDFS refuses the rename."""
    there = on_hdfs()
    with pytest.raises(StorageError, match=r"a commit could replace .* or a lock of"):
        there.write_new("log/1", b"1")
    with_a_lock(monkeypatch)
    assert there.write_new("log/1", b"1")
    assert not there.write_new("log/1", b"2")
    assert files(tmp_path / "log") == {"1": b"1"}


def test_what_hdfs_cannot_look_at_may_be_there(tmp_path: Path, on_hdfs: Any) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "1").write_bytes(b"1")
    there = on_hdfs(get_file_info=raising(failure(errno.EIO)))
    for look in (
        lambda: there.stat("log/1"),
        lambda: there.holds(there.full("log/1")),
        lambda: there.names("log"),
        lambda: list(there.entries("log")),
        lambda: list(there.below("")),
    ):
        with pytest.raises(OSError, match=r"Input/output|cannot be looked at"):
            look()
    gone = FileNotFoundError(errno.ENOENT, "No such file or directory", "log")
    there = on_hdfs(get_file_info=raising(gone))
    with pytest.raises(OSError, match=r"No such file|is a directory"):
        list(there.below(""))  # a folder that is gone from it is no empty table
    there = on_hdfs()
    assert there.stat("log/1").size == 1
    assert there.names("log") == ["1"]
    assert [entry.path for entry in there.entries("log")] == ["log/1"]
    assert [entry.path for entry in there.entries("")] == ["log/"]
    assert there.stat("log/2") is None
    assert there.names("gone") == list(there.below("gone")) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "EIO")])
def test_a_file_that_came_while_another_was_put_aside_has_its_name_again(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    listed = Location(str(tmp_path)).stat("f") or NO_FILE
    with (
        meanwhile(Path, "rename", lambda: path.write_bytes(b"of another tool")),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(Path, "lstat", raising(error))
        with pytest.raises(type(error)):
            local.delete_aside(path, listed)
    assert files(tmp_path) == {"f": b"of another tool"}


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ESTALE, errno.EIO])
def test_a_folder_that_cannot_be_synchronised_now_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(local, "sync_file", raising(failure(code)))
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        local.sync_folder(tmp_path)
