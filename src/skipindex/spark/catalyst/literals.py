"""Catalyst literals as operands, with their values and types.

Catalyst holds a date as days, a time as microseconds, a text as bytes.  Next to values
of its own type, a literal may have another type and the same value, if the planner
brings that into the domain of those values exactly: ``compared`` says so.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from skipindex.conditions.binding.literal_casts import float_of
from skipindex.conditions.trees.calls import cast_to
from skipindex.conditions.trees.operands import (
    LiteralOperand,
    Operand,
    operand_of,
    typed,
)
from skipindex.conditions.trees.times import interval_of
from skipindex.expressions import Call
from skipindex.expressions.domain import EPOCH, EPOCH_UTC
from skipindex.expressions.not_judged import REASONS, NotJudgedError

INTEGERS: Final = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "",
    "bigint": "BIGINT",
}
"""Types of integers, and what literals of them are that are not int by themselves."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
MICROSECONDS: Final = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MICROSECOND": 1,
}
"""The units of time that the planner reads, and that always have one length."""


def opaque() -> NotJudgedError:
    """What is raised of an expression that is not understood."""
    return NotJudgedError(REASONS["OPAQUE"])


def literal(kind: str, value: Any, *, compared: bool = False) -> Operand:
    """A literal of Spark's type ``kind``.

    ``value`` is as ``ExpressionJson.java`` writes it.  It is ``compared`` if the other
    operands of a comparison are of the same type.
    """
    match kind, value:
        case _, None:
            return LiteralOperand(None)
        case ("boolean", bool()) | ("string", str()):
            return LiteralOperand(value)
        case (("tinyint" | "smallint" | "int" | "bigint"), int()):
            return operand_of(typed(value, "" if compared else INTEGERS[kind]))
        case (("float" | "double"), str()):
            return _number(float(value), is_double=compared or kind == "double")
        case "binary", str():
            return LiteralOperand(bytes.fromhex(value))
        case (("date" | "timestamp" | "timestamp_ntz"), int()):
            moment = _moment(kind, value)
            if kind != "timestamp_ntz":
                return LiteralOperand(moment)
            # As text it is brought into the domain of a local time without a zone.
            as_text = LiteralOperand(str(moment))
            return as_text if compared else operand_of(typed(moment, "TIMESTAMP_NTZ"))
        case _, str() if (match := _DECIMAL.fullmatch(kind)) is not None:
            digits, scale = int(match[1]), int(match[2])
            return _decimal(Decimal(value), digits, scale, compared=compared)
    return interval(kind, value)


def _moment(kind: str, number: int) -> date:
    """A date or a time from Spark's number for it."""
    try:
        if kind == "date":
            return EPOCH + timedelta(days=number)
        moment: datetime = EPOCH_UTC + timedelta(microseconds=number)
    except OverflowError:  # Spark's years go beyond Python's 9999
        raise opaque() from None
    return moment if kind == "timestamp" else moment.replace(tzinfo=None)


def interval(kind: str, value: Any) -> Call:
    """An interval of whole units of one kind, of the longest."""
    if not kind.startswith("interval ") or not isinstance(value, int):
        raise opaque()
    if kind.removeprefix("interval ").partition(" ")[0] in {"year", "month"}:
        return interval_of([(str(value), "MONTH")])
    fits = (unit for unit, length in MICROSECONDS.items() if value % length == 0)
    unit = next(fits)
    return interval_of([(str(value // MICROSECONDS[unit]), unit)])


def _number(value: float, *, is_double: bool) -> Operand:
    if is_double:
        return LiteralOperand(value)
    finite = float_of(repr(value)) if math.isfinite(value) else value
    return operand_of(typed(finite, "FLOAT"))


def _decimal(value: Decimal, precision: int, scale: int, *, compared: bool) -> Operand:
    """A decimal; its type counts where something is computed of it."""
    value = Decimal(f"{value:f}")
    plain = LiteralOperand(value)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "Spark has no NaN among its decimals"
    read_as = max(len(digits), -exponent), -exponent
    if compared or read_as == (precision, scale):
        return plain
    return cast_to(plain, "DECIMAL", [precision, scale])
