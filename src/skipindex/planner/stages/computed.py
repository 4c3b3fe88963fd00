"""Functions of one column, evaluated on the values that statistics or indexes know.

An index with a dictionary answers exactly: the function is tested on every distinct
value, and the rows are those of the values that pass.  The statistics answer where
they leave few values possible: one, if the least is the greatest, or the integers of
a narrow range, such as the days of a file that holds one week.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap

from skipindex.conditions.binding.terms import Remembered
from skipindex.conditions.bound_predicate import ComparedColumns, Computed, Leaf
from skipindex.expressions.arrays import Ints, Mask
from skipindex.expressions.atoms import NullAtom, OneOf, Value, values_of
from skipindex.expressions.bounds import Bounds
from skipindex.indexes.interface import Dictionary, Index
from skipindex.planner.stages.cost import SECONDS_PER_QUESTION
from skipindex.storage.deadline import checked

if TYPE_CHECKING:
    from skipindex.table.statistics import FileStats

MAX_DISTINCT: Final = 1 << 14
"""A dictionary of more values is not walked."""
_AT_ONCE: Final = 64
"""Values that are tested between two looks at the deadline."""
MAX_RANGE: Final = 400
"""A file whose bounds are further apart is not walked; a year of days is."""


SECONDS_PER_TEST: Final = 3e-6
"""To test a value that was not tested before."""
SECONDS_PER_VALUE: Final = 4e-7
"""To read a value of a dictionary, and to look up its answer."""
SECONDS_PER_ROW: Final = 1e-8
"""To compare two columns of a row, beside asking for the rows of each value."""
_SHARE: Final = 0.5
_LEAST: Final = 0.01
_MOST: Final = 1.5
"""Tests of values may take half of the time of reading the files, and these seconds."""
_LOOKS: Final = 4
"""At so many dictionaries a function looks before its price is known: files often have
the values of others, which are tested once."""


@dataclass(slots=True)
class ValueHistory:
    """How often the values of a file were tested for one leaf.

    Args:
        n: times.
        share: of the last one's values, those that had not been tested before.
        refused: the files whose values were not tested.
    """

    n: int = 0
    share: float = 0.0
    refused: int = 0


class ValueBudget:
    """The time that a plan may spend on testing values one by one.

    It is reckoned by the number of values, so that equal plans ask the same.

    Args:
        seconds: for all leaves and files.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self._looks: dict[Computed | ComparedColumns, ValueHistory] = {}

    @classmethod
    def of(cls, reading: float) -> ValueBudget:
        """The budget of a plan, of files that are read in so many seconds."""
        return cls(min(max(_SHARE * reading, _LEAST), _MOST))

    def max_values(self, leaf: Computed, reading: float) -> int:
        """How many values a file may have to be tested.

        ``reading`` is the seconds that reading the file takes.
        """
        looks = self._of(leaf)
        share = looks.share if looks.n >= _LOOKS else 0.0
        each = SECONDS_PER_VALUE + share * SECONDS_PER_TEST
        return int(self._affordable(looks, reading) / each)

    def can_afford(self, leaf: Computed, values: list[Value], reading: float) -> bool:
        """Whether these values of a file may be tested; they are paid for."""
        looks = self._of(leaf)
        n_unknown = _n_unknown(leaf, values)
        self.left -= len(values) * SECONDS_PER_VALUE
        is_paid = self._pays(looks, n_unknown * SECONDS_PER_TEST, reading)
        looks.n += 1
        looks.share = n_unknown / max(len(values), 1)
        return is_paid

    def can_afford_rows(
        self, node: ComparedColumns, n_values: int, n_rows: int, reading: float
    ) -> bool:
        """Whether the rows of two columns may be compared; they are paid for.

        ``n_values`` are the values that both are cut at.
        """
        looks = self._of(node)
        looks.n += 1
        seconds = 2 * n_values * SECONDS_PER_QUESTION[True] + n_rows * SECONDS_PER_ROW
        return self._pays(looks, seconds, reading)

    def _pays(self, looks: ValueHistory, seconds: float, reading: float) -> bool:
        is_affordable = seconds <= self._affordable(looks, reading)
        if is_affordable:
            self.left -= seconds
        else:
            looks.refused += 1
        return is_affordable

    def _affordable(self, looks: ValueHistory, reading: float) -> float:
        return self.left if looks.n < _LOOKS else min(self.left, reading)

    def _of(self, leaf: Computed | ComparedColumns) -> ValueHistory:
        return self._looks.setdefault(leaf, ValueHistory())

    def refuse(self, leaf: Computed) -> None:
        """Note a file whose values were not tested."""
        self._of(leaf).refused += 1

    @property
    def refused(self) -> dict[Computed | ComparedColumns, int]:
        """Number of files whose values were not tested, by leaf or comparison."""
        result = {leaf: looks.refused for leaf, looks in self._looks.items()}
        return {leaf: n for leaf, n in result.items() if n}


def _n_unknown(leaf: Computed, values: list[Value]) -> int:
    """How many of the values were not tested before."""
    test = leaf.test
    return test.n_unknown(values) if isinstance(test, Remembered) else len(values)


def probe_index(
    index: Index,
    leaf: Leaf | Computed,
    value_budget: ValueBudget | None = None,
    reading: float = 0.0,
) -> Bounds[AbstractBitMap] | None:
    """What ``index`` says of a leaf's rows; None is "unknown".

    Tests of values are paid from ``value_budget``, at any price if it is None;
    ``reading`` is the seconds that reading the file takes.
    """
    if isinstance(leaf, Leaf):
        return index.probe(leaf.atom)
    if not isinstance(index, Dictionary):
        return None
    most = (
        MAX_DISTINCT if value_budget is None else value_budget.max_values(leaf, reading)
    )
    values = index.distinct(min(most, MAX_DISTINCT))
    if values is None:
        if value_budget is not None and most < MAX_DISTINCT:
            value_budget.refuse(leaf)
        return None
    if value_budget is not None and not value_budget.can_afford(leaf, values, reading):
        return None
    return _among(index, leaf, values)


def _among(
    index: Index, leaf: Computed, values: list[Value]
) -> Bounds[AbstractBitMap] | None:
    """The rows whose value passes the test."""
    passing: list[Value] = []
    unsure: list[Value] = []
    for start in checked(range(0, len(values), _AT_ONCE)):
        for value in values[start : start + _AT_ONCE]:
            result = leaf.test(value)
            if result is not False:
                (passing if result else unsure).append(value)
    null = leaf.test(None)
    certain = _rows(index, leaf.column, passing, null=null is True)
    if not unsure and null is not None:
        return certain
    some = sorted([*passing, *unsure])
    possible = _rows(index, leaf.column, some, null=null is not False)
    if certain is None or possible is None:
        return None
    return Bounds(certain.lower, possible.upper)


def _rows(
    index: Index, column: str, values: list[Value], *, null: bool
) -> Bounds[AbstractBitMap] | None:
    """The rows with one of the values, or, if ``null``, with none at all."""
    result: Bounds[AbstractBitMap] | None = Bounds(BitMap(), BitMap())
    if values:
        result = index.probe(OneOf(column, values_of(values)))
    if null and result is not None:
        nulls = index.probe(NullAtom(column))
        result = None if nulls is None else result | nulls
    return result


def probe_stats(
    stats: FileStats, leaf: Leaf | Computed, value_budget: ValueBudget | None = None
) -> Bounds[Mask]:
    """The files whose every row is TRUE, and those with a row that may be.

    Tests of values are paid from ``value_budget``; None is any price.
    """
    if isinstance(leaf, Leaf):
        return stats.probe(leaf.atom)
    n = len(stats.bounded)
    few = stats.single
    if isinstance(stats.low, np.ndarray):
        high, low = (ends.astype(np.int64) for ends in (stats.high, stats.low))
        width = high.view(np.uint64) - low.view(np.uint64)
        few = stats.bounded & (width < MAX_RANGE)
    possible, certain = np.ones(n, bool), np.zeros(n, bool)
    files = np.flatnonzero(few & stats.can_value)
    bounds, codes = _distinct_bounds(stats, files)
    most = (
        None if value_budget is None else int(value_budget.left / 2 / SECONDS_PER_TEST)
    )
    tested, n_tests = _tested(leaf, bounds, most)
    if value_budget is not None:
        value_budget.left -= n_tests * SECONDS_PER_TEST
    certain[files], possible[files] = tested[codes].T
    null = leaf.test(None)
    # Every value passes, and so does NULL; or some value may, or NULL.
    lower = (certain | ~stats.can_value) & (~stats.can_null | (null is True))
    upper = (possible & stats.can_value) | (stats.can_null & (null is not False))
    return Bounds(lower, upper)


def _distinct_bounds(
    stats: FileStats, files: Ints
) -> tuple[list[tuple[Value, Value]], Ints]:
    """The distinct pairs of bounds of some files, and the number of each file's."""
    if not isinstance(stats.low, np.ndarray):
        values = stats.low.take(pa.array(files)).dictionary_encode()
        texts = values.dictionary.to_pylist()
        return list(zip(texts, texts, strict=True)), values.indices.to_numpy()
    low = stats.low[files].astype(np.int64)
    lows = pa.array(low).dictionary_encode()
    keys = lows.indices.to_numpy() * np.int64(MAX_RANGE) + (stats.high[files] - low)
    pairs = pa.array(keys).dictionary_encode()
    number, width = np.divmod(pairs.dictionary.to_numpy(), MAX_RANGE)
    least = lows.dictionary.to_numpy()[number]
    both = zip(least.tolist(), (least + width).tolist(), strict=True)
    return list(both), pairs.indices.to_numpy()


def _tested(
    leaf: Computed, bounds: list[tuple[Value, Value]], most: int | None
) -> tuple[np.ndarray, int]:
    """Whether all values within bounds pass, whether one may; the number of tests."""
    result = np.tile([False, True], (len(bounds), 1))
    if not bounds or isinstance(bounds[0][0], bytes):
        for i, (value, _) in enumerate(checked(bounds[:most])):
            answer = leaf.test(value)
            result[i] = answer is True, answer is not False
        return result, len(bounds[:most])
    low, high = np.array(bounds, np.int64).T
    # Beyond ``most`` tests nothing is known but of the closest bounds.
    chosen = np.argsort(high - low, kind="stable")
    values = _union(low, high)
    if most is not None and len(values) > most:
        n_values = np.cumsum((high - low)[chosen] + 1)
        chosen = chosen[: n_values.searchsorted(most, side="right")]
        values = _union(low[chosen], high[chosen])
    answers = [leaf.test(value) for value in checked(values.tolist())]
    # How many of the first values pass, and how many fail.
    true, false = (
        np.cumsum([0, *(answer is outcome for answer in answers)])
        for outcome in (True, False)
    )
    start = values.searchsorted(low[chosen])
    n = high[chosen] - low[chosen] + 1
    result[chosen, 0] = true[start + n] - true[start] == n
    result[chosen, 1] = false[start + n] - false[start] < n
    return result, len(values)


def _union(low: Ints, high: Ints) -> Ints:
    """The integers that lie between some pair of bounds, ascending."""
    if not len(low):
        return low
    order = np.argsort(low)
    low, top = low[order], np.maximum.accumulate(high[order])
    begins = np.flatnonzero(np.append(True, low[1:] > top[:-1]))
    ends = top[np.append(begins[1:], len(low)) - 1]
    first = low[begins]
    pieces = zip(first.tolist(), (ends - first + 1).tolist(), strict=True)
    return np.concatenate([start + np.arange(n) for start, n in pieces])


def bound_of(bounds: np.ndarray | pa.Array, file: int) -> Value:
    """One of the least or greatest values of ``FileStats``, as a domain value."""
    value = bounds[file]
    plain: Value = value.as_py() if isinstance(value, pa.Scalar) else int(value)
    return plain
