"""Functions of one column, asked of what is known of its values.

An index with a dictionary answers exactly: the function is tested on every distinct
value, and the rows are those of the values that pass.  The statistics answer where
they leave few values possible: one, if the least is the greatest, or the integers of
a narrow range, such as the days of a file that holds one week.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap

from skipindex.expressions.arrays import Ints, Mask
from skipindex.expressions.atoms import NullAtom, OneOf, Value
from skipindex.expressions.bounds import Bounds
from skipindex.indexes.interface import Dictionary, Index
from skipindex.planner.bound_predicate import Computed, Leaf

if TYPE_CHECKING:
    from skipindex.table.statistics import FileStats

MAX_DISTINCT: Final = 1 << 14
"""A dictionary of more values is not walked."""
MAX_RANGE: Final = 400
"""A file whose bounds are further apart is not walked; a year of days is."""


def probe_index(index: Index, leaf: Leaf | Computed) -> Bounds[AbstractBitMap] | None:
    """What ``index`` says of a leaf's rows; None is "no opinion"."""
    if isinstance(leaf, Leaf):
        return index.probe(leaf.atom)
    if not isinstance(index, Dictionary):
        return None
    values = index.distinct(MAX_DISTINCT)
    if values is None:
        return None
    passing: list[Value] = []
    unsure: list[Value] = []
    for value in values:
        found = leaf.test(value)
        if found is not False:
            (passing if found else unsure).append(value)
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
    found: Bounds[AbstractBitMap] | None = Bounds(BitMap(), BitMap())
    if values:
        found = index.probe(OneOf(column, tuple(values)))
    if null and found is not None:
        nulls = index.probe(NullAtom(column))
        found = None if nulls is None else found | nulls
    return found


def probe_stats(stats: FileStats, leaf: Leaf | Computed) -> Bounds[Mask]:
    """The files whose every row is TRUE, and those with a row that may be."""
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
    tested = np.array([_tested(leaf, *pair) for pair in bounds], bool).reshape(-1, 2)
    certain[files], possible[files] = tested[codes].T
    null = leaf.test(None)
    # Every value passes, and so does NULL; or some value may, or NULL.
    lower = (certain | ~stats.can_value) & (~stats.can_null | (null is True))
    upper = (possible & stats.can_value) | (stats.can_null & (null is not False))
    return Bounds(lower, upper)


def _distinct_bounds(
    stats: FileStats, files: Ints
) -> tuple[list[tuple[Value, Value]], Ints]:
    """The distinct pairs of bounds of some files, and the number of each file's pair.

    The bounds of each file are equal, or integers that are less than ``MAX_RANGE``
    apart.
    """
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


def _tested(leaf: Computed, low: Value, high: Value) -> tuple[bool, bool]:
    """Whether all values from ``low`` to ``high`` pass, and whether one may."""
    every, some = True, False
    for value in _between(low, high):
        found = leaf.test(value)
        every &= found is True
        some |= found is not False
        if some and not every:
            break
    return every, some


def _between(low: Value, high: Value) -> Iterator[Value]:
    if isinstance(low, int) and isinstance(high, int):
        yield from range(low, high + 1)
    else:
        yield low


def bound_of(bounds: np.ndarray | pa.Array, file: int) -> Value:
    """One of the least or greatest values of ``FileStats``, as a domain value."""
    value = bounds[file]
    plain: Value = value.as_py() if isinstance(value, pa.Scalar) else int(value)
    return plain
