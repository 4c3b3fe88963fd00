"""Roaring bitmaps in the portable format, written by numpy without a step per row.

The format is RoaringFormatSpec (https://github.com/RoaringBitmap/RoaringFormatSpec):
a header, then one container per 65,536 rows that has any: up to 4,096 rows as a
sorted array of u16, else 8 KB of bits, or runs where these are shorter.  The
writer chooses as CRoaring's ``run_optimize`` does and gives its very bytes: the
packed bits of numpy *are* the payload of a bit container, so a bit slice costs a
header and one copy.
"""

from __future__ import annotations

import array
import struct
from typing import Final

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap, BitMap

from skipindex.expressions.arrays import Bits, Ints, Mask, Words
from skipindex.storage.bitmaps import (
    ARRAY_MAX,
    BITS_SIZE,
    NO_RUNS,
    ONE_CONTAINER,
    PLAIN,
    deserialized,
    of_bits,
)

EMPTY: Final = struct.pack("<II", NO_RUNS, 0)
"""The bytes of the bitmap without rows."""

_PLAIN_SHARE: Final = 0.75
"""Plain bits take three times as long to load, so they save a quarter of the bytes."""
_SPARSE_FACTOR: Final = 64
"""Below one row in this number, rows are put into a bitmap one at a time."""


def load(raw: bytes | memoryview) -> BitMap:
    """The bitmap whose bytes these are.

    Raises:
        CorruptIndexError: they are those of no bitmap.
    """
    return deserialized(BitMap, raw)


def thawed(bitmap: AbstractBitMap) -> BitMap:
    """A copy that can be changed; ``copy`` takes five times as long."""
    return BitMap() | bitmap


def from_sorted(rows: npt.NDArray[np.unsignedinteger]) -> BitMap:
    """The bitmap of some ascending rows."""
    # pyroaring takes an array.array whole, but numpy's one integer at a time.
    buffer = array.array("I")
    buffer.frombytes(rows.astype(np.uint32).tobytes())
    return BitMap(buffer)


def from_rows(rows: npt.NDArray[np.unsignedinteger], n_rows: int) -> BitMap:
    """The bitmap of some rows, none twice, of a file of ``n_rows``, in any order."""
    if n_rows <= 1 << 16 and len(rows) <= ARRAY_MAX:
        return from_sorted_u16(np.sort(rows).astype("<u2").tobytes())
    if len(rows) * _SPARSE_FACTOR < n_rows:
        return from_sorted(np.sort(rows))
    mask = np.zeros(n_rows, np.bool_)
    mask[rows] = True
    return from_mask(mask)


def from_mask(mask: Mask) -> BitMap:
    """The bitmap of the rows that are marked."""
    if len(mask) > 1 << 16:
        return load(pack_dense(np.packbits(mask, bitorder="little")))
    if int(np.count_nonzero(mask)) * _SPARSE_FACTOR < len(mask):
        return from_sorted_u16(np.flatnonzero(mask).astype("<u2").tobytes())
    return of_bits(BitMap, np.packbits(mask, bitorder="little"))


def from_sorted_u16(raw: bytes | memoryview) -> BitMap:
    """The bitmap of up to 4,096 ascending little-endian u16 rows."""
    card = len(raw) // 2
    if not card:
        return BitMap()
    head = ONE_CONTAINER.pack(NO_RUNS, 1, 0, card - 1, 16)
    return load(b"".join((head, raw)))


def blank(n_bitmaps: int, n_rows: int) -> Bits:
    """Dense bits of some bitmaps, all clear, each filled up to whole containers."""
    n_containers = (n_rows + 0xFFFF) >> 16
    return np.zeros((n_bitmaps, n_containers * BITS_SIZE), np.uint8)


def pack_dense(bits: Bits) -> bytes:
    """The bytes of the bitmap whose dense bits these are, of any length."""
    padded = blank(1, 8 * len(bits))
    padded[0, : len(bits)] = bits
    return pack_all(padded)[0]


def pack_all(bits: Bits) -> list[bytes]:
    """The bytes of the bitmaps whose dense bits are the rows of a ``blank``."""
    words = bits.view("<u8").reshape(len(bits), -1, BITS_SIZE // 8)
    cards = np.bitwise_count(words).sum(axis=2, dtype=np.int64)
    sizes = np.where(cards > ARRAY_MAX, BITS_SIZE, 2 * cards)
    better_as_runs = np.any(2 + 4 * _count_runs(words) < sizes, axis=1)
    only_bits = np.all(cards > ARRAY_MAX, axis=1)
    packed = []
    for i in range(len(words)):
        if only_bits[i]:
            raw = _header(None, cards[i], sizes[i]) + words[i].tobytes()
        else:
            raw = _with_arrays(words[i], cards[i], sizes[i])
        if better_as_runs[i]:
            optimized = BitMap.deserialize(raw)
            optimized.run_optimize()
            raw = optimized.serialize()
        packed.append(raw)
    return packed


def or_plain(raw: bytes, bits: Bits) -> bytes:
    """The bytes of a bitmap, or its bits if these are far fewer; ``load`` takes both.

    ``bits`` may be those of more than one container, which stay as they are.
    """
    if len(bits) > BITS_SIZE:
        return raw
    plain = PLAIN.to_bytes(2, "little") + bits.tobytes().rstrip(b"\0")
    return plain if len(plain) <= _PLAIN_SHARE * len(raw) else raw


def _header(
    keys: Ints | None,
    cards: Ints,
    sizes: Ints,
) -> bytes:
    """The header of a bitmap without runs; ``keys`` None is every container."""
    k = len(cards)
    if k == 1 and keys is None:
        return ONE_CONTAINER.pack(NO_RUNS, 1, 0, int(cards[0]) - 1, 16)
    header = np.empty(4 + 4 * k, "<u2")
    header[:4].view("<u4")[:] = (NO_RUNS, k)
    header[4 : 4 + 2 * k : 2] = np.arange(k) if keys is None else keys
    header[5 : 5 + 2 * k : 2] = cards - 1
    header[4 + 2 * k :].view("<u4")[:] = np.cumsum(sizes) - sizes + 8 + 8 * k
    return header.tobytes()


def _with_arrays(
    words: Words,
    cards: Ints,
    sizes: Ints,
) -> bytes:
    live = np.flatnonzero(cards)
    pieces = [_header(live, cards[live], sizes[live]) if live.size else EMPTY]
    for i in live.tolist():
        if cards[i] > ARRAY_MAX:
            pieces.append(words[i].tobytes())
        else:
            mask = np.unpackbits(words[i].view(np.uint8), bitorder="little")
            rows = np.flatnonzero(mask.view(np.bool_))  # several times faster so
            pieces.append(rows.astype("<u2").tobytes())
    return b"".join(pieces)


def _count_runs(words: Words) -> Ints:
    """The number of runs of ones in every container."""
    before = words << np.uint64(1)
    before[..., 1:] |= words[..., :-1] >> np.uint64(63)
    np.invert(before, out=before)
    before &= words
    counts: Ints = np.bitwise_count(before).sum(axis=-1, dtype=np.int64)
    return counts
