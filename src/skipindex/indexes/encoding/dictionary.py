"""Dictionaries: each value has a small code, and codes keep the order of values.

In *rank mode* a code is the value's place in the sorted dictionary of the file.
The dictionary is cut into chunks (``chunks``), each a part of its own, and the
header holds a key for every chunk: a look-up unpacks one chunk, and no chunk for a
value beyond the file's extremes.  In *value mode* (integers only) a code is
``value - base``; then there is no dictionary, and codes that no row has.

In the header, after the fixed fields::

    value mode   i64 base
    integers     i64 greatest value | i64 first value of every chunk
    bytes        u32 end of every chunk: the codes before it
                 u32 end of every key, and of two bounds, in the text
                 text: a key for every chunk but the first, above all values before
                       the chunk and not above its own; a lower bound of the values;
                       an upper bound that none reaches (empty: there is none)
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints, Words
from skipindex.expressions.atoms import (
    IntegerSet,
    TextSet,
    Value,
    Values,
    places_in,
    values_between,
)
from skipindex.indexes.encoding.chunks import (
    INTS_PER_CHUNK,
    FewTexts,
    Texts,
    unpack_ints,
    unpack_sorted,
    unpack_texts,
)
from skipindex.indexes.encoding.header import BYTES, VALUE_MODE, Cursor, Head, ascend
from skipindex.storage.parts import Parts

_Place: TypeAlias = tuple[int, Sequence[int] | Texts | FewTexts, int, Value]
"""Where a value is or would be: a code, a chunk from there on, a place in it, and what
is at the place if the value has a code."""

Found: TypeAlias = list[int] | Ints
"""Codes; of many values, an array."""

_BULK_LOOKUP_FROM: Final = 16
"""From this number of values on, they are looked up chunk by chunk."""
_MORE_THAN_A_CHUNK: Final = 4
"""Values wanted, per text of a chunk, above which its texts are looked up instead."""


class Codebook(Protocol):
    """Which code a value has."""

    @property
    def n_codes(self) -> int:
        """One more than the greatest code."""

    @property
    def base(self) -> int | None:
        """What the value of each code is more than the code; None: no such number."""

    @property
    def key(self) -> Hashable:
        """Codebooks with equal keys have the same values."""

    def find(self, value: Value) -> int | None:
        """The code of ``value``; None means that no row has the value."""

    def find_all(self, values: Values) -> Found:
        """The codes of those of the sorted ``values`` that have one, ascending.

        Of many values in the time of the values or of the codes, the fewer.
        """

    def locate(self, low: Value | None, high: Value | None) -> tuple[int, int]:
        """The codes ``start .. stop - 1`` are those of ``low <= value < high``."""

    def values(self, start: int, stop: int) -> list[Value]:
        """The values of the codes ``start .. stop - 1``."""

    def values_of(self, codes: Ints) -> Sequence[Value] | Ints:
        """The values of some codes, which ascend; there is at least one."""

    def texts(self) -> pa.LargeBinaryArray | None:
        """The values of all codes, if they are byte strings."""


def open_codebook(head: Head, cursor: Cursor, parts: Parts) -> Codebook:
    """The codebook whose piece of the header comes next.

    Raises:
        CorruptIndexError: it contradicts ``head``.
    """
    if head.form & VALUE_MODE:
        return _Offsets(head.n_codes, *cursor.numbers("q", 1))
    if head.form & BYTES:
        return _open_texts(head, cursor, parts)
    if head.n_chunks != -(-head.n_codes // INTS_PER_CHUNK):
        raise CorruptIndexError(f"a dictionary cannot have these chunks: {head}")
    if not head.n_codes:
        return _IntDictionary(0, parts, 0, ())
    greatest, *firsts = cursor.numbers("q", head.n_chunks + 1)
    if not ascend(firsts) or greatest < firsts[-1]:
        raise CorruptIndexError("the chunks of a dictionary are out of order")
    return _IntDictionary(head.n_codes, parts, greatest, tuple(firsts))


class _Book(ABC):
    """What all codebooks have in common: a code is a place in an ascending order."""

    __slots__ = ()

    n_codes: int
    base: int | None = None

    @abstractmethod
    def _place(self, value: Value) -> _Place:
        """Where ``value`` is or would be."""

    def find(self, value: Value) -> int | None:
        code, chunk, at, key = self._place(value)
        return code + at if at < len(chunk) and chunk[at] == key else None

    def find_all(self, values: Values) -> Found:
        return [code for v in values if (code := self.find(v)) is not None]

    def locate(self, low: Value | None, high: Value | None) -> tuple[int, int]:
        start, stop = 0, self.n_codes
        if low is not None:
            code, _, at, _ = self._place(low)
            start = code + at
        if high is not None:
            code, _, at, _ = self._place(high)
            stop = code + at
        return start, max(start, stop)

    @abstractmethod
    def values(self, start: int, stop: int) -> list[Value]: ...

    def values_of(self, codes: Ints) -> Sequence[Value] | Ints:
        first = int(codes[0])
        between = self.values(first, int(codes[-1]) + 1)
        return [between[code - first] for code in codes.tolist()]

    def texts(self) -> pa.LargeBinaryArray | None:
        return None


@dataclass(frozen=True, slots=True)
class _Offsets(_Book):
    """Value mode."""

    n_codes: int
    base: int

    @property
    def key(self) -> Hashable:
        return self.n_codes, self.base

    def _place(self, value: Value) -> _Place:
        assert isinstance(value, int)
        code = value - self.base
        return 0, range(self.n_codes), min(max(code, 0), self.n_codes), code

    def find_all(self, values: Values) -> Found:
        if not isinstance(values, IntegerSet):
            return _Book.find_all(self, values)
        inside = values_between(values, self.base, self.base + self.n_codes)
        return np.asarray(inside) - self.base

    def values(self, start: int, stop: int) -> list[Value]:
        return list(range(self.base + start, self.base + stop))

    def values_of(self, codes: Ints) -> Ints:
        return codes + self.base


@dataclass(frozen=True, slots=True)
class _IntDictionary(_Book):
    """Rank mode on integers."""

    n_codes: int
    parts: Parts
    greatest: int
    firsts: tuple[int, ...]

    @property
    def key(self) -> Hashable:
        places = self.parts.places(1, 1 + len(self.firsts))
        return self.n_codes, self.greatest, self.firsts, places

    def _above_first(self, i: int) -> Words:
        """How far the values of chunk ``i`` but the first are above the first."""
        n = min(INTS_PER_CHUNK, self.n_codes - i * INTS_PER_CHUNK)
        return self.parts.decoded(1 + i, lambda raw: unpack_ints(raw, n)).above_first

    def _place(self, value: Value) -> _Place:
        assert isinstance(value, int)
        if not self.n_codes or value < self.firsts[0]:
            return 0, (), 0, value
        if value > self.greatest:
            return self.n_codes, (), 0, value
        i = bisect_right(self.firsts, value) - 1
        above = value - self.firsts[i]
        if not above:
            return i * INTS_PER_CHUNK, (0,), 0, 0
        # For one value, bisection of plain memory is faster than numpy's.
        chunk = self._above_first(i).data
        return i * INTS_PER_CHUNK + 1, chunk, bisect_left(chunk, above), above

    def find_all(self, values: Values) -> Found:
        if len(values) < _BULK_LOOKUP_FROM or not self.n_codes:
            return _Book.find_all(self, values)
        places = places_in(values, (*self.firsts, self.greatest + 1))
        codes: list[Ints] = []
        for i, (start, stop) in enumerate(pairwise(places)):
            if start == stop:
                continue
            first = np.int64(self.firsts[i])
            chunk = np.append(np.uint64(0), self._above_first(i))
            marks = None
            if isinstance(values, IntegerSet):
                marks = values.among(first + chunk.view(np.int64))
            if marks is not None:
                within = np.flatnonzero(marks)
            else:
                above = np.asarray(values[start:stop], np.int64) - first
                within = _places_of_common(chunk, above.view(np.uint64))
            codes.append(i * INTS_PER_CHUNK + within)
        return np.concatenate(codes) if codes else []

    def values_of(self, codes: Ints) -> Ints:
        chunks, within = np.divmod(codes, INTS_PER_CHUNK)
        result = np.empty(len(codes), np.int64)
        for i in np.unique(chunks).tolist():
            mine = chunks == i
            chunk = np.append(np.uint64(0), self._above_first(i))
            result[mine] = chunk.take(within[mine]).view(np.int64) + self.firsts[i]
        return result

    def values(self, start: int, stop: int) -> list[Value]:
        result: list[Value] = []
        for i in range(start // INTS_PER_CHUNK, -(-stop // INTS_PER_CHUNK)):
            at, first = i * INTS_PER_CHUNK, self.firsts[i]
            chunk = [first, *(first + v for v in self._above_first(i).tolist())]
            result += chunk[max(start - at, 0) : stop - at]
        return result


@dataclass(frozen=True, slots=True)
class _TextDictionary(_Book):
    """Rank mode on byte strings."""

    n_codes: int
    parts: Parts
    ends: Sequence[int]
    keys: Texts
    lower: bytes
    upper: bytes

    @property
    def key(self) -> Hashable:
        places = self.parts.places(1, 1 + len(self.ends))
        return self.n_codes, *self.ends, places

    def _begin(self, i: int) -> int:
        return self.ends[i - 1] if i else 0

    def _chunk(self, i: int) -> Texts | FewTexts:
        n = self.ends[i] - self._begin(i)
        return self.parts.decoded(1 + i, lambda raw: unpack_sorted(raw, n))

    def _place(self, value: Value) -> _Place:
        assert isinstance(value, bytes)
        if not self.n_codes or value < self.lower:
            return 0, (), 0, value
        if self.upper and value >= self.upper:
            return self.n_codes, (), 0, value
        i = bisect_right(self.keys, value)
        chunk = self._chunk(i)
        return self._begin(i), chunk, bisect_left(chunk, value), value

    def find_all(self, values: Values) -> Found:
        if len(values) < _BULK_LOOKUP_FROM or not self.n_codes:
            return _Book.find_all(self, values)
        low, high = places_in(values, (self.lower, self.upper))
        high = high if self.upper else len(values)
        cuts = places_in(values, [self.keys[i] for i in range(len(self.keys))])
        places = [low, *(min(max(cut, low), high) for cut in cuts), max(low, high)]
        codes: list[Ints] = []
        for i, (start, stop) in enumerate(pairwise(places)):
            if start < stop:
                result = _places_of_texts(self._chunk(i), values, start, stop)
                codes.append(np.array(result, np.int64) + self._begin(i))
        return np.concatenate(codes) if codes else []

    def values(self, start: int, stop: int) -> list[Value]:
        result: list[Value] = []
        for i in range(len(self.ends)):
            at = self._begin(i)
            if at < stop and start < self.ends[i]:
                chunk = self._chunk(i)
                places = range(len(chunk))[max(start - at, 0) : stop - at]
                result += [chunk[k] for k in places]
        return result

    def locate(self, low: Value | None, high: Value | None) -> tuple[int, int]:
        # No value is below the lower bound, so no chunk is read for it.
        return _Book.locate(self, None if low == self.lower else low, high)

    def texts(self) -> pa.LargeBinaryArray:
        """All values, in one read of all chunks."""
        if not self.n_codes:
            return pa.array([], pa.large_binary())
        raw = self.parts.read(1, 1 + len(self.ends))
        counts = np.diff(self.ends, prepend=0).tolist()
        chunks = map(unpack_texts, raw, counts)
        return pa.concat_arrays([chunk.to_arrow() for chunk in chunks])


def _places_of_common(chunk: Words, wanted: Words) -> Ints:
    """The places in a sorted chunk of the requested values."""
    if len(wanted) <= len(chunk):
        at = chunk.searchsorted(wanted)
        result: Ints = at[chunk[np.minimum(at, len(chunk) - 1)] == wanted]
        return result
    at = np.minimum(wanted.searchsorted(chunk), len(wanted) - 1)
    return np.flatnonzero(wanted[at] == chunk)


def _places_of_texts(
    chunk: Texts | FewTexts, values: Values, start: int, stop: int
) -> Iterable[int]:
    """The places in a chunk of those of ``values[start:stop]`` that it has."""
    n_wanted = stop - start
    if n_wanted < _BULK_LOOKUP_FROM or not isinstance(values, TextSet):
        result = []
        for value in values[start:stop]:
            at = bisect_left(chunk, value)
            if at < len(chunk) and chunk[at] == value:
                result.append(at)
        return result
    if n_wanted > _MORE_THAN_A_CHUNK * len(chunk):
        texts = chunk if isinstance(chunk, FewTexts) else chunk.to_arrow().to_pylist()
        common = values.members.intersection(texts)
        return [at for at, text in enumerate(texts) if text in common] if common else []
    if isinstance(chunk, FewTexts):
        array = pa.array(chunk, pa.large_binary())
    else:
        array = chunk.to_arrow()
    wanted = values.array.slice(start, n_wanted)
    places: Ints = pc.index_in(wanted, value_set=array).drop_null().to_numpy()
    return places


def _open_texts(head: Head, cursor: Cursor, parts: Parts) -> _TextDictionary:
    ends = cursor.numbers("I", head.n_chunks)
    stops = cursor.numbers("I", max(0, head.n_chunks - 1) + 2)
    if (
        not ascend((0, *ends))
        or (ends[-1] if ends else 0) != head.n_codes
        or any(map(operator.gt, stops, stops[1:]))
    ):
        raise CorruptIndexError(f"a dictionary cannot have these chunks: {head}")
    texts = Texts(cursor.bytes(stops[-1]), len(stops), stops)
    keys = Texts(texts.data, len(stops) - 2, stops)
    lower, upper = texts[len(stops) - 2], texts[len(stops) - 1]
    return _TextDictionary(head.n_codes, parts, ends, keys, lower, upper)
