"""What stands on one side of a comparison in SQL: a term, a literal or a condition.

A literal keeps the type that its value does not tell, for the functions that it may be
given to; a function of literals alone is a literal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from typing import Final, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from skipindex.expressions import (
    Call,
    Case,
    Literal,
    Predicate,
    Reference,
    Term,
    is_large,
)
from skipindex.expressions.not_judged import REASONS, NotJudgedError
from skipindex.planner.binding.compiler import fold
from skipindex.planner.functions import FUNCTIONS
from skipindex.planner.functions.calendar import CLOCK_UNITS, DAY
from skipindex.planner.functions.clock import Clock, current_clock, formatted, moved
from skipindex.planner.functions.registry import Coercion, UnsureError
from skipindex.planner.trees.casts import INTEGER_SUFFIXES

SUFFIX_TYPES: Final = {**INTEGER_SUFFIXES, "F": "FLOAT"}
EXPLICIT_TYPES: Final = {
    *("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"),
    *("FLOAT", "REAL", "TIMESTAMP_NTZ"),
}
"""The types of a literal that its value does not tell."""


@dataclass(frozen=True, slots=True)
class LiteralOperand:
    """A literal, as opposed to a column.

    Args:
        value: as Python has it.
        kind: the type's name, where the value does not tell it.
    """

    value: Literal
    kind: str = ""


@dataclass(frozen=True, slots=True)
class BooleanOperand:
    """A condition that stands as a value."""

    tree: Predicate


Operand: TypeAlias = Term | LiteralOperand | BooleanOperand
MOMENTS: Final = {
    **dict.fromkeys(("now", "current_timestamp"), "instant"),
    **dict.fromkeys(("curdate", "current_date"), "day"),
    "localtimestamp": "wall clock",
    "unix_timestamp": "seconds",
    "current_timezone": "zone",
}
"""Functions of the moment, which take no argument, and what they tell."""
_ON_CLOCK: Final = {Coercion.CLOCK, Coercion.DATE}
"""Coercions of an instant to what the session's clock shows then."""
_MAX_REPEATED: Final = 300
"""Nodes of a condition that repeats a part of what was written."""
_Tree = TypeVar("_Tree", bound=Term | Predicate)


def require_small(tree: _Tree, *, repeats: bool = False) -> _Tree:
    """``tree``, which is one that can be judged in bounded time.

    One that ``repeats`` a part of the text must not grow from level to level.

    Raises:
        NotJudgedError: it is too large.
    """
    if is_large(tree, _MAX_REPEATED) if repeats else is_large(tree):
        raise NotJudgedError("the expression is too large")
    return tree


def argument(operand: Operand) -> Term | Literal:
    """``operand`` as an argument of a function.

    Raises:
        NotJudgedError: it is a condition, or a literal whose type is lost.
    """
    match operand:
        case LiteralOperand(value, kind) if (
            kind in SUFFIX_TYPES.values() or kind in EXPLICIT_TYPES
        ):
            if kind in {"FLOAT", "REAL"}:
                raise NotJudgedError("arithmetic with a FLOAT")
            return Call("cast", (value, kind))
        case LiteralOperand(value):
            return value
        case BooleanOperand():
            raise NotJudgedError("a condition as a value")
        case _:
            return operand


def is_open(term: Term | Literal) -> bool:
    """Whether its value depends on a column, or on the moment."""
    match term:
        case Call(name, ()) if name in MOMENTS:
            return True
        case Call(_, arguments):
            return any(map(is_open, arguments))
        case _:
            return isinstance(term, Reference | Case)


def is_of_moment(operand: Operand) -> bool:
    """Whether it is a function of the moment, and of no column."""
    match operand:
        case Call(name, ()):
            return name in MOMENTS
        case Call(_, arguments):
            parts = [one for one in arguments if is_open(one)]
            return bool(parts) and all(map(is_of_moment, parts))  # type: ignore[arg-type]
        case _:
            return False


def folded(call: Call) -> LiteralOperand:
    """The value of a function of literals.

    Raises:
        NotJudgedError: only Spark can tell it, or its type.
    """
    result: tuple[Literal, str] | None
    match call:
        case Call(
            "+" | "-",
            (
                datetime() | Call("cast", (datetime(), "TIMESTAMP_NTZ")) as moment,
                Call("interval", (int(n), str(u))),
            ),
        ):
            n, kind = n if call.name == "+" else -n, ""
            if isinstance(moment, Call):
                moment, kind = moment.arguments[0], "TIMESTAMP_NTZ"  # type: ignore[assignment]
            try:
                later = _later(moment, n, u)  # type: ignore[arg-type]
            except (ValueError, OverflowError):  # beyond the year 9999
                later = None
            result = None if later is None else (later, kind)
        case Call("+", (Call("interval") as step, other)):
            return folded(Call("+", (other, step)))
        case _:
            clock = current_clock()
            result = fold(call) if clock is None else _folded_by(clock, call)
    if result is None:
        raise NotJudgedError(REASONS.get(call.name, f"the function {call.name}"))
    return LiteralOperand(*result)


def _folded_by(clock: Clock, call: Call) -> tuple[Literal, str] | None:
    """The value of a function that converts instants to the session's wall clock."""
    match call:
        case Call("date_trunc", (str(unit), datetime(tzinfo=tzinfo()) as moment)):
            return clock.truncated(unit, moment), ""
        case Call("date_trunc", (str(unit), date() as day)) if _is_day(day):
            midnight = datetime.combine(day, datetime.min.time())
            return clock.truncated(unit, clock.instant(midnight)), ""
        case Call("date_format", (date() as day, str(pattern))):
            return _formatted(clock, day, pattern), ""
    known = FUNCTIONS.get(call.name)
    if known and known.coercion in _ON_CLOCK and call.name != "unix_date":
        call = replace(call, arguments=tuple(_shown(clock, a) for a in call.arguments))
    return fold(call)


def _is_day(value: date) -> bool:
    return not isinstance(value, datetime)


def _formatted(clock: Clock, moment: date, pattern: str) -> str:
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, datetime.min.time())
    instant = moment if moment.tzinfo is not None else clock.instant(moment)
    try:
        return formatted(clock.wall(instant), pattern)
    except UnsureError:
        raise NotJudgedError("the function date_format") from None


def _shown(clock: Clock, argument: Term | Literal) -> Term | Literal:
    """An argument, with what the clock shows instead of an instant."""
    if isinstance(argument, datetime) and argument.tzinfo is not None:
        return Call("cast", (clock.wall(argument), "TIMESTAMP_NTZ"))
    return argument


def _later(moment: datetime, number: int, unit: str) -> datetime | None:
    """A wall clock moved by an interval; None if the result depends on a time zone."""
    if isinstance(moment.tzinfo, ZoneInfo):
        return None
    # Days of an instant, and 24 hours too, are days of the session's wall clock.
    whole = abs(number) * CLOCK_UNITS.get(unit, DAY) >= DAY
    if moment.tzinfo is None or not whole:
        return moved(moment, number, unit)
    clock = current_clock()
    return None if clock is None else clock.later(moment, number, unit)
