"""Local files and folders, which are on the disk once a call returns.

A new one is never open to more people than the folder that it is in.
"""

from __future__ import annotations

import contextlib
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

from skipindex.storage.file_system.byte_source import (
    ByteSource,
    local_source,
    read_whole,
)
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.names import temporary_name
from skipindex.storage.file_system.walk import walk

_NOTHING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors of the system if there is no such file or folder."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """One folder of a disk.

    Args:
        root: the folder.
    """

    root: str

    def _full(self, path: str) -> Path:
        return Path(f"{self.root}/{path}" if path else self.root)

    def below(self, folder: str, *, links: bool) -> Iterator[FileInfo]:
        """All files below a folder."""
        for path, there in walk(self.root, folder, links=links):
            if not stat.S_ISDIR(there.st_mode):
                yield FileInfo(path, there.st_size, there.st_mtime_ns)

    def folders(self) -> Iterator[FileInfo]:
        """All folders, none through a link."""
        for path, there in walk(self.root, "", links=False):
            if stat.S_ISDIR(there.st_mode):
                yield FileInfo(path, there.st_size, there.st_mtime_ns)

    def names(self, folder: str) -> Sequence[str]:
        """The names of all entries of a folder."""
        try:
            with os.scandir(self._full(folder)) as entries:
                return [entry.name for entry in entries]
        except OSError as error:
            if error.errno in _NOTHING:
                return []
            raise

    def stat(self, path: str) -> FileInfo | None:
        """The file as it is now, or None if there is none."""
        try:
            there = self._full(path).stat()
        except OSError as error:
            if error.errno in _NOTHING:
                return None
            raise
        if not stat.S_ISREG(there.st_mode):
            return None
        return FileInfo(path, there.st_size, there.st_mtime_ns)

    def holds(self, full: str) -> bool:
        """Whether a file or a folder is at a path of the disk."""
        return Path(full).exists()

    def open_input(self, path: str, _: FileInfo | None = None) -> pa.NativeFile:
        """The file, for random access."""
        return pafs.LocalFileSystem().open_input_file(str(self._full(path)))

    def view(self, path: str) -> ByteSource:
        """The file as a source of byte ranges."""
        return local_source(str(self._full(path)))

    def read(self, path: str, limit: int) -> bytes:
        """The whole file."""
        return read_whole(self.view(path), path, limit)

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file that is invisible until it is whole and on the disk."""
        with written_beside(self._full(path), data) as hidden:
            hidden.replace(self._full(path))
            sync_folder(hidden.parent)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already; False if there is."""
        return link_new(self._full(path), data)

    def delete(self, path: str) -> None:
        """Delete a file."""
        self._full(path).unlink()

    def move(self, path: str, target: str) -> None:
        """Give a file another name."""
        make_folder(self._full(target).parent)
        self._full(path).replace(self._full(target))

    def copy(self, path: str, target: str) -> None:
        """Make a file available at another path too."""
        make_folder(self._full(target).parent)
        link_or_copy(str(self._full(path)), self._full(target))

    def delete_tree(self, folder: str) -> None:
        """Delete a folder with all that is in it."""
        shutil.rmtree(self._full(folder))


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
    with contextlib.suppress(OSError):
        sync_file(folder)


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
    """Write a whole file, unless there is one already; False if there is."""
    with written_beside(target, data) as hidden:
        try:
            try:
                os.link(hidden, target)
            except FileExistsError:
                raise
            except OSError:  # no hard links: exFAT, SMB, many FUSE mounts
                with target.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                shutil.copymode(hidden, target)
        except FileExistsError:
            return False
        sync_folder(target.parent)
        return True


def link_or_copy(path: str, target: Path) -> None:
    """Make a file available at ``target`` too; a file there is replaced."""
    hidden = temporary(target.parent)
    try:
        try:
            os.link(path, hidden)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without links
            shutil.copy2(path, hidden)
        hidden.replace(target)
    finally:
        # Where both names are links to one file, replacing does nothing.
        hidden.unlink(missing_ok=True)
