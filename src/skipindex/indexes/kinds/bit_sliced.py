"""Bit-sliced: the codes of a column cut into digits, a bitmap for each digit value.

The smallest index that answers everything exactly, ranges best of all: the default,
base 2 and range-encoded, costs about ``log2(distinct values)`` bits a row.  256
distinct values make 8 slices and an existence bitmap in base 2, and 3 x 10 bitmaps in
base 10, equality-encoded.

``max_slices`` stores the topmost digits alone.  Codes are then known up to a *bin* of
``base ** dropped`` neighbours, so a range has two answers: the rows of the bins within
it, and the rows of the bins that it touches.  The true rows are between the two.

Payload, version 2::

    part 0          header (``header``; parameter: base | 0x80 if range-encoded),
                    codes (``dictionary``), then
                    u8 number of lowest digits that were dropped
    parts 1 .. c    dictionary chunks, none in value mode
    then            the bitmaps, portable or plain (``storage/bitmaps``; version 1:
                    all portable), the lowest digit that is there first, in a digit
                    value 0 first (``digits``); range-encoded, the existence bitmap
                    last
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Self

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.bounds import Bounds, exactly
from skipindex.indexes.bit_slices.digits import Shape, pack_slices
from skipindex.indexes.bit_slices.slices import Slices
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
from skipindex.indexes.positional import (
    Interval,
    PositionalContextIndex,
    PositionalKind,
    bins_of,
)
from skipindex.storage.parts import Parts

_KIND: Final = "bit_sliced"
_VERSION: Final = 2
_RANGED: Final = 0x80
_SMALL_DICTIONARY: Final = 1024
"""Distinct values up to which their number alone decides that of the bitmaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitSliced:
    """Bitmaps of the digits of a column's codes, exact for every condition.

    In base 2 it is the smallest kind for ranges.  Sources: O'Neil and Quass,
    Improved Query Performance with Variant Indexes, SIGMOD 1997; Chan and Ioannidis,
    Bitmap Index Design and Evaluation, SIGMOD 1998.

    Args:
        base: base of the digits, 2 to 16.  Base 2 takes the fewest bytes.
        encoding: with ``range``, a bitmap means "the digit is at most v"; with
            ``equality``, "the digit is v", which answers ``=`` by one bitmap a digit.
        max_slices: maximum number of stored bitmaps, at least those of one digit.  The
            highest digits are stored, and answers become supersets.  None stores all.

    >>> report = table.build_indexes({"price": sx.BitSliced(base=10)}, workers=1)
    >>> report.table.plan("price > 2").count()
    3
    """

    base: int = 2
    encoding: Literal["range", "equality"] = "range"
    max_slices: int | None = None
    kind: ClassVar[str] = _KIND
    memory_per_row: ClassVar[int] = 24

    def __post_init__(self) -> None:
        if self.base not in range(2, 17):
            raise UnknownIndexError(
                f"no bit_sliced index has base {self.base!r} (accepted: 2 to 16)"
            )
        if self.encoding not in ("range", "equality"):
            raise UnknownIndexError(
                f"no bit_sliced index has encoding {self.encoding!r} "
                "(accepted: 'range', 'equality')"
            )
        if self.max_slices is not None and self.max_slices < 1:
            raise UnknownIndexError(
                f"no bit_sliced index has {self.max_slices!r} slices "
                "(accepted: 1 or more, or None)"
            )

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload."""
        ranged = self.encoding == "range"
        coding = _choose_coding(column, self.base, self.max_slices, ranged=ranged)
        shape = Shape.of(self.base, coding.n_codes, ranged=ranged)
        dropped = shape.n_digits - _n_stored(shape, self.max_slices)
        parameter = self.base | (_RANGED if ranged else 0)
        header = coding.header(column, version=_VERSION, parameter=parameter)
        header += bytes([dropped])
        if not dropped:
            return [header, *coding.chunks, *pack_slices(coding.codes, shape)]
        unit = np.uint32(self.base**dropped)
        bins = np.where(coding.codes == NULL_CODE, coding.codes, coding.codes // unit)
        slices = pack_slices(bins, _coarse(shape, dropped))
        return [header, *coding.chunks, *slices]


def _n_stored(shape: Shape, max_slices: int | None) -> int:
    """How many digits are stored, from the top."""
    if max_slices is None:
        return shape.n_digits
    return min(shape.n_digits, max(1, max_slices // shape.per_digit))


def _coarse(shape: Shape, dropped: int) -> Shape:
    """The shape of the digits that are left, whose codes are bins."""
    n_bins = -(-shape.n_codes // shape.base**dropped)
    return Shape.of(shape.base, n_bins, ranged=shape.ranged)


def _choose_coding(
    column: EncodedColumn, base: int, max_slices: int | None, *, ranged: bool
) -> Coding:
    """Value mode where it is no larger than ranks with their dictionary."""
    span = value_span(column)
    if span is None:
        return rank_coding(column)
    by_value = Shape.of(base, span, ranged=ranged)
    by_rank = Shape.of(base, column.n_distinct, ranged=ranged)
    # The sizes are estimates.  Both choices answer the same, unless digits are dropped:
    # then ranks are chosen where they are exact for no more bytes.
    if by_value.n_digits > by_rank.n_digits and (
        column.n_distinct <= _SMALL_DICTIONARY
        or _slice_bytes(column, by_value, max_slices)
        > _slice_bytes(column, by_rank, max_slices)
        + dictionary_bits(column.n_distinct, span) / 8
    ):
        return rank_coding(column)
    return value_coding(column, span)


def _slice_bytes(column: EncodedColumn, shape: Shape, max_slices: int | None) -> float:
    """About the size of the bitmaps: dense, or in runs if neighbours are equal."""
    codes = column.codes
    n_runs = 1 + int(np.count_nonzero(codes[1:] != codes[:-1]))
    total = 0.0
    is_sorted = n_runs <= column.n_distinct + 1
    for i in range(shape.n_digits - _n_stored(shape, max_slices), shape.n_digits):
        # Over sorted rows a digit changes only as often as its place says.
        changes = min(n_runs, shape.n_codes / shape.base**i) if is_sorted else n_runs
        total += shape.per_digit * min(column.n_rows / 8, 2 * changes)
    return total


@dataclass(frozen=True, slots=True)
class BitSlicedIndex(PositionalContextIndex):
    """The bit slices of one column of one file.

    Args:
        shape: of the digits that are there.
        unit: how many codes make a bin; 1 if no digit was dropped.
    """

    shape: Shape
    unit: int

    @classmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """The shape of the digits, and how many of them were dropped."""
        base, ranged = head.parameter & ~_RANGED, bool(head.parameter & _RANGED)
        if base not in range(2, 17):
            raise CorruptIndexError(f"a bit_sliced payload has base {base}")
        shape = Shape.of(base, head.n_codes, ranged=ranged)
        (dropped,) = cursor.bytes(1)
        if not dropped:
            return cls(head, book, parts, shape, 1)
        if dropped >= shape.n_digits:
            raise CorruptIndexError(
                f"a bit_sliced payload of {shape.n_digits} digits says that "
                f"{dropped} of them were dropped"
            )
        return cls(head, book, parts, _coarse(shape, dropped), base**dropped)

    @property
    def n_bitmaps(self) -> int:
        """The bitmaps of all digits, and the existence bitmap if range-encoded."""
        return self.shape.n_bitmaps

    @property
    def n_parts(self) -> int:
        """The header, the dictionary, and the bitmaps."""
        return 1 + self.head.n_chunks + self.shape.n_bitmaps

    def present(self) -> AbstractBitMap:
        """The existence bitmap, or the union of a digit's."""
        return self._slices().existence()

    def inside(self, interval: Interval, rows: AbstractBitMap) -> BitMap | None:
        """The ``rows`` with a code of the interval; None where slices know no codes."""
        return self._slices().inside(*interval, rows) if self._looks_inside else None

    def count_inside(self, interval: Interval, rows: AbstractBitMap) -> int | None:
        """How many of ``rows`` have a code of the interval, if slices know codes."""
        if not self._looks_inside:
            return None
        return self._slices().count_inside(*interval, rows)

    @property
    def _looks_inside(self) -> bool:
        """Whether digits are single bits, and none was dropped."""
        # Where digits were dropped, slices know bins and no codes.
        return self.shape.per_digit == 1 and self.unit == 1

    def among(self, intervals: Sequence[Interval]) -> Bounds[AbstractBitMap]:
        """The rows with a code of the intervals, by the bins they are in."""
        if self.unit == 1:
            rows = self._in_bins(intervals)
            return exactly(rows)
        inside, touched = bins_of(intervals, self.unit, self.head.n_codes)
        return Bounds(self._in_bins(inside), self._in_bins(touched))

    def _in_bins(self, bins: Sequence[Interval]) -> BitMap:
        """The rows whose bin is in one of the intervals."""
        if not bins:
            return BitMap()
        slices = self._slices()
        return slices.between(*bins[0]) if len(bins) == 1 else slices.among(bins)

    def _slices(self) -> Slices:
        return Slices(
            self.parts,
            1 + self.head.n_chunks,
            self.shape,
            self.head.n_rows,
            not self.head.null_count,
        )


INDEX_TYPE: Final = PositionalKind(
    name=_KIND,
    version=_VERSION,
    spec=BitSliced,
    index=BitSlicedIndex.read,
    probe_cost=8.0,
)
