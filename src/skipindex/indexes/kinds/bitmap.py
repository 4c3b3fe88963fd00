"""Equality-encoded bitmaps: the rows of every value.

The cheapest kind for ``=`` and IN, and exact for every atom; a range unites the bitmaps
of its values.  A value of few rows has a list of rows, so a column of distinct values
costs the bits of a row's number (16 at least) a row, and its dictionary.

Payload, version 2::

    part 0          header (``header``), codes (``dictionary``), then
                    u32 p, the number of entry parts
                    u32 first code of each
    parts 1 .. c    dictionary chunks
    then            p parts of entries (``entries``)
    then            the existence bitmap as portable roaring, if a row is NULL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Final, Self

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import Atom, OneOf, Range, Values
from skipindex.expressions.bounds import Bounds, exactly
from skipindex.indexes.encoding.coding import (
    dictionary_bits,
    rank_coding,
    value_coding,
    value_span,
)
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.entries import EntryParts, Rows
from skipindex.indexes.encoding.entry_packing import pack_entries
from skipindex.indexes.encoding.header import Cursor, Head
from skipindex.indexes.encoding.roaring import from_rows, from_sorted_u16, pack_dense
from skipindex.indexes.positional import (
    DAMAGE,
    Interval,
    PositionalIndex,
    PositionalKind,
    by_row,
    raise_damage,
)
from skipindex.storage.bitmaps import ARRAY_MAX
from skipindex.storage.parts import Parts

_KIND: Final = "bitmap"
_VERSION: Final = 2
_FEW_VALUES: Final = 8
"""The lists of so many values are made bitmaps one by one."""
MANY_VALUES: Final = 4096
"""From this number of distinct values on, the rows of more than half of them are all
rows but those of the others, and a bit of an absent value may replace a dictionary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitmap:
    """A bitmap of the rows of each value (equality encoding), exact for all conditions.

    It is the fastest kind for ``=`` and IN.

    Source: O'Neil and Quass, Improved Query Performance with Variant Indexes,
    SIGMOD 1997 (the value-list index).

    >>> report = table.build_indexes({"price": sx.Bitmap()}, workers=1)
    >>> report.table.plan("price = 2").count()
    1
    """

    kind: ClassVar[str] = _KIND
    memory_per_row: ClassVar[int] = 20

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload."""
        n, span = column.n_distinct, value_span(column)
        if (
            span is not None
            and n >= MANY_VALUES
            and span - n <= dictionary_bits(n, span)  # an absent value costs a bit
        ):
            coding = value_coding(column, span)
        else:
            coding = rank_coding(column)
        entries, firsts = pack_entries(column, coding)
        header = coding.header(column, version=_VERSION)
        header += np.array([len(firsts), *firsts], "<u4").tobytes()
        parts = [header, *coding.chunks, *entries]
        if column.null_count:
            exists = coding.codes != NULL_CODE
            parts.append(pack_dense(np.packbits(exists, bitorder="little")))
        return parts


@dataclass(frozen=True, slots=True)
class BitmapIndex(PositionalIndex):
    """The rows of every value of one column of one file."""

    entries: EntryParts
    encoding: ClassVar[str] = _KIND

    @classmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """Where the entries of every code are."""
        entries = EntryParts.open(
            cursor, n_codes=head.n_codes, at=1 + head.n_chunks, n_rows=head.n_rows
        )
        return cls(head, book, parts, entries)

    @property
    def n_parts(self) -> int:
        """The header, the dictionary, the entries, and the existence bitmap."""
        return 1 + self.head.n_chunks + len(self.entries) + bool(self.head.null_count)

    def present(self) -> AbstractBitMap:
        """The existence bitmap."""
        last = len(self.parts) - 1
        self.parts.count.bitmaps += 1
        return self.parts.bitmap(last)

    def among(self, intervals: Sequence[Interval]) -> Bounds[AbstractBitMap]:
        """Exactly the rows with a code of the intervals."""
        (start, stop), *others = intervals
        if stop - start == 1 and not others:
            return exactly(self._of_one(start))
        edges = [0, *chain(*intervals), self.head.n_codes]
        n_values = sum(edges[2:-1:2]) - sum(edges[1:-1:2])
        if 2 * n_values > self.head.n_codes >= MANY_VALUES:
            pairs = zip(edges[::2], edges[1::2], strict=True)
            others = [(start, stop) for start, stop in pairs if start < stop]
            return exactly(self.existence() - self._united(others))
        return exactly(self._united(intervals))

    def has_many(self, atom: Atom) -> bool:
        """Whether so many values make ``atom`` TRUE that their rows take long to read.

        Some row has one of them, as of two neighbouring parts one has rows.

        Raises:
            CorruptIndexError: the dictionary is damaged.
        """
        if not isinstance(atom, Range | OneOf):
            return False
        try:
            wanted = self._wanted(atom)
        except DAMAGE as error:
            raise_damage("the dictionary", error, atom.column)
        part_of = self.entries.part_of
        return any(part_of(stop) - part_of(start) > 2 for start, stop in wanted)

    def _places_of(self, values: Values) -> tuple[Ints, Ints]:
        """Look values up part by part."""
        codes, places = self._found(values)
        rows: list[Ints] = [np.zeros(0, np.int64)]
        mine = [np.zeros(0, np.int64)]
        for entries, some, at in self.entries.holding(self.parts, codes):
            positions, counts = entries.rows_of(some)
            rows.append(positions.astype(np.int64))
            mine.append(np.repeat(places[at], counts))
        return by_row(rows, mine)

    def _united(self, intervals: Sequence[Interval]) -> AbstractBitMap:
        """The rows with a code of the intervals, by the entries of all of these."""
        postings: list[Rows] = []
        bitmaps: list[AbstractBitMap] = []
        n_values = 0
        for entries, start, stop in self.entries.among(self.parts, intervals):
            lists, some = entries.take(start, stop)
            postings += lists
            bitmaps += some
            n_values += stop - start
        self.parts.count.bitmaps += n_values
        if len(postings) + len(bitmaps) == n_values <= _FEW_VALUES:
            bitmaps += [self._listed([one], 1) for one in postings]
        elif postings:
            bitmaps.append(self._listed(postings, n_values))
        first, *rest = bitmaps
        return first.union(*rest) if rest else first

    def _of_one(self, code: int) -> AbstractBitMap:
        """The rows of one value, the most frequent probe."""
        entries, place = self.entries.one(self.parts, code)
        self.parts.count.bitmaps += 1
        if place in entries.large:
            return entries.large[place]
        postings, bitmaps = entries.take(place, place + 1)
        return bitmaps[0] if bitmaps else self._listed(postings, 1)

    def _listed(self, postings: Sequence[Rows], n_values: int) -> BitMap:
        """The rows of some lists; the list of one value ascends."""
        first = postings[0]
        if n_values == 1 and first.itemsize == 2 and len(first) <= ARRAY_MAX:
            return from_sorted_u16(first.tobytes())
        return from_rows(np.concatenate(postings), self.head.n_rows)


INDEX_TYPE: Final = PositionalKind(
    name=_KIND, version=_VERSION, spec=Bitmap, index=BitmapIndex.read
)
