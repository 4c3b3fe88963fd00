"""Bit slices in any base: codes cut into digits, and a bitmap for each digit value.

Digit 0 is the lowest.  With ``b`` the base, digit ``i`` has

* equality-encoded, ``b`` bitmaps: ``E[i][v]``, the rows whose digit is ``v``;
* range-encoded, ``b - 1``: ``R[i][v]``, the rows whose digit is at most ``v``; all
  rows with a value have a digit of at most ``b - 1``, so one existence bitmap
  stands for the last of every digit.

Rows that are NULL have no digit and are in no bitmap.  ``slices`` evaluates bitmaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skipindex.expressions.arrays import Bits, Codes, Mask
from skipindex.indexes.encoding.column import NULL_CODE
from skipindex.indexes.encoding.roaring import blank, or_plain, pack_all


@dataclass(frozen=True, slots=True)
class Shape:
    """The base and encoding of the digits, and how many there are.

    ``base`` is 2 to 16.  Digits are range-encoded if ``ranged``, otherwise
    equality-encoded.  Codes are below ``n_codes``; one digit is there also where there
    is but one code.
    """

    base: int
    ranged: bool
    n_codes: int
    n_digits: int

    @classmethod
    def of(cls, base: int, n_codes: int, *, ranged: bool) -> Shape:
        """The shape for ``n_codes`` codes."""
        if base == 2 and n_codes:
            return cls(base, ranged, n_codes, max(1, (n_codes - 1).bit_length()))
        n_digits, reach = (1, base) if n_codes else (0, 1)
        while reach < n_codes:
            n_digits, reach = n_digits + 1, reach * base
        return cls(base, ranged, n_codes, n_digits)

    @property
    def per_digit(self) -> int:
        """Bitmaps of one digit."""
        return self.base - self.ranged

    @property
    def n_slices(self) -> int:
        """Bitmaps of all digits."""
        return self.n_digits * self.per_digit

    @property
    def n_bitmaps(self) -> int:
        """The number of slices and, if range-encoded, the existence bitmap."""
        return self.n_slices + self.ranged

    def digits(self, code: int) -> list[int]:
        """The digits of ``code``, the lowest first."""
        digits = []
        for _ in range(self.n_digits):
            code, digit = divmod(code, self.base)
            digits.append(digit)
        return digits


def pack_slices(codes: Codes, shape: Shape) -> list[bytes]:
    """The bytes of the bitmaps, digit by digit, then of the existence bitmap."""
    packed: list[bytes] = []
    for slices in _binary(codes, shape) if shape.base == 2 else _general(codes, shape):
        packed += _packed(slices)
    if shape.ranged:
        existence = blank(1, len(codes))
        _fill(existence[0], codes != NULL_CODE)
        packed += _packed(existence)
    return packed


def _packed(slices: Bits) -> Iterator[bytes]:
    """The bytes of some bitmaps, each portable or plain."""
    return map(or_plain, pack_all(slices), slices)


def _fill(bits: Bits, mask: Bits | Mask) -> None:
    packed = np.packbits(mask, bitorder="little")  # whatever is not zero is a one
    bits[: len(packed)] = packed


def _binary(codes: Codes, shape: Shape) -> Iterator[Bits]:
    """Slices of 8 digits at a time, which are the bits of one byte of the codes."""
    n_bytes = (shape.n_digits + 7) // 8
    planes = codes.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)
    null = codes == NULL_CODE
    has_null = not shape.ranged and bool(null.any())
    for i in range(n_bytes):
        ones = planes[:, i].copy()
        # NULL is a code of ones: it is in no bitmap of zeros by itself.
        zeros = ~ones
        if has_null:
            ones[null] = 0
        n_bits = min(8, shape.n_digits - 8 * i)
        slices = blank(n_bits * shape.per_digit, len(codes))
        for bit in range(n_bits):
            at = bit * shape.per_digit
            _fill(slices[at], zeros & np.uint8(1 << bit))
            if not shape.ranged:
                _fill(slices[at + 1], ones & np.uint8(1 << bit))
        yield slices


def _general(codes: Codes, shape: Shape) -> Iterator[Bits]:
    """Slices of one digit at a time."""
    null = codes == NULL_CODE
    has_null = bool(null.any())
    rest = codes.astype(np.min_scalar_type(max(shape.n_codes - 1, 0)))
    for _ in range(shape.n_digits):
        above = rest // rest.dtype.type(shape.base)
        digit = (rest - above * rest.dtype.type(shape.base)).astype(np.uint8)
        rest = above
        if has_null:
            digit[null] = shape.base
        slices = blank(shape.per_digit, len(codes))
        for v in range(shape.per_digit):
            _fill(slices[v], digit <= v if shape.ranged else digit == v)
        yield slices
