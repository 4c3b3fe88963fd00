"""A payload in memory: what an index reads in production from a pack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crc32c import crc32c

from skipindex.errors import CorruptIndexError
from skipindex.indexes import IndexSpec, ReadCount, index_type
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.storage.parts import MemoryParts


class CheckedParts(MemoryParts):
    """Parts with a crc32c for each, as a pack has them."""

    def __init__(self, parts: Sequence[bytes], crcs: Sequence[int]) -> None:
        super().__init__(parts)
        self._crcs = crcs

    def read(self, start: int, stop: int) -> list[memoryview]:
        found = super().read(start, stop)
        for i, part in enumerate(found, start):
            if crc32c(part) != self._crcs[i]:
                raise CorruptIndexError(f"part {i} does not have its crc32c")
        return found


def opened(spec: IndexSpec, column: EncodedColumn) -> tuple[Any, ReadCount]:
    """The index of ``column``, and the count of what it reads from now on."""
    parts = MemoryParts(spec.build(column))
    index = index_type(spec.kind).open(parts, column.domain, column.n_rows)
    parts.count = ReadCount()
    return index, parts.count
