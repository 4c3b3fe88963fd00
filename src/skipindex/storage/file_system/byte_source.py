"""Files as sources of byte ranges."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable
from functools import partial
from typing import Protocol

import pyarrow as pa

from skipindex.storage.file_system.descriptors import OPEN, OpenFile
from skipindex.storage.file_system.walk import open_regular

_OWNERS = itertools.count()


class ByteSource(Protocol):
    """Random access to the bytes of one immutable file."""

    def __len__(self) -> int:
        """The size of the file."""

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the file ends before."""


class _FileBytes:
    """A file that is open while it is read, and for a while after that.

    Args:
        open_file: opens it.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, open_file: Callable[[], OpenFile]) -> None:
        self._open_file = open_file
        self._owner = next(_OWNERS)
        weakref.finalize(self, OPEN.abandon, self._owner)
        OPEN.borrow(self._owner, open_file)
        OPEN.give_back(self._owner)

    def __len__(self) -> int:
        file = OPEN.borrow(self._owner, self._open_file)
        try:
            return file.size()
        finally:
            OPEN.give_back(self._owner)

    def read(self, offset: int, length: int) -> memoryview:
        file = OPEN.borrow(self._owner, self._open_file)
        try:
            return file.read(offset, length)
        finally:
            OPEN.give_back(self._owner)


class _LocalFile:
    """An open file, not mapped into memory.

    Where a mapped file is cut off, reading what is gone kills the process.
    """

    def __init__(self, path: str) -> None:
        self._file = open_regular(path)

    def size(self) -> int:
        return os.fstat(self._file).st_size

    def read(self, offset: int, length: int) -> memoryview:
        return memoryview(os.pread(self._file, length, offset))

    def close(self) -> None:
        os.close(self._file)


class _RemoteFile:
    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._size: int = source.size()

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> memoryview:
        length = max(0, min(length, self._size - offset))
        return memoryview(self._source.read_at(length, offset) if length else b"")

    def close(self) -> None:
        self._source.close()


def local_source(path: str) -> ByteSource:
    """A file of the operating system.

    Raises:
        OSError: there is none, or it is no regular file.
    """
    return _FileBytes(partial(_LocalFile, path))


def remote_source(open_input: Callable[[], pa.NativeFile]) -> ByteSource:
    """A file that pyarrow opens.

    Raises:
        OSError: it cannot be opened.
    """
    return _FileBytes(lambda: _RemoteFile(open_input()))
