"""The six questions that an index answers, in the column's own domain.

Binding (``conditions/binding``) has already brought every literal into the domain of
its column (``domain.py``): an ``int`` or ``bytes``, ordered as Spark orders the column.
So every condition, ``=``, ``<``, ``BETWEEN`` or ``LIKE 'p%'``, is one of six atoms, and
an index kind implements atoms, not operators.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Ints, Mask, starts

Value: TypeAlias = int | bytes
_MOST_MARKS: Final = 1 << 22
_MARKS_PER_NUMBER: Final = 64
"""A set of integers has a mark for each of so many numbers: in all, or for one of it.
"""


class IntegerSet(Sequence[int]):
    """Distinct 64-bit integers, ascending: a tuple of them, at the speed of numpy.

    For the keys of a join, of which there may be millions.
    """

    def __init__(self, numbers: npt.NDArray[np.integer[Any]]) -> None:
        """``numbers`` may be in any order and repeat, and must fit into int64."""
        ordered = np.sort(numbers.astype(np.int64))
        self.array: Ints = ordered[starts(ordered)]
        self.array.setflags(write=False)

    @classmethod
    def _of_sorted(cls, array: Ints) -> IntegerSet:
        """A set of distinct integers that ascend; they are not copied."""
        made = cls.__new__(cls)
        made.array = array
        return made

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, i: int, /) -> int: ...

    @overload
    def __getitem__(self, i: slice, /) -> IntegerSet: ...

    def __getitem__(self, i: int | slice, /) -> int | IntegerSet:
        if isinstance(i, slice):
            array = self.array[i]
            is_forward = i.step is None or i.step > 0
            return IntegerSet._of_sorted(array) if is_forward else IntegerSet(array)
        return int(self.array[i])

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and _is_at(self.array.data, value)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:  # noqa: FBT001 (numpy's protocol)
        return np.array(self.array, dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IntegerSet):
            return NotImplemented
        return self is other or np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return self._hash

    def places_of(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Which of ``numbers`` are in the set, and their places in it."""
        # A search of many numbers is slow, so a table of hashes rules out most of them.
        table, shift = self._hashed
        some = np.flatnonzero(table.take(_hashes(numbers, shift)))
        at = self.array.searchsorted(numbers[some])
        is_in = self.array.take(at, mode="clip") == numbers[some]
        return some[is_in], at[is_in]

    def among(self, ascending: Ints) -> Mask | None:
        """Which of some ascending numbers are in the set; None if it is too sparse.

        A look-up of each takes less time than a search.
        """
        table = self._marks
        if table is None:
            return None
        first, last = self.array[0], self.array[-1]
        start = ascending.searchsorted(first)
        stop = ascending.searchsorted(last, side="right")
        result = np.zeros(len(ascending), np.bool_)
        result[start:stop] = table.take(ascending[start:stop] - first)
        return result

    @cached_property
    def _marks(self) -> Mask | None:
        """A mark for each number from the least on, unless few of them are in it."""
        if not len(self):
            return None
        span = self[-1] - self[0] + 1
        if span > min(_MOST_MARKS, _MARKS_PER_NUMBER * len(self)):
            return None
        table = np.zeros(span, np.bool_)
        table[self.array - self.array[0]] = True
        return table

    @cached_property
    def _hashed(self) -> tuple[Mask, int]:
        """Whether a number has a hash, and the bits that a hash leaves out."""
        n_bits = min(max(16, len(self.array).bit_length() + 4), 24)
        table = np.zeros(1 << n_bits, np.bool_)
        table[_hashes(self.array, 64 - n_bits)] = True
        return table, 64 - n_bits

    @cached_property
    def _hash(self) -> int:
        return hash(self.array.tobytes())

    def __repr__(self) -> str:
        if not len(self):
            return "IntegerSet()"
        return f"IntegerSet({len(self)} from {self[0]} to {self[-1]})"

    @cached_property
    def listed(self) -> str:
        """The numbers as SQL lists them."""
        texts = pa.array(self.array).cast(pa.string())
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), ", ")
        return str(joined[0])


def _hashes(numbers: Ints, shift: int) -> Ints:
    """The first bits of a product (Knuth, The Art of Computer Programming, 6.4)."""
    product = numbers.view(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return (product >> np.uint64(shift)).view(np.int64)


class TextSet(tuple[bytes, ...]):  # noqa: SLOT001 (it holds its other forms)
    """Distinct byte strings, ascending, of which there may be thousands.

    A tuple that is hashed once, and of which other forms are made once.
    """

    @cached_property
    def array(self) -> pa.LargeBinaryArray:
        """The strings."""
        return pa.array(self, pa.large_binary())

    @cached_property
    def places(self) -> Mapping[bytes, int]:
        """The place of each string."""
        return {text: place for place, text in enumerate(self)}

    @cached_property
    def members(self) -> frozenset[bytes]:
        """The strings, to look up others in."""
        return frozenset(self)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __reduce__(self) -> tuple[Any, ...]:
        return TextSet, (tuple(self),)


Values: TypeAlias = tuple[Value, ...] | IntegerSet
"""Sorted and distinct; a tuple of many byte strings may be a ``TextSet``."""

MANY: Final = 64
"""From so many values on, a list takes another form than a plain tuple."""


def values_of(values: Collection[Value]) -> Values:
    """``values``, which are distinct, sorted; of many, in the form for many."""
    ordered = sorted(values)
    if len(ordered) < MANY:
        return tuple(ordered)
    if isinstance(ordered[0], int):
        return IntegerSet(np.array(ordered, np.int64))
    return TextSet(ordered)  # type: ignore[arg-type]


def values_between(values: Values, low: Value | None, high: Value | None) -> Values:
    """The ``values`` with ``low <= value < high``; None is "no bound"."""
    start, stop = places_in(values, (low, high))
    stop = len(values) if high is None else max(start, stop)
    return values if stop - start == len(values) else values[start:stop]


def places_in(values: Values, bounds: Sequence[Value | None]) -> list[int]:
    """For each bound, how many of ``values`` are below it; 0 for None."""
    plain: Any = values.array.data if isinstance(values, IntegerSet) else values
    return [0 if bound is None else bisect_left(plain, bound) for bound in bounds]


def is_among(value: Value, values: Values) -> bool:
    """Whether ``value`` is one of ``values``, by bisection."""
    if isinstance(values, TextSet):
        return value in values.members
    plain: Any = values.array.data if isinstance(values, IntegerSet) else values
    return _is_at(plain, value)


def _is_at(values: Any, value: Value) -> bool:
    place = bisect_left(values, value)
    return place < len(values) and bool(values[place] == value)


@dataclass(frozen=True, slots=True)
class Range:
    """``low <= value < high``; None is "no bound on this side".

    Half-open, because every value of both domains has a ``successor`` and byte
    strings have no predecessor.
    """

    column: str
    low: Value | None
    high: Value | None


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of ``values``, which are sorted, distinct and not empty."""

    column: str
    values: Values


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The value is not NULL and none of ``values`` (sorted, distinct, not empty)."""

    column: str
    values: Values


@dataclass(frozen=True, slots=True)
class NullAtom:
    """The value is NULL."""

    column: str


@dataclass(frozen=True, slots=True)
class NotNullAtom:
    """The value is not NULL."""

    column: str


class Wildcard(Enum):
    """The wildcards between the literal pieces of a pattern."""

    ANY_TEXT = "%"
    ANY_CHARACTER = "_"

    __hash__ = object.__hash__  # of an enum it is Python's own, and patterns are long


Pattern: TypeAlias = tuple[bytes | Wildcard, ...]
"""Pieces in order.  No two literals are neighbours, no literal is empty, and every one
is whole UTF-8 characters."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The value of a string column matches ``pattern``, or does not, and is not NULL.

    Only patterns that no other atom can express: never a constant or a plain prefix.
    """

    column: str
    pattern: Pattern
    negated: bool = False


Atom: TypeAlias = Range | OneOf | NoneOf | NullAtom | NotNullAtom | Matches


def successor(value: Value) -> Value:
    """The least value of the domain that is greater than ``value``."""
    return value + 1 if isinstance(value, int) else value + b"\0"


def after_prefix(prefix: bytes) -> bytes | None:
    """The least byte string greater than all that begin with ``prefix``."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
