"""How index code sees its bytes: numbered parts, fetched on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, cast

from pyroaring import AbstractBitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError


@dataclass(slots=True)
class ReadCount:
    """What probing used: parts and their bytes, and bitmaps that were looked at.

    The same question counts the same, whether or not its parts are in memory:
    ``cached_bytes`` says how many of ``n_bytes`` were, and so cost no reading.
    """

    parts: int = 0
    n_bytes: int = 0
    bitmaps: int = 0
    cached_bytes: int = 0

    def since(self, before: ReadCount) -> ReadCount:
        """What was read after ``before`` was taken."""
        return ReadCount(
            self.parts - before.parts,
            self.n_bytes - before.n_bytes,
            self.bitmaps - before.bitmaps,
            self.cached_bytes - before.cached_bytes,
        )

    def plus(self, other: ReadCount) -> ReadCount:
        """Both together."""
        return ReadCount(
            self.parts + other.parts,
            self.n_bytes + other.n_bytes,
            self.bitmaps + other.bitmaps,
            self.cached_bytes + other.cached_bytes,
        )


class _ThreadReads(threading.local):
    """A ``ReadCount`` of every thread, so that threads may share opened indexes."""

    parts = 0
    n_bytes = 0
    bitmaps = 0
    cached_bytes = 0


READS: Final = cast(ReadCount, _ThreadReads())
"""What this thread has read of packs so far."""


def reads_so_far() -> ReadCount:
    """``READS`` as it is now."""
    return ReadCount(READS.parts, READS.n_bytes, READS.bitmaps, READS.cached_bytes)


def add_reads(count: ReadCount) -> None:
    """Count what another process has read for this thread."""
    READS.parts += count.parts
    READS.n_bytes += count.n_bytes
    READS.bitmaps += count.bitmaps
    READS.cached_bytes += count.cached_bytes


class Decoded(Protocol):
    """What a kind makes of the bytes of a part; nobody changes it."""

    @property
    def n_bytes(self) -> int:
        """About what it takes in memory."""


D = TypeVar("D", bound=Decoded)
B = TypeVar("B", bound=AbstractBitMap)


class Parts(Protocol):
    """The payload of one index: byte strings, fetched on demand and verified.

    Raises:
        CorruptIndexError: the bytes of a part do not have their crc32c, or are those
            of no bitmap where one is asked for.
    """

    @property
    def count(self) -> ReadCount:
        """Where the cost of this payload's reads is added up."""

    def __len__(self) -> int:
        """The number of parts."""

    def __getitem__(self, i: int, /) -> memoryview:
        """Part ``i``."""

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1`` in at most one contiguous read."""

    def bitmaps(self, start: int, stop: int) -> list[FrozenBitMap]:
        """The same as bitmaps, which all who ask share, and nobody can change."""

    def decoded(self, i: int, decode: Callable[[memoryview], D]) -> D:
        """What ``decode`` makes of part ``i``, now or when it was asked for before.

        Whoever asks for a part in this way makes the same of it.
        """


def bitmap_of(raw: bytes | memoryview) -> FrozenBitMap:
    """As ``deserialized``, a bitmap that nobody can change."""
    return deserialized(FrozenBitMap, raw)


def deserialized(kind: type[B], raw: bytes | memoryview) -> B:
    """The bitmap whose portable bytes these are.

    Raises:
        CorruptIndexError: they are those of no bitmap.
    """
    try:
        return kind.deserialize(cast(bytes, raw))
    except (ValueError, IndexError) as error:
        raise CorruptIndexError(
            f"{len(raw)} bytes are no roaring bitmap ({error})"
        ) from error
