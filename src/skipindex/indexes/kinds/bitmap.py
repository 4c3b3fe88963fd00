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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.bounds import Bounds
from skipindex.indexes.encoding.coding import rank_coding
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.entries import (
    Entries,
    pack_entries,
    part_of,
    read_entries,
    read_rows,
    row_bytes,
)
from skipindex.indexes.encoding.header import Cursor, Head, ascend
from skipindex.indexes.encoding.roaring import (
    ARRAY_MAX,
    from_rows,
    from_sorted_u16,
    pack_dense,
    thawed,
)
from skipindex.indexes.positional import Interval, PositionalIndex, PositionalKind, load
from skipindex.storage.parts import Parts

_KIND: Final = "bitmap"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitmap:
    """A bitmap of the rows of every value: equality encoding, exact for every atom.

    The cheapest kind for ``=`` and IN.

    Source: O'Neil and Quass, Improved Query Performance with Variant Indexes,
    SIGMOD 1997 (the value-list index).

    >>> Bitmap()
    Bitmap()
    """

    kind: ClassVar[str] = _KIND

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

    firsts: Sequence[int]
    """The first code of every part of entries."""

    @classmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """Where the entries of every code are."""
        (n_parts,) = cursor.numbers("I", 1)
        firsts = cursor.numbers("I", n_parts)
        if (
            (n_parts > 0) != (head.n_codes > 0)
            or not ascend((-1, *firsts, head.n_codes))
            or (firsts and firsts[0])
        ):
            raise CorruptIndexError("the parts of a bitmap payload are out of order")
        return cls(head, book, parts, firsts)

    @property
    def n_bitmaps(self) -> int:
        """One for every value, and the existence bitmap if some row is NULL."""
        return self.head.n_codes + bool(self.head.null_count)

    @property
    def n_parts(self) -> int:
        """The header, the dictionary, the entries, and the existence bitmap."""
        return 1 + self.head.n_chunks + len(self.firsts) + bool(self.head.null_count)

    def existence(self) -> BitMap:
        """The rows that have a value."""
        if not self.head.null_count:
            return BitMap(range(self.head.n_rows))
        last = len(self.parts) - 1
        self.parts.count.bitmaps += 1
        return thawed(self.parts.bitmaps(last, last + 1)[0])

    def among(self, intervals: Sequence[Interval]) -> Bounds[BitMap]:
        """Exactly the rows with a code of the intervals."""
        (start, stop), *others = intervals
        if stop - start == 1 and not others:
            rows = self._of_one(start)
            return Bounds(rows, rows)
        postings: list[memoryview] = []
        bitmaps: list[BitMap] = []
        n_values = 0
        for entries, start, stop in self._pieces(intervals):
            lists, raw = entries.take(start, stop)
            postings += lists
            bitmaps += [load(self.parts, one) for one in raw]
            n_values += stop - start
        self.parts.count.bitmaps += n_values - len(bitmaps)
        if postings:
            bitmaps.append(self._listed(postings, n_values))
        rows = bitmaps[0] if len(bitmaps) == 1 else BitMap.union(*bitmaps)
        return Bounds(rows, rows)

    def _of_one(self, code: int) -> BitMap:
        """The rows of one value, the most frequent probe."""
        i = part_of(self.firsts, code)
        begin, end = self._codes_of(i)

        def decode(raw: memoryview) -> Entries:
            return read_entries(raw, end - begin, row_bytes(self.head.n_rows))

        entries = self.parts.decoded(1 + self.head.n_chunks + i, decode)
        postings, bitmaps = entries.take(code - begin, code - begin + 1)
        if bitmaps:
            return load(self.parts, bitmaps[0])
        self.parts.count.bitmaps += 1
        return self._listed(postings, 1)

    def _listed(self, postings: Sequence[memoryview], n_values: int) -> BitMap:
        """The rows of some lists; the list of one value ascends."""
        width = row_bytes(self.head.n_rows)
        if n_values == 1 and width == 2 and len(postings[0]) <= 2 * ARRAY_MAX:
            return from_sorted_u16(postings[0])
        lists = [read_rows(raw, width) for raw in postings]
        return from_rows(np.concatenate(lists), self.head.n_rows)

    def _pieces(
        self, intervals: Sequence[Interval]
    ) -> Iterator[tuple[Entries, int, int]]:
        """The parts with the codes of the intervals, and which entries these are."""
        read: dict[int, Entries] = {}
        for start, stop in intervals:
            first, last = part_of(self.firsts, start), part_of(self.firsts, stop - 1)
            self._read(first, last, read)
            for i in range(first, last + 1):
                begin, end = self._codes_of(i)
                yield read[i], max(start, begin) - begin, min(stop, end) - begin

    def _codes_of(self, i: int) -> Interval:
        """The codes of entry part ``i``."""
        if i + 1 < len(self.firsts):
            return self.firsts[i], self.firsts[i + 1]
        return self.firsts[i], self.head.n_codes

    def _read(self, first: int, last: int, read: dict[int, Entries]) -> None:
        """Parts ``first .. last``, in one read; the first may have been read before."""
        first += first in read
        if first > last:
            return
        at = 1 + self.head.n_chunks
        width = row_bytes(self.head.n_rows)
        for i, raw in enumerate(self.parts.read(at + first, at + last + 1), first):
            begin, end = self._codes_of(i)
            read[i] = read_entries(raw, end - begin, width)


INDEX_TYPE: Final = PositionalKind(
    name=_KIND, version=_VERSION, spec=Bitmap, index=BitmapIndex
)
