"""The comparisons of SQL, their negations and their mirror images."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Operator(Enum):
    """The comparisons of SQL; the value is how Spark writes it."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    NULL_SAFE_EQ = "<=>"
    NULL_SAFE_NE = "IS DISTINCT FROM"


NEGATED: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
    Operator.NULL_SAFE_EQ: Operator.NULL_SAFE_NE,
    Operator.NULL_SAFE_NE: Operator.NULL_SAFE_EQ,
}
"""``NOT (a op b)`` is ``a NEGATED[op] b``, also for NULL and NaN: Spark orders all
values, so exactly one of ``<``, ``=`` and ``>`` is TRUE unless one side is NULL."""
NULL_SAFE: Final = frozenset({Operator.NULL_SAFE_EQ, Operator.NULL_SAFE_NE})
"""For these NULL is a value, so they are never UNKNOWN."""


MIRRORED: Final = {
    Operator.LT: Operator.GT,
    Operator.GT: Operator.LT,
    Operator.LE: Operator.GE,
    Operator.GE: Operator.LE,
}
"""``a op b`` is ``b MIRRORED[op] a``; an operator without an entry mirrors itself."""
