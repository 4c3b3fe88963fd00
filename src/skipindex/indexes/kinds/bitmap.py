"""Equality-encoded bitmaps: the rows of every value.

The cheapest kind for ``=`` and IN, and exact for every atom; a range unites the bitmaps
of its values.  A value of few rows has a list of rows, so a column of distinct values
costs 2 bytes a row (4 in files of more than 65,536 rows) and its dictionary.

Payload, version 1::

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
from typing import ClassVar, Final, Self

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from skipindex.expressions.bounds import Bounds, exactly
from skipindex.indexes.encoding.coding import rank_coding
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.entries import EntryParts, read_rows
from skipindex.indexes.encoding.entry_packing import pack_entries
from skipindex.indexes.encoding.header import Cursor, Head
from skipindex.indexes.encoding.roaring import from_rows, from_sorted_u16, pack_dense
from skipindex.indexes.positional import Interval, PositionalIndex, PositionalKind
from skipindex.storage.bitmaps import ARRAY_MAX
from skipindex.storage.parts import Parts

_KIND: Final = "bitmap"
_VERSION: Final = 1
_FEW_VALUES: Final = 8
"""The lists of so many values are made bitmaps one by one."""


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
        coding = rank_coding(column)
        entries, firsts = pack_entries(column)
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
        postings: list[memoryview] = []
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
        return exactly(first.union(*rest) if rest else first)

    def _of_one(self, code: int) -> AbstractBitMap:
        """The rows of one value, the most frequent probe."""
        entries, place = self.entries.one(self.parts, code)
        self.parts.count.bitmaps += 1
        if place in entries.large:
            return entries.large[place]
        postings, bitmaps = entries.take(place, place + 1)
        return bitmaps[0] if bitmaps else self._listed(postings, 1)

    def _listed(self, postings: Sequence[memoryview], n_values: int) -> BitMap:
        """The rows of some lists; the list of one value ascends."""
        width = self.entries.width
        if n_values == 1 and width == 2 and len(postings[0]) <= 2 * ARRAY_MAX:
            return from_sorted_u16(postings[0])
        lists = [read_rows(raw, width) for raw in postings]
        return from_rows(np.concatenate(lists), self.head.n_rows)


INDEX_TYPE: Final = PositionalKind(
    name=_KIND, version=_VERSION, spec=Bitmap, index=BitmapIndex.read
)
