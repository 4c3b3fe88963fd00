"""Run-length: the codes of runs of equal neighbours, in bit slices over the runs.

For columns whose value stays for some rows: those of the order in a table of order
lines, or whatever a table is sorted or clustered by.  Exact for everything.  It costs
one bit a row for the places where runs begin, and ``log2(distinct values)`` bits a
*run*, where ``bit_sliced`` costs as many bits a row.  The slices are plain bits and
not roaring bitmaps, whose containers have 8 KB however few runs or rows there are.
Where hardly any neighbours are equal, each row is a run and no places are stored.

Payload, version 1::

    part 0          header (``header``), codes (``dictionary``), then
                    u32 r, the number of runs
                    u8  w, the number of slices
                    u8  form of the beginnings: 0 bits, 1 numbers, 2 all rows
    parts 1 .. c    dictionary chunks, none in value mode
    then            the beginnings of the runs: a bit a row, the lowest first, or the
                    rows as ascending u32; a run ends where the next begins.  No part
                    where all rows begin one
    then            w slices of ceil(r / 8) bytes, the lowest bit of the codes first:
                    a one is a run whose bit is zero.  NULL is the code n.

A part that begins with bits ends with zeros up to the full byte.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Final, Self

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap, BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints, UnsignedInts, starts
from skipindex.expressions.atoms import (
    Atom,
    IntegerSet,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
    Values,
)
from skipindex.expressions.bounds import Bounds, exactly
from skipindex.indexes.encoding.bit_matrix import codes_of, planes_of
from skipindex.indexes.encoding.code_set import CodeSet, edges_of
from skipindex.indexes.encoding.coding import (
    Coding,
    dictionary_bits,
    rank_coding,
    value_coding,
    value_span,
)
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.header import Cursor, Head
from skipindex.indexes.encoding.roaring import from_mask, from_rows
from skipindex.indexes.positional import (
    DAMAGE,
    Interval,
    PositionalContextIndex,
    PositionalKind,
    raise_damage,
)
from skipindex.storage.parts import Parts

_KIND: Final = "run_length"
_VERSION: Final = 1
_AS_BITS: Final = 0
_AS_NUMBERS: Final = 1
_ALL_ROWS: Final = 2
_EACH: Final = 16
"""Few values are compared with all codes one by one: one for 2 ** 16 rows at most."""
_MOST_TABLED: Final = 1 << 20
"""Codes up to which a table has an entry for each."""
_MOST_EXPANDED: Final = 1 << 17
"""Rows of a file up to which each of few runs may become the codes of its rows."""
_MOST_HELD: Final = 1 << 16
"""Runs up to which their codes are read and sorted to know the values of a file."""
_FEW: Final = 8
"""A file has so many times as many rows as some of them at least, if these are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLength:
    """Bit slices over runs of equal neighbours; exact for every atom.

    For sorted or clustered columns: the cost is per run, not per row.

    >>> report = table.build_indexes({"city": "run_length"}, workers=1)
    >>> report.table.plan("city = 'Oslo'").count()
    2
    """

    kind: ClassVar[str] = _KIND
    memory_per_row: ClassVar[int] = 56

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload."""
        runs = Runs.of(column)
        header = runs.coding.header(column, version=_VERSION) + runs.head
        return [header, *runs.coding.chunks, *runs.parts]


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a column: its codes, and what a payload has of them.

    ``head`` ends the header, and ``parts`` are those after the dictionary.
    """

    coding: Coding
    head: bytes
    parts: list[bytes]

    @classmethod
    def of(cls, column: EncodedColumn, *, by_rank: bool = False) -> Runs:
        """The runs of equal neighbours, by ranks or by what takes fewer bytes."""
        begins = np.flatnonzero(starts(column.codes))
        span = value_span(column)
        coding = rank_coding(column)
        if span is not None and not by_rank and bits_of_ranks(column, len(begins)) >= 0:
            coding = value_coding(column, span)
        width = code_width(coding.n_codes, has_null=column.null_count > 0)
        form = _AS_BITS
        if 32 * len(begins) < column.n_rows:
            form = _AS_NUMBERS
        elif width * (column.n_rows - len(begins)) < column.n_rows:
            form = _ALL_ROWS
            begins = np.arange(column.n_rows)
        codes = coding.codes[begins]
        if column.null_count:
            codes = np.where(codes == NULL_CODE, np.uint32(coding.n_codes), codes)
        places = []
        if form == _AS_NUMBERS:
            places.append(begins.astype("<u4").tobytes())
        elif form == _AS_BITS:
            begun = np.zeros(column.n_rows, np.bool_)
            begun[begins] = True
            places.append(np.packbits(begun, bitorder="little").tobytes())
        head = np.array([len(begins)], "<u4").tobytes() + bytes([width, form])
        return cls(coding, head, [*places, planes_of(codes, width)])


@dataclass(frozen=True, slots=True)
class DecodedCodes:
    """Codes, or other numbers, that a part is decoded into."""

    codes: UnsignedInts

    @property
    def n_bytes(self) -> int:
        """The size of the array."""
        return self.codes.nbytes


def code_width(n_codes: int, *, has_null: bool) -> int:
    """Bits of the greatest code, NULL's among them; one where there is but one."""
    greatest = n_codes - 1 + has_null
    return max(1, greatest.bit_length()) if greatest >= 0 else 0


def bits_of_ranks(column: EncodedColumn, n_runs: int) -> float:
    """How many bits ranks and their dictionary take more than values would.

    Less than zero if they take fewer, or if there are no such values.
    """
    span = value_span(column)
    if span is None or span == NULL_CODE - 1:  # NULL is the code ``span``
        return -1.0
    has_null = column.null_count > 0
    fewer = code_width(span, has_null=has_null)
    fewer -= code_width(column.n_distinct, has_null=has_null)
    return dictionary_bits(column.n_distinct, span) - fewer * n_runs


@dataclass(frozen=True, slots=True)
class RunLengthIndex(PositionalContextIndex):
    """The runs of one column of one file."""

    n_runs: int
    width: int
    form: int
    encoding: ClassVar[str] = _KIND

    @classmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """How many runs and slices there are."""
        (n_runs,) = cursor.numbers("I", 1)
        width, form = cursor.bytes(2)
        expected = code_width(head.n_codes, has_null=head.null_count > 0)
        if (
            (n_runs > 0) != (head.n_rows > 0)
            or n_runs > head.n_rows
            or width != expected
            or form not in (_AS_BITS, _AS_NUMBERS, _ALL_ROWS)
            or (form == _ALL_ROWS and n_runs != head.n_rows)
        ):
            raise CorruptIndexError(
                f"a run_length payload cannot have {n_runs} runs, {width} slices and "
                f"form {form} (expected {expected} slices, form 0 or 1, and no more "
                f"runs than rows, or form 2 and as many: {head})"
            )
        return cls(head, book, parts, n_runs, width, form)

    @property
    def n_parts(self) -> int:
        """The header, the dictionary, the beginnings of the runs, and the slices."""
        return self.first + 1 + (self.form != _ALL_ROWS)

    @property
    def first(self) -> int:
        """The part with which the runs begin."""
        return 1 + self.head.n_chunks

    def present(self) -> AbstractBitMap:
        """The rows whose code is not that of NULL."""
        return self._with_codes([(0, self.head.n_codes)])

    def among(self, intervals: Sequence[Interval]) -> Bounds[AbstractBitMap]:
        """Exactly the rows with a code of the intervals."""
        return exactly(self._with_codes(intervals))

    @property
    def code_key(self) -> Hashable | None:
        """Indexes with equal keys have equal codes; None: too many rows for codes."""
        if self.form == _AS_NUMBERS and self.head.n_rows > _MOST_EXPANDED:
            return None
        return self.book.key

    def code_set(self, atom: Atom) -> CodeSet | None:
        """The codes of exactly the rows that make ``atom`` TRUE; None: ask ``probe``.

        Raises:
            CorruptIndexError: the dictionary is damaged.
        """
        try:
            return self._codes_of(atom)
        except DAMAGE as error:
            raise_damage("the dictionary", error, atom.column)

    def _codes_of(self, atom: Atom) -> CodeSet | None:
        """The codes that make ``atom`` TRUE; None if that is not known of each."""
        n, n_rows = self.head.n_codes, self.head.n_rows
        match atom:
            case OneOf(values=values):
                return CodeSet.of_codes(self.book.find_all(values), n + 1, n_rows)
            case NoneOf(values=values):
                edges = np.asarray(edges_of(self.book.find_all(values)), np.int64)
                others = np.concatenate([[0], edges, [n]])
                first, last = others[0] == others[1], others[-2] == others[-1]
                return self._code_set(others[2 * first : len(others) - 2 * last])
            case Range():
                return self._code_set([*chain(*self._wanted(atom))])
            case NullAtom():
                return self._code_set([n, n + 1])
            case NotNullAtom():
                return self._code_set([0, n] if n else [])
            case _:
                return None

    def codes(self) -> UnsignedInts:
        """The code of every row; NULL has the code ``head.n_codes``.

        Raises:
            CorruptIndexError: a part of the payload is damaged.
        """
        try:
            codes = self._codes()
            if self.form == _AS_NUMBERS:
                codes = np.repeat(codes, np.diff(self._begun()))
        except DAMAGE as error:
            raise_damage("the index", error)
        return codes

    def values_of_rows(self, limit: int) -> Sequence[Value] | Ints | None:
        """Without a dictionary, by the codes of all runs if these are few."""
        base = self.book.base
        if base is None or self.n_runs > _MOST_HELD:
            return PositionalContextIndex.values_of_rows(self, limit)
        try:
            codes = np.unique(self._codes())
        except DAMAGE as error:
            raise_damage("the index", error)
        values = codes[codes < self.head.n_codes].astype(np.int64) + base
        return values if len(values) <= limit else None

    def _places_of(self, values: Values) -> tuple[Ints, Ints] | None:
        """In one pass over the rows."""
        if self.code_key is None:
            return PositionalContextIndex._places_of(self, values)  # noqa: SLF001 (of its base)
        mine = self.codes()
        base = self.book.base
        if len(values) <= self.head.n_rows >> _EACH:
            codes, places = self._found(values)
            each = [np.flatnonzero(mine == code) for code in codes.tolist()]
            chosen: Ints = np.sort(np.concatenate([*each, np.zeros(0, np.int64)]))
            return chosen, places[codes.searchsorted(mine[chosen])]
        if base is not None and isinstance(values, IntegerSet):
            rows, places = values.places_of(mine.astype(np.int64) + base)
            has_value = mine[rows] < self.head.n_codes
            return rows[has_value], places[has_value]
        codes, places = self._found(values)
        if not len(codes):
            return codes, places
        if self.head.n_codes <= _MOST_TABLED:
            place_of: Ints = np.full(self.head.n_codes + 1, -1, np.int64)
            place_of[codes] = places
            result = place_of.take(mine)
            rows = np.flatnonzero(result >= 0)
            return rows, result[rows]
        at = codes.searchsorted(mine)
        rows = np.flatnonzero(codes.take(at, mode="clip") == mine)
        return rows, places[at[rows]]

    def inside(self, interval: Interval, rows: AbstractBitMap) -> BitMap | None:
        """Exactly those of a few ``rows`` with a code of the interval."""
        if len(rows) * _FEW > self.head.n_rows:
            return None
        places = np.frombuffer(rows.to_array(), np.uint32)
        runs: npt.NDArray[np.integer] = places
        if self.form == _AS_NUMBERS:
            runs = self._begun().searchsorted(places, side="right") - 1
        chosen = places[self._code_set(interval).among(self._codes().take(runs))]
        return from_rows(chosen, self.head.n_rows)

    def count_inside(self, interval: Interval, rows: AbstractBitMap) -> int | None:
        """How many of a few ``rows`` have a code of the interval."""
        result = self.inside(interval, rows)
        return None if result is None else len(result)

    def _with_codes(self, intervals: Sequence[Interval]) -> BitMap:
        mask = self._code_set([*chain(*intervals)]).among(self._codes())
        if self.form != _AS_NUMBERS:
            return from_mask(mask)
        return self._expanded(np.flatnonzero(mask))

    def _codes(self) -> UnsignedInts:
        """The code of every row, or of every run if these are few."""
        self.parts.count.bitmaps += self.width
        return self.parts.decoded(self.n_parts - 1, self._decoded).codes

    def _decoded(self, raw: memoryview) -> DecodedCodes:
        codes = self.codes_in(raw)
        if self.form == _AS_BITS:
            self.parts.count.bitmaps += 1
            begun = self._begins(self.parts[self.first])  # of no use later
            codes = np.repeat(codes, np.diff(begun.codes))
        return DecodedCodes(codes)

    def codes_in(self, raw: memoryview) -> UnsignedInts:
        """The code of every run, in the bytes of the slices."""
        codes = codes_of(raw, self.width, self.n_runs)
        n_codes = self.head.n_codes + (self.head.null_count > 0)
        if len(codes) and codes.max() >= n_codes:
            raise CorruptIndexError(f"code {codes.max()} of {n_codes} codes")
        return codes

    def _begun(self) -> UnsignedInts:
        """Where runs begin that are few, and the end of the last one."""
        self.parts.count.bitmaps += 1
        return self.parts.decoded(self.first, self._begins).codes

    def _code_set(self, edges: Sequence[int] | Ints) -> CodeSet:
        # That of NULL is a code more.
        return CodeSet.of(edges, self.head.n_codes + 1, self.head.n_rows)

    def _expanded(self, chosen: Ints) -> BitMap:
        """The rows of some runs, given by their numbers."""
        if not len(chosen):
            return BitMap()
        begins = self._begun()
        first, end = begins[chosen], begins[chosen + 1]
        lengths = (end - first).astype(np.int64)
        # Rows count up by one, and jump where a run begins.
        before = np.cumsum(lengths) - lengths
        steps = np.repeat(first.astype(np.int64) - before, lengths)
        rows = (steps + np.arange(len(steps))).astype(np.uint32)
        return from_rows(rows, self.head.n_rows)

    def _begins(self, raw: memoryview) -> DecodedCodes:
        """Where the runs begin, and the end of the last one."""
        if self.form == _AS_NUMBERS:
            begins = np.frombuffer(raw, "<u4")
        else:
            bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")
            # Ones are found several times faster as booleans.
            begins = np.flatnonzero(bits.view(np.bool_)).astype(np.uint32)
        if (
            len(begins) != self.n_runs
            or begins[0]
            or begins[-1] >= self.head.n_rows
            or (begins[1:] <= begins[:-1]).any()
        ):
            raise CorruptIndexError(
                "the runs of a run_length payload do not ascend from row 0"
            )
        return DecodedCodes(np.append(begins, np.uint32(self.head.n_rows)))


INDEX_TYPE: Final = PositionalKind(
    name=_KIND,
    version=_VERSION,
    spec=RunLength,
    index=RunLengthIndex.read,
    probe_cost=16.0,
)
