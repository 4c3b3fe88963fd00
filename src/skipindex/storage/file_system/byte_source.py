"""What every file system offers, and files as sources of byte ranges."""

from __future__ import annotations

import errno
import itertools
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import pyarrow as pa

from skipindex.storage.file_system.descriptors import OPEN, OpenFile
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.walk import open_regular

_OWNERS = itertools.count()


class ByteSource(Protocol):
    """Random access to the bytes of one immutable file."""

    def __len__(self) -> int:
        """The size of the file."""

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the file ends before."""


class Files(Protocol):
    """A folder on some file system; paths are relative to it.

    Errors are those of the system.  What has a body here is of systems without links,
    permissions and folders of their own.
    """

    def list(self, folder: str = "", /) -> Iterator[FileInfo]:
        """All files below ``folder``, in no order; links to data are followed."""
        return self.below(folder, links=True)

    def below(self, folder: str, *, links: bool) -> Iterator[FileInfo]:
        """All files below a folder; those behind links too, or not."""

    def folders(self) -> Iterator[FileInfo]:
        """All folders, none through a link."""

    def entries(self, folder: str, /) -> Iterator[FileInfo]:
        """The files of a folder, and its folders, whose paths end with a slash."""

    def names(self, folder: str, /) -> Sequence[str]:
        """The names of all entries of a folder."""

    def stat(self, path: str, /) -> FileInfo | None:
        """The file as it is now, or None if there is none."""

    def holds(self, full: str) -> bool:
        """Whether anything is at a path of the file system."""

    def open_input(self, path: str, known: FileInfo | None = None, /) -> pa.NativeFile:
        """The file, for random access.

        If ``known`` has a tag, every read is of that content, or an error.
        """

    def view(self, path: str, known: FileInfo | None = None, /) -> ByteSource:
        """The file as a source of byte ranges; ``known`` as for ``open_input``."""

    def read(self, path: str, limit: int) -> bytes:
        """The whole file."""

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file; one that is there is replaced."""

    def write_new(self, path: str, data: bytes, /) -> bool:
        """Write a file unless there is one already; False if there is.

        Atomic, and the file is on the disk afterwards; no reader sees it before it is
        whole.  An object store decides by one conditional request.
        """

    def delete(self, path: str, /) -> None:
        """Delete a file; a location takes one that is gone for deleted."""

    def move(self, path: str, target: str, /) -> None:
        """Give a file another name, and make the folder of it."""

    def copy(self, path: str, target: str, /) -> bool:
        """Make a file available at another path too; False if one is there.

        A local file system links it in one step, so it takes no space and has the same
        modification time; an object store copies it, and replaces what is there.
        """

    def delete_tree(self, folder: str, /) -> None:
        """Delete a folder with all that is in it."""

    def owns(self, path: str, /) -> bool:
        """Whether a file is there, in this very folder and not through a link."""
        return self.stat(path) is not None

    def is_other(self, path: str, /) -> bool:  # noqa: ARG002
        """Whether something else than a file is there, such as a folder or a link."""
        return False

    def link_on_the_way(self, folder: str, /) -> str:  # noqa: ARG002
        """The first part of a folder's path that is a link; empty if none is."""
        return ""

    def are_one(self, path: str, other: str) -> bool:  # noqa: ARG002
        """Whether two paths are names of one file."""
        return False

    def sync(self, path: str) -> None:  # noqa: ARG002
        """Write a file or a folder to the disk."""
        return

    def delete_seen(self, file: FileInfo) -> bool:
        """Delete a file that was just seen; whether it was deleted."""
        self.delete(file.path)
        return True

    def settle_aside(self, path: str, /) -> bool:  # noqa: ARG002
        """End what ``delete_seen`` began before its process was killed.

        Whether the file was deleted; otherwise it has its name again, unless a newer
        one has that.
        """
        return False

    def delete_folder(self, folder: str, /) -> None:  # noqa: ARG002
        """Delete a folder, if it is empty; an object store has no such folders."""
        return


def read_whole(source: ByteSource, path: str, limit: int) -> bytes:
    """All bytes of a file."""
    size = len(source)
    if size > limit:
        raise too_large(path, size, limit)
    data = bytes(source.read(0, size))
    if len(data) < size:
        raise too_short(path, len(data), size)
    return data


def too_large(path: str, size: int, limit: int) -> OSError:
    """The error where a file has more bytes than are read."""
    return OSError(errno.EFBIG, f"it has {size} bytes (at most {limit})", path)


def too_short(path: str, n_bytes: int, expected: int) -> OSError:
    """The error where a file system gives fewer bytes than there are.

    That says nothing of the file: a disk gives what stands before a bad sector.
    """
    return OSError(errno.EIO, f"{n_bytes} of {expected} bytes were read", path)


class _FileBytes:
    """A file that is open while it is read, and for a while after that."""

    def __init__(self, open_file: Callable[[], OpenFile]) -> None:
        self._open_file = open_file
        self._owner = next(_OWNERS)
        weakref.finalize(self, OPEN.abandon, self._owner)
        OPEN.file_of(self._owner, open_file)

    def __len__(self) -> int:
        return OPEN.file_of(self._owner, self._open_file).size()

    def read(self, offset: int, length: int) -> memoryview:
        return OPEN.file_of(self._owner, self._open_file).read(offset, length)


class _LocalFile:
    """An open file, not mapped into memory.

    Where a mapped file is cut off, reading what is gone kills the process.
    """

    def __init__(self, path: str) -> None:
        self._path, self._file = path, -1
        self._file = open_regular(path)

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def size(self) -> int:
        return os.fstat(self._file).st_size

    def read(self, offset: int, length: int) -> memoryview:
        data = os.pread(self._file, length, offset)
        if len(data) == length:
            return memoryview(data)
        # The system may give less than there is, for example before a bad sector.
        pieces, n_bytes = [data], len(data)
        while data and n_bytes < length:
            data = os.pread(self._file, length - n_bytes, offset + n_bytes)
            pieces.append(data)
            n_bytes += len(data)
        expected = max(0, min(length, self.size() - offset))
        if n_bytes < expected:
            raise too_short(self._path, n_bytes, expected)
        return memoryview(b"".join(pieces))


class _RemoteFile:
    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._size: int = source.size()

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> memoryview:
        length = max(0, min(length, self._size - offset))
        data = memoryview(self._source.read_at(length, offset) if length else b"")
        if len(data) < length:
            raise too_short("a remote file", len(data), length)
        return data


def local_source(path: str) -> ByteSource:
    """A file of the operating system."""
    return _FileBytes(partial(_LocalFile, path))


def remote_source(open_input: Callable[[], pa.NativeFile]) -> ByteSource:
    """A file that pyarrow opens."""
    return _FileBytes(lambda: _RemoteFile(open_input()))
