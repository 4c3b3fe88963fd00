"""Dates and times moved by a number of days or by an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from skipindex.expressions import Call
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.binding.inversion import BoundCall
from skipindex.planner.binding.terms import BoundLiteral, BoundTerm, argument_of
from skipindex.planner.binding.typed_calls import applied, is_of, through
from skipindex.planner.functions import dates
from skipindex.planner.functions.calendar import CLOCK_UNITS, DAY
from skipindex.planner.functions.registry import FUNCTIONS, Argument, Function, integer

_INTERVAL_MONTHS: Final = {"MONTH": 1, "YEAR": 12}


def shifted(sign: str, operands: Sequence[BoundTerm], text: str) -> BoundTerm | None:
    """A date and a number of days; None for any other sum."""
    if len(operands) != 2:
        return None
    left, right = operands
    if is_of(left, "date") and is_of(right, "int"):
        name = "date_add" if sign == "+" else "date_sub"
        return applied(name, [left, right], text)
    if sign == "+" and is_of(left, "int") and is_of(right, "date"):
        return applied("date_add", [right, left], text)
    return None


def moved(
    term: Call, operand: BoundTerm, sign: str, step: Call, zone: str | None
) -> BoundTerm:
    """A date or a time, and an interval.

    Raises:
        NotJudgedError: the type, or the interval, is none that is added so.
    """
    number, unit = step.arguments
    if not isinstance(number, int) or operand.domain is None:
        raise NotJudgedError("an interval")
    number = number if sign == "+" else -number
    months = _INTERVAL_MONTHS.get(str(unit))
    name = operand.domain.name
    if name == "date" and months is not None:
        distance = BoundLiteral(integer(32), number * months, str(number))
        return applied("add_months", [operand, distance], str(term))
    if name == "date" and unit == "DAY":
        distance = BoundLiteral(integer(32), number, str(number))
        return applied("date_add", [operand, distance], str(term))
    if name not in {"timestamp", "timestamp_ntz"} or unit not in CLOCK_UNITS:
        raise NotJudgedError("an interval")
    micros = number * CLOCK_UNITS[str(unit)]
    if name == "timestamp_ntz" or abs(micros) < DAY:
        return _later(operand, micros, str(term))
    # Whole days of an instant, 24 hours too, are those of the session's wall clock.
    local = _later(
        through(dates.wall_clock(zone), operand, str(term)), micros, str(term)
    )
    return through(dates.instant(zone), local, str(term))


def _later(operand: BoundTerm, micros: int, text: str) -> BoundTerm:
    assert operand.domain is not None
    distance = BoundLiteral(integer(64), micros, str(micros))
    sum_ = FUNCTIONS["+"]([Argument(integer(64)), argument_of(distance)])
    assert sum_ is not None
    function = Function(operand.domain, sum_.apply, 1, sum_.span, key="+")
    return BoundCall(function, (operand, distance), text)
