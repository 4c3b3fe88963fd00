"""Casts of dates and times in terms, and their sums with intervals.

An instant becomes the local time of the session, whose zone may be unknown; then the
result is known only approximately (``functions/dates.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from skipindex.conditions.binding.inversion import BoundCall
from skipindex.conditions.binding.literal_cuts import Refusal, cut
from skipindex.conditions.binding.terms import BoundLiteral, BoundTerm, argument_of
from skipindex.conditions.binding.typed_calls import applied, is_of, through
from skipindex.conditions.functions import FUNCTIONS, dates
from skipindex.conditions.functions.calendar import CLOCK_UNITS, DAY, MONTHS
from skipindex.conditions.functions.registry import (
    Argument,
    Coercion,
    Function,
    integer,
)
from skipindex.expressions import Call, argument_sql
from skipindex.expressions.domain import Domain
from skipindex.expressions.not_judged import NotJudgedError


def coerced(operand: BoundTerm, coercion: Coercion, zone: str | None) -> BoundTerm:
    """An argument as the function gets it; only dates and times are ever converted."""
    text = operand.expression
    if coercion is Coercion.NONE:
        return operand
    existing = dates.existing(zone)
    if existing and isinstance(operand, BoundCall) and _is_instant(operand, zone):
        # Of a local time: it is known nearly once, not twice.
        operand = through(existing, operand.arguments[0], text)
    elif is_of(operand, "timestamp"):
        operand = through(dates.wall_clock(zone), operand, text)
    elif coercion is Coercion.INSTANT and is_of(operand, "date", "timestamp_ntz"):
        if is_of(operand, "date"):
            operand = through(dates.midnight(), operand, text)
        return operand if existing is None else through(existing, operand, text)
    if coercion is Coercion.DATE and is_of(operand, "timestamp_ntz"):
        return through(dates.to_date(), operand, text)
    if coercion is Coercion.TEXT and is_of(operand, "date", "timestamp_ntz"):
        kind = BoundLiteral(Domain("string"), "STRING", "'STRING'")
        return applied("cast", [operand, kind], text)
    return operand


def _is_instant(operand: BoundCall, zone: str | None) -> bool:
    return operand.function == dates.instant(zone)


def bound_moment(value: datetime, name: str, zone: str | None) -> BoundLiteral:
    """A timestamp as an argument."""
    domain = Domain(name)
    at = cut(domain, value, zone if name == "timestamp" else "UTC")
    if isinstance(at, Refusal) or at.slack or at.ge is None:
        raise NotJudgedError("a timestamp that depends on the time zone")
    assert isinstance(at.ge, int)
    return BoundLiteral(domain, at.ge, argument_sql(value))


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
    operand: BoundTerm, sign: str, interval: Call, text: str, zone: str | None
) -> BoundTerm:
    """A date or a time, and an interval."""
    number, unit = interval.arguments
    if not isinstance(number, int) or operand.domain is None:
        raise NotJudgedError("an interval")
    if operand.domain.nanoseconds:
        raise NotJudgedError("nanoseconds and an interval: they may overflow")
    number = number if sign == "+" else -number
    months = MONTHS.get(str(unit))
    name = operand.domain.name
    if name == "date" and (months is not None or unit == "DAY"):
        distance = BoundLiteral(integer(32), number * (months or 1), str(number))
        function = "date_add" if months is None else "add_months"
        return applied(function, [operand, distance], text)
    if name not in {"timestamp", "timestamp_ntz"} or unit not in CLOCK_UNITS:
        raise NotJudgedError("an interval")
    micros = number * CLOCK_UNITS[str(unit)]
    if name == "timestamp_ntz" or abs(micros) < DAY:
        return _later(operand, micros, text)
    # Whole days of an instant, 24 hours too, are those of the session's local time.
    # Hours beside them are not, and old settings count 24 hours as such: so the rules
    # are only good for a day.
    local = through(replace(dates.wall_clock(zone), exact=None), operand, text)
    later = _later(local, micros, text)
    return through(replace(dates.instant(zone), exact=None), later, text)


def _later(operand: BoundTerm, micros: int, text: str) -> BoundTerm:
    assert operand.domain is not None
    distance = BoundLiteral(integer(64), micros, str(micros))
    sum_ = FUNCTIONS["+"].resolve([Argument(integer(64)), argument_of(distance)])
    assert sum_ is not None
    function = Function(operand.domain, sum_.apply, 1, sum_.span, key="+")
    return BoundCall(function, (operand, distance), text)
