"""Open files: a bounded number of them, however many packs, tables and plans there are.

Every ``ByteSource`` of this process borrows its file here for the time of one read.
The file that was read longest ago is closed to make room for another one, and opened
again when it is read the next time.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

MAX_OPEN: Final = 32
"""Open files; opening one again costs some microseconds, so a few are enough."""

_NO_MORE: Final = frozenset({errno.EMFILE, errno.ENFILE})


class OpenFile(Protocol):
    """One open file."""

    def size(self) -> int:
        """The size of the file in bytes."""

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the file ends before."""

    def close(self) -> None:
        """Close the file."""


@dataclass(slots=True)
class _Lent:
    """An open file, and how many threads read it now."""

    file: OpenFile
    users: int


class OpenFiles:
    """The files that are open, the one that was read last at the end.

    Safe to share by threads.  More than ``limit`` are open only while more than that
    many threads read at once.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._lent: OrderedDict[int, _Lent] = OrderedDict()
        self._gone: deque[int] = deque()

    def __len__(self) -> int:
        """How many files are open."""
        return len(self._lent)

    def borrow(self, owner: int, open_file: Callable[[], OpenFile]) -> OpenFile:
        """The file of ``owner``; to be given back after the read.

        Raises:
            OSError: it cannot be opened.
        """
        with self._lock:
            lent = self._take(owner)
            if lent is not None:
                return lent.file
            self._make_room(self._limit - 1)
        try:
            file = open_file()
        except OSError as error:
            if error.errno not in _NO_MORE:
                raise
            self.close_idle()  # others have taken the rest
            file = open_file()
        with self._lock:
            lent = self._take(owner)
            if lent is None:
                self._lent[owner] = _Lent(file, 1)
                return file
        file.close()  # another thread was faster
        return lent.file

    def give_back(self, owner: int) -> None:
        """The read is over."""
        with self._lock:
            self._lent[owner].users -= 1

    def abandon(self, owner: int) -> None:
        """``owner`` is gone.  Takes no lock: the garbage collector may call it."""
        self._gone.append(owner)

    def close_idle(self) -> None:
        """Close every file that no thread reads now."""
        with self._lock:
            self._make_room(0)

    def _take(self, owner: int) -> _Lent | None:
        lent = self._lent.get(owner)
        if lent is not None:
            lent.users += 1
            self._lent.move_to_end(owner)
        return lent

    def _make_room(self, n: int) -> None:
        """Close files until at most ``n`` are open, or all others are being read."""
        while self._gone:
            left = self._lent.pop(self._gone.popleft(), None)
            if left is not None:
                left.file.close()
        if len(self._lent) <= n:
            return
        for owner in [owner for owner, lent in self._lent.items() if not lent.users]:
            self._lent.pop(owner).file.close()
            if len(self._lent) <= n:
                return

    def after_fork(self) -> None:
        """After a fork: the parent's files are open here too, and so is its lock."""
        self._lock = threading.Lock()
        for lent in self._lent.values():
            lent.users = 0


OPEN: Final = OpenFiles(MAX_OPEN)
"""The open files of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OPEN.after_fork)
