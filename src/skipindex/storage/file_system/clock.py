"""Whether a file can still be overwritten without a trace.

A file that is written twice within one tick of the file system's clock has the same
modification time both times.  So a file that is read in the tick in which it was
modified may hold something else a moment later, with the same size and time.  Git calls
such entries racy (its documentation: ``technical/racy-git``).
"""

from __future__ import annotations

import time
from typing import Final

from skipindex.storage.file_system.file_info import SECOND, FileInfo
from skipindex.storage.file_system.location import Location

_PAUSES: Final = (0.004, 0.02, 0.1, 0.4, 0.8, 1.2)
"""Seconds between two looks at the clock; the sum is more than the longest tick that is
in use, two seconds on FAT."""
_AHEAD: Final = 3 * SECOND
"""A file that is modified so much later than now was given its time by hand."""


class Clock:
    """The clock of a table's file system, by the times that it gives to new files.

    Args:
        location: of the table.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._now: int | None = None

    def has_passed(self, found: FileInfo) -> bool:
        """Whether every write from now on gives the file another tag or time.

        A file without a tag that was modified in the tick that it is now is waited
        for, up to some seconds.

        Raises:
            StorageError: the file system takes no file by which its time is learned.
        """
        if found.tag is not None:
            return True
        now = self._learned() if self._now is None else self._now
        for pause in _PAUSES:
            if found.mtime < now or found.mtime - now > _AHEAD:
                break
            time.sleep(pause)
            now = self._learned()
        return found.mtime < now

    def _learned(self) -> int:
        self._now = self._location.now()
        return self._now
