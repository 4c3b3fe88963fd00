"""What a listing says of a file, and when two listings speak of one content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SECOND: Final = 1_000_000_000
"""In nanoseconds."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a listing.

    Args:
        path: relative to the folder.
        size: in bytes.
        mtime: when it was modified, in nanoseconds since 1970.
        tag: the ETag of an object store, which another content never has; None where
            there is none.
    """

    path: str
    size: int
    mtime: int
    tag: str | None = None

    def is_same(self, other: FileInfo | None) -> bool:
        """Whether both are one file with one content.

        Where both have a tag, it must be equal, and the time to the second: a store
        says fractions of a second in a listing and not where it is asked for one
        object.  Where one has no tag, because an earlier version of this library has
        recorded it, the size and the exact time must be equal.
        """
        if other is None or (self.path, self.size) != (other.path, other.size):
            return False
        if self.tag is None or other.tag is None:
            return self.mtime == other.mtime
        same_second = self.mtime // SECOND == other.mtime // SECOND
        return same_second and self.tag == other.tag
