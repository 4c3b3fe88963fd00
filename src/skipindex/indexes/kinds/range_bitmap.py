"""Range-encoded bitmaps: one for every value, of the rows with that value or less.

Any range is the difference of two of them, so it reads two bitmaps whatever its
width.  The price is that each bitmap is dense: use it for few distinct values or for
clustered rows, else ``bit_sliced``.

Above ``max_bitmaps`` distinct values, neighbours share a bitmap, in bins of about
equally many rows.  Then a range that begins or ends within a bin is answered by the
rows of all bins that it touches, none of them certain, so it still reads two bitmaps.
``=`` for a value that is not in the file stays exact, as the dictionary has all values.

Payload, version 1::

    part 0          header (``header``), codes (``dictionary``), then
                    u32 b, the number of bitmaps
                    u32 end of every bin, the codes before it; only if b < n
    parts 1 .. c    dictionary chunks
    then            b bitmaps as portable roaring; the last is the existence bitmap
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import starmap
from typing import ClassVar, Final, Self

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap, BitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.arrays import Codes
from skipindex.expressions.bounds import Bounds, exactly
from skipindex.indexes.encoding.coding import rank_coding
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.header import Cursor, Head, ascend
from skipindex.indexes.encoding.roaring import blank, pack_all
from skipindex.indexes.positional import Interval, PositionalIndex, PositionalKind
from skipindex.storage.bitmaps import BITS_SIZE
from skipindex.storage.parts import Parts

_KIND: Final = "range_bitmap"
_VERSION: Final = 1
_BYTES_PER_ROW: Final = 3
_SMALL_FILE_BYTES: Final = 1 << 14
"""What a small file may cost whatever its rows."""
_HEADER_BYTES: Final = 16
_MAX_BITMAPS: Final = 1024
"""Building takes a pass over the rows for every bitmap, however small it is."""
_BATCH_BYTES: Final = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeBitmap:
    """One bitmap for every value, of the rows with that value or less.

    Any range is the difference of two bitmaps.  Source: Chan and Ioannidis, Bitmap
    Index Design and Evaluation, SIGMOD 1998 (range encoding).

    Args:
        max_bitmaps: with more distinct values than this, neighbours share a bitmap
            and answers become supersets.  None takes about 3 bytes a row: about 22
            bitmaps if rows are in random order, up to 1,024 if neighbouring rows are
            similar.

    >>> report = table.build_indexes({"price": sx.RangeBitmap()}, workers=1)
    >>> report.table.plan("price > 2").count()
    3
    """

    max_bitmaps: int | None = None
    kind: ClassVar[str] = _KIND
    memory_per_row: ClassVar[int] = 32

    def __post_init__(self) -> None:
        if self.max_bitmaps is not None and self.max_bitmaps < 1:
            raise UnknownIndexError(
                f"no range_bitmap index has {self.max_bitmaps!r} bitmaps "
                "(accepted: 1 or more)"
            )

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload."""
        coding = rank_coding(column)
        header = coding.header(column, version=_VERSION)
        n_bitmaps = coding.n_codes
        codes, tail = coding.codes, b""
        limit = self.max_bitmaps or _fitting(coding.codes, coding.n_codes)
        if coding.n_codes > limit:
            ends = _equi_depth(column, limit)
            bins = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
            codes = column.spread(bins.astype(np.uint32)[codes[codes < coding.n_codes]])
            n_bitmaps, tail = len(ends), ends.astype("<u4").tobytes()
        header += np.array([n_bitmaps], "<u4").tobytes() + tail
        return [header, *coding.chunks, *_pack_cumulative(codes, n_bitmaps)]


def _fitting(codes: Codes, n_codes: int) -> int:
    """About how many cumulative bitmaps fit into the bytes that a column may cost."""
    valid = codes[codes != NULL_CODE].astype(np.int64)
    # A bitmap has 8 KB for 65,536 rows, or 2 bytes a row, of which it has half, or 4
    # bytes a run.  A step from ``a`` to ``b`` begins or ends a run in those between.
    steps = int(np.abs(np.diff(valid)).sum())
    in_runs = _HEADER_BYTES + 2 * steps / max(1, n_codes)
    in_bits = min(len(codes), BITS_SIZE * (len(codes) + 0xFFFF >> 16))
    budget = max(_SMALL_FILE_BYTES, _BYTES_PER_ROW * len(codes))
    return min(_MAX_BITMAPS, max(1, int(budget / max(1.0, min(in_runs, in_bits)))))


def _equi_depth(column: EncodedColumn, n_bins: int) -> Codes:
    """The end of every bin: at most ``n_bins``, of about as many rows each."""
    rows = np.cumsum(column.counts)
    quantiles = rows[-1] * np.arange(1, n_bins + 1) / n_bins
    ends = np.unique(rows.searchsorted(quantiles) + 1)
    fitting: Codes = np.minimum(ends, len(rows)).astype(np.uint32)
    return fitting


def _pack_cumulative(codes: Codes, n_bitmaps: int) -> list[bytes]:
    narrow: npt.NDArray[np.unsignedinteger] = codes
    if n_bitmaps < 1 << 8:
        narrow = codes.astype(np.uint8)
    elif n_bitmaps < 1 << 16:
        narrow = codes.astype(np.uint16)
    # NULL is all ones in either width, and above the greatest bitmap's number.
    n_bytes = (len(codes) + 7) // 8
    batch = max(1, _BATCH_BYTES // max(1, n_bytes))
    packed: list[bytes] = []
    for first in range(0, n_bitmaps, batch):
        numbers = range(first, min(first + batch, n_bitmaps))
        bits = blank(len(numbers), len(codes))
        for at, number in enumerate(numbers):
            mask = narrow <= narrow.dtype.type(number)
            bits[at, :n_bytes] = np.packbits(mask, bitorder="little")
        packed += pack_all(bits)
    return packed


@dataclass(frozen=True, slots=True)
class RangeBitmapIndex(PositionalIndex):
    """The cumulative bitmaps of one column of one file."""

    ends: Sequence[int] | None
    """The end of every bin, the codes before it; None if each code has a bitmap."""

    @classmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """The bins."""
        (n_bitmaps,) = cursor.numbers("I", 1)
        if n_bitmaps == head.n_codes:
            return cls(head, book, parts, None)
        ends = cursor.numbers("I", n_bitmaps)
        if not ends or not ascend((0, *ends)) or ends[-1] != head.n_codes:
            raise CorruptIndexError("the bins of a range_bitmap are out of order")
        return cls(head, book, parts, ends)

    @property
    def n_bitmaps(self) -> int:
        """One for every bin; the last is the existence bitmap."""
        return self.head.n_codes if self.ends is None else len(self.ends)

    @property
    def n_parts(self) -> int:
        """The header, the dictionary, and the bitmaps."""
        return 1 + self.head.n_chunks + self.n_bitmaps

    def present(self) -> AbstractBitMap:
        """The last bitmap."""
        return self._at(self.n_bitmaps)

    def among(self, intervals: Sequence[Interval]) -> Bounds[AbstractBitMap]:
        """The rows with a code of the intervals, by the bins they are in."""
        return reduce(operator.or_, starmap(self._between, intervals))

    def _between(self, start: int, stop: int) -> Bounds[AbstractBitMap]:
        if self.ends is None:
            return exactly(self._bins(start, stop))
        # <---[ bin ]--[ bin start ]--[ bin ]--[ stop bin ]--->
        #                  touched  touched  touched
        first = bisect_right(self.ends, start)
        last = bisect_left(self.ends, stop)
        begins_inside = start > (self.ends[first - 1] if first else 0)
        ends_inside = stop < self.ends[last]
        upper = self._bins(first, last + 1)
        exact = not begins_inside and not ends_inside
        return Bounds(upper if exact else BitMap(), upper)

    def _bins(self, start: int, stop: int) -> AbstractBitMap:
        is_last = stop == self.n_bitmaps
        upto = self.existence() if is_last else self._at(stop)
        return upto - self._at(start) if start else upto

    def _at(self, number: int) -> FrozenBitMap:
        """The bitmap of that number, of which the first is 1."""
        # Bitmap 1 is the part after the header and the dictionary.
        self.parts.count.bitmaps += 1
        return self.parts.bitmap(self.head.n_chunks + number)


INDEX_TYPE: Final = PositionalKind(
    name=_KIND, version=_VERSION, spec=RangeBitmap, index=RangeBitmapIndex.read
)
