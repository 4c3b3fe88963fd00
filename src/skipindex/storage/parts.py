"""How index code sees its bytes: numbered parts, fetched on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class ReadCount:
    """What probing cost: parts and bytes fetched, bitmaps looked at."""

    parts: int = 0
    n_bytes: int = 0
    bitmaps: int = 0


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
