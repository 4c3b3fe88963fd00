"""The base of row-level kinds: their payload, and atoms as code intervals."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Self, assert_never

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import (
    Atom,
    IntegerSet,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    TextSet,
    Value,
    Values,
)
from skipindex.expressions.bounds import Bounds, exactly
from skipindex.expressions.domain import Domain
from skipindex.expressions.patterns import select
from skipindex.indexes.encoding.code_set import edges_of
from skipindex.indexes.encoding.dictionary import Codebook, open_codebook
from skipindex.indexes.encoding.header import Cursor, Head, check_version, read_head
from skipindex.indexes.interface import PROBE_COST, IndexSpec
from skipindex.storage.parts import Parts

Interval = tuple[int, int]
"""The codes ``start .. stop - 1``."""

_NO_CODE: Final = (0, 0)

DAMAGE: Final = (ValueError, IndexError, OverflowError, MemoryError, struct.error)
"""What reading damaged bytes may raise."""


def raise_damage(what: str, error: Exception, column: str = "") -> NoReturn:
    """Raise what ``error``, one of ``DAMAGE``, says of the bytes that were read.

    ``what`` was read, of ``column``; the message names both.

    Raises:
        CorruptIndexError: ``error`` itself, if it is one.
    """
    if isinstance(error, CorruptIndexError):
        raise error
    where = f" of column {column!r}" if column else ""
    raise CorruptIndexError(f"damaged bytes in {what}{where} ({error})") from error


@dataclass(frozen=True, slots=True)
class PositionalIndex(ABC):
    """An index over codes.

    ``head`` has the counts of the column, and ``book`` is what the codes mean.
    """

    head: Head
    book: Codebook
    parts: Parts

    @classmethod
    @abstractmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """Read what the kind adds to the header.

        Raises:
            CorruptIndexError: it contradicts itself or ``head``.
        """

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """How many parts a payload with this header has."""

    def existence(self) -> AbstractBitMap:
        """The rows that have a value."""
        if not self.head.null_count:
            return BitMap(range(self.head.n_rows))
        return self.present() if self.head.n_codes else BitMap()

    @abstractmethod
    def present(self) -> AbstractBitMap:
        """The rows that have a value, where some have and others are NULL."""

    @abstractmethod
    def among(self, intervals: Sequence[Interval]) -> Bounds[AbstractBitMap]:
        """The rows whose code lies in one of the intervals; NULL rows are in neither.

        The intervals are not empty, ascend, and do not touch each other.
        """

    def probe(self, atom: Atom) -> Bounds[AbstractBitMap]:
        """Bound the rows for which ``atom`` is TRUE.

        Raises:
            CorruptIndexError: a part of the payload is damaged.
        """
        try:
            bounds = self._probe(atom)
        except DAMAGE as error:
            raise_damage("the index", error, atom.column)
        if bounds.upper and bounds.upper.max() >= self.head.n_rows:
            raise CorruptIndexError(
                f"the index of column {atom.column!r} names row {bounds.upper.max()}, "
                f"and the file has {self.head.n_rows} rows"
            )
        return bounds

    def distinct(self, limit: int) -> list[Value] | None:
        """Every value that has a code, or None if there are over ``limit``.

        Raises:
            CorruptIndexError: the dictionary is damaged.
        """
        if self.book.n_codes > limit:
            return None
        try:
            return self.book.values(0, self.book.n_codes)
        except DAMAGE as error:
            raise_damage("the dictionary", error)

    def values_of_rows(self, limit: int) -> Sequence[Value] | Ints | None:
        """The values that some row has, ascending; None if there are over ``limit``.

        None too without a dictionary, unless a kind reads the codes of all rows.

        Raises:
            CorruptIndexError: a part of the payload is damaged.
        """
        return self.distinct(limit) if self.book.base is None else None

    def places_of(self, values: Values) -> tuple[Ints, Ints] | None:
        """The rows with one of the values, ascending, and the places of their values.

        ``values`` ascend.  None where an index has rows only roughly.

        Raises:
            CorruptIndexError: a part of the payload is damaged.
        """
        try:
            return self._places_of(values)
        except DAMAGE as error:
            raise_damage("the index", error)

    def _found(self, values: Values) -> tuple[Ints, Ints]:
        """The codes of those values that have one, ascending, and their places."""
        codes = np.asarray(self.book.find_all(values), np.int64)
        if not len(codes) or len(codes) == len(values):
            return codes, np.arange(len(codes))
        known = self.book.values_of(codes)
        if isinstance(values, IntegerSet):
            return codes, values.array.searchsorted(known)
        texts = values if isinstance(values, TextSet) else TextSet(values)  # type: ignore[arg-type]
        return codes, np.array([texts.places[text] for text in known])  # type: ignore[index]

    def _places_of(self, values: Values) -> tuple[Ints, Ints] | None:
        codes, places = self._found(values)
        rows, mine = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for code, place in zip(codes.tolist(), places.tolist(), strict=True):
            bounds = self.among([(code, code + 1)])
            if bounds.lower is not bounds.upper:
                return None
            rows.append(np.frombuffer(bounds.upper.to_array(), np.uint32))
            mine.append(np.full(len(rows[-1]), place))
        return by_row(rows, mine)

    def _probe(self, atom: Atom) -> Bounds[AbstractBitMap]:
        match atom:
            case Range() | OneOf():
                return self._among(self._wanted(atom))
            case NoneOf(values=values):
                some = self._among(intervals_of(self.book.find_all(values)))
                every = self.existence()
                if some.lower is some.upper:
                    return exactly(every - some.upper)
                return Bounds(every - some.upper, every - some.lower)
            case Matches():
                return self._matching(atom)
            case NullAtom():
                return exactly(self._null_rows())
            case NotNullAtom():
                return exactly(self.existence())
            case _:
                assert_never(atom)

    def _wanted(self, atom: Range | OneOf) -> list[Interval]:
        """The codes that make ``atom`` TRUE."""
        if isinstance(atom, OneOf):
            return intervals_of(self.book.find_all(atom.values))
        start, stop = self.book.locate(atom.low, atom.high)
        return [(start, stop)] if start < stop else []

    def _among(self, intervals: list[Interval]) -> Bounds[AbstractBitMap]:
        if not intervals:
            return exactly(BitMap())
        if intervals == [(0, self.book.n_codes)]:
            return exactly(self.existence())
        return self.among(intervals)

    def _matching(self, atom: Matches) -> Bounds[AbstractBitMap]:
        """Test every value of the dictionary, which is read as a whole."""
        texts = self.book.texts()
        if texts is None:
            return Bounds(BitMap(), self.existence())
        certain, possible = select(atom.pattern, texts)
        bounds = self._among(intervals_of(np.flatnonzero(possible)))
        if not np.array_equal(certain, possible):
            surely = self._among(intervals_of(np.flatnonzero(certain)))
            bounds = Bounds(surely.lower, bounds.upper)
        if not atom.negated:
            return bounds
        every = self.existence()
        return Bounds(every - bounds.upper, every - bounds.lower)

    def _null_rows(self) -> AbstractBitMap:
        if not self.head.null_count:
            return BitMap()
        return BitMap(range(self.head.n_rows)) - self.existence()


@dataclass(frozen=True, slots=True)
class PositionalContextIndex(PositionalIndex):
    """A ``ContextIndex``: it is cheaper on a few given rows than on the whole file."""

    @abstractmethod
    def inside(self, interval: Interval, rows: AbstractBitMap) -> BitMap | None:
        """Exactly those of ``rows`` with a code of the interval; None: ask ``among``.

        ``rows`` is not changed.
        """

    @abstractmethod
    def count_inside(self, interval: Interval, rows: AbstractBitMap) -> int | None:
        """How many of ``rows`` have a code of the interval; None: ask ``among``."""

    def probe_within(self, atom: Atom, rows: AbstractBitMap) -> Bounds[AbstractBitMap]:
        """Bound those of ``rows`` for which ``atom`` is TRUE, as tightly as ``probe``.

        Raises:
            CorruptIndexError: a part of the payload is damaged.
        """
        try:
            interval = self._only_interval(atom)
            if interval == _NO_CODE:
                return exactly(BitMap())
            result = None if interval is None else self.inside(interval, rows)
        except DAMAGE as error:
            raise_damage("the index", error, atom.column)
        if result is not None:
            return exactly(result)
        bounds = self.probe(atom)
        upper = bounds.upper & rows
        if bounds.lower is bounds.upper:
            return exactly(upper)
        return Bounds(bounds.lower & rows, upper)

    def count_within(self, atom: Atom, rows: AbstractBitMap) -> int | None:
        """How many of ``rows`` ``atom`` is TRUE for; None: ask ``probe_within``.

        Raises:
            CorruptIndexError: a part of the payload is damaged.
        """
        try:
            interval = self._only_interval(atom)
            if interval == _NO_CODE:
                return 0
            return None if interval is None else self.count_inside(interval, rows)
        except DAMAGE as error:
            raise_damage("the index", error, atom.column)

    def _only_interval(self, atom: Atom) -> Interval | None:
        """The codes that make ``atom`` TRUE, if they are one interval and not all."""
        if not isinstance(atom, Range | OneOf):
            return None
        intervals = self._wanted(atom)
        if not intervals:
            return _NO_CODE
        is_one = len(intervals) == 1 and intervals != [(0, self.book.n_codes)]
        return intervals[0] if is_one else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionalKind:
    """A kind whose payload begins with a ``Head`` and a ``Codebook``.

    ``index`` reads the payload; ``probe_cost`` is like ``interface.PROBE_COST``, and
    ``encoding`` names that of a payload, if there are several.
    """

    name: str
    version: int
    spec: type[IndexSpec]
    index: Callable[[Head, Codebook, Parts, Cursor], PositionalIndex]
    positional: bool = True
    probe_cost: float = PROBE_COST
    encoding: Callable[[Sequence[bytes]], str] | None = None

    def check(self, domain: Domain) -> None:
        """Accept every domain: all that codes need is an order."""

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> PositionalIndex:
        """Read the header; a dictionary and bitmaps are read when probed.

        Raises:
            CorruptIndexError: the header is not of this column of this file.
            IndexVersionError: a newer library wrote it.
        """
        if not len(parts):
            raise CorruptIndexError(f"a {self.name} payload has no part")
        check_version(parts[0], self.version, self.name)
        cursor = Cursor(parts[0])
        head = read_head(cursor, kind=self.name, domain=domain, n_rows=n_rows)
        book = open_codebook(head, cursor, parts)
        index = self.index(head, book, parts, cursor)
        cursor.end()
        if len(parts) != index.n_parts:
            raise CorruptIndexError(
                f"a {self.name} payload has {len(parts)} parts, and its header says "
                f"{index.n_parts}"
            )
        return index


def by_row(rows: Sequence[Ints], places: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Pieces of rows and of the places of their values, as one, by row."""
    every, which = np.concatenate(rows), np.concatenate(places)
    order = every.argsort(kind="stable")
    return every[order], which[order]


def intervals_of(codes: Sequence[int] | Ints) -> list[Interval]:
    """Ascending codes as maximal intervals."""
    edges = edges_of(codes)
    ends = edges.tolist() if isinstance(edges, np.ndarray) else edges
    return list(zip(ends[::2], ends[1::2], strict=True))


def bins_of(
    intervals: Sequence[Interval], unit: int, n_codes: int
) -> tuple[list[Interval], list[Interval]]:
    """The bins of ``unit`` codes within ascending intervals, and those they touch.

    >>> bins_of([(2, 9)], 4, 10)
    ([(1, 2)], [(0, 3)])
    """
    # <---[ bin ]--[ bin start ]--[ bin ]--[ stop bin ]--->
    #                  touched  inside  touched
    inside: list[Interval] = []
    touched: list[Interval] = []
    for start, stop in intervals:
        _append(touched, start // unit, -(-stop // unit))
        # No row is beyond the last code, so its bin may be taken as full.
        end = -(-stop // unit) if stop == n_codes else stop // unit
        _append(inside, -(-start // unit), end)
    return inside, touched


def _append(intervals: list[Interval], start: int, stop: int) -> None:
    """Add an interval that begins after the others began; they may touch."""
    if start >= stop:
        return
    if intervals and start <= intervals[-1][1]:
        start, stop = intervals[-1][0], max(stop, intervals[-1][1])
        intervals.pop()
    intervals.append((start, stop))
