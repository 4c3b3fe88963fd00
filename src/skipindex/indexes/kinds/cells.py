"""Cells: small intervals that hold a file's values, and about which rows have them.

Values are cut into *cells* of ``2**shift`` neighbours, about ``per_value`` cells for
each distinct value of the file, most of them empty.  A dictionary holds the cells that
are not.  It answers ``=``, IN and ranges for ``log2(per_value) + 1.5`` bits a distinct
value: a value or a narrow range that the file does not have falls into a cell that is
not there, but for one time in ``per_value``.  A Bloom filter of as many bits is as sure
for ``=`` and knows no ranges.

``max_slices`` adds rows: the topmost bits of the rank of each row's cell.  Cells are
then known up to a *bin* of neighbours, of which all have about equally many values.

Payload, version 1::

    part 0          header (``header``; parameter: shift), codes (``dictionary``): ranks
                    of value >> shift, never value mode; then
                    u8 lowest bits of the ranks that were dropped
                    u8 number of the parts after the dictionary
    parts 1 .. c    dictionary chunks
    then            a ``run_length`` payload of the ranks >> dropped
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.arrays import Ints, starts
from skipindex.expressions.atoms import (
    Atom,
    IntegerSet,
    NoneOf,
    OneOf,
    Range,
    Value,
    Values,
)
from skipindex.expressions.bounds import Bounds, exactly
from skipindex.expressions.domain import Domain, domain_of
from skipindex.indexes.encoding.coding import Coding, dictionary, rank_coding
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.header import VALUE_MODE, Cursor, Head
from skipindex.indexes.kinds import run_length
from skipindex.indexes.positional import (
    Interval,
    PositionalIndex,
    PositionalKind,
    bins_of,
)
from skipindex.storage.parts import Decoded, Parts, ReadCount

_KIND: Final = "cells"
_VERSION: Final = 1
_BITS: Final = 63
"""A shift by more would be of no int64."""

D = TypeVar("D", bound=Decoded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The ranges of values (cells) in a file, and with ``max_slices`` about which rows.

    It is the smallest kind for ranges of a nearly unique column: about 7 bits a
    distinct value, where a Bloom filter has 10.  Answers are supersets.  They are exact
    if all values and all slices are stored.

    Source of the dictionary: Vaidya et al., SNARF: A Learning-Enhanced Range Filter,
    VLDB 2022, whose ranks in a compressed array stand here without a model.

    Args:
        per_value: the number of cells for each distinct value, approximately; below 1,
            several values share a cell.  None stores each value, as columns of byte
            strings always do.
        max_slices: how many of the highest bits of the rank of a row's cell are
            stored.  0 stores no rows, None all bits.

    >>> report = table.build_indexes({"price": sx.Cells()}, workers=1)
    >>> report.table.plan("price BETWEEN 9 AND 11").paths
    []
    """

    per_value: float | None = 64
    max_slices: int | None = 0
    kind: ClassVar[str] = _KIND
    memory_per_row: ClassVar[int] = 96

    def __post_init__(self) -> None:
        if self.per_value is not None and not 0 < self.per_value < float("inf"):
            raise UnknownIndexError(
                f"no cells index has {self.per_value!r} cells for a value "
                "(accepted: a number above 0, or None)"
            )
        if self.max_slices is not None and self.max_slices < 0:
            raise UnknownIndexError(
                f"no cells index has {self.max_slices!r} slices "
                "(accepted: 0 or more, or None)"
            )

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload."""
        shift, coding = _cells(column, self.per_value)
        n_bits = max(0, coding.n_codes - 1).bit_length()
        dropped = 0 if self.max_slices is None else max(0, n_bits - self.max_slices)
        header = coding.header(column, version=_VERSION, parameter=shift)
        rows = run_length.RunLength().build(_bins(column, coding, dropped))
        return [header + bytes([dropped, len(rows)]), *coding.chunks, *rows]


def _cells(column: EncodedColumn, per_value: float | None) -> tuple[int, Coding]:
    """The shift, and the ranks of the cells of all rows."""
    cached = _CACHED.setdefault(column, {})
    if per_value not in cached:
        cached[per_value] = _make_cells(column, per_value)
    return cached[per_value]


_CACHED: Final[
    WeakKeyDictionary[EncodedColumn, dict[float | None, tuple[int, Coding]]]
] = WeakKeyDictionary()
"""Codings of a column by ``per_value``; specs that differ in slices share them."""


def _make_cells(column: EncodedColumn, per_value: float | None) -> tuple[int, Coding]:
    by_rank = rank_coding(column)
    distinct = column.distinct
    if per_value is None or not isinstance(distinct, np.ndarray) or not len(distinct):
        return 0, by_rank
    span = int(distinct[-1]) - int(distinct[0])
    width = min(float(1 << _BITS), span / (per_value * len(distinct)))
    shift = min(_BITS, int(width).bit_length())
    if not shift:
        return 0, by_rank
    cells: Ints = distinct >> np.int64(shift)
    first = starts(cells)
    form, head, chunks = dictionary(cells[first])
    ranks = (np.cumsum(first) - 1).astype(np.uint32)
    valid = column.codes[column.codes != NULL_CODE]
    codes = column.spread(ranks[valid])
    return shift, Coding(codes, int(ranks[-1]) + 1, form, head, chunks)


def _bins(column: EncodedColumn, coding: Coding, dropped: int) -> EncodedColumn:
    """The bin of every row as a column of its own."""
    null = coding.codes == NULL_CODE if column.null_count else None
    bins = (coding.codes >> np.uint32(dropped)).astype(np.int64)
    return EncodedColumn(column.name, pa.array(bins, mask=null), _BIN)


_BIN: Final[Domain] = domain_of(pa.int64())


@dataclass(frozen=True, slots=True)
class CellsIndex(PositionalIndex):
    """The cells of one column of one file.

    Args:
        unit: how many ranks make a bin.
        n_row_parts: of the payload of the rows.
    """

    unit: int
    n_row_parts: int

    @classmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """How many bits of the ranks were dropped."""
        dropped, n_row_parts = cursor.bytes(2)
        if (
            head.form & VALUE_MODE
            or head.parameter > (_BITS if not head.form else 0)
            or dropped > max(0, head.n_codes - 1).bit_length()
        ):
            raise CorruptIndexError(
                f"a cells payload cannot drop {dropped} bits of its ranks: {head}"
            )
        return cls(head, book, parts, 1 << dropped, n_row_parts)

    @property
    def n_parts(self) -> int:
        """The header, the dictionary, and the payload of the rows."""
        return 1 + self.head.n_chunks + self.n_row_parts

    def present(self) -> AbstractBitMap:
        """The rows that have a bin."""
        return self._rows().existence()

    def distinct(self, limit: int) -> list[Value] | None:
        """Every value that has a code; None where codes are those of cells."""
        if self.head.parameter:
            return None
        return PositionalIndex.distinct(self, limit)

    def among(self, intervals: Sequence[Interval]) -> Bounds[AbstractBitMap]:
        """The rows with a cell of the intervals, by the bins they are in."""
        n_bins = -(-self.head.n_codes // self.unit)
        inside, touched = bins_of(intervals, self.unit, self.head.n_codes)
        upper = self._in_bins(touched, n_bins)
        if inside == touched and self.unit == 1:
            return exactly(upper)
        return Bounds(self._in_bins(inside, n_bins), upper)

    def _probe(self, atom: Atom) -> Bounds[AbstractBitMap]:
        shift = self.head.parameter
        # A class with slots is made twice, and a bare super() finds the first one.
        ask = super(CellsIndex, self)._probe
        if not shift:
            return ask(atom)
        match atom:
            case Range(column=name, low=low, high=high):
                assert not isinstance(low, bytes)
                assert not isinstance(high, bytes)
                touched = Range(name, _down(low, shift), _up(high, shift))
                inside = Range(name, _up(low, shift), _down(high, shift))
                lower = ask(inside).lower
                return Bounds(lower, ask(touched).upper)
            case OneOf(column=name, values=values):
                some = OneOf(name, _cells_of(values, shift))
                return Bounds(BitMap(), ask(some).upper)
            case NoneOf(column=name, values=values):
                some = OneOf(name, _cells_of(values, shift))
                every = self.existence()
                return Bounds(every - ask(some).upper, every)
            case _:
                return ask(atom)

    def _in_bins(self, bins: list[Interval], n_bins: int) -> AbstractBitMap:
        if not bins:
            return BitMap()
        if bins == [(0, n_bins)]:
            return self.existence()
        return self._rows().among(bins).upper

    def _rows(self) -> PositionalIndex:
        """The index of the bins."""
        tail = _Tail(self.parts, 1 + self.head.n_chunks)
        rows = run_length.INDEX_TYPE.open(tail, _BIN, self.head.n_rows)
        n_bins = -(-self.head.n_codes // self.unit)
        if rows.head.n_codes != n_bins or rows.head.null_count != self.head.null_count:
            raise CorruptIndexError(
                f"a cells payload of {n_bins} bins has rows of others: {rows.head}"
            )
        return rows


def _down(value: Value | None, shift: int) -> int | None:
    """The cell that begins at ``value`` or before it."""
    assert not isinstance(value, bytes)
    return None if value is None else value >> shift


def _up(value: Value | None, shift: int) -> int | None:
    """The first cell that begins at ``value`` or after it."""
    assert not isinstance(value, bytes)
    return None if value is None else -(-value >> shift)


def _cells_of(values: Values, shift: int) -> Values:
    """The cells that some values are in."""
    if isinstance(values, IntegerSet):
        return IntegerSet(values.array >> shift)
    return tuple(sorted({cast("int", value) >> shift for value in values}))


class _Tail:
    """The last parts of a payload, as a payload of their own."""

    def __init__(self, parts: Parts, start: int) -> None:
        self.count: ReadCount = parts.count
        self._parts = parts
        self._start = start

    def __len__(self) -> int:
        return len(self._parts) - self._start

    def __getitem__(self, i: int, /) -> memoryview:
        return self._parts[self._start + i]

    def places(self, start: int, stop: int) -> Hashable:
        """Where parts ``start .. stop - 1`` are."""
        return self._parts.places(self._start + start, self._start + stop)

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1``."""
        return self._parts.read(self._start + start, self._start + stop)

    def bitmap(self, i: int) -> FrozenBitMap:
        """Part ``i`` as a bitmap."""
        return self._parts.bitmap(self._start + i)

    def bitmaps(self, start: int, stop: int) -> list[FrozenBitMap]:
        """Parts ``start .. stop - 1`` as bitmaps."""
        return self._parts.bitmaps(self._start + start, self._start + stop)

    def decoded(self, i: int, decode: Callable[[memoryview], D]) -> D:
        """What ``decode`` makes of part ``i``."""
        return self._parts.decoded(self._start + i, decode)


INDEX_TYPE: Final = PositionalKind(
    name=_KIND, version=_VERSION, spec=Cells, index=CellsIndex.read, probe_cost=8.0
)
