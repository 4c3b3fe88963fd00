"""From atoms to code intervals: what all kinds that know rows have in common."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, Protocol, assert_never

import numpy as np
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.atoms import (
    Atom,
    IsNotNull,
    IsNull,
    Matches,
    NoneOf,
    OneOf,
    Range,
    Value,
)
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.patterns import select
from skipindex.indexes.encoding import roaring
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.header import Head
from skipindex.storage.parts import Parts

Interval = tuple[int, int]
"""The codes ``start .. stop - 1``."""

_NOWHERE: Final = (0, 0)
"""The interval of no code."""

DAMAGE: Final = (ValueError, IndexError, OverflowError, MemoryError, struct.error)
"""What reading nonsense may raise."""


class Positional(Protocol):
    """An index over codes.  Each answer bounds the rows; NULL rows are in none."""

    @property
    def head(self) -> Head:
        """The counts of the column."""

    @property
    def book(self) -> Codebook:
        """What the codes mean."""

    def existence(self) -> BitMap:
        """The rows that have a value."""

    def among(self, intervals: Sequence[Interval]) -> Bounds[BitMap]:
        """The rows whose code lies in one of the intervals.

        They are not empty, ascending, and do not touch each other.
        """


class Nested(Positional, Protocol):
    """One that can look at few rows for less than at all of them."""

    def inside(self, interval: Interval, rows: BitMap) -> BitMap | None:
        """Exactly those of ``rows`` with a code of the interval; None: ask ``among``.

        ``rows`` is not changed.
        """

    def count_inside(self, interval: Interval, rows: BitMap) -> int | None:
        """How many they are; None: ask ``among``."""


def answer_within(index: Nested, atom: Atom, rows: BitMap) -> Bounds[BitMap]:
    """Bound those of ``rows`` for which ``atom`` is TRUE.

    Raises:
        CorruptIndexError: a part of the payload makes no sense.
    """
    try:
        interval = _only_interval(index, atom)
        if interval is not None:
            found = index.inside(interval, rows) if interval != _NOWHERE else BitMap()
            if found is not None:
                return _exactly(found)
    except CorruptIndexError:
        raise
    except DAMAGE as error:
        raise _damaged(atom, error) from error
    bounds = answer(index, atom)
    upper = bounds.upper & rows
    if bounds.lower is bounds.upper:
        return _exactly(upper)
    return Bounds(bounds.lower & rows, upper)


def count_within(index: Nested, atom: Atom, rows: BitMap) -> int | None:
    """Of how many of ``rows`` ``atom`` is TRUE; None: ask ``answer_within``.

    Raises:
        CorruptIndexError: a part of the payload makes no sense.
    """
    try:
        interval = _only_interval(index, atom)
        if interval is None:
            return None
        if interval == _NOWHERE:
            return 0
        return index.count_inside(interval, rows)
    except CorruptIndexError:
        raise
    except DAMAGE as error:
        raise _damaged(atom, error) from error


def _only_interval(index: Nested, atom: Atom) -> Interval | None:
    """The codes that make ``atom`` TRUE, if they are one interval and not all."""
    match atom:
        case Range(low=low, high=high):
            start, stop = index.book.locate(low, high)
            if start >= stop:
                return _NOWHERE
        case OneOf(values=values):
            intervals = intervals_of(index.book.find_all(values))
            if not intervals:
                return _NOWHERE
            if len(intervals) > 1:
                return None
            ((start, stop),) = intervals
        case _:
            return None
    return (start, stop) if stop - start < index.book.n_codes else None


def _damaged(atom: Atom, error: Exception) -> CorruptIndexError:
    return CorruptIndexError(
        f"the index of column {atom.column!r} is damaged ({error})"
    )


def answer(index: Positional, atom: Atom) -> Bounds[BitMap]:
    """Bound the rows for which ``atom`` is TRUE.

    Raises:
        CorruptIndexError: a part of the payload makes no sense.
    """
    try:
        bounds = _answer(index, atom)
    except CorruptIndexError:
        raise
    except DAMAGE as error:
        raise _damaged(atom, error) from error
    if bounds.upper and bounds.upper.max() >= index.head.n_rows:
        raise CorruptIndexError(
            f"the index of column {atom.column!r} names row {bounds.upper.max()}, "
            f"and the file has {index.head.n_rows} rows"
        )
    return bounds


def distinct(index: Positional, limit: int) -> list[Value] | None:
    """The values of all codes, None if there are more than ``limit``.

    Raises:
        CorruptIndexError: a part of the payload makes no sense.
    """
    if index.book.n_codes > limit:
        return None
    try:
        return index.book.values(0, index.book.n_codes)
    except DAMAGE as error:
        raise CorruptIndexError(f"the dictionary is damaged ({error})") from error


def _answer(index: Positional, atom: Atom) -> Bounds[BitMap]:
    match atom:
        case Range(low=low, high=high):
            start, stop = index.book.locate(low, high)
            return _among(index, [(start, stop)] if start < stop else [])
        case OneOf(values=values):
            return _among(index, intervals_of(index.book.find_all(values)))
        case NoneOf(values=values):
            some = _among(index, intervals_of(index.book.find_all(values)))
            every = index.existence()
            if some.lower is some.upper:
                return _exactly(every - some.upper)
            return Bounds(every - some.upper, every - some.lower)
        case Matches():
            return _matching(index, atom)
        case IsNull():
            return _exactly(_null_rows(index))
        case IsNotNull():
            return _exactly(index.existence())
        case _:
            assert_never(atom)


def _among(index: Positional, intervals: list[Interval]) -> Bounds[BitMap]:
    if not intervals:
        return _exactly(BitMap())
    if intervals == [(0, index.book.n_codes)]:
        return _exactly(index.existence())
    return index.among(intervals)


def _matching(index: Positional, atom: Matches) -> Bounds[BitMap]:
    """By every value of the dictionary, which is read as a whole."""
    texts = index.book.texts()
    if texts is None:
        return Bounds(BitMap(), index.existence())
    certain, possible = select(atom.pattern, texts)
    bounds = _among(index, intervals_of(np.flatnonzero(possible).tolist()))
    if not np.array_equal(certain, possible):
        surely = _among(index, intervals_of(np.flatnonzero(certain).tolist()))
        bounds = Bounds(surely.lower, bounds.upper)
    if not atom.negated:
        return bounds
    every = index.existence()
    return Bounds(every - bounds.upper, every - bounds.lower)


def _null_rows(index: Positional) -> BitMap:
    if not index.head.null_count:
        return BitMap()
    return BitMap(range(index.head.n_rows)) - index.existence()


def _exactly(rows: BitMap) -> Bounds[BitMap]:
    return Bounds(rows, rows)


def intervals_of(codes: Sequence[int]) -> list[Interval]:
    """Ascending codes as maximal intervals."""
    intervals: list[Interval] = []
    start = stop = -1
    for code in codes:
        if code != stop:
            if stop > start:
                intervals.append((start, stop))
            start = code
        stop = code + 1
    if stop > start:
        intervals.append((start, stop))
    return intervals


def load(parts: Parts, raw: bytes | memoryview) -> BitMap:
    """A bitmap of ``parts``, counted as looked at."""
    parts.count.bitmaps += 1
    return roaring.load(raw)
