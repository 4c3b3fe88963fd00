"""Min/max: the statistics of every file, answered for all files at once.

``summaries`` has what a manifest stores of each file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
    Values,
)
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.expressions.patterns import select
from skipindex.table.summaries import bound_type

_BLOCK: Final = 1 << 15
"""So many files are compared at a time, which the processor's cache holds."""


@dataclass(frozen=True, slots=True)
class FileStats:
    """What is known of one column in every file of a table.

    Args:
        can_null: the file may hold a NULL.
        can_value: the file may hold a value that is not NULL.
        bounded: ``low`` and ``high`` are bounds of the file's values.
        low: numpy int64 or Arrow large_binary; arbitrary where not ``bounded``.
        high: likewise.
        exact: both bounds are values of the file.
    """

    can_null: Mask
    can_value: Mask
    bounded: Mask
    low: Any
    high: Any
    exact: Mask

    @classmethod
    def unknown(cls, n_files: int, domain: Domain) -> FileStats:
        """Nothing is known of any file."""
        yes, no = np.ones(n_files, bool), np.zeros(n_files, bool)
        nothing = pa.nulls(n_files, bound_type(domain))
        return cls._of(yes, yes, no, nothing, nothing, no)

    @classmethod
    def from_arrow(cls, column: pa.StructArray, n_rows: pa.Array) -> FileStats:
        """The statistics of the manifest's column, aligned with ``n_rows``.

        What is null, or contradicts itself, is unknown.
        """
        known = np.asarray(column.is_valid())
        nulls = np.asarray(pc.struct_field(column, "null_count").fill_null(-1))
        rows = np.asarray(n_rows.fill_null(-1))
        low, high = pc.struct_field(column, "low"), pc.struct_field(column, "high")
        ordered = pc.less_equal(low, high).fill_null(False)
        has_value = np.asarray(pc.or_(low.is_valid(), high.is_valid()))
        counted = known & (nulls >= 0) & (nulls <= rows - has_value)
        exact = pc.and_(
            pc.struct_field(column, "low_exact"), pc.struct_field(column, "high_exact")
        )
        return cls._of(
            ~counted | (nulls > 0),
            ~counted | (nulls < rows),
            known & np.asarray(ordered),
            low,
            high,
            known & np.asarray(exact.fill_null(False)),
        )

    @classmethod
    def of_values(
        cls,
        values: Sequence[Value | None],
        domain: Domain,
        *,
        highs: Sequence[Value | None] | None = None,
    ) -> FileStats:
        """Every file holds one value in all of its rows: a partition column.

        Args:
            values: by file; None is NULL.
            domain: of the values.
            highs: if given, the value lies between its bound in ``values`` and this.
        """
        low = pa.array(values, bound_type(domain))
        there = np.asarray(low.is_valid())
        high = low if highs is None else pa.array(highs, low.type)
        same = there & np.asarray(pc.equal(low, high).fill_null(False))
        return cls._of(~there, there, there, low, high, same)

    @classmethod
    def between(
        cls,
        lows: Sequence[Value | None],
        highs: Sequence[Value | None],
        domain: Domain,
    ) -> FileStats:
        """Bounds that no value of a file may have; NULL is always possible."""
        low, high = (pa.array(bounds, bound_type(domain)) for bounds in (lows, highs))
        yes, no = np.ones(len(lows), bool), np.zeros(len(lows), bool)
        return cls._of(yes, yes, np.asarray(low.is_valid()), low, high, no)

    @classmethod
    def _of(
        cls,
        can_null: Mask,
        can_value: Mask,
        bounded: Mask,
        low: pa.Array,
        high: pa.Array,
        exact: Mask,
    ) -> FileStats:
        if low.type == pa.int64():
            low, high = np.asarray(low.fill_null(0)), np.asarray(high.fill_null(0))
        return cls(can_null, can_value, bounded, low, high, exact)

    def within(self, least: Value, stop: Value) -> Mask:
        """Files where every value surely is at least ``least`` and below ``stop``."""
        inside = _at_least(self.low, least) & _below(self.high, stop) & self.bounded
        return np.asarray(inside | ~self.can_value)

    def only(self, files: Mask) -> FileStats:
        """The statistics of these files; nothing is known of the others."""
        return FileStats(
            self.can_null | ~files,
            self.can_value | ~files,
            self.bounded & files,
            self.low,
            self.high,
            self.exact & files,
        )

    def probe(self, atom: Atom) -> Bounds[Mask]:
        """Files whose every row makes ``atom`` TRUE, and files where some row may."""
        match atom:
            case NullAtom():
                return Bounds(~self.can_value, self.can_null)
            case NotNullAtom():
                return Bounds(~self.can_null, self.can_value)
            case Range(_, low, high):
                inside, touched = self._range(low, high)
            case OneOf(_, values):
                inside, touched = self._one_of(values)
            case NoneOf(_, values):
                inside, touched = self._none_of(values)
            case Matches():
                inside, touched = self._matching(atom)
            case _:
                assert_never(atom)
        # A file without a value has no row that is TRUE, but all of its no rows.
        if not self.bounded.all():
            touched |= ~self.bounded
            inside &= self.bounded
        if self.can_null.any():
            inside &= ~self.can_null
        if not self.can_value.all():
            touched &= self.can_value
        return Bounds(inside, touched)

    def holds(self, atom: Atom) -> Mask:
        """Files where the row of a bound surely makes ``atom`` TRUE; errs to fewer."""
        found = np.zeros(len(self.bounded), bool)
        if isinstance(atom, Range) and isinstance(self.low, np.ndarray):
            for bound in (self.low, self.high):
                inside = self.bounded & self.exact
                if atom.low is not None:
                    inside &= bound >= atom.low
                if atom.high is not None:
                    inside &= bound < atom.high
                found |= inside
        return found

    def _range(self, low: Value | None, high: Value | None) -> tuple[Mask, Mask]:
        """Whether ``[low, high)`` encloses, and whether it touches, each file."""
        n = len(self.bounded)
        touched, inside = np.ones(n, bool), np.ones(n, bool)
        # Blocks of files whose bounds stay in the cache while they are compared.
        for start in range(0, n, _BLOCK) if low is not None or high is not None else ():
            block = slice(start, start + _BLOCK)
            lows, highs = self.low[block], self.high[block]
            # [ min ... max ]--- low --->  is missed, and so is  --- high ---[ min ...
            if low is not None:
                touched[block] = _at_least(highs, low)
            if high is not None:
                touched[block] &= _below(lows, high)
            if not touched[block].any():
                inside[block] = False
                continue
            if low is not None:
                inside[block] = _at_least(lows, low)
            if high is not None:
                inside[block] &= _below(highs, high)
        return inside, touched

    def _positions(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """The half-open interval of ``values`` within each file's bounds."""
        if isinstance(self.low, np.ndarray):
            among = np.asarray(values, np.int64)
            first = np.searchsorted(among, self.low, side="left")
            return first, np.searchsorted(among, self.high, side="right")
        lows, highs = self.low.to_pylist(), self.high.to_pylist()
        first = np.array([bisect_left(values, v or b"") for v in lows], np.int64)
        stop = np.array([bisect_right(values, v or b"") for v in highs], np.int64)
        return first, stop

    def _one_of(self, values: Values) -> tuple[Mask, Mask]:
        first, stop = self._positions(values)
        return self._only_among(values, first, stop), stop > first

    def _none_of(self, values: Values) -> tuple[Mask, Mask]:
        first, stop = self._positions(values)
        return stop <= first, ~self._only_among(values, first, stop)

    def _matching(self, atom: Matches) -> tuple[Mask, Mask]:
        """Decided where a file has one value alone: bounds say nothing of patterns."""
        known = np.flatnonzero(self._is_single())
        inside = np.zeros(len(self.bounded), bool)
        touched = np.ones(len(self.bounded), bool)
        certain, possible = select(atom.pattern, self.low.take(pa.array(known)))
        if atom.negated:
            certain, possible = ~possible, ~certain
        inside[known], touched[known] = certain, possible
        return inside, touched

    def _only_among(self, values: Values, first: np.ndarray, stop: np.ndarray) -> Mask:
        """Files whose every value is surely one of ``values``."""
        hit = stop > first
        if isinstance(self.low, np.ndarray):
            # Between two integers there is only what lies between them.
            among = np.asarray(values, np.int64)
            begins = among[np.minimum(first, len(among) - 1)] == self.low
            ends = among[np.maximum(stop - 1, 0)] == self.high
            # As unsigned numbers: the width of a file may exceed int64.
            width = self.high.view(np.uint64) - self.low.view(np.uint64)
            dense = (stop - first).astype(np.uint64) - np.uint64(1) == width
            return np.asarray(hit & begins & ends & dense)
        return np.asarray(hit & self._is_single())

    def _is_single(self) -> Mask:
        """Files whose values are surely all the same."""
        single = np.asarray(pc.equal(self.low, self.high).fill_null(False))
        return np.asarray(single & self.exact)


def _at_least(bounds: Any, value: Value) -> Mask:
    """``bound >= value`` for every file; arbitrary where there is no bound."""
    if isinstance(bounds, np.ndarray):
        return np.asarray(bounds >= value)
    scalar = pa.scalar(value, pa.large_binary())
    return np.asarray(pc.greater_equal(bounds, scalar).fill_null(False))


def _below(bounds: Any, value: Value) -> Mask:
    """``bound < value`` for every file; arbitrary where there is no bound."""
    if isinstance(bounds, np.ndarray):
        return np.asarray(bounds < value)
    return ~_at_least(bounds, value)
