"""About which share of the rows a condition leaves, from the statistics alone.

It decides in which order conditions are asked, and nothing else: any number is right,
a good one is fast.  Values are taken to be spread evenly between a file's bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, assert_never

import numpy as np

from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
)
from skipindex.planner.bound_predicate import (
    AllOf,
    AnyOf,
    Bound,
    Computed,
    Known,
    Leaf,
    Unknown,
)
from skipindex.table import ColumnInfo, TableState

_SAMPLE: Final = 256
_RARE: Final = 0.01
"""The share of one value among byte strings, or of NULL."""
_BETWEEN: Final = 0.1
_ONE_SIDED: Final = 0.4


def share_of(
    table: TableState, column_of: Callable[[Leaf], ColumnInfo], files: np.ndarray
) -> Callable[[Bound], float]:
    """Gives the share of the rows of ``files`` for which a node may be TRUE."""
    sample = files[:: max(1, len(files) // _SAMPLE)]

    def share(node: Bound) -> float:
        match node:
            case AllOf(children):
                return math.prod(map(share, children))
            case AnyOf(children):
                return min(1.0, sum(map(share, children)))
            case Leaf(atom):
                return _of_atom(table, atom, column_of(node), sample)
            case Computed():
                return _BETWEEN
            case Known(value):
                return float(value)
            case Unknown():
                return 1.0
            case _:
                assert_never(node)

    return share


def _of_atom(
    table: TableState, atom: Atom, column: ColumnInfo, files: np.ndarray
) -> float:
    match atom:
        case NullAtom():
            return _RARE
        case NotNullAtom() | NoneOf():
            return 1.0 - _RARE
        case Matches(negated=negated):
            return 1.0 - _BETWEEN if negated else _BETWEEN
        case OneOf(values=values):
            spans = _spans(table, column, files)
            one = _RARE if spans is None else float(np.mean(1.0 / (spans[1] + 1.0)))
            return min(1.0, len(values) * one)
        case Range(low=low, high=high):
            spans = _spans(table, column, files)
            if spans is None or isinstance(low, bytes) or isinstance(high, bytes):
                return _ONE_SIDED if low is None or high is None else _BETWEEN
            least, width = spans
            start = 0.0 if low is None else np.maximum(0.0, float(low) - least)
            stop = width + 1.0
            if high is not None:
                stop = np.minimum(stop, float(high) - least)
            inside = np.maximum(0.0, stop - start) / (width + 1.0)
            return float(np.mean(inside))
        case _:
            assert_never(atom)


def _spans(
    table: TableState, column: ColumnInfo, files: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The least value, and greatest less least, of files of an integer domain."""
    stats = table.stats(column)
    if not isinstance(stats.low, np.ndarray):
        return None
    at = files[stats.bounded[files]]
    if not len(at):
        return None
    least = stats.low[at].astype(np.float64)
    return least, stats.high[at].astype(np.float64) - least
