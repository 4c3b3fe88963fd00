"""Sets of codes, and which codes of an array are in a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from skipindex.expressions.arrays import Ints, Mask, UnsignedInts

_ONE_BY_ONE: Final = 4
"""Intervals up to which each is compared with all codes."""
_TABLE: Final = 1 << 20
_TABLE_PER_ROW: Final = 16
"""A table of all codes is used up to these numbers of entries: in all, or a row."""


def edges_of(codes: Sequence[int] | Ints) -> list[int] | Ints:
    """The starts and stops of the maximal intervals of ascending codes, in turn."""
    if isinstance(codes, np.ndarray):
        begins = np.flatnonzero(np.diff(codes, prepend=-2) != 1)
        edges = np.empty(2 * len(begins), np.int64)
        edges[::2] = codes[begins]
        edges[1::2] = codes[np.append(begins[1:], len(codes))[: len(begins)] - 1] + 1
        return edges
    result: list[int] = []
    start = stop = -1
    for code in codes:
        if code != stop:
            if stop > start:
                result += (start, stop)
            start = code
        stop = code + 1
    if stop > start:
        result += (start, stop)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class CodeSet:
    """The codes of ascending intervals that do not touch each other.

    Either ``edges`` are the start and the stop of each interval in turn, as a tuple of
    few or an array; or ``table`` has a mark for each code, where that is faster.
    """

    edges: tuple[int, ...] | Ints
    table: Mask | None = None

    @classmethod
    def of(cls, edges: Sequence[int] | Ints, n_codes: int, n_rows: int) -> Self:
        """The set that is fast for ``n_rows`` codes, all below ``n_codes``."""
        if len(edges) <= 2 * _ONE_BY_ONE:
            return cls(tuple(map(int, edges)))
        many = np.minimum(np.asarray(edges, np.int64), n_codes)
        if not _is_tabled(n_codes, n_rows):
            return cls(many)
        steps = np.zeros(n_codes + 1, np.int8)
        steps[many[::2]] += 1
        steps[many[1::2]] -= 1
        return cls((), steps[:-1].cumsum(dtype=np.int8).view(np.bool_))

    @classmethod
    def of_codes(cls, codes: Sequence[int] | Ints, n_codes: int, n_rows: int) -> Self:
        """The set of ascending codes, as ``of``."""
        if not isinstance(codes, np.ndarray) or len(codes) <= _ONE_BY_ONE:
            return cls.of(edges_of(codes), n_codes, n_rows)
        first, last = int(codes[0]), int(codes[-1])
        if last - first < len(codes):
            return cls((first, last + 1))
        if not _is_tabled(n_codes, n_rows):
            return cls(np.asarray(edges_of(codes)))
        table: Mask = np.zeros(n_codes, np.bool_)
        table[codes] = True
        return cls((), table)

    @property
    def is_empty(self) -> bool:
        """Whether it has no code."""
        return self.table is None and not len(self.edges)

    def equals(self, other: CodeSet | None) -> bool:
        """Whether it has the same codes, and finds them in the same way."""
        if other is None or self is other:
            return self is other
        mine, theirs = self.table, other.table
        if mine is None or theirs is None:
            same = mine is theirs and len(self.edges) == len(other.edges)
            return same and bool(np.all(self.edges == other.edges))
        return len(mine) == len(theirs) and np.array_equal(mine, theirs)

    def among(self, codes: UnsignedInts) -> Mask:
        """Which codes are in the set; an array of its own."""
        if self.table is not None:
            return self.table.take(codes)
        if isinstance(self.edges, np.ndarray):
            return np.asarray(self.edges.searchsorted(codes, side="right") & 1 == 1)
        if not self.edges:
            return np.zeros(codes.shape, np.bool_)
        pairs = zip(self.edges[::2], self.edges[1::2], strict=True)
        first, *others = (_between(codes, *one) for one in pairs)
        for other in others:
            first |= other
        return first


def _is_tabled(n_codes: int, n_rows: int) -> bool:
    return n_codes <= max(_TABLE, _TABLE_PER_ROW * n_rows)


def among_rows(codes: UnsignedInts, sets: Sequence[CodeSet]) -> Mask:
    """Which codes of each row of a matrix are in the set of that row."""
    first = sets[0]
    if all(one is first for one in sets):
        return first.among(codes)
    if all(len(one.edges) == 2 for one in sets):
        starts, stops = np.array([one.edges for one in sets]).T[:, :, np.newaxis]
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
