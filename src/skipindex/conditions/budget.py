"""A limit on the steps of reading and binding a condition, by its size.

A value that turns out to be a condition is read again, functions in functions are asked
several questions each, and a CASE is one condition for every branch.  Most of what
could multiply is avoided where it arises; the budget is for the rest.
"""

from __future__ import annotations

from typing import Final

from skipindex.expressions import Predicate, Term, size
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.storage.deadline import check

_STEPS_PER_NODE: Final = 20
"""A CASE of a thousand branches takes fewer than one step for each node."""


class PlanBudget:
    """The steps that are left."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @classmethod
    def of(cls, node: Predicate | Term) -> PlanBudget:
        """The steps of binding a condition, or a part of one, that is not large."""
        return cls(_STEPS_PER_NODE * size(node))

    def spend(self) -> None:
        """Take one step.

        Raises:
            NotJudgedError: none is left.
            PlanCancelledError: the plan is to stop.
        """
        check()
        self._left -= 1
        if self._left < 0:
            raise NotJudgedError("the expression is too large")
