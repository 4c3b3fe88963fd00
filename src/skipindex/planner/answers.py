"""Answers from indexes: counts, extremes and groups of the matching rows.

Each answer is about one file, and is given only where the rows that certainly match are
those that may.  A number of rows then comes from the stages of the plan.  Extremes and
groups come from the statistics where every row matches or has the same value, else from
an exact index of their column, which is asked for the rows that match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from pyroaring import AbstractBitMap

from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import (
    Atom,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
)
from skipindex.expressions.domain import INT64_MAX
from skipindex.indexes.encoding.column import MAX_ROWS
from skipindex.indexes.interface import UNUSABLE, Dictionary, Index
from skipindex.planner.plan import Plan
from skipindex.planner.stages.computed import MAX_DISTINCT, bound_of
from skipindex.planner.stages.records import IndexLocation
from skipindex.planner.stages.rows import RowEvaluator
from skipindex.table import ColumnInfo
from skipindex.table.statistics import FileStats

MAX_GROUPS: Final = 1000
"""The groups of a file with more values are not counted."""
EXACT: Final = frozenset(
    {"int", "bool", "date", "timestamp", "timestamp_ntz"}
    | {"decimal", "big_decimal", "string"}
)
"""Domains that tell all values apart; that of floats has one zero and one NaN."""

T = TypeVar("T")
Groups: TypeAlias = Mapping[Value | None, int]
"""Number of rows by value, never 0."""


class Extreme(NamedTuple):
    """The least or the greatest value; None if no row has a value."""

    value: Value | None


class MatchingRows:
    """Answers about the rows of files for which a plan's predicate is TRUE.

    Args:
        plan: the plan.
        files: those that may be asked about.
    """

    def __init__(self, plan: Plan, files: Mask) -> None:
        self._evaluation = plan.evaluation
        counts = plan.row_counts
        self.counted: Mask = files & counts.exact & (counts.upper >= 0)
        if self._evaluation.table.deleted is not None:  # an index knows their values
            self.counted &= self._evaluation.table.deleted[1] == 0
        """The files whose number of matching rows is known."""
        self.counts = counts.lower
        """Of the files, these numbers."""
        self._rows: dict[int, AbstractBitMap | None] = {}
        self._places: dict[str, Mapping[int, Sequence[IndexLocation]]] = {}

    def extremes(self, column: ColumnInfo, *, greatest: bool) -> dict[int, Extreme]:
        """The least or greatest value of the matching rows of a file, where known."""
        result: dict[int, Extreme] = {}
        if column.domain is None or column.domain.name not in EXACT:
            return result
        stats = self._evaluation.table.stats(column)
        bounds = stats.high if greatest else stats.low
        for file in np.flatnonzero(self.counted).tolist():
            is_whole = bool(self._evaluation.certain[file])
            extreme: Extreme | None
            if not self.counts[file] or not stats.can_value[file]:
                extreme = Extreme(None)
            elif is_whole and stats.bounded[file] and stats.exact[file]:
                extreme = Extreme(bound_of(bounds, file))
            else:
                ends = None
                if stats.bounded[file] and isinstance(stats.low, np.ndarray):
                    ends = int(stats.low[file]), int(stats.high[file])
                search = _Search(column.name, ends, greatest=greatest)
                extreme = self._asked(column, file, search.extreme)
            if extreme is not None:
                result[file] = extreme
        return result

    def groups(self, column: ColumnInfo) -> dict[int, Groups]:
        """How many matching rows of a file have each value, where known."""
        result: dict[int, Groups] = {}
        if column.domain is None or column.domain.name not in EXACT:
            return result
        stats = self._evaluation.table.stats(column)
        for file in np.flatnonzero(self.counted).tolist():
            n = int(self.counts[file])
            groups: Groups | None
            if not n:
                groups = {}
            elif not stats.can_value[file]:
                groups = {None: n}
            elif not stats.can_null[file] and _has_one_value(stats, file):
                groups = {bound_of(stats.low, file): n}
            else:
                groups = self._asked(
                    column, file, lambda index, rows: _groups(index, column.name, rows)
                )
            if groups is not None:
                result[file] = groups
        return result

    def _asked(
        self,
        column: ColumnInfo,
        file: int,
        ask: Callable[[Index, AbstractBitMap], T | None],
    ) -> T | None:
        """What an index of a file says of its matching rows; None if none can say."""
        reader = self._evaluation.reader
        for location in self._locations(column).get(file, ()):
            index = reader.open(location, file, column)
            rows = None if index is None else self._matching(file)
            if index is None or rows is None:
                continue
            try:
                answer = ask(index, rows)
            except UNUSABLE as error:
                reader.refuse(error, location[1])
                continue
            if answer is not None:
                return answer
        return None

    def _locations(self, column: ColumnInfo) -> Mapping[int, Sequence[IndexLocation]]:
        if column.name not in self._places:
            few = self.counted & (self._evaluation.table.n_rows.or_else(0) <= MAX_ROWS)
            self._places[column.name] = self._evaluation.reader.locations(
                column, few, positional=True
            )
        return self._places[column.name]

    def _matching(self, file: int) -> AbstractBitMap | None:
        """Exactly the matching rows of a file; None if they are not known."""
        if file not in self._rows:
            lower, upper = self._evaluator.rows(file)
            self._rows[file] = upper if lower == upper else None
        return self._rows[file]

    @cached_property
    def _evaluator(self) -> RowEvaluator:
        evaluation = self._evaluation
        return RowEvaluator(
            evaluation.tree,
            evaluation.records,
            evaluation.reader,
            locations={
                name: self._locations(column)
                for name, column in evaluation.columns.items()
            },
            table=evaluation.table,
        )


def _has_one_value(stats: FileStats, file: int) -> bool:
    """Whether all values of a file are certainly the same."""
    is_exact = bool(stats.bounded[file] and stats.exact[file])
    return is_exact and bound_of(stats.low, file) == bound_of(stats.high, file)


def _exactly(index: Index, atom: Atom) -> AbstractBitMap | None:
    """The rows for which an atom is TRUE; None if the index does not know all."""
    bounds = index.probe(atom)
    if bounds is None:
        return None
    is_exact = bounds.lower is bounds.upper or bounds.lower == bounds.upper
    return bounds.upper if is_exact else None


def _groups(index: Index, column: str, rows: AbstractBitMap) -> Groups | None:
    """How many of ``rows`` have each value; None if it is not known."""
    values = index.distinct(MAX_GROUPS) if isinstance(index, Dictionary) else None
    if values is None:
        return None
    groups: dict[Value | None, int] = {}
    for value in (*dict.fromkeys(values), None):
        atom = NullAtom(column) if value is None else OneOf(column, (value,))
        result = _exactly(index, atom)
        if result is None:
            return None
        n = result.intersection_cardinality(rows)
        if n:
            groups[value] = n
    return groups if sum(groups.values()) == len(rows) else None


class _Search:
    """Looks for an extreme by halves, among the values of an index or between bounds.

    Args:
        column: its name.
        ends: integers between which all values are; None if that is not known.
        greatest: whether the greatest value is looked for.
    """

    def __init__(
        self, column: str, ends: tuple[int, int] | None, *, greatest: bool
    ) -> None:
        self._column = column
        self._ends = ends
        self._greatest = greatest

    def extreme(self, index: Index, rows: AbstractBitMap) -> Extreme | None:
        """The extreme of ``rows``; None if the index does not know it."""
        present = _exactly(index, NotNullAtom(self._column))
        if present is None:
            return None
        if not present.intersect(rows):
            return Extreme(None)
        values = index.distinct(MAX_DISTINCT) if isinstance(index, Dictionary) else None
        if values:
            values = sorted(values, reverse=self._greatest)
            place = self._first(
                0, len(values) - 1, lambda i: self._holds(index, rows, values[i])
            )
            value = None if place is None else values[place]
        elif self._ends is not None:
            least, most = self._ends
            sign = -1 if self._greatest else 1
            start, stop = sorted((sign * least, sign * most))
            place = self._first(
                start, stop, lambda i: self._holds(index, rows, sign * i)
            )
            value = None if place is None else sign * place
        else:
            return None
        return Extreme(value) if self._is_proved(index, rows, value) else None

    def _first(
        self, start: int, stop: int, holds: Callable[[int], bool | None]
    ) -> int | None:
        """The first place that holds, where all later ones do too."""
        while start < stop:
            middle = (start + stop) // 2
            result = holds(middle)
            if result is None:
                return None
            start, stop = (start, middle) if result else (middle + 1, stop)
        return start

    def _holds(self, index: Index, rows: AbstractBitMap, value: Value) -> bool | None:
        """Whether some row has the value, or one nearer to the end."""
        if self._greatest:
            atom = Range(self._column, value, None)
        else:
            atom = Range(self._column, None, _next(value))
        result = _exactly(index, atom)
        return None if result is None else bool(result.intersect(rows))

    def _is_proved(
        self, index: Index, rows: AbstractBitMap, value: Value | None
    ) -> bool:
        """Whether a row has the value, and no row has one nearer to the end."""
        if value is None:
            return False
        here = _exactly(index, OneOf(self._column, (value,)))
        if here is None or not here.intersect(rows):
            return False
        if self._greatest and _next(value) is None:
            return True
        beyond = (_next(value), None) if self._greatest else (None, value)
        result = _exactly(index, Range(self._column, *beyond))
        return result is not None and not result.intersect(rows)


def _next(value: Value) -> Value | None:
    """The least value above; None if there is none."""
    if isinstance(value, bytes):
        return value + b"\0"
    return None if value == INT64_MAX else value + 1
