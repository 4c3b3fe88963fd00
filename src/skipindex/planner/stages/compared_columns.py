"""Comparisons of two columns, as far as min and max of every file tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Mask
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.operators import Operator
from skipindex.table.statistics.file_stats import FileStats


def compared(left: FileStats, operator: Operator, right: FileStats) -> Bounds[Mask]:
    """Files whose every row makes ``left operator right`` TRUE, and where some may.

    The two columns have values of one order.
    """
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
    found = pc.less_equal(some, others) if or_equal else pc.less(some, others)
    return np.asarray(found.fill_null(False))
