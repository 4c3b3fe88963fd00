"""A limit on the steps that binding one condition may take.

Functions in functions are asked several questions each, a CASE is one condition for
every branch.  Most of what could multiply is avoided where it arises; the budget is
for the rest, and is proportional to the size of the condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from skipindex.expressions.not_judged import NotJudgedError
from skipindex.storage.deadline import check

STEPS_PER_NODE: Final = 20
"""A CASE of a thousand branches takes fewer than one step for each node."""
_left: ContextVar[list[int] | None] = ContextVar("steps left", default=None)


@contextmanager
def budget(steps: int) -> Iterator[None]:
    """Allow so many steps; what is within another budget shares that one."""
    if _left.get() is not None:
        yield
        return
    token = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(token)


def spend() -> None:
    """Take one step.

    Raises:
        PlanCancelledError: the plan is to stop.
    """
    check()
    left = _left.get()
    if left is None:
        return
    left[0] -= 1
    if left[0] < 0:
        raise NotJudgedError("the expression is too large")
