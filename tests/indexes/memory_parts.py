"""A payload in memory: what an index reads in production from a pack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crc32c import crc32c
from pyroaring import FrozenBitMap

from skipindex.errors import CorruptIndexError
from skipindex.indexes import Index, IndexSpec, ReadCount, index_type
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.storage.parts import D, bitmap_of


class MemoryParts:
    """Parts that count their reads, and check a crc32c if they were given them."""

    def __init__(
        self, parts: Sequence[bytes], crcs: Sequence[int] | None = None
    ) -> None:
        self.count = ReadCount()
        self._parts = parts
        self._crcs = crcs

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, i: int, /) -> memoryview:
        return self.read(i, i + 1)[0]

    def read(self, start: int, stop: int) -> list[memoryview]:
        assert 0 <= start < stop <= len(self._parts)
        self.count.parts += stop - start
        for i in range(start, stop):
            self.count.n_bytes += len(self._parts[i])
            if self._crcs is not None and crc32c(self._parts[i]) != self._crcs[i]:
                raise CorruptIndexError(f"part {i} does not have its crc32c")
        return [memoryview(part) for part in self._parts[start:stop]]

    def bitmaps(self, start: int, stop: int) -> list[FrozenBitMap]:
        return list(map(bitmap_of, self.read(start, stop)))

    def decoded(self, i: int, decode: Callable[[memoryview], D]) -> D:
        return decode(self[i])


def opened(spec: IndexSpec, column: EncodedColumn) -> tuple[Index, ReadCount]:
    """The index of ``column``, and the count of what it reads from now on."""
    parts = MemoryParts(spec.build(column))
    index = index_type(spec.kind).open(parts, column.domain, column.n_rows)
    parts.count = ReadCount()
    return index, parts.count
