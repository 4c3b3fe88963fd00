"""The statistics of every file, and the atoms that they answer.

``summaries`` has what a manifest stores of each file, ``ends`` compares its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, assert_never

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
)
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.expressions.patterns import select
from skipindex.log.manifest import bound_type
from skipindex.table.statistics.counts import Counts, compact
from skipindex.table.statistics.ends import FileBounds


@dataclass(frozen=True)
class FileStats:
    """What is known of one column in every file of a table.

    Args:
        can_null: the file may hold a NULL.
        can_value: the file may hold a value that is not NULL.
        bounded: ``ends`` are bounds of the file's values.
        ends: the bounds; arbitrary where not ``bounded``.
        exact: both bounds are values of the file.
        nulls: number of NULLs in the file.
    """

    can_null: Mask
    can_value: Mask
    bounded: Mask
    ends: FileBounds
    exact: Mask
    nulls: Counts

    @property
    def low(self) -> Any:
        """The lower bounds: numpy integers or Arrow byte strings, of any width."""
        return self.ends.low

    @property
    def high(self) -> Any:
        """The upper bounds, likewise."""
        return self.ends.high

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
            Counts.where(counted, nulls),
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

        A value of None is NULL.  If ``highs`` is given, a file's value lies between its
        bound in ``values`` and that in ``highs``.
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
        nulls: Counts | None = None,
    ) -> FileStats:
        masks = can_null, can_value, bounded, exact
        can_null, can_value, bounded, exact = map(compact, masks)
        ends = FileBounds.of(low, high, bounded)
        known = Counts.unknown(len(exact)) if nulls is None else nulls
        return cls(can_null, can_value, bounded, ends, exact, known)

    def within(self, least: Value, stop: Value) -> Mask:
        """Files where every value is certainly from ``least`` to below ``stop``."""
        inside, _ = self.ends.between(least, stop)
        return np.asarray(inside & self.bounded | ~self.can_value)

    def only(self, files: Mask) -> FileStats:
        """The statistics of these files; nothing is known of the others."""
        return FileStats(
            self.can_null | ~files,
            self.can_value | ~files,
            self.bounded & files,
            self.ends,
            self.exact & files,
            self.nulls.only(files),
        )

    def probe(self, atom: Atom) -> Bounds[Mask]:
        """Files whose every row makes ``atom`` TRUE, and files where some row may."""
        match atom:
            case NullAtom():
                return Bounds(~self.can_value, self.can_null)
            case NotNullAtom():
                return Bounds(~self.can_null, self.can_value)
            case Range(_, low, high):
                inside, touched = self.ends.between(low, high)
            case OneOf(_, values):
                only, some = self.ends.among(values)
                inside, touched = only | some & self.single, some
            case NoneOf(_, values):
                only, some = self.ends.among(values)
                inside, touched = ~some, ~(only | some & self.single)
            case Matches():
                inside, touched = self._matching(atom)
            case _:
                assert_never(atom)
        # A file without a value has no row that is TRUE, but all of its no rows.
        if not self._all_bounded:
            touched |= ~self.bounded
            inside &= self.bounded
        if self._some_null:
            inside &= ~self.can_null
        if not self._all_value:
            touched &= self.can_value
        return Bounds(inside, touched)

    def holds(self, atom: Atom) -> Mask:
        """Files where the row of a bound must make ``atom`` TRUE; errs to fewer."""
        result = np.zeros(len(self.bounded), bool)
        if isinstance(atom, Range) and isinstance(self.low, np.ndarray):
            for bound in (self.low, self.high):
                inside = self.bounded & self.exact
                if atom.low is not None:
                    inside &= bound >= atom.low
                if atom.high is not None:
                    inside &= bound < atom.high
                result |= inside
        return result

    def every_value(self, atom: Atom) -> Mask:
        """Files where ``atom`` is TRUE for every row that is not NULL."""
        return replace(self, can_null=np.zeros_like(self.can_null)).probe(atom).lower

    @cached_property
    def single(self) -> Mask:
        """Files whose values are certainly all equal."""
        return np.asarray(self.ends.equal & self.bounded & self.exact)

    @cached_property
    def _all_bounded(self) -> bool:
        return bool(self.bounded.all())

    @cached_property
    def _some_null(self) -> bool:
        return bool(self.can_null.any())

    @cached_property
    def _all_value(self) -> bool:
        return bool(self.can_value.all())

    def _matching(self, atom: Matches) -> tuple[Mask, Mask]:
        """Decided where a file has one value alone: bounds say nothing of patterns."""
        known = np.flatnonzero(self.single)
        inside = np.zeros(len(self.bounded), bool)
        touched = np.ones(len(self.bounded), bool)
        values = self.low.take(pa.array(known)).dictionary_encode()
        texts = values.dictionary.cast(pa.large_binary())
        certain, possible = select(atom.pattern, texts)
        if atom.negated:
            certain, possible = ~possible, ~certain
        codes = values.indices.to_numpy()
        inside[known], touched[known] = certain[codes], possible[codes]
        return inside, touched
