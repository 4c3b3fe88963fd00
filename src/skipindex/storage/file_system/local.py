"""Local files and folders, which are on the disk once a call returns.

A new one is never open to more people than the folder that it is in.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs

from skipindex.errors import StorageError
from skipindex.storage.file_system.byte_source import (
    ByteSource,
    Files,
    local_source,
    read_whole,
)
from skipindex.storage.file_system.file_info import FileInfo, mark_of
from skipindex.storage.file_system.names import (
    aside_file,
    aside_name,
    temporary_name,
)
from skipindex.storage.file_system.object_store import commit_lock
from skipindex.storage.file_system.walk import NOTHING, mode_of, walk

_NO_LINKS: Final = frozenset(
    {
        errno.EPERM,
        errno.EINVAL,
        errno.ENOSYS,
        errno.ENOTSUP,
        errno.EOPNOTSUPP,
        errno.ENOTTY,
        errno.EXDEV,
    }
)
"""Errors of the system if the file system has no such call; with any other, a full disk
for example, it has one."""
_HERE: Final = -100
"""Where relative paths begin for ``renameat2``; ours are absolute."""
_LINUX_NO_REPLACE: Final = 1
_MACOS_NO_REPLACE: Final = 4
_NO_SYNC: Final = frozenset(
    {
        errno.EINVAL,
        errno.ENOTSUP,
        errno.EOPNOTSUPP,
        errno.ENOSYS,
        errno.EBADF,
        errno.EACCES,
        errno.EPERM,
    }
)
"""Errors of the system if a folder cannot be synchronised at all; with any other one,
something may not have got to the disk."""


@dataclass(frozen=True, slots=True)
class LocalFiles(Files):
    """One folder of a disk."""

    root: str

    def _full(self, path: str) -> Path:
        return Path(f"{self.root}/{path}" if path else self.root)

    def below(self, folder: str, *, links: bool) -> Iterator[FileInfo]:
        for path, there in walk(self.root, folder, links=links):
            if not stat.S_ISDIR(there.st_mode):
                yield FileInfo(path, there.st_size, mark_of(there.st_mtime_ns))

    def folders(self) -> Iterator[FileInfo]:
        for path, there in walk(self.root, "", links=False):
            if stat.S_ISDIR(there.st_mode):
                yield FileInfo(path, there.st_size, mark_of(there.st_mtime_ns))

    def entries(self, folder: str) -> Iterator[FileInfo]:
        """The files of a folder, and its folders with a slash; links count."""
        for path, there in walk(self.root, folder, links=True, deep=False):
            is_folder = stat.S_ISDIR(there.st_mode)
            name = f"{path}/" if is_folder else path
            yield FileInfo(name, there.st_size, mark_of(there.st_mtime_ns))

    def names(self, folder: str) -> Sequence[str]:
        try:
            with os.scandir(self._full(folder)) as entries:
                return [entry.name for entry in entries]
        except OSError as error:
            if error.errno in NOTHING:
                return []
            raise

    def stat(self, path: str) -> FileInfo | None:
        try:
            there = os.stat(f"{self.root}/{path}" if path else self.root)  # noqa: PTH116 (several times as fast)
        except OSError as error:
            if error.errno in NOTHING:
                return None
            raise
        if not stat.S_ISREG(there.st_mode):
            return None
        return FileInfo(path, there.st_size, mark_of(there.st_mtime_ns))

    def holds(self, full: str) -> bool:
        try:
            Path(full).stat()
        except OSError as error:
            if error.errno in NOTHING:
                return False
            raise
        return True

    def open_input(self, path: str, _: FileInfo | None = None) -> pa.NativeFile:
        return pafs.LocalFileSystem().open_input_file(str(self._full(path)))

    def view(self, path: str, _: FileInfo | None = None) -> ByteSource:
        return local_source(str(self._full(path)))

    def read(self, path: str, limit: int) -> bytes:
        return read_whole(self.view(path), path, limit)

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file that is invisible until it is whole and on the disk."""
        with written_beside(self._full(path), data) as hidden:
            hidden.replace(self._full(path))
            sync_folder(hidden.parent)

    def write_new(self, path: str, data: bytes) -> bool:
        return link_new(self._full(path), data)

    def delete(self, path: str) -> None:
        self._full(path).unlink()

    def move(self, path: str, target: str) -> None:
        make_folder(self._full(target).parent)
        self._full(path).replace(self._full(target))

    def copy(self, path: str, target: str) -> bool:
        make_folder(self._full(target).parent)
        return link_or_copy(str(self._full(path)), self._full(target))

    def delete_tree(self, folder: str) -> None:
        shutil.rmtree(self._full(folder))

    def owns(self, path: str) -> bool:
        *folders, file = self._on_the_way(path)
        for folder in folders:
            mode = mode_of(folder)
            if mode is None or not stat.S_ISDIR(mode):
                return False
        mode = mode_of(file)
        return mode is not None and stat.S_ISREG(mode)

    def is_other(self, path: str) -> bool:
        mode = mode_of(str(self._full(path)))
        return mode is not None and not stat.S_ISREG(mode)

    def link_on_the_way(self, folder: str) -> str:
        for place in self._on_the_way(folder) if folder else ():
            mode = mode_of(place)
            if mode is not None and stat.S_ISLNK(mode):
                return place.removeprefix(f"{self.root}/")
        return ""

    def _on_the_way(self, path: str) -> Iterator[str]:
        """The folders below the root that lead to a path, and the path."""
        place = self.root
        for part in path.split("/"):
            place = f"{place}/{part}"
            yield place

    def are_one(self, path: str, other: str) -> bool:
        try:
            return self._full(path).samefile(self._full(other))
        except FileNotFoundError:
            return False

    def sync(self, path: str) -> None:
        full = self._full(path)
        (sync_folder if full.is_dir() else sync_file)(full)

    def delete_seen(self, file: FileInfo) -> bool:
        return delete_aside(self._full(file.path), file)

    def settle_aside(self, path: str) -> bool:
        return self.owns(path) and settle_aside(self._full(path))

    def delete_folder(self, folder: str) -> None:
        with contextlib.suppress(OSError):
            self._full(folder).rmdir()


def temporary(folder: Path) -> Path:
    """A new hidden name in a folder."""
    return folder / temporary_name()


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, no more open than the folder that is there."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
    narrow_to(folder, folder.parent)


def narrow_to(path: Path, folder: Path) -> None:
    """Take the permissions that ``folder`` does not give from a new file or folder."""
    deny(path, ~(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU))


def deny(path: Path, denied: int) -> None:
    """Take permissions from a file or folder."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & denied:
        path.chmod(mode & ~denied)


def sync_file(path: Path) -> None:
    """Write a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, if the file system can do that."""
    try:
        sync_file(folder)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def denied_by(paths: Iterable[str]) -> int:
    """The permissions of all who may not read one of the files."""
    denied = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            mode = Path(path).stat().st_mode
            denied |= 0 if mode & stat.S_IRGRP else stat.S_IRWXG
            denied |= 0 if mode & stat.S_IROTH else stat.S_IRWXO
    return denied


@contextlib.contextmanager
def written_beside(target: Path, data: bytes | memoryview) -> Iterator[Path]:
    """A synced file in the folder of ``target``, gone again at the end."""
    make_folder(target.parent)
    hidden = temporary(target.parent)
    try:
        with hidden.open("xb") as file:
            narrow_to(hidden, target.parent)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield hidden
    finally:
        hidden.unlink(missing_ok=True)


def link_new(target: Path, data: bytes) -> bool:
    """Write a whole file, unless there is one already; False if there is.

    No reader sees it before it is whole, on any file system.
    """
    with written_beside(target, data) as hidden:
        try:
            os.link(hidden, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if not _rename_new(hidden, target):
                return False
        sync_folder(target.parent)
        return True


def _rename_new(hidden: Path, target: Path) -> bool:
    """``link_new`` where there are no hard links: exFAT, SMB, many FUSE mounts."""
    result = renamed_unless_there(hidden, target)
    if result is not None:
        return result
    lock = commit_lock()
    if lock is None:
        raise StorageError(
            f"cannot commit to {str(target)!r}: this file system has neither hard "
            "links nor a rename that replaces nothing, so a commit could replace "
            "another one (accepted: another file system, an object store, or a lock "
            "of yours: skipindex.api.set_commit_lock)"
        )
    with lock.held(str(target)):
        if _is_taken(target):
            return False
        hidden.replace(target)
    return True


def renamed_unless_there(path: Path, target: Path) -> bool | None:
    """Whether a file was renamed, as nothing had the name; None if that cannot be done.

    The system decides by one call, ``renameat2`` of Linux or ``renamex_np`` of macOS,
    which a file system that cannot do it refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(path), os.fsencode(target)
    if hasattr(libc, "renameat2"):
        failed = libc.renameat2(_HERE, names[0], _HERE, names[1], _LINUX_NO_REPLACE)
    elif hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, _MACOS_NO_REPLACE)
    else:
        return None
    if not failed:
        return True
    code = ctypes.get_errno()
    if code == errno.EEXIST:
        return False
    if code in _NO_LINKS:
        return None
    raise OSError(code, os.strerror(code), str(target))


def link_or_copy(path: str, target: Path) -> bool:
    """Make a file available at ``target`` too; False if a file is there.

    One step, where the file system has links.
    """
    try:
        os.link(path, target)
    except FileNotFoundError:
        raise
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        return _copy_new(path, target)
    return True


def _copy_new(path: str, target: Path) -> bool:
    hidden = temporary(target.parent)
    try:
        shutil.copy2(path, hidden)
        Path(path).stat()  # else others have deleted it, and perhaps its copy
        made = renamed_unless_there(hidden, target)
        if made is None:
            made = not _is_taken(target)
            if made:
                hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
    return made


def _is_taken(target: Path) -> bool:
    """Whether anything has the name; a link that leads nowhere has it too."""
    try:
        target.lstat()
    except FileNotFoundError:
        return False
    return True


def delete_aside(path: Path, file: FileInfo) -> bool:
    """Delete a file that is still ``file``; any other one stays under its name."""
    folder = path.parent / aside_name(file.size, file.mtime)
    folder.mkdir()
    try:
        path.rename(folder / path.name)
    except OSError as error:
        _remove_empty(folder)
        if isinstance(error, FileNotFoundError):
            return False
        raise
    return settle_aside(folder / path.name)


def settle_aside(aside: Path) -> bool:
    """Delete a file that was put aside, or give it its name back; whether deleted.

    Its folder says what was to be deleted, so this may be done by another process too,
    long after the one that put it aside was killed.
    """
    expected = aside_file(aside.parent.name)
    is_file = False
    try:
        there = aside.lstat()
        now = there.st_size, mark_of(there.st_mtime_ns)
        is_file = stat.S_ISREG(there.st_mode) and now == expected
    except FileNotFoundError:  # another process was faster
        return False
    finally:
        if not is_file:  # or nothing is known of it, as the system refuses
            _put_back(aside, aside.parent.parent / aside.name)
        else:
            aside.unlink(missing_ok=True)
        _remove_empty(aside.parent)
    return is_file


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _put_back(aside: Path, path: Path) -> None:
    """Give a file its name again, beside which there is one more name of it."""
    try:
        os.link(aside, path, follow_symlinks=False)
    except FileExistsError:
        pass  # and it is newer still
    except OSError:
        renamed = None
        with contextlib.suppress(OSError):
            renamed = renamed_unless_there(aside, path)
        if renamed is None and not _is_taken(path):
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                aside.rename(path)
    aside.unlink(missing_ok=True)
