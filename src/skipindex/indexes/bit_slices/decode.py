"""How rows are read from bit slices: by descent for a range, decoded for a list.

A list of many values has many codes with nothing in common, and a walk of the slices
costs about as much for each.  Transposing the slices into codes, as matrices of 8 times
8 bits, costs the same for any list, and then takes one look-up a row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from pyroaring import BitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Bits
from skipindex.indexes.encoding.bit_matrix import numbers
from skipindex.indexes.encoding.code_set import CodeSet
from skipindex.indexes.encoding.roaring import blank, load, pack_all
from skipindex.indexes.positional import Interval
from skipindex.storage.bitmaps import ARRAY_MAX, BITS_SIZE, NO_RUNS, is_plain


class Collected:
    """Rows that are found, as a bitmap; each method changes the rows that it is given.

    Changing a bitmap takes half as long as making one.
    """

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows = BitMap()

    def take(self, rows: BitMap) -> None:
        """All of ``rows`` are found."""
        self.rows |= rows

    def take_ones(self, rows: BitMap, zero: FrozenBitMap) -> None:
        """Accept ``rows - zero``; keep ``rows & zero`` for the next slice."""
        self.rows |= rows - zero
        rows &= zero

    def take_zeros(self, rows: BitMap, zero: FrozenBitMap) -> None:
        """Accept ``rows & zero``; keep ``rows - zero`` for the next slice."""
        self.rows |= rows & zero
        rows -= zero


class Counted:
    """The number of rows that are found; as ``Collected`` without their bitmap."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def take(self, rows: BitMap) -> None:
        """All of ``rows`` are found."""
        self.n += len(rows)

    def take_ones(self, rows: BitMap, zero: FrozenBitMap) -> None:
        """Count ``rows - zero``; keep ``rows & zero`` for the next slice."""
        self.n += len(rows)
        rows &= zero
        self.n -= len(rows)

    def take_zeros(self, rows: BitMap, zero: FrozenBitMap) -> None:
        """Count ``rows & zero``; keep ``rows - zero`` for the next slice."""
        self.n += len(rows)
        rows -= zero
        self.n -= len(rows)


def descend_apart(
    lower: BitMap,
    upper: BitMap,
    low: int,
    high: int,
    i: int,
    zeros: Iterator[FrozenBitMap],
    sink: Collected | Counted,
) -> None:
    """Add the rows of ``lower`` from code ``low`` on, of ``upper`` up to ``high``.

    Only the bits lower than ``i`` are compared.  Both sets are used up.
    """
    while i and (lower or upper):
        i -= 1
        zero = next(zeros)
        if lower:
            if low >> i & 1:
                lower -= zero
            else:
                sink.take_ones(lower, zero)
        if upper:
            if high >> i & 1:
                sink.take_zeros(upper, zero)
            else:
                upper &= zero
    sink.take(lower)
    sink.take(upper)


def rows_among(
    zeros: Sequence[memoryview], intervals: Sequence[Interval], n_rows: int
) -> BitMap:
    """The rows whose code is in one of the intervals.

    Rows without a code count as those of the highest code of that many bits.

    ``zeros`` has for every bit, the lowest first, the rows where it is zero, as
    portable roaring bitmaps; 32 at the most.  ``intervals`` ascend and are apart.

    Raises:
        CorruptIndexError: some bytes are no bitmap.
    """
    slices = [dense_bits(raw, n_rows) for raw in zeros]
    wanted = CodeSet.of([*chain(*intervals)], 1 << len(zeros), n_rows)
    result = blank(1, n_rows)[0]
    # A container at a time, so that what is transposed stays in the processor's cache.
    for start in range(0, len(result), BITS_SIZE):
        block = slice(start, start + BITS_SIZE)
        codes = numbers([~bits[block] for bits in slices])
        result[block] = np.packbits(wanted.among(codes), bitorder="little")
    result[(n_rows + 7) // 8 :] = 0
    if n_rows % 8:
        result[n_rows // 8] &= (1 << n_rows % 8) - 1
    return load(pack_all(result[np.newaxis])[0])


def dense_bits(raw: memoryview, n_rows: int) -> Bits:
    """One bit a row, the lowest of a byte first, filled up to whole containers.

    Raises:
        CorruptIndexError: these are the bytes of no bitmap of ``n_rows`` rows.
    """
    n = (n_rows + 0xFFFF) >> 16
    head = 8 + 8 * n
    if is_plain(raw):
        plain = np.frombuffer(raw, np.uint8, offset=2)
        last = int(plain[-1]) if len(plain) else 0
        greatest = 8 * len(plain) - 9 + last.bit_length()  # below 0 without a row
        if greatest >= n_rows:
            raise CorruptIndexError(f"a bitmap of {n_rows} rows has row {greatest}")
        bits: Bits = blank(1, n_rows)[0]
        bits[: len(plain)] = plain
        return bits
    if len(raw) == head + n * BITS_SIZE:
        cookie, result = struct.unpack_from("<II", raw)
        cards = np.frombuffer(raw, "<u2", 2 * n, 8)[1::2]  # each less one
        if cookie == NO_RUNS and result == n and (cards >= ARRAY_MAX).all():
            return np.frombuffer(raw, np.uint8, n * BITS_SIZE, head)
    rows = np.frombuffer(load(raw).to_array(), np.uint32)
    mask = np.zeros(8 * n * BITS_SIZE, np.bool_)
    if len(rows) and rows[-1] >= n_rows:
        raise CorruptIndexError(f"a bitmap of {n_rows} rows has row {rows[-1]}")
    mask[rows] = True
    return np.packbits(mask, bitorder="little")
