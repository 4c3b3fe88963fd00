"""Sets of codes, and which of many codes are in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from skipindex.expressions.arrays import Mask, UnsignedInts

_ONE_BY_ONE: Final = 4
"""Intervals up to which each is compared with all codes."""
_TABLE: Final = 1 << 20
_TABLE_PER_ROW: Final = 16
"""A table of all codes is used up to these numbers of entries: in all, or a row."""


@dataclass(frozen=True, slots=True)
class CodeSet:
    """The codes of ascending intervals that do not touch each other.

    ``table`` has a mark for each code, where that is faster than the intervals.
    """

    intervals: Sequence[tuple[int, int]]
    table: Mask | None = None

    @classmethod
    def of(
        cls, intervals: Sequence[tuple[int, int]], n_codes: int, n_rows: int
    ) -> Self:
        """The set that is fast for ``n_rows`` codes, all below ``n_codes``."""
        few = len(intervals) <= _ONE_BY_ONE
        if few or n_codes > max(_TABLE, _TABLE_PER_ROW * n_rows):
            return cls(intervals)
        starts, stops = np.array(intervals, np.int64).T
        table: Mask = np.zeros(n_codes, np.bool_)
        table[starts[stops - starts == 1]] = True
        for start, stop in intervals:
            if stop - start > 1:
                table[start:stop] = True
        return cls(intervals, table)

    def among(self, codes: UnsignedInts) -> Mask:
        """Which codes are in the set; an array of its own."""
        if self.table is not None:
            return self.table.take(codes)
        if len(self.intervals) > _ONE_BY_ONE:
            edges = np.array(self.intervals, np.int64).ravel()
            return np.asarray(edges.searchsorted(codes, side="right") & 1 == 1)
        if not self.intervals:
            return np.zeros(codes.shape, np.bool_)
        first, *others = (_between(codes, *one) for one in self.intervals)
        for other in others:
            first |= other
        return first


def _between(codes: UnsignedInts, start: int, stop: int) -> Mask:
    if stop - start == 1:
        return np.asarray(codes == start)
    # What is below ``start`` becomes great, as the numbers have no sign.
    return np.asarray(codes - codes.dtype.type(start) < stop - start)
