"""Evaluating bit slices: the rows whose codes lie in one interval, or in several.

The evaluation is RangeEval-Opt of Chan and Ioannidis (Bitmap Index Design and
Evaluation, SIGMOD 1998), begun at the lowest digit that decides anything.  ``digits``
says how codes are cut into slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyroaring import AbstractBitMap, BitMap, FrozenBitMap

from skipindex.indexes.bit_slices.decode import (
    Collected,
    Counted,
    descend_apart,
    rows_among,
)
from skipindex.indexes.bit_slices.digits import Shape
from skipindex.indexes.encoding.roaring import thawed
from skipindex.indexes.positional import Interval
from skipindex.storage.parts import Parts

_DECODE_FROM_INTERVALS: Final = 16
"""From this number of intervals on, decoding is faster, where slices are dense."""
_NARROW: Final = 4
"""An interval with one code in so many is looked for from the highest bit down."""
_SLICES_READ_AHEAD: Final = 4
"""How many more slices than the logarithm of the rows are read together."""


@dataclass(slots=True)
class Slices:
    """The bitmaps of one payload during one probe.

    ``first`` is the part of the first slice.  If it is ``full``, no row is NULL.
    """

    parts: Parts
    first: int
    shape: Shape
    n_rows: int
    full: bool
    _bitmaps: dict[int, FrozenBitMap] = field(default_factory=dict, init=False)

    def existence(self) -> BitMap:
        """The rows that have a value."""
        if self.full:
            return BitMap(range(self.n_rows))
        if not self.shape.n_digits:
            return BitMap()
        if self.shape.ranged:
            return thawed(self._at(self.shape.n_slices))
        return self._within(self.shape.n_digits - 1, 0, self.shape.base - 1, None)

    def between(self, start: int, stop: int) -> BitMap:
        """The rows with a code of ``start .. stop - 1``."""
        if not start and stop >= self.shape.n_codes:
            return self.existence()
        if stop - start == 1:
            return self._equal(start)
        if self.shape.per_digit == 1:
            return self._between_in_base_2(start, stop)
        if not start:
            return self._at_most(stop - 1)
        below = self._at_most(start - 1)
        if stop >= self.shape.n_codes:
            rows = self.existence()
        else:
            rows = self._at_most(stop - 1)
        rows -= below
        return rows

    def _between_in_base_2(self, start: int, stop: int) -> BitMap:
        """The rows of ``between``, range-encoded in base 2: the most frequent probe."""
        if (stop - start) * _NARROW < self.shape.n_codes:
            # Its codes have their highest bits in common, which leave few rows at once.
            return self.inside(start, stop, BitMap(range(self.n_rows)))
        # A code is below ``c`` if its bits are: the bits of ``c`` from its lowest one
        # upwards decide that, by one AND or OR each.
        bounds = [c for c in (start, stop) if 0 < c < self.shape.n_codes]
        lowest = min((c & -c).bit_length() - 1 for c in bounds)
        zeros = self._zeros(lowest)
        below = [_below(c, zeros, lowest) for c in bounds]
        if not start:
            return below[0]
        rows = self.existence() if stop >= self.shape.n_codes else below[1]
        rows -= below[0]
        return rows

    def inside(self, start: int, stop: int, rows: AbstractBitMap) -> BitMap:
        """The ``rows`` with a code of ``start .. stop - 1``, in base 2, range-encoded.

        ``rows`` is not changed.  The cost follows their number, not the file's.
        """
        result = Collected()
        self._descend(start, stop - 1, rows, result)
        return result.rows

    def count_inside(self, start: int, stop: int, rows: AbstractBitMap) -> int:
        """The number of rows that ``inside`` gives."""
        result = Counted()
        self._descend(start, stop - 1, rows, result)
        return result.n

    def _descend(
        self, low: int, high: int, given: AbstractBitMap, sink: Collected | Counted
    ) -> None:
        """Add the given rows with a code of ``low .. high`` to ``sink``."""
        rows = thawed(given)
        if not self.full:
            rows &= self._at(self.shape.n_slices)
        # From the highest bit down, as long as there are rows that it could decide.
        i = self.shape.n_digits
        zeros = self._zeros_from_the_top(len(rows).bit_length() + _SLICES_READ_AHEAD)
        while i and rows:
            i -= 1
            zero = next(zeros)
            if low >> i & 1 != high >> i & 1:
                # <---[ low ... 0111 ][ 1000 ... high ]--->
                descend_apart(rows & zero, rows - zero, low, high, i, zeros, sink)
                return
            if low >> i & 1:
                rows -= zero
            else:
                rows &= zero
        sink.take(rows)

    def _zeros_from_the_top(self, n_likely: int) -> Iterator[FrozenBitMap]:
        """In base 2, the rows whose bit is zero, from the highest bit downwards."""
        stop, n_seen = self.first + self.shape.n_digits, 0
        try:
            while stop > self.first:
                start = max(self.first, stop - n_likely)
                for zeros in reversed(self.parts.bitmaps(start, stop)):
                    n_seen += 1
                    yield zeros
                stop = start
        finally:
            self.parts.count.bitmaps += n_seen

    def _zeros(self, lowest: int) -> list[FrozenBitMap]:
        """In base 2, the rows whose bit is zero, from the bit ``lowest`` upwards."""
        start, stop = self.first + lowest, self.first + self.shape.n_digits
        self.parts.count.bitmaps += stop - start
        return self.parts.bitmaps(start, stop)

    def among(self, intervals: Sequence[Interval]) -> BitMap:
        """The rows with a code of one of some intervals.

        Of a few, the prefixes are shared; for many all rows are decoded, which costs
        the same however many there are.
        """
        reach = self.shape.base**self.shape.n_digits
        if intervals[-1][1] == self.shape.n_codes:  # no row is beyond
            intervals = [*intervals[:-1], (intervals[-1][0], reach)]
        if self.shape.per_digit == 1:
            if (
                len(intervals) > _DECODE_FROM_INTERVALS
                and (rows := self._decoded(intervals)) is not None
            ):
                return rows
            self._bitmaps = dict(enumerate(self._zeros(0)))
        return self._walk(self.shape.n_digits - 1, None, intervals)

    def _decoded(self, intervals: Sequence[Interval]) -> BitMap | None:
        """Rows of ``intervals`` by every row's code; None where slices are sparse."""
        raw = self.parts.read(self.first, self.first + self.shape.n_digits)
        # What a walk costs grows with the bytes of the slices and with the intervals.
        if (
            len(intervals) * sum(map(len, raw))
            < _DECODE_FROM_INTERVALS * len(raw) * self.n_rows / 8
        ):
            return None
        self.parts.count.bitmaps += len(raw)
        rows = rows_among(raw, intervals, self.n_rows)
        return rows if self.full else rows & self._at(self.shape.n_slices)

    def _at(self, i: int) -> FrozenBitMap:
        """Slice ``i``."""
        bitmap = self._bitmaps.get(i)
        if bitmap is None:
            bitmap = self.parts.bitmap(self.first + i)
            self.parts.count.bitmaps += 1
            self._bitmaps[i] = bitmap
        return bitmap

    def _digit(self, i: int, v: int) -> FrozenBitMap:
        return self._at(i * self.shape.per_digit + v)

    def _at_most(self, code: int) -> BitMap:
        """The rows with a code of at most ``code``."""
        rows: BitMap | None = None
        top = self.shape.base - 1
        # Below the lowest digit that is not at its maximum nothing is decided; from it
        # upwards a row is in if its digit is smaller, or equal and it was in.
        for i, d in enumerate(self.shape.digits(code)):
            if rows is None:
                if d < top:
                    rows = self._within(i, 0, d, None)
            elif self.shape.ranged:
                if d < top:
                    rows &= self._digit(i, d)
                if d:
                    rows |= self._digit(i, d - 1)
            else:
                rows &= self._digit(i, d)
                if d:
                    rows |= self._within(i, 0, d - 1, None)
        return self.existence() if rows is None else rows

    def _equal(self, code: int) -> BitMap:
        """The rows with this code; ends where none is left."""
        if self.shape.per_digit == 1:
            return self._equal_in_base_2(code)
        digits = self.shape.digits(code)
        # Existence is needed only where every digit is at its maximum.
        top = self.shape.base - 1
        order = sorted(range(len(digits)), key=lambda i: (digits[i] == top, -i))
        rows: BitMap | None = None
        for i in order:
            rows = self._within(i, digits[i], digits[i], rows)
            if not rows:
                break
        return BitMap() if rows is None else rows

    def _equal_in_base_2(self, code: int) -> BitMap:
        zeros = self.parts.bitmaps(self.first, self.first + self.shape.n_digits)
        # Existence is needed only where every bit is one.
        order = range(len(zeros) - 1, -1, -1)
        begin = next((i for i in order if not code >> i & 1), None)
        rows = self.existence() if begin is None else thawed(zeros[begin])
        n_seen = 0 if begin is None else 1
        for i in order:
            if not rows:
                break
            if i != begin:
                n_seen += 1
                if code >> i & 1:
                    rows -= zeros[i]
                else:
                    rows &= zeros[i]
        self.parts.count.bitmaps += n_seen
        return rows

    def _within(self, i: int, low: int, high: int, rows: BitMap | None) -> BitMap:
        """A new bitmap: ``rows`` (None: all) with digit ``i`` in ``low .. high``."""
        if not self.shape.ranged:
            result = thawed(self._digit(i, low))
            for v in range(low + 1, high + 1):
                result |= self._digit(i, v)
            if rows is not None:
                result &= rows
            return result
        below = self._digit(i, low - 1) if low else None
        if high < self.shape.base - 1:
            upto = self._digit(i, high)
            result = thawed(upto) if rows is None else rows & upto
        elif rows is None:
            result = self.existence()
        else:
            return rows.copy() if below is None else rows - below
        if below is not None:
            result -= below
        return result

    def _walk(
        self, i: int, rows: BitMap | None, intervals: Sequence[Interval]
    ) -> BitMap:
        """The ``rows`` whose digits up to ``i`` make a code of ``intervals``."""
        result = BitMap()
        for low, high, inner in _by_digit(intervals, self.shape.base**i):
            part = self._within(i, low, high, rows)
            if inner and part:
                part = self._walk(i - 1, part, inner)
            result |= part
        return result


def _below(code: int, zeros: Sequence[FrozenBitMap], lowest: int) -> BitMap:
    """The rows with a code below ``code``, which is not zero."""
    first = (code & -code).bit_length() - 1
    rows = thawed(zeros[first - lowest])
    for i, bitmap in enumerate(zeros[first - lowest + 1 :], first + 1):
        if code >> i & 1:
            rows |= bitmap
        else:
            rows &= bitmap
    return rows


def _by_digit(
    intervals: Sequence[Interval], size: int
) -> list[tuple[int, int, list[Interval]]]:
    """Intervals cut at multiples of ``size``."""
    # Digit ranges that are covered as a whole, with an empty list, and single digits
    # with the intervals of the codes below them.
    pieces: list[tuple[int, int, list[Interval]]] = []
    for start, stop in intervals:
        at = start
        while at < stop:
            digit, offset = divmod(at, size)
            if not offset and stop - at >= size:
                last = stop // size - 1
                pieces.append((digit, last, []))
                at = (last + 1) * size
                continue
            end = min(stop, (digit + 1) * size)
            inner = (offset, end - digit * size)
            if pieces and pieces[-1][0] == digit and pieces[-1][2]:
                pieces[-1][2].append(inner)
            else:
                pieces.append((digit, digit, [inner]))
            at = end
    return pieces
