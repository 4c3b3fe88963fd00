"""Reading the rows of each value, which are packed into parts of about 16 KB.

A value's *entry* is the shorter of its rows as such (``postings``: ascending, in 2
bytes, 3 or 4 in files of more than 2**16 or 2**24 rows) and a bitmap (``bitmaps``).
So a value of one row costs 2 to 4 bytes, one of half the file or in long runs a few
bytes a container.  Entries follow one another in the order of their codes and are not
split; an entry of more than 16 KB is a part of its own.  A part::

    u8    form: bits 0-1, log2 of the bytes of a number in the table
                bit 2, one number stands for all entries
                bit 3, the rows are one zstd frame: the first, then each less the one
                before, modulo 2**16 where they have 2 bytes, else 2**32
                bit 4, an entry is a bitmap
                bit 5, the table is in unary
                bit 6, the rows are split: the low 16 bits of each as u16, then the
                bits above them up to those of the file's last row, as slices of a bit
                of each row, the lowest first, a one for each zero
    table for every entry its number of rows; with bit 4, its end in bytes << 1, and
          1 if it is a bitmap; with bit 5, the number of all rows, and then in bits,
          the lowest of a byte first, for every entry a zero for each row and a one
    ..    the entries

Bits 5 and 6 are in parts of payloads from version 2 of ``bitmap``, 3 of ``exact`` and
2 of file maps on: of a column with many values, a row costs the bits of its number and
about two more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints, starts
from skipindex.indexes.encoding.bit_matrix import codes_of, planes_of
from skipindex.indexes.encoding.chunks import decompressed
from skipindex.indexes.encoding.header import Cursor, ascend
from skipindex.indexes.encoding.roaring import load
from skipindex.storage.bitmaps import bitmap_of, memory_of
from skipindex.storage.parts import Parts

UNIFORM: Final = 4
GAPS: Final = 8
MIXED: Final = 16
UNARY: Final = 32
SPLIT: Final = 64
_MAX_RAW: Final = 1 << 26
"""Bytes of the gaps of a frame before compression."""
_LARGE: Final = 1 << 10
"""Bytes from which a bitmap takes longer to read than to look up."""

Rows: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

_NO_ROWS: Final = np.zeros(0, np.uint16)


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
        rows: of all postings; with bit 4, none.
        data: the entries, with bit 4.
        width: the bytes of a row in them.
        large: the bitmaps of many bytes, by entry, which are read once.
        n_bytes: about what all of it takes in memory.
    """

    form: int
    table: npt.NDArray[Any]
    rows: Rows
    data: memoryview
    width: int
    large: Mapping[int, FrozenBitMap]
    n_bytes: int

    def take(self, start: int, stop: int) -> tuple[list[Rows], list[AbstractBitMap]]:
        """The postings, and the bitmaps, of the entries ``start .. stop - 1``.

        Raises:
            CorruptIndexError: the part does not have them.
        """
        lists: list[Rows] = []
        bitmaps: list[AbstractBitMap] = []
        if not self.form & MIXED:
            at, end = self._rows_before(start), self._rows_before(stop)
            lists.append(self.rows[at:end])
            size = len(self.rows)
        else:
            at = end = int(self.table[start - 1]) >> 1 if start else 0
            for i, number in enumerate(self.table[start:stop].tolist(), start):
                end = number >> 1
                if not number & 1:
                    lists.append(read_rows(self.data[at:end], self.width))
                elif i in self.large:
                    bitmaps.append(self.large[i])
                else:
                    bitmaps.append(load(self.data[at:end]))
                at = end
            size = len(self.data)
        if end > size:
            raise CorruptIndexError(
                f"a part has {size} rows or bytes of entries, and its table says at "
                f"least {end}"
            )
        return lists, bitmaps

    def rows_of(self, entries: Ints) -> tuple[Rows, Ints]:
        """The rows of some entries, one after another, and how many each has.

        Raises:
            CorruptIndexError: the part does not have them.
            IndexError: the same.
        """
        if self.form & MIXED:
            some = [self.take(i, i + 1) for i in entries.tolist()]
            each = [
                lists[0].astype(np.uint32)
                if lists
                else np.frombuffer(bitmaps[0].to_array(), np.uint32)
                for lists, bitmaps in some
            ]
            return np.concatenate(each), np.array([len(one) for one in each])
        if self.form & UNIFORM:
            ends = int(self.table[0]) * (entries + 1)
            counts = np.full(len(entries), int(self.table[0]))
        else:
            ends = self.table[entries]
            counts = ends - np.where(entries, self.table[entries - 1], 0)
        if counts.sum() > len(self.rows):
            raise CorruptIndexError(f"a part has fewer rows than {counts.sum()}")
        before = np.cumsum(counts) - counts
        places = np.repeat(ends - counts - before, counts) + np.arange(counts.sum())
        return self.rows[places], counts

    def _rows_before(self, entry: int) -> int:
        if self.form & UNIFORM:
            return int(self.table[0]) * entry
        return int(self.table[entry - 1]) if entry else 0


def read_entries(raw: memoryview, n: int, n_rows: int) -> Entries:
    """The ``n`` entries of a part, of the rows of a file of ``n_rows``.

    Raises:
        CorruptIndexError: the part does not have them.
    """
    form, width = raw[0] if len(raw) else 0xFF, row_bytes(n_rows)
    size, n_numbers = 1 << (form & 3), 1 if form & (UNIFORM | UNARY) else n
    head = 1 + size * n_numbers
    if form >> 7 or size > 4 or len(raw) < head:
        raise CorruptIndexError(f"a part of {len(raw)} bytes has no {n} entries")
    table: npt.NDArray[Any] = np.frombuffer(raw, f"<u{size}", n_numbers, 1)
    if form & MIXED:
        data = raw[head:]
        packed = dict(_large_bitmaps(table, data))
        large = {entry: bitmap_of(one) for entry, one in packed.items()}
        n_bytes = len(data) + table.nbytes + sum(map(memory_of, packed.values()))
        return Entries(form, table, _NO_ROWS, data, width, large, n_bytes)
    if form & UNARY:
        n_bits = n + int(table[0])
        table = _from_unary(raw[head : head + (n_bits + 7) // 8], n, n_bits)
        head += (n_bits + 7) // 8
    elif not form & UNIFORM:
        table = np.add.accumulate(table, dtype=np.int64)
    if form & GAPS:
        rows = _without_gaps(raw[head:], width)
    elif form & SPLIT:
        n_split = int(table[0]) * n if form & UNIFORM else int(table[-1])
        rows = join_rows(raw[head:], n_split, n_rows)
    else:
        rows = read_rows(raw[head:], width)
    n_bytes = rows.nbytes + table.nbytes
    return Entries(form, table, rows, raw[:0], width, {}, n_bytes)


def in_unary(counts: Ints) -> bytes:
    """For each count so many zeros and a one."""
    bits = np.zeros(int(counts.sum()) + len(counts), np.bool_)
    bits[np.cumsum(counts + 1) - 1] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _from_unary(raw: memoryview, n: int, n_bits: int) -> Ints:
    """The sums of the counts up to each of ``n``."""
    bits = np.frombuffer(raw, np.uint8)
    if n_bits > 8 * len(bits):
        raise CorruptIndexError(f"{len(bits)} bytes are no {n_bits} bits of a table")
    unpacked = np.unpackbits(bits, count=n_bits, bitorder="little")
    ones = np.flatnonzero(unpacked.view(np.bool_))  # several times faster so
    if len(ones) != n or (n and int(ones[-1]) != n_bits - 1):
        raise CorruptIndexError(f"a table in unary has {len(ones)} entries, not {n}")
    return ones - np.arange(n)


def split_rows(rows: Rows, n_rows: int) -> bytes:
    """The rows of a file of ``n_rows``, which are more than 2**16, by their bits."""
    high = (rows >> 16).astype(np.uint32)
    return rows.astype("<u2").tobytes() + planes_of(high, _high_bits(n_rows))


def join_rows(raw: memoryview, n: int, n_rows: int) -> Rows:
    """The inverse of ``split_rows``, for ``n`` rows."""
    if len(raw) < 2 * n:
        raise CorruptIndexError(f"{len(raw)} bytes are not {n} rows")
    rows = codes_of(raw[2 * n :], _high_bits(n_rows), n).astype(np.uint32)
    rows <<= np.uint32(16)
    rows |= np.frombuffer(raw, "<u2", n)
    return rows


def _high_bits(n_rows: int) -> int:
    return max(0, (n_rows - 1).bit_length() - 16)


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
    and ``n_rows`` are those of the file.
    """

    firsts: Sequence[int]
    n_codes: int
    at: int
    n_rows: int

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
        return cls(firsts, n_codes, at, n_rows)

    def __len__(self) -> int:
        return len(self.firsts)

    def one(self, parts: Parts, code: int) -> tuple[Entries, int]:
        """The entries that have that of ``code``, and its place; perhaps cached."""
        i = self.part_of(code)
        return self._cached(parts, i), code - self.firsts[i]

    def among(
        self, parts: Parts, intervals: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[Entries, int, int]]:
        """Entries of the codes of ascending intervals, and which of them these are.

        No part is read twice, and those of an interval are read together.
        """
        read: dict[int, Entries] = {}
        for start, stop in intervals:
            first, last = self.part_of(start), self.part_of(stop - 1)
            new = first + (first in read)
            if new == last:
                read[new] = self._cached(parts, new)
            elif new < last:
                raw = parts.read(self.at + new, self.at + last + 1)
                for i, part in enumerate(raw, new):
                    read[i] = read_entries(part, self._size_of(i), self.n_rows)
            for i in range(first, last + 1):
                begin = self.firsts[i]
                end = begin + self._size_of(i)
                yield read[i], max(start, begin) - begin, min(stop, end) - begin

    def holding(
        self, parts: Parts, codes: Ints
    ) -> Iterator[tuple[Entries, Ints, slice]]:
        """Entries of some ascending codes, which of them these are, and their places.

        The places are those in ``codes``.
        """
        number = np.searchsorted(self.firsts, codes, side="right") - 1
        cuts = [*np.flatnonzero(starts(number)).tolist(), len(codes)]
        for begin, end in pairwise(cuts):
            i = int(number[begin])
            place = slice(begin, end)
            yield self._cached(parts, i), codes[place] - self.firsts[i], place

    def _cached(self, parts: Parts, i: int) -> Entries:
        """The entries of part ``i``, perhaps cached."""

        def decode(raw: memoryview) -> Entries:
            return read_entries(raw, self._size_of(i), self.n_rows)

        return parts.decoded(self.at + i, decode)

    def part_of(self, code: int) -> int:
        """Which of these parts has a code, or would have it."""
        return bisect_right(self.firsts, code) - 1

    def _size_of(self, i: int) -> int:
        """How many codes part ``i`` has."""
        end = self.firsts[i + 1] if i + 1 < len(self.firsts) else self.n_codes
        return end - self.firsts[i]


def _without_gaps(frame: memoryview, width: int) -> Rows:
    dtype = np.dtype("<u2" if width == 2 else "<u4")
    gaps = np.frombuffer(decompressed(frame, _MAX_RAW), dtype)
    rows: Rows = np.cumsum(gaps, dtype=dtype)
    return rows
