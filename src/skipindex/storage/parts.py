"""How index code sees its bytes: numbered parts, fetched on demand."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final, Protocol, cast


@dataclass(slots=True)
class ReadCount:
    """What probing cost: parts and bytes fetched, bitmaps looked at."""

    parts: int = 0
    n_bytes: int = 0
    bitmaps: int = 0

    def since(self, before: ReadCount) -> ReadCount:
        """What was read after ``before`` was taken."""
        return ReadCount(
            self.parts - before.parts,
            self.n_bytes - before.n_bytes,
            self.bitmaps - before.bitmaps,
        )

    def plus(self, other: ReadCount) -> ReadCount:
        """Both together."""
        return ReadCount(
            self.parts + other.parts,
            self.n_bytes + other.n_bytes,
            self.bitmaps + other.bitmaps,
        )


class _ThreadReads(threading.local):
    """A ``ReadCount`` of every thread, so that threads may share opened indexes."""

    parts = 0
    n_bytes = 0
    bitmaps = 0


READS: Final = cast(ReadCount, _ThreadReads())
"""What this thread has read of packs so far."""


def reads_so_far() -> ReadCount:
    """``READS`` as it is now."""
    return ReadCount(READS.parts, READS.n_bytes, READS.bitmaps)


class Parts(Protocol):
    """The payload of one index: byte strings, fetched on demand and verified.

    Raises:
        CorruptIndexError: the bytes of a part do not have their crc32c.
    """

    @property
    def count(self) -> ReadCount:
        """Where the cost of this payload's reads is added up."""

    def __len__(self) -> int:
        """The number of parts."""

    def __getitem__(self, i: int, /) -> memoryview:
        """Part ``i``."""

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1`` in one contiguous read."""
