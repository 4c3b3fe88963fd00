"""What stands on one side of a comparison in SQL: a term, a literal or a condition.

A literal keeps the type that its value does not tell, for the functions that it may be
given to; a function of literals alone is a literal.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from skipindex.expressions import Call, Literal, Predicate, Term, is_large
from skipindex.expressions.domain import EPOCH
from skipindex.expressions.not_judged import REASONS, NotJudgedError
from skipindex.planner.binding.compiler import fold
from skipindex.planner.functions.calendar import CLOCK_UNITS, DAY, add_months

SUFFIX_TYPES: Final = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "F": "FLOAT"}
TOLD_TYPES: Final = {
    *("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"),
    *("FLOAT", "REAL", "TIMESTAMP_NTZ"),
}
"""The types of a literal that its value does not tell."""
_EPOCH_ORDINAL: Final = EPOCH.toordinal()


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
_MAX_REPEATED: Final = 300
"""Nodes of a condition that repeats a part of what was written."""
_Tree = TypeVar("_Tree", bound=Term | Predicate)


def small(tree: _Tree, *, repeats: bool = False) -> _Tree:
    """``tree``, which is one that can be judged in bounded time.

    Args:
        tree: a term or a condition.
        repeats: a function was repeated in it: it must not grow from level to level.

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
            kind in SUFFIX_TYPES.values() or kind in TOLD_TYPES
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


def folded(call: Call) -> LiteralOperand:
    """The value of a function of literals.

    Raises:
        NotJudgedError: only Spark can tell it, or its type.
    """
    found: tuple[Literal, str] | None
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
            found = None if later is None else (later, kind)
        case _:
            found = fold(call)
    if found is None:
        raise NotJudgedError(REASONS.get(call.name, f"the function {call.name}"))
    return LiteralOperand(*found)


def _later(moment: datetime, number: int, unit: str) -> datetime | None:
    """A wall clock moved by an interval; None if the result depends on a time zone.

    Days of an instant, and 24 hours too, are days of the session's wall clock.
    """
    if isinstance(moment.tzinfo, ZoneInfo):
        return None
    if unit in {"MONTH", "YEAR"}:
        months = number * (12 if unit == "YEAR" else 1)
        day = moment.date().toordinal() - _EPOCH_ORDINAL
        moved = date.fromordinal(add_months(day, months) + _EPOCH_ORDINAL)
        later = datetime.combine(moved, moment.timetz())
    else:
        later = moment + timedelta(**{f"{unit.lower()}s": number})
    whole = abs(number) * CLOCK_UNITS.get(unit, DAY) >= DAY
    return None if moment.tzinfo is not None and whole else later
