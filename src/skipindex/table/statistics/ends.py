"""The least and greatest value of every file, compared for all files together.

Numpy compares *keys*, one number for each value.  An integer is its own key.  That of a
byte string is made of the first bytes in which the bounds differ (``WordKeys``): keys
that differ have the order of their values.  Only where two keys tie are the strings
compared.  Keys are held and compared in the width in which a manifest has the integers,
or in which the keys of a column fit.

Files are taken in blocks that the processor's cache holds.  Of each block the least and
the greatest key are known, so a block outside of a range is not read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Ints, Mask, Words
from skipindex.expressions.atoms import Value, Values
from skipindex.table.statistics.sorted_search import SortedSearch
from skipindex.table.statistics.words import ByteStrings, WordKeys, compare

Keys: TypeAlias = npt.NDArray[np.integer[Any]]
"""Numbers in the order of the values that they stand for; equal values have one key."""

_BLOCK: Final = 1 << 15
"""Files whose bounds are compared together."""
_SHORT_KEY: Final = 32
"""Bits of a key where so many tell nearly all bounds apart."""
_SAMPLE: Final = 2048
_TOLD_APART: Final = 0.9
"""Short keys are taken if a sample of bounds has this share of distinct ones."""
_LOW: Final = 0
_HIGH: Final = 1


class Beyond(Enum):
    """A place where no bound lies."""

    BELOW = "below all bounds"
    ABOVE = "above all bounds"


@dataclass(frozen=True, slots=True)
class Cut:
    """A value that bounds are compared with.

    ``text`` is the value alone, where values of one key differ.
    """

    key: Any
    text: ByteStrings | None = None


class FileBounds(ABC):
    """The bounds of the values of every file.

    Every answer is arbitrary for files whose bounds are not known.

    ``low`` is the least value of every file, or less, and ``high`` the greatest, or
    more; ``known`` are the files whose bounds are known, and in order.
    """

    def __init__(self, low: Any, high: Any, known: Mask) -> None:
        self.low = low
        self.high = high
        self._known = known

    @classmethod
    def of(cls, low: pa.Array, high: pa.Array, known: Mask) -> FileBounds:
        """Bounds as Arrow has them: integers or byte strings, null where not known."""
        if pa.types.is_integer(low.type):
            assert low.type == high.type
            # Without a null, the numbers are read where Arrow has them.
            filled = (e.fill_null(0) if e.null_count else e for e in (low, high))
            lows, highs = map(np.asarray, filled)
            return IntegerEnds(lows, highs, known)
        return TextEnds(low, high, known)

    def __len__(self) -> int:
        return len(self.low)

    @property
    @abstractmethod
    def keys(self) -> tuple[Keys, Keys]:
        """The keys of the least values, and those of the greatest ones."""

    @property
    @abstractmethod
    def equal(self) -> Mask:
        """Files whose least value and greatest value are the same."""

    @abstractmethod
    def among(self, values: Values) -> tuple[Mask, Mask]:
        """Files that hold nothing but ``values``, and those that may hold one.

        The first mask errs to fewer files.  It has no text, because between two
        strings there are always others.
        """

    @abstractmethod
    def _cut(self, value: Value) -> Cut | Beyond:
        """Where a value lies among the bounds."""

    @abstractmethod
    def _at_least(self, side: int, block: slice, cut: Cut) -> Mask:
        """``bound >= value`` for every file of a block."""

    def _below(self, side: int, block: slice, cut: Cut) -> Mask:
        """``bound < value`` for every file of a block."""
        mask: Mask = ~self._at_least(side, block, cut)
        return mask

    def between(self, low: Value | None, high: Value | None) -> tuple[Mask, Mask]:
        """Whether ``[low, high)`` encloses, and whether it touches, each file."""
        n = len(self)
        inside, touched = np.zeros(n, bool), np.zeros(n, bool)
        first = Beyond.BELOW if low is None else self._cut(low)
        stop = Beyond.ABOVE if high is None else self._cut(high)
        if first is Beyond.ABOVE or stop is Beyond.BELOW:
            return inside, touched
        begin = first if isinstance(first, Cut) else None
        end = stop if isinstance(stop, Cut) else None
        missed, enclosed = self._zones_between(begin, end)
        for block, is_missed, is_enclosed in zip(
            self._blocks(), missed.tolist(), enclosed.tolist(), strict=True
        ):
            if is_missed:
                continue
            if is_enclosed:
                inside[block] = touched[block] = True
                continue
            # [ min ... max ]--- low --->  is missed, and so is  --- high ---[ min ...
            touches, encloses = touched[block], inside[block]
            touches[:] = True
            if begin is not None:
                touches[:] = self._at_least(_HIGH, block, begin)
            if end is not None:
                touches &= self._below(_LOW, block, end)
            if not touches.any():
                continue
            encloses[:] = touches
            if begin is not None:
                encloses &= self._at_least(_LOW, block, begin)
            if end is not None:
                encloses &= self._below(_HIGH, block, end)
        return inside, touched

    def _blocks(self) -> Iterator[slice]:
        return (slice(at, at + _BLOCK) for at in range(0, len(self), _BLOCK))

    @cached_property
    def _zones(self) -> tuple[Keys, Keys]:
        """The least and the greatest key of the known bounds of every block."""
        lows, highs = self.keys
        limits = np.iinfo(lows.dtype)
        starts = np.arange(0, len(self), _BLOCK)
        if not len(starts):
            return lows, highs
        # The least one is above the greatest one where a block has none.
        if not self._known.all():
            lows = np.where(self._known, lows, lows.dtype.type(limits.max))
            highs = np.where(self._known, highs, highs.dtype.type(limits.min))
        least: Keys = np.minimum.reduceat(lows, starts)
        most: Keys = np.maximum.reduceat(highs, starts)
        return least, most

    def _zones_between(self, begin: Cut | None, end: Cut | None) -> tuple[Mask, Mask]:
        """Blocks that a range misses, and those that it encloses; errs to fewer."""
        least, most = self._zones
        missed, enclosed = np.zeros(len(least), bool), np.ones(len(least), bool)
        if begin is not None:
            missed |= most < begin.key
            enclosed &= least > begin.key
        if end is not None:
            missed |= least > end.key
            enclosed &= most < end.key
        return missed, enclosed

    def _blocks_with(self, wanted: Keys) -> Iterator[slice]:
        """Blocks that may hold a value with one of the keys, which ascend."""
        least, most = self._zones
        result = np.searchsorted(wanted, least) < np.searchsorted(wanted, most, "right")
        is_met = result.tolist()
        return (block for i, block in enumerate(self._blocks()) if is_met[i])


class IntegerEnds(FileBounds):
    """Bounds that are integers of any width, and their own keys."""

    low: npt.NDArray[np.signedinteger[Any]]
    high: npt.NDArray[np.signedinteger[Any]]

    @property
    def keys(self) -> tuple[Keys, Keys]:
        """The bounds themselves."""
        return self.low, self.high

    @cached_property
    def equal(self) -> Mask:
        """Files whose least value and greatest value are the same."""
        same: Mask = self.low == self.high
        return same

    def among(self, values: Values) -> tuple[Mask, Mask]:
        """Like ``Ends.among``: all integers of a dense file may be among the values."""
        wanted = np.asarray(values, np.int64)
        last, search = len(wanted) - 1, SortedSearch(wanted)
        only, some = np.zeros(len(self), bool), np.zeros(len(self), bool)
        for block in self._blocks_with(wanted):
            low = self.low[block].astype(np.int64, copy=False)
            high = self.high[block].astype(np.int64, copy=False)
            first = search.places(low)
            met = (first <= last) & (wanted[np.minimum(first, last)] <= high)
            some[block] = met
            # Between two integers there is only what lies between them.  As unsigned
            # numbers: the width of a file may exceed int64.
            width = high.view(np.uint64) - low.view(np.uint64)
            at = np.flatnonzero(met & (width <= np.uint64(last)))
            begin = first[at]
            end = begin + width[at].view(np.int64)
            dense = (wanted[begin] == low[at]) & (end <= last)
            only[at + block.start] = dense & (wanted[np.minimum(end, last)] == high[at])
        return only, some

    def _cut(self, value: Value) -> Cut | Beyond:
        assert isinstance(value, int)
        limits = np.iinfo(self.low.dtype)
        if value > limits.max:
            return Beyond.ABOVE
        return Beyond.BELOW if value < limits.min else Cut(self.low.dtype.type(value))

    def _at_least(self, side: int, block: slice, cut: Cut) -> Mask:
        mask: Mask = self.keys[side][block] >= cut.key
        return mask

    def _below(self, side: int, block: slice, cut: Cut) -> Mask:
        mask: Mask = self.keys[side][block] < cut.key
        return mask


class TextEnds(FileBounds):
    """Bounds that are byte strings; what is made of them is made when it is used."""

    low: pa.LargeBinaryArray | pa.BinaryArray
    high: pa.LargeBinaryArray | pa.BinaryArray

    @property
    def keys(self) -> tuple[Keys, Keys]:
        """The keys of ``WordKeys``, without low bits that tell few of them apart."""
        return self._keys[0], self._keys[1]

    @cached_property
    def _keys(self) -> tuple[Keys, Keys, np.uint64]:
        """The keys, and how many low bits of them were omitted."""
        low, high = map(self._word_keys.keys, self._texts)
        most = int(self._word_keys.key(self._limits[1]))
        n_low = max(0, most.bit_length() - _SHORT_KEY)
        # Neighbours are alike where files are clustered, and others where they are not.
        for sample in (low[:_SAMPLE], low[:: max(1, len(low) // _SAMPLE)]):
            n_long, n_short = (
                len(np.unique(sample >> np.uint64(n))) for n in (0, n_low)
            )
            if n_short < n_long * _TOLD_APART:
                return low, high, np.uint64(0)
        cut, other = (
            (end >> np.uint64(n_low)).astype(np.uint32) for end in (low, high)
        )
        return cut, other, np.uint64(n_low)

    def _key(self, value: bytes) -> Any:
        """The key of one string that lies among the bounds."""
        key = self._word_keys.key(value) >> self._keys[2]
        return self._keys[0].dtype.type(key)

    def _words(self, side: int, block: slice) -> Words:
        """The keys of a block, as those of other strings are."""
        return self.keys[side][block].astype(np.uint64, copy=False)

    @cached_property
    def equal(self) -> Mask:
        """Files whose least value and greatest value are the same."""
        mask: Mask = self.keys[_LOW] == self.keys[_HIGH]
        tied = np.flatnonzero(mask)
        mask[tied] = self._compare(_LOW, tied, self._texts[_HIGH], tied) == 0
        return mask

    def among(self, values: Values) -> tuple[Mask, Mask]:
        """Like ``Ends.among``."""
        only, some = np.zeros(len(self), bool), np.zeros(len(self), bool)
        least, most = self._limits
        begin, end = bisect_left(values, least), bisect_right(values, most)
        texts = ByteStrings.of(values[begin:end])  # type: ignore[arg-type]
        last, wanted = len(texts) - 1, self._word_keys.keys(texts) >> self._keys[2]
        search = SortedSearch(wanted)
        for block in self._blocks_with(wanted):
            first = self._first(block, search, wanted, texts)
            key, high = wanted[np.minimum(first, last)], self._words(_HIGH, block)
            met = key < high
            tied = np.flatnonzero((key == high) & (first <= last))
            order = self._compare(_HIGH, tied + block.start, texts, first[tied])
            met[tied] = order >= 0
            some[block] = met & (first <= last)
        return only, some

    def _first(
        self, block: slice, search: SortedSearch, wanted: Words, texts: ByteStrings
    ) -> Ints:
        """The place of the first value that is no less than each file's least."""
        low = self._words(_LOW, block)
        first = search.places(low)
        at = np.flatnonzero(wanted[np.minimum(first, len(wanted) - 1)] == low)
        # Among the values with the key of the bound: [begin, end) halves each time.
        begin, end = first[at], np.searchsorted(wanted, low[at], "right")
        while len(at):
            middle = (begin + end) // 2
            order = self._compare(_LOW, at + block.start, texts, middle)
            begin, end = (
                np.where(order > 0, middle + 1, begin),
                np.where(order > 0, end, middle),
            )
            first[at] = begin
            left = begin < end
            at, begin, end = at[left], begin[left], end[left]
        return first

    @cached_property
    def _texts(self) -> tuple[ByteStrings, ByteStrings]:
        return ByteStrings(self.low), ByteStrings(self.high)

    @cached_property
    def _limits(self) -> tuple[bytes, bytes]:
        """The least and the greatest of all known bounds."""
        low, high = self.low, self.high
        if not self._known.all():
            known = pa.array(self._known)
            low, high = low.filter(known), high.filter(known)
        ends = low, high
        result = [limit(end).as_py() for limit in (pc.min, pc.max) for end in ends]
        return (b"", b"") if None in result else (min(result), max(result))

    @cached_property
    def _word_keys(self) -> WordKeys:
        return WordKeys(*self._limits)

    def _cut(self, value: Value) -> Cut | Beyond:
        assert isinstance(value, bytes)
        least, most = self._limits
        if value < least:
            return Beyond.BELOW
        if value > most:
            return Beyond.ABOVE
        return Cut(self._key(value), ByteStrings.of([value]))

    def _at_least(self, side: int, block: slice, cut: Cut) -> Mask:
        assert cut.text is not None
        keys = self.keys[side][block]
        mask: Mask = keys > cut.key
        tied = np.flatnonzero(keys == cut.key)
        if len(tied):
            places = np.zeros(len(tied), np.int64)
            order = self._compare(side, tied + block.start, cut.text, places)
            mask[tied] = order >= 0
        return mask

    def _compare(
        self, side: int, files: Ints, texts: ByteStrings, places: Ints
    ) -> npt.NDArray[np.int8]:
        """The bounds of some files against some strings with the same keys."""
        made = self._word_keys
        begin = made.n_shared if self._keys[2] else made.n_equal
        return compare(self._texts[side], files, texts, places, begin=begin)
