"""Open files: a bounded number of them, however many packs, tables and plans there are.

Every ``ByteSource`` of this process asks here for its open file when it is read.  The
file that was read longest ago is left to its readers to make room for another one: it
is closed once no thread reads it, and opened again when it is read the next time.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

MAX_OPEN: Final = 32
"""Open files; opening one again costs some microseconds, so a few are enough."""

_NO_MORE: Final = frozenset({errno.EMFILE, errno.ENFILE})


class OpenFile(Protocol):
    """One open file, which is closed when nothing refers to it."""

    def size(self) -> int:
        """The size of the file in bytes."""

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the file ends before."""


class OpenFiles:
    """The files that are open, the one that was read last at the end.

    Safe to share by threads.  More than ``limit`` are open only while as many more are
    being read.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._files: dict[int, OpenFile] = {}
        self._gone: deque[int] = deque()

    def __len__(self) -> int:
        """How many files are held open."""
        return len(self._files)

    def file_of(self, owner: int, open_file: Callable[[], OpenFile]) -> OpenFile:
        """The file of ``owner``, open as long as the caller refers to it."""
        with self._lock:
            file = self._files.pop(owner, None)
            if file is not None:
                self._files[owner] = file
                return file
            self._make_room(self._limit - 1)
        try:
            file = open_file()
        except OSError as error:
            if error.errno not in _NO_MORE:
                raise
            self.close_idle()  # others have taken the rest
            file = open_file()
        with self._lock:  # another thread may have been faster
            self._files[owner] = file = self._files.pop(owner, file)
            self._make_room(self._limit)
        return file

    def abandon(self, owner: int) -> None:
        """``owner`` is gone.  Takes no lock: the garbage collector may call it."""
        self._gone.append(owner)

    def close_idle(self) -> None:
        """Close every file that no thread reads now."""
        with self._lock:
            self._make_room(0)

    def _make_room(self, n: int) -> None:
        """Hold ``n`` files at most, and none whose owner is gone."""
        while self._gone:
            self._files.pop(self._gone.popleft(), None)
        while len(self._files) > n:
            del self._files[next(iter(self._files))]

    def after_fork(self) -> None:
        """After a fork: the parent's lock may be held by a thread that is not here."""
        self._lock = threading.Lock()


OPEN: Final = OpenFiles(MAX_OPEN)
"""The open files of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OPEN.after_fork)
