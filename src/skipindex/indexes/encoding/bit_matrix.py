"""Transposing a matrix of bits, such as the filters of many files.

Eight filters are transposed at a time: a byte of each is a matrix of 8 times 8 bits in
one word, and three exchanges transpose all of these matrices in numpy.  Bit slices
become numbers in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Bits, Codes, UnsignedInts

_BATCH_BYTES: Final = 1 << 12
"""Bytes of a filter that are transposed together."""


def pack_rows(
    filters: Sequence[bytes | memoryview], *, n_bits: int, rows_per_part: int
) -> Iterator[bytes]:
    """The rows of some filters of ``n_bits`` bits, in parts.

    Bit ``i`` of a row, the lowest of a byte first, is of filter ``i``.
    """
    arrays = [np.frombuffer(bits, np.uint8) for bits in filters]
    width = (len(filters) + 7) // 8
    step = rows_per_part * max(1, 8 * _BATCH_BYTES // rows_per_part)
    for start in range(0, n_bits, step):
        stop = min(n_bits, start + step)
        n_bytes = (stop - start + 7) // 8
        rows = np.empty((8 * n_bytes, width), np.uint8)
        for i in range(width):
            eight = np.zeros((n_bytes, 8), np.uint8)
            for j, bits in enumerate(arrays[8 * i : 8 * i + 8]):
                eight[:, j] = bits[start // 8 : start // 8 + n_bytes]
            rows[:, i] = transpose(eight)
        for at in range(0, stop - start, rows_per_part):
            yield rows[at : min(at + rows_per_part, stop - start)].tobytes()


def unpack_columns(raw: bytes, *, n_bits: int, n_columns: int) -> Iterator[bytes]:
    """The filters whose rows these are."""
    width = (n_columns + 7) // 8
    rows = np.zeros((-(-n_bits // 8) * 8, width), np.uint8)
    rows[:n_bits] = np.frombuffer(raw, np.uint8).reshape(n_bits, width)
    for i in range(width):
        eight = transpose(np.ascontiguousarray(rows[:, i]).reshape(-1, 8)).reshape(
            -1, 8
        )
        for j in range(min(8, n_columns - 8 * i)):
            yield eight[:, j].tobytes()


def numbers(planes: Sequence[Bits]) -> UnsignedInts:
    """The numbers whose bits are given: the lowest bit of all first, 32 at the most.

    A plane has the bits of eight numbers in each byte, the lowest for the first one.
    The numbers are in one, two or four bytes each, and 0 without a plane.
    """
    n_bytes = len(planes[0]) if planes else 0
    width = 1 << (max(0, len(planes) - 1) // 8).bit_length()
    result: UnsignedInts = np.zeros(0, np.uint8)
    for at in range(0, len(planes), 8):
        eight = np.zeros((n_bytes, 8), np.uint8)
        for j, bits in enumerate(planes[at : at + 8]):
            eight[:, j] = bits
        octets = transpose(eight)
        if at == 0:
            result = octets.astype(f"<u{width}", copy=False)
        else:
            higher = octets.astype(result.dtype)
            higher <<= higher.dtype.type(at)
            result |= higher
    return result


def planes_of(codes: Codes, width: int) -> bytes:
    """The bits of codes, the lowest first, a one for each zero."""
    bits = [codes >> np.uint32(i) & np.uint32(1) == 0 for i in range(width)]
    return b"".join(np.packbits(one, bitorder="little").tobytes() for one in bits)


def codes_of(raw: memoryview, width: int, n: int) -> UnsignedInts:
    """The inverse of ``planes_of``, for ``n`` codes, in one, two or four bytes each."""
    if len(raw) != width * -(-n // 8):
        raise CorruptIndexError(f"{len(raw)} bytes are not {width} slices of {n} bits")
    if not width:
        return np.zeros(n, np.uint8)
    return numbers([*~np.frombuffer(raw, np.uint8).reshape(width, -1)])[:n]


def transpose(eight: Bits) -> Bits:
    """Matrices of 8 times 8 bits, each transposed in its place, as one row of bytes.

    Bit ``i`` of byte ``j`` becomes bit ``j`` of byte ``i`` (Hacker's Delight, 7-3).
    """
    x = eight.view("<u8").reshape(-1)
    moved = np.empty_like(x)
    for shift, mask in (
        (7, 0x00AA00AA00AA00AA),
        (14, 0x0000CCCC0000CCCC),
        (28, 0x00000000F0F0F0F0),
    ):
        np.right_shift(x, np.uint64(shift), out=moved)
        moved ^= x
        moved &= np.uint64(mask)
        x ^= moved
        moved <<= np.uint64(shift)
        x ^= moved
    return x.view(np.uint8)
