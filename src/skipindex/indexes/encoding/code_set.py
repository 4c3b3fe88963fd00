"""Sets of codes, and which codes of an array are in a set."""

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

    def equals(self, other: CodeSet | None) -> bool:
        """Whether it has the same codes, and finds them in the same way."""
        if other is None or self is other:
            return self is other
        mine, theirs = self.table, other.table
        same_table = mine is theirs or (
            mine is not None and theirs is not None and len(mine) == len(theirs)
        )
        return same_table and self.intervals == other.intervals

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


def among_rows(codes: UnsignedInts, sets: Sequence[CodeSet]) -> Mask:
    """Which codes of each row of a matrix are in the set of that row."""
    first = sets[0]
    if all(one is first for one in sets):
        return first.among(codes)
    if all(len(one.intervals) == 1 for one in sets):
        starts, stops = np.array([one.intervals[0] for one in sets]).T[:, :, np.newaxis]
        # The code of NULL is not in the codes of a column without NULLs.
        if stops.max() - 1 <= np.iinfo(codes.dtype).max:
            starts, lasts = starts.astype(codes.dtype), (stops - 1).astype(codes.dtype)
            # What is below the start becomes great, as the numbers have no sign.
            return np.asarray(codes - starts <= lasts - starts)
    return np.array([one.among(row) for one, row in zip(sets, codes, strict=True)])


def _between(codes: UnsignedInts, start: int, stop: int) -> Mask:
    if stop - start == 1:
        return np.asarray(codes == start)
    # What is below ``start`` becomes great, as the numbers have no sign.
    return np.asarray(codes - codes.dtype.type(start) < stop - start)
