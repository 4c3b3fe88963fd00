"""What a listing says of a file, and when two listings speak of one content.

A file that is written twice within one tick of the file system's clock has the same
modification time both times.  So a file that is read in the tick in which it was
modified may hold something else a moment later, with the same size and time.  Git calls
such entries racy (its documentation: ``technical/racy-git``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.storage.file_system.names import is_hidden_copy

SECOND: Final = 1_000_000_000
"""In nanoseconds."""
_FARTHEST: Final = 1 << 63
"""Nanoseconds from 1970 that an int64 holds."""
_PAUSES: Final = (0.004, 0.02, 0.1, 0.4, 0.8, 1.2)
"""Seconds between two looks at the clock; the sum is more than the longest tick that is
in use, two seconds on FAT."""
_AHEAD: Final = 3 * SECOND
"""A file that is modified so much later than now was given its time by hand."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a listing.

    ``path`` is relative to the folder, ``size`` in bytes, ``mtime`` in nanoseconds
    since 1970.  ``tag`` is the ETag of an object store, which another content never
    has; None where there is none.
    """

    path: str
    size: int
    mtime: int
    tag: str | None = None

    def is_same(self, other: FileInfo | None) -> bool:
        """Whether both are one file with one content.

        Where both have a tag, it must be equal, and the time to the second: a store
        says fractions of a second in a listing and not where it is asked for one
        object.  Where one has no tag, as on a disk and in the trash of a log, the size
        and the exact time must be equal.  A hidden file is known
        by its name, which is never used again, and its size: a copy of the table gives
        it another time.  That is not enough for an index: ``is_unchanged``.
        """
        if is_hidden_copy(self.path):
            sides = other and (other.path, other.size)
            return (self.path, self.size) == sides
        return self.is_unchanged(other)

    def is_unchanged(self, other: FileInfo | None) -> bool:
        """``is_same``, for a hidden file by its time or tag too: as an index asks."""
        if other is None or (self.path, self.size) != (other.path, other.size):
            return False
        if self.tag is None or other.tag is None:
            return self.mtime == other.mtime
        same_second = self.mtime // SECOND == other.mtime // SECOND
        return same_second and self.tag == other.tag


def mark_of(mtime: int) -> int:
    """A modification time as 64 bits hold it; in nanoseconds, from 1678 to 2262.

    A time beyond is another one far away, on the same side, so that two times that are
    not 146 years apart differ.

    >>> from skipindex.storage.file_system.file_info import mark_of
    >>> mark_of(1_700_000_000_000_000_000)
    1700000000000000000
    >>> mark_of(20_000_000_000_000_000_000) < 2**63
    True
    """
    if -_FARTHEST < mtime < _FARTHEST:
        return mtime
    far = _FARTHEST // 2 + abs(mtime) % (_FARTHEST // 2)
    return far if mtime > 0 else -far


class Marks(NamedTuple):
    """The identity of many files, without their paths.

    Sizes are in bytes, times in nanoseconds.  A tag is null where a file has none;
    ``tags`` is None if no file has one.
    """

    sizes: np.ndarray
    mtimes: np.ndarray
    tags: pa.StringArray | None = None

    def at(self, rows: np.ndarray) -> Marks:
        """The marks of some of the files."""
        tags = None if self.tags is None else self.tags.take(pa.array(rows))
        return Marks(self.sizes[rows], self.mtimes[rows], tags)

    @classmethod
    def of_table(cls, files: pa.Table) -> Marks:
        """The marks in the columns ``size``, ``mtime`` and ``tag``."""
        tags = files["tag"]
        return cls(
            files["size"].to_numpy(),
            files["mtime"].to_numpy(),
            None if tags.null_count == len(tags) else tags.combine_chunks(),
        )

    def are_still(self, then: Marks) -> np.ndarray:
        """File by file, whether it has now the content that was known ``then``.

        With a tag on both sides the tags must be equal, and the times to the second.
        Without any, the times must be equal.  Where one side alone has a tag the file
        counts as changed, because the times of a store may be whole seconds.
        """
        same = self.sizes == then.sizes
        if self.tags is None and then.tags is None:
            return np.asarray(same & (self.mtimes == then.mtimes))
        nothing = pa.nulls(len(self.sizes), pa.string())
        now, before = (
            nothing if one.tags is None else one.tags for one in (self, then)
        )
        same_tag = np.asarray(pc.equal(now, before).fill_null(False))
        untagged = np.asarray(pc.and_(now.is_null(), before.is_null()))
        same_second = self.mtimes // SECOND == then.mtimes // SECOND
        same &= same_tag & same_second | untagged & (self.mtimes == then.mtimes)
        return np.asarray(same)


class Clock:
    """The clock of a file system, by the times that it gives to new files.

    ``now`` writes a file and returns its time, like ``Location.past``.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._look = now
        self._now: int | None = None

    def has_passed(self, info: FileInfo) -> bool:
        """Whether every write from now on gives the file another tag or time.

        A file without a tag that was modified in the tick that it is now is waited
        for, up to some seconds.

        Raises:
            StorageError: the file system takes no file by which its time is learned.
        """
        if info.tag is not None:
            return True
        now = self._learned() if self._now is None else self._now
        for pause in _PAUSES:
            if info.mtime < now or info.mtime - now > _AHEAD:
                break
            time.sleep(pause)
            now = self._learned()
        return info.mtime < now

    def _learned(self) -> int:
        self._now = self._look()
        return self._now
