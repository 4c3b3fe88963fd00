"""Reading the rows of each value, which are packed into parts of about 16 KB.

A value's *entry* is the shorter of its rows as such (``postings``: ascending, in 2
bytes, 3 or 4 in files of more than 2**16 or 2**24 rows) and a portable roaring bitmap.
So a value of one row costs 2 to 4 bytes, one of half the file or in long runs a few
bytes a container.  Entries follow one another in the order of their codes and are not
split; an entry of more than 16 KB is a part of its own.  A part::

    u8    form: bits 0-1, log2 of the bytes of a number in the table
                bit 2, one number stands for all entries
                bit 3, the rows are one zstd frame: the first, then each less the one
                before, modulo 2**16 where they have 2 bytes, else 2**32
                bit 4, an entry is a bitmap
    table for every entry its number of rows; with bit 4, its end in bytes << 1, and
          1 if it is a bitmap
    ..    the entries
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError
from skipindex.indexes.encoding.chunks import decompressed
from skipindex.indexes.encoding.header import Cursor, ascend
from skipindex.indexes.encoding.roaring import load
from skipindex.storage.bitmaps import bitmap_of, memory_of
from skipindex.storage.parts import Parts

UNIFORM: Final = 4
GAPS: Final = 8
MIXED: Final = 16
_MAX_RAW: Final = 1 << 26
"""Bytes of the gaps of a frame before compression."""
_LARGE: Final = 1 << 10
"""Bytes from which a bitmap takes longer to read than to look up."""

Rows: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


def row_bytes(n_rows: int) -> int:
    """The bytes of a row in the postings of a file."""
    return 2 if n_rows <= 1 << 16 else 3 if n_rows <= 1 << 24 else 4


def write_rows(rows: Rows, width: int) -> bytes:
    """The rows as postings of ``width`` bytes each."""
    if width == 3:
        return rows.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return rows.astype(f"<u{width}").tobytes()


def read_rows(raw: memoryview, width: int) -> Rows:
    """The rows of postings of ``width`` bytes each."""
    if width != 3:
        return np.frombuffer(raw, f"<u{width}")
    wide = np.zeros((len(raw) // 3, 4), np.uint8)
    wide[:, :3] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
    return wide.view("<u4").reshape(-1)


@dataclass(frozen=True, slots=True)
class Entries:
    """The rows of the codes of one part, as a reader finds them.

    Args:
        form: of the part.
        table: ends of entries, in rows or (with bit 4) in bytes << 1 and a flag; the
            number of rows if all are alike.
        data: the entries.
        width: the bytes of a row in postings.
        large: the bitmaps of many bytes, by entry, which are read once.
        n_bytes: about what all of it takes in memory.
    """

    form: int
    table: npt.NDArray[Any]
    data: memoryview
    width: int
    large: Mapping[int, FrozenBitMap]
    n_bytes: int

    def take(
        self, start: int, stop: int
    ) -> tuple[list[memoryview], list[AbstractBitMap]]:
        """Bytes of postings, and the bitmaps, of the entries ``start .. stop - 1``.

        Raises:
            CorruptIndexError: the part does not have them.
        """
        lists: list[memoryview] = []
        bitmaps: list[AbstractBitMap] = []
        if not self.form & MIXED:
            at, end = self._rows_before(start), self._rows_before(stop)
            at, end = at * self.width, end * self.width
            lists.append(self.data[at:end])
        else:
            at = end = int(self.table[start - 1]) >> 1 if start else 0
            for i, number in enumerate(self.table[start:stop].tolist(), start):
                end = number >> 1
                if not number & 1:
                    lists.append(self.data[at:end])
                elif i in self.large:
                    bitmaps.append(self.large[i])
                else:
                    bitmaps.append(load(self.data[at:end]))
                at = end
        if end > len(self.data):
            raise CorruptIndexError(
                f"a part has {len(self.data)} bytes of entries, and its table says "
                f"at least {end}"
            )
        return lists, bitmaps

    def _rows_before(self, entry: int) -> int:
        if self.form & UNIFORM:
            return int(self.table[0]) * entry
        return int(self.table[entry - 1]) if entry else 0


def read_entries(raw: memoryview, n: int, width: int) -> Entries:
    """The ``n`` entries of a part, whose postings have rows of ``width`` bytes.

    Raises:
        CorruptIndexError: the part does not have them.
    """
    form = raw[0] if len(raw) else 0xFF
    size, n_numbers = 1 << (form & 3), 1 if form & UNIFORM else n
    head = 1 + size * n_numbers
    if form >> 5 or size > 4 or len(raw) < head:
        raise CorruptIndexError(f"a part of {len(raw)} bytes has no {n} entries")
    table: npt.NDArray[Any] = np.frombuffer(raw, f"<u{size}", n_numbers, 1)
    if not form & (MIXED | UNIFORM):
        table = np.add.accumulate(table, dtype=np.int64)
    data = raw[head:]
    if form & GAPS:
        data = _without_gaps(data, width)
    packed = dict(_large_bitmaps(table, data)) if form & MIXED else {}
    large = {entry: bitmap_of(one) for entry, one in packed.items()}
    n_bytes = len(data) + table.nbytes + sum(map(memory_of, packed.values()))
    return Entries(form, table, data, width, large, n_bytes)


def _large_bitmaps(
    table: npt.NDArray[Any], data: memoryview
) -> Iterator[tuple[int, memoryview]]:
    """The bytes of the bitmaps that have many, and their entries."""
    ends = table.astype(np.int64) >> 1
    begins = np.append(0, ends[:-1])
    is_large = (table & 1 == 1) & (ends - begins >= _LARGE)
    for i in np.flatnonzero(is_large).tolist():
        yield i, data[begins[i] : ends[i]]


@dataclass(frozen=True, slots=True)
class EntryParts:
    """Where the entries of all codes are in a payload.

    ``firsts`` has the first code of every part, ``at`` is the first part of entries,
    and ``width`` the bytes of a row in postings.
    """

    firsts: Sequence[int]
    n_codes: int
    at: int
    width: int

    @classmethod
    def open(cls, cursor: Cursor, *, n_codes: int, at: int, n_rows: int) -> EntryParts:
        """Read u32 number of parts and u32 first code of each.

        Raises:
            CorruptIndexError: these cannot be the parts of ``n_codes`` codes.
        """
        (n_parts,) = cursor.numbers("I", 1)
        firsts = cursor.numbers("I", n_parts)
        if (
            not ascend((*firsts, n_codes))
            or any(firsts[:1])
            or (n_codes and not n_parts)
        ):
            raise CorruptIndexError("the parts of entries are out of order")
        return cls(firsts, n_codes, at, row_bytes(n_rows))

    def __len__(self) -> int:
        return len(self.firsts)

    def one(self, parts: Parts, code: int) -> tuple[Entries, int]:
        """The entries that have that of ``code``, and its place; perhaps cached."""
        i = self._part_of(code)
        return self._cached(parts, i), code - self.firsts[i]

    def among(
        self, parts: Parts, intervals: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[Entries, int, int]]:
        """Entries of the codes of ascending intervals, and which of them these are.

        No part is read twice, and those of an interval are read together.
        """
        read: dict[int, Entries] = {}
        for start, stop in intervals:
            first, last = self._part_of(start), self._part_of(stop - 1)
            new = first + (first in read)
            if new == last:
                read[new] = self._cached(parts, new)
            elif new < last:
                raw = parts.read(self.at + new, self.at + last + 1)
                for i, part in enumerate(raw, new):
                    read[i] = read_entries(part, self._size_of(i), self.width)
            for i in range(first, last + 1):
                begin = self.firsts[i]
                end = begin + self._size_of(i)
                yield read[i], max(start, begin) - begin, min(stop, end) - begin

    def _cached(self, parts: Parts, i: int) -> Entries:
        """The entries of part ``i``, perhaps cached."""

        def decode(raw: memoryview) -> Entries:
            return read_entries(raw, self._size_of(i), self.width)

        return parts.decoded(self.at + i, decode)

    def _part_of(self, code: int) -> int:
        return bisect_right(self.firsts, code) - 1

    def _size_of(self, i: int) -> int:
        """How many codes part ``i`` has."""
        end = self.firsts[i + 1] if i + 1 < len(self.firsts) else self.n_codes
        return end - self.firsts[i]


def _without_gaps(frame: memoryview, width: int) -> memoryview:
    dtype = np.dtype("<u2" if width == 2 else "<u4")
    gaps = np.frombuffer(decompressed(frame, _MAX_RAW), dtype)
    rows = np.cumsum(gaps, dtype=dtype)
    return memoryview(write_rows(rows, width))
