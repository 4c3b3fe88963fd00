"""Row-level evaluation of one file, by bitmaps of row positions.

An AND probes its most selective child first, and every other one only for the rows that
the previous ones left.  So most of the work is proportional to the number of those
rows.  A set whose two bounds are equal is one object, and of the last child the rows
are only counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from skipindex.conditions.bound_predicate import (
    AllOf,
    BoundPredicate,
    ComparedColumns,
    Computed,
    Judged,
    Leaf,
    Unknown,
    fold,
    leaves,
)
from skipindex.expressions.atoms import Atom
from skipindex.expressions.bounds import Bounds, exactly
from skipindex.indexes.interface import UNUSABLE, Dictionary
from skipindex.planner.stages.compared_columns import (
    MOST_COMPARED,
    Side,
    compared_rows,
    cuts,
)
from skipindex.planner.stages.computed import ValueBudget, bound_of, probe_index
from skipindex.planner.stages.cost import FEW
from skipindex.planner.stages.index_reader import IndexReader
from skipindex.planner.stages.records import IndexLocation, LeafRecord
from skipindex.table import ColumnInfo, TableState

Rows: TypeAlias = tuple[AbstractBitMap, AbstractBitMap]
"""Rows certainly and possibly TRUE; one object where they are the same."""

RowProbe: TypeAlias = Callable[[int, AbstractBitMap | None], Rows]
"""For a file and some of its rows (None: all), those that make a node TRUE."""

CountProbe: TypeAlias = Callable[[int, AbstractBitMap, AbstractBitMap], tuple[int, int]]
"""For a file and the rows certainly and possibly TRUE for the rest of an AND (one
object if they are equal), the least and the greatest number that make a node TRUE."""

_NONE: Final = (BitMap(),) * 2


class RowVerdict(NamedTuple):
    """The least and the greatest number of matching rows of one file."""

    lower: int
    upper: int
    kinds: tuple[str, ...]


class RowEvaluator:
    """Bounds the matching rows of files, one file at a time.

    Args:
        tree: any bound tree; the first child of an AND is probed first.
        known: what is known of its leaves, and of comparisons of two columns.
        reader: opens their indexes.
        locations: by column name and file, where the indexes are.
        table: whose files they are.
        value_budget: what tests of values are paid from; None is any price.
        reading: the seconds that reading each file takes.
    """

    def __init__(
        self,
        tree: BoundPredicate,
        known: Mapping[Judged, LeafRecord],
        reader: IndexReader,
        *,
        locations: Mapping[str, Mapping[int, Sequence[IndexLocation]]],
        table: TableState,
        value_budget: ValueBudget | None = None,
        reading: np.ndarray | None = None,
    ) -> None:
        self._value_budget = None if reading is None else value_budget
        self._reading = reading
        repeated = Counter(leaves(tree))
        self._repeated = {leaf for leaf, n in repeated.items() if n > 1}
        self._tree = tree
        self._known = known
        self._reader = reader
        self._locations = locations
        self._table = table
        # Plain integers, looked up one at a time.
        self._n_rows = table.n_rows.or_else(0).data
        self._used: dict[str, None] = {}
        self.empty_leaves: dict[Judged, list[int]] = {}
        self._leaf_probes: dict[Leaf | Computed, RowProbe] = {}
        *first, last = tree.children if isinstance(tree, AllOf) else (tree,)
        self._first = [self._probe_of(child) for child in first]
        self._last = self._probe_of(last)
        self._count = self._counting(last)

    def verdict(self, file: int) -> RowVerdict:
        """Between how many and how many rows of a file match."""
        self._used = {}
        lower: AbstractBitMap | None = None
        upper: AbstractBitMap | None = None
        for ask in self._first:
            lower, upper = _narrowed(lower, upper, *ask(file, upper))
            if not upper:
                return RowVerdict(0, 0, self._kinds())
        if lower is None or upper is None:
            low, high = self._last(file, None)
            return RowVerdict(len(low), len(high), self._kinds())
        return RowVerdict(*self._count(file, lower, upper), self._kinds())

    def has_many_values(self, file: int) -> bool:
        """Whether many values of a file certainly match, by a dictionary alone."""
        if not isinstance(self._tree, Leaf):
            return False
        column = self._known[self._tree].column
        for location in self._locations[column.name].get(file, ()):
            index = self._reader.open(location, file, column)
            try:
                return has_many(index, self._tree.atom)
            except UNUSABLE as error:
                self._reader.refuse(error, location[1])
        return False

    def rows(self, file: int) -> Rows:
        """The rows of a file that certainly match, and those that may."""
        probes = (*self._first, self._last)
        return self._all_of(iter(probes))(file, None)

    def _kinds(self) -> tuple[str, ...]:
        return tuple(self._used)

    def _probe_of(self, node: BoundPredicate) -> RowProbe:
        return fold(
            node,
            leaf=self._leaf,
            all_of=self._all_of,
            any_of=self._any_of,
            constant=lambda value: self._everything if value else _no_row,
            unknown=self._unknown,
        )

    def _all(self, file: int, within: AbstractBitMap | None) -> AbstractBitMap:
        return BitMap(range(int(self._n_rows[file]))) if within is None else within

    def _everything(self, file: int, within: AbstractBitMap | None) -> Rows:
        rows = self._all(file, within)
        return rows, rows

    def _any_row(self, file: int, within: AbstractBitMap | None) -> Rows:
        return _NONE[0], self._all(file, within)

    def _unknown(self, node: Unknown) -> RowProbe:
        if not isinstance(node, ComparedColumns):
            return self._any_row
        bounds = self._known[node].bounds

        def ask(file: int, within: AbstractBitMap | None) -> Rows:
            if not bounds.upper[file]:
                return _NONE
            if bounds.lower[file]:
                return self._everything(file, within)
            rows = self._all(file, within)
            result = self._compared_rows(node, file, rows)
            if result is None:
                return _NONE[0], rows
            self._note_empty(node, file, within, result.upper)
            return result.lower, result.upper

        return ask

    def _note_empty(
        self,
        node: Judged,
        file: int,
        within: AbstractBitMap | None,
        upper: AbstractBitMap,
    ) -> None:
        """Note a file that a condition rules out alone."""
        is_alone = within is None or len(within) == self._n_rows[file]
        if not upper and is_alone:
            self.empty_leaves.setdefault(node, []).append(file)

    def _compared_rows(
        self, node: ComparedColumns, file: int, rows: AbstractBitMap
    ) -> Bounds[AbstractBitMap] | None:
        """The ``rows`` that make it TRUE; None without an opinion."""
        n_rows = int(self._n_rows[file])
        left, right = (
            self._side(self._table.stored(name), file, rows)
            for name in (node.left, node.right)
        )
        if left is None or right is None:
            return None
        values = cuts(left, right)
        if values is None:
            return None
        if self._value_budget is not None and self._reading is not None:
            reading = float(self._reading[file])
            if not self._value_budget.can_afford_rows(
                node, len(values), n_rows, reading
            ):
                return None
        result = compared_rows(left, node.operator, right, values, n_rows)
        return None if result is None else exactly(rows & result)

    def _side(self, column: ColumnInfo, file: int, rows: AbstractBitMap) -> Side | None:
        """A column of a file, by its first index that lists its values, or by any."""
        if column.is_partition:
            return self._of_partition(column, file)
        result = None
        for location in self._locations[column.name].get(file, ()):
            index = self._reader.open(location, file, column)
            if not isinstance(index, Dictionary):
                continue
            try:
                values = index.distinct(MOST_COMPARED)
            except UNUSABLE as error:
                self._reader.refuse(error, location[1])
                continue
            ask = partial(self._of_atom, location, column, file, rows)
            result = Side(column.name, values, ask)
            if values is not None:
                break
        return result

    def _of_partition(self, column: ColumnInfo, file: int) -> Side:
        """A column that has one value, or NULL, in all rows of a file."""
        stats, every = self._table.stats(column), self._all(file, None)

        def ask(atom: Atom) -> Bounds[AbstractBitMap]:
            result = stats.probe(atom)
            lower, upper = result.lower[file], result.upper[file]
            return Bounds(*(every if known else _NONE[0] for known in (lower, upper)))

        values = [bound_of(stats.low, file)] if stats.single[file] else None
        return Side(column.name, values, ask)

    def _of_atom(
        self,
        location: IndexLocation,
        column: ColumnInfo,
        file: int,
        rows: AbstractBitMap,
        atom: Atom,
    ) -> Bounds[AbstractBitMap] | None:
        return self._asked(location, column, file, Leaf(atom, ""), rows)

    def _all_of(self, parts: Iterator[RowProbe]) -> RowProbe:
        probes = list(parts)

        def ask(file: int, within: AbstractBitMap | None) -> Rows:
            lower = upper = self._all(file, within)
            for probe in probes:
                lower, upper = _narrowed(lower, upper, *probe(file, upper))
                if not upper:
                    return _NONE
            return lower, upper

        return ask

    def _any_of(self, parts: Iterator[RowProbe]) -> RowProbe:
        probes = list(parts)

        def ask(file: int, within: AbstractBitMap | None) -> Rows:
            lower, upper = _NONE
            for probe in probes:
                low, high = probe(file, within)
                if low is high and lower is upper:
                    lower = upper = upper | high
                else:
                    lower, upper = lower | low, upper | high
            return lower, upper

        return ask

    def _leaf(self, leaf: Leaf | Computed) -> RowProbe:
        if leaf not in self._leaf_probes:
            self._leaf_probes[leaf] = self._leaf_probe(leaf)
        return self._leaf_probes[leaf]

    def _leaf_probe(self, leaf: Leaf | Computed) -> RowProbe:
        record = self._known[leaf]
        # Looked up one at a time, where bytes are several times faster than arrays.
        possible = record.bounds.upper.tobytes()
        certain = record.bounds.lower.tobytes()
        locations = self._locations[record.column.name]
        is_repeated = leaf in self._repeated
        # What was found of the file that was asked last.
        result: dict[tuple[int, int], Bounds[AbstractBitMap] | None] = {}

        def once(
            file: int, i: int, location: IndexLocation
        ) -> Bounds[AbstractBitMap] | None:
            if (file, i) not in result:
                if i == 0:
                    result.clear()
                rows = self._asked(location, record.column, file, leaf, None)
                result[file, i] = rows
            return result[file, i]

        def ask(file: int, within: AbstractBitMap | None) -> Rows:
            if not possible[file]:
                return _NONE
            if certain[file]:
                return self._everything(file, within)
            lower: AbstractBitMap | None = None
            upper = within
            for i, location in enumerate(locations.get(file, ())):
                if is_repeated:
                    bounds = once(file, i, location)
                else:
                    bounds = self._asked(location, record.column, file, leaf, upper)
                if bounds is None:
                    continue
                upper = _both(upper, bounds.upper)
                if bounds.lower is bounds.upper:
                    lower = upper
                    break
                low = _both(within, bounds.lower)
                lower = low if lower is None else lower | low
            if upper is None:
                upper = self._all(file, None)
            self._note_empty(leaf, file, within, upper)
            return (_NONE[0] if lower is None else lower), upper

        return ask

    def _asked(
        self,
        location: IndexLocation,
        column: ColumnInfo,
        file: int,
        leaf: Leaf | Computed,
        within: AbstractBitMap | None,
    ) -> Bounds[AbstractBitMap] | None:
        """What an index says of rows, at least ``within``; None without an opinion."""
        index = self._reader.open(location, file, column)
        if index is None:
            return None
        try:
            bounds: Bounds[AbstractBitMap] | None
            few = within is not None and self._are_few(within, file)
            probe_within = getattr(index, "probe_within", None) if few else None
            if probe_within is not None and isinstance(leaf, Leaf):
                bounds = probe_within(leaf.atom, within)
            else:
                reading = 0.0 if self._reading is None else float(self._reading[file])
                bounds = probe_index(index, leaf, self._value_budget, reading)
        except UNUSABLE as error:
            self._reader.refuse(error, location[1])
            return None
        if bounds is not None:
            self._used[location[0].name] = None
        return bounds

    def _counted(
        self,
        location: IndexLocation,
        column: ColumnInfo,
        file: int,
        leaf: Leaf,
        rows: AbstractBitMap,
    ) -> tuple[int, int] | None:
        """Bounds of how many ``rows`` make a leaf TRUE; None if that needs a bitmap."""
        index = self._reader.open(location, file, column)
        if index is None:
            return 0, len(rows)
        count_within = getattr(index, "count_within", None)
        if count_within is None:
            return None
        try:
            n: int | None = count_within(leaf.atom, rows)
        except UNUSABLE as error:
            self._reader.refuse(error, location[1])
            return 0, len(rows)
        if n is None:
            return None
        self._used[location[0].name] = None
        return n, n

    def _counting(self, node: BoundPredicate) -> CountProbe:
        """The probe of the last child of an AND, whose rows are only counted."""
        probe = self._probe_of(node)

        def count(
            file: int, lower: AbstractBitMap, upper: AbstractBitMap
        ) -> tuple[int, int]:
            low, high = probe(file, upper)
            if low is high and lower is upper:
                return (len(high),) * 2
            return lower.intersection_cardinality(low), len(high)

        if isinstance(node, Leaf | Computed):
            return self._counting_leaf(node, count)
        return count

    def _counting_leaf(
        self, leaf: Leaf | Computed, otherwise: CountProbe
    ) -> CountProbe:
        record = self._known[leaf]
        undecided = (record.bounds.upper & ~record.bounds.lower).tobytes()
        locations = self._locations[record.column.name]

        def count(
            file: int, lower: AbstractBitMap, upper: AbstractBitMap
        ) -> tuple[int, int]:
            mine = locations.get(file, ())
            if not undecided[file] or len(mine) != 1:
                return otherwise(file, lower, upper)
            if lower is upper and isinstance(leaf, Leaf) and self._are_few(upper, file):
                numbers = self._counted(mine[0], record.column, file, leaf, upper)
                if numbers is not None:
                    return numbers
            bounds = self._asked(mine[0], record.column, file, leaf, upper)
            if bounds is None:
                return 0, len(upper)
            return _numbers(bounds, lower, upper)

        return count

    def _are_few(self, rows: AbstractBitMap, file: int) -> bool:
        """Whether looking at these rows alone is faster than looking at all."""
        return len(rows) * FEW < self._n_rows[file]


def has_many(index: object, atom: Atom) -> bool:
    """Whether an index knows by a dictionary alone that many values match.

    Raises:
        CorruptIndexError: the dictionary is damaged.
    """
    knows = getattr(index, "has_many", None)
    return knows is not None and bool(knows(atom))


def _numbers(
    bounds: Bounds[AbstractBitMap], lower: AbstractBitMap, upper: AbstractBitMap
) -> tuple[int, int]:
    """How many rows are in an AND of two bounds."""
    n_upper = bounds.upper.intersection_cardinality(upper)
    if bounds.lower is bounds.upper and lower is upper:
        return n_upper, n_upper
    return bounds.lower.intersection_cardinality(lower), n_upper


def _no_row(_file: int, _within: AbstractBitMap | None) -> Rows:
    return _NONE


def _narrowed(
    lower: AbstractBitMap | None,
    upper: AbstractBitMap | None,
    low: AbstractBitMap,
    high: AbstractBitMap,
) -> Rows:
    """An AND of what was known (None: everything) and an answer within it."""
    if low is high and lower is upper:
        return high, high
    return _both(lower, low), high


def _both(rows: AbstractBitMap | None, others: AbstractBitMap) -> AbstractBitMap:
    """The rows that are in both; None is all rows."""
    return others if rows is None else rows & others
