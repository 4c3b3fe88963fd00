"""Decoding bit slices into the codes of all rows, for probes of many values.

A list of many values has many codes with nothing in common, and a walk of the slices
costs about as much for each.  Transposing the slices into codes, as matrices of 8 times
8 bits, costs the same for any list, and then takes one look-up a row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Bits, Ints, Mask
from skipindex.indexes.encoding.bit_matrix import transpose
from skipindex.indexes.encoding.roaring import (
    ARRAY_MAX,
    NO_RUNS,
    blank,
    load,
    pack_all,
)
from skipindex.indexes.positional import Interval
from skipindex.storage.parts import BITS_SIZE

_TABLE: Final = 1 << 20
_TABLE_PER_ROW: Final = 16
"""A table of all codes is used up to these numbers of entries: in all, or a row."""

_Codes = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


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
    wanted = _Wanted.of(intervals, 1 << len(zeros), n_rows)
    found = blank(1, n_rows)[0]
    # A container at a time, so that what is transposed stays in the processor's cache.
    for start in range(0, len(found), BITS_SIZE):
        block = slice(start, start + BITS_SIZE)
        inverted = _inverted_codes([bits[block] for bits in slices])
        found[block] = np.packbits(wanted.among(inverted), bitorder="little")
    found[(n_rows + 7) // 8 :] = 0
    if n_rows % 8:
        found[n_rows // 8] &= (1 << n_rows % 8) - 1
    return load(pack_all(found[np.newaxis])[0])


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Some codes, by a table of all inverted codes, or by their intervals."""

    n_codes: int
    starts: Ints
    stops: Ints
    table: Mask | None

    @classmethod
    def of(cls, intervals: Sequence[Interval], n_codes: int, n_rows: int) -> _Wanted:
        starts, stops = np.array(intervals, np.int64).reshape(-1, 2).T
        if n_codes > max(_TABLE, _TABLE_PER_ROW * n_rows):
            return cls(n_codes, starts, stops, None)
        table = np.zeros(n_codes, np.bool_)
        singles = starts[stops - starts == 1]
        table[n_codes - 1 - singles] = True
        for start, stop in intervals:
            if stop - start > 1:
                table[n_codes - stop : n_codes - start] = True
        return cls(n_codes, starts, stops, table)

    def among(self, inverted: _Codes) -> Mask:
        """Which codes, given inverted, are among the wanted ones."""
        if self.table is not None:
            return self.table.take(inverted)
        codes = np.int64(self.n_codes - 1) - inverted
        last = self.starts.searchsorted(codes, side="right") - 1
        found: Mask = (last >= 0) & (codes < self.stops[last])
        return found


def _inverted_codes(slices: Sequence[Bits]) -> _Codes:
    """The codes with every bit inverted, as the slices have them."""
    n_bytes = len(slices[0])
    n_planes = (len(slices) + 7) // 8
    width = 1 << (n_planes - 1).bit_length()
    planes = np.zeros((8 * n_bytes, width), np.uint8)
    for i in range(n_planes):
        eight = np.zeros((n_bytes, 8), np.uint8)
        for j, bits in enumerate(slices[8 * i : 8 * i + 8]):
            eight[:, j] = bits
        planes[:, i] = transpose(eight)
    codes: _Codes = planes.view(f"<u{width}").reshape(-1)
    return codes


def dense_bits(raw: memoryview, n_rows: int) -> Bits:
    """One bit a row, the lowest of a byte first, filled up to whole containers.

    Raises:
        CorruptIndexError: these are the bytes of no bitmap of ``n_rows`` rows.
    """
    n = (n_rows + 0xFFFF) >> 16
    head = 8 + 8 * n
    if len(raw) == head + n * BITS_SIZE:
        cookie, found = struct.unpack_from("<II", raw)
        cards = np.frombuffer(raw, "<u2", 2 * n, 8)[1::2]  # each less one
        if cookie == NO_RUNS and found == n and (cards >= ARRAY_MAX).all():
            return np.frombuffer(raw, np.uint8, n * BITS_SIZE, head)
    rows = np.frombuffer(load(raw).to_array(), np.uint32)
    mask = np.zeros(8 * n * BITS_SIZE, np.bool_)
    if len(rows) and rows[-1] >= n_rows:
        raise CorruptIndexError(f"a bitmap of {n_rows} rows has row {rows[-1]}")
    mask[rows] = True
    return np.packbits(mask, bitorder="little")
