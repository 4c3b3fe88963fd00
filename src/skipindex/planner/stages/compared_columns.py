"""Comparisons of two columns, by min and max of every file and by indexes of rows.

The two columns have values of one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import AbstractBitMap, BitMap

from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import (
    Atom,
    NotNullAtom,
    OneOf,
    Range,
    Value,
    successor,
)
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import INT64_MAX
from skipindex.expressions.operators import NULL_SAFE, Operator
from skipindex.storage.deadline import checked
from skipindex.table.statistics.file_stats import FileStats

MOST_COMPARED: Final = 1 << 10
"""Two columns are compared row by row if one has at most so many values in the file."""


@dataclass(frozen=True, slots=True)
class Side:
    """A column of one file.

    Args:
        column: its name.
        values: all that the file has, ascending; None if they are too many, or not
            known.
        ask: the bounds of the rows for which an atom is TRUE; None is "unknown".
    """

    column: str
    values: Sequence[Value] | None
    ask: Callable[[Atom], Bounds[AbstractBitMap] | None]


def compared(left: FileStats, operator: Operator, right: FileStats) -> Bounds[Mask]:
    """Files whose every row makes ``left operator right`` TRUE, and where some may."""
    match operator:
        case Operator.NULL_SAFE_NE:
            equal = compared(left, Operator.NULL_SAFE_EQ, right)
            return Bounds(~equal.upper, ~equal.lower)
        case Operator.NULL_SAFE_EQ:
            equal = compared(left, Operator.EQ, right)
            return Bounds(
                equal.lower | ~left.can_value & ~right.can_value,
                equal.upper | left.can_null & right.can_null,
            )
        case Operator.GT | Operator.GE:
            mirrored = Operator.LT if operator is Operator.GT else Operator.LE
            return compared(right, mirrored, left)
        case Operator.LT | Operator.LE:
            or_equal = operator is Operator.LE
            every = _below(left.high, right.low, or_equal=or_equal)
            some = _below(left.low, right.high, or_equal=or_equal)
        case Operator.EQ | Operator.NE:
            apart = _below(left.high, right.low) | _below(right.high, left.low)
            one = left.single & right.single & ~apart
            every, some = (one, ~apart) if operator is Operator.EQ else (apart, ~one)
    known = left.bounded & right.bounded
    return Bounds(
        every & known & ~left.can_null & ~right.can_null,
        (some | ~known) & left.can_value & right.can_value,
    )


def _below(some: Any, others: Any, *, or_equal: bool = False) -> Mask:
    """Whether each bound is less than the other one; arbitrary where one is unknown."""
    if isinstance(some, np.ndarray):
        return np.asarray(some <= others if or_equal else some < others)
    some, others = (bounds.cast(pa.large_binary()) for bounds in (some, others))
    result = pc.less_equal(some, others) if or_equal else pc.less(some, others)
    return np.asarray(result.fill_null(False))


def cuts(left: Side, right: Side) -> Sequence[Value] | None:
    """The values of the column that has fewer; None if those of neither are known."""
    lists = [side.values for side in (left, right) if side.values is not None]
    return min(lists, key=len, default=None)


def compared_rows(
    left: Side, operator: Operator, right: Side, values: Sequence[Value], n_rows: int
) -> AbstractBitMap | None:
    """The rows that make ``left operator right`` TRUE; None if they are not known.

    ``values`` are all of one of the columns.  The values of both are cut at them, into
    each of them and all between two of them, so that the numbers of the pieces are
    ordered as the values are.
    """
    one = _pieces(left, values, n_rows)
    other = None if one is None else _pieces(right, values, n_rows)
    if one is None or other is None:
        return None
    match operator:
        case Operator.EQ | Operator.NULL_SAFE_EQ:
            true = one == other
        case Operator.NE | Operator.NULL_SAFE_NE:
            true = one != other
        case Operator.LT:
            true = one < other
        case Operator.LE:
            true = one <= other
        case Operator.GT:
            true = one > other
        case Operator.GE:
            true = one >= other
    if operator not in NULL_SAFE:
        true &= (one >= 0) & (other >= 0)
    return BitMap(np.flatnonzero(true).astype(np.uint32))


def _pieces(
    side: Side, values: Sequence[Value], n_rows: int
) -> npt.NDArray[np.int32] | None:
    """For each row the number of its piece, -1 for NULL; None if some is not known."""
    result = np.full(n_rows, -1, np.int32)
    for number, atom in enumerate(_cut(side.column, values)):
        is_between = number % 2 == 0
        if atom is None or (is_between and side.values is values):
            continue  # no row is there: a column has none between its own values
        rows = side.ask(atom)
        if rows is None or rows.lower is not rows.upper:
            return None
        result[np.frombuffer(rows.upper.to_array(), np.uint32)] = number
    return result


def _cut(column: str, values: Sequence[Value]) -> Iterator[Atom | None]:
    """The pieces between ``values`` and, with an odd number, each of these."""
    start: Value | None = None
    for value in checked(values):
        yield None if start == value else Range(column, start, value)
        yield OneOf(column, (value,))
        if value == INT64_MAX:
            return
        start = successor(value)
    yield NotNullAtom(column) if start is None else Range(column, start, None)
