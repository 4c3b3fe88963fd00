"""The payload of an index: numbered parts, fetched on demand."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, cast

from pyroaring import FrozenBitMap

from skipindex.errors import CorruptIndexError
from skipindex.storage.bitmaps import bitmap_of


@dataclass(slots=True)
class ReadCount:
    """What probes used: parts, their bytes, and bitmaps.

    The same probe counts the same whether or not its parts are cached, but for those
    that another one is decoded with; ``cached_bytes`` are those of ``n_bytes`` that
    came from a cache.
    """

    parts: int = 0
    n_bytes: int = 0
    bitmaps: int = 0
    cached_bytes: int = 0

    def since(self, before: ReadCount) -> ReadCount:
        """What was read after ``before`` was taken."""
        return ReadCount(*map(operator.sub, _counts(self), _counts(before)))

    def plus(self, other: ReadCount) -> ReadCount:
        """Both together."""
        return ReadCount(*map(operator.add, _counts(self), _counts(other)))


_counts: Final = operator.attrgetter("parts", "n_bytes", "bitmaps", "cached_bytes")


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
    return ReadCount(*_counts(READS))


def add_reads(count: ReadCount) -> None:
    """Count what another thread has read for this one."""
    for name in ReadCount.__slots__:
        setattr(READS, name, getattr(READS, name) + getattr(count, name))


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Do not count what the block reads, as it is counted before or after."""
    before = _counts(READS)
    try:
        yield
    finally:
        for name, n in zip(ReadCount.__slots__, before, strict=True):
            setattr(READS, name, n)


class Decoded(Protocol):
    """What a kind makes of the bytes of a part; it is never changed."""

    @property
    def n_bytes(self) -> int:
        """About what it takes in memory."""


D = TypeVar("D", bound=Decoded)


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

    def places(self, start: int, stop: int) -> Hashable:
        """Where parts ``start .. stop - 1`` are; parts at equal places are equal."""

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1`` in at most one contiguous read."""

    def bitmap(self, i: int) -> FrozenBitMap:
        """Part ``i`` as a bitmap, which is shared and immutable."""

    def bitmaps(self, start: int, stop: int) -> list[FrozenBitMap]:
        """The parts of ``read`` as bitmaps, which are shared and immutable."""

    def decoded(self, i: int, decode: Callable[[memoryview], D]) -> D:
        """What ``decode`` makes of part ``i``, perhaps from a cache.

        All callers must decode the same part in the same way.
        """


class MemoryParts:
    """The parts of a payload in memory, which are not checked; reads are counted."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.count = ReadCount()
        self._parts = [memoryview(part) for part in parts]

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, i: int, /) -> memoryview:
        return self.read(i, i + 1)[0]

    def places(self, start: int, stop: int) -> Hashable:
        """The payload itself, and which of its parts."""
        return id(self), start, stop

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1``."""
        if not 0 <= start <= stop <= len(self._parts):
            raise CorruptIndexError(f"no part {stop - 1} (there are {len(self)})")
        result = self._parts[start:stop]
        self.count.parts += len(result)
        self.count.n_bytes += sum(map(len, result))
        return result

    def bitmap(self, i: int) -> FrozenBitMap:
        """Part ``i`` as a bitmap."""
        return bitmap_of(self[i])

    def bitmaps(self, start: int, stop: int) -> list[FrozenBitMap]:
        """Parts ``start .. stop - 1`` as bitmaps."""
        return list(map(bitmap_of, self.read(start, stop)))

    def decoded(self, i: int, decode: Callable[[memoryview], D]) -> D:
        """What ``decode`` makes of part ``i``."""
        return decode(self[i])
