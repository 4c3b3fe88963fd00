"""The last step of a range over base-2 slices: the rows at its two bounds."""

from __future__ import annotations

from collections.abc import Iterator

from pyroaring import BitMap, FrozenBitMap


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
