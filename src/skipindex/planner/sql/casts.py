"""Casts of literals, where no setting of the session and no rounding changes them."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final

from skipindex.expressions import Literal
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.binding.literal_cuts import double_of
from skipindex.planner.functions.casts import INTEGER_BITS
from skipindex.planner.functions.decimals import CAST_DIGITS
from skipindex.planner.sql.literals import (
    FLOAT_EXACT,
    MAX_DECIMAL_DIGITS,
    float_of,
    in_range,
    nearest_float,
)
from skipindex.planner.sql.times import date_of, timestamp_of, wall_clock_of

_INTEGER_TEXT: Final = re.compile(r" *[+-]?[0-9]+ *")
_DECIMAL_TEXT: Final = re.compile(r" *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+) *")
_DOUBLE_EXACT: Final = 1 << 53


def cast(value: Literal, type_name: str, parameters: tuple[int, ...]) -> Literal:
    """``CAST(value AS type)`` where no session and no rounding changes it.

    Raises:
        NotJudgedError: otherwise.
    """
    if value is None:
        # Its type counts: the other operand may be cast to it, and become NULL too.
        raise NotJudgedError(f"a NULL of type {type_name.lower()}")
    try:
        if type_name in {"DECIMAL", "DEC", "NUMERIC"}:
            result: Literal = _cast_decimal(value, *parameters)
        elif parameters:
            result = None
        elif type_name in INTEGER_BITS:
            result = _cast_integer(value, type_name)
        else:
            result = _cast_other(value, type_name)
    except ValueError:
        result = None
    if result is None:
        raise NotJudgedError(f"the cast of {value!r} to {type_name.lower()}")
    return result


def _cast_integer(value: Literal, type_name: str) -> int | None:
    if isinstance(value, str) and _INTEGER_TEXT.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return in_range(value, type_name, str(value))


def _cast_decimal(value: Literal, digits: int = 10, scale: int = 0) -> Decimal | None:
    if isinstance(value, str) and _DECIMAL_TEXT.fullmatch(value):
        value = Decimal(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    unscaled = Fraction(value) * 10**scale
    if digits > MAX_DECIMAL_DIGITS or unscaled.denominator != 1:
        return None
    if abs(unscaled) >= 10**digits or digits - scale > max(
        CAST_DIGITS, len(str(abs(int(value))))
    ):
        return None
    sign = int(unscaled < 0)
    return Decimal((sign, Decimal(abs(int(unscaled))).as_tuple().digits, -scale))


def _cast_other(value: Literal, type_name: str) -> Literal:
    match type_name, value:
        case "DOUBLE", _:
            return _cast_double(value)
        case "FLOAT" | "REAL", str() if _DECIMAL_TEXT.fullmatch(value):
            return float_of(value)
        case "FLOAT" | "REAL", _:
            double = _cast_double(value)
            if double is None or math.isnan(double) or math.isinf(double):
                return double
            small = abs(double) < FLOAT_EXACT
            return double if small and nearest_float(double) == double else None
        case "STRING", str():
            return value
        case "STRING", int() if not isinstance(value, bool):
            return str(value)
        case "BINARY", str():
            return value.encode()
        case ("BINARY", bytes()) | ("BOOLEAN", bool()):
            return value
        case "DATE", str():
            return date_of(value)
        case "DATE", date() if not isinstance(value, datetime):
            return value
        case "TIMESTAMP" | "TIMESTAMP_LTZ", str():
            return timestamp_of(value)
        case "TIMESTAMP_NTZ", str():
            return wall_clock_of(value)
        case "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ", date() if not isinstance(
            value, datetime
        ):
            return datetime(value.year, value.month, value.day)  # noqa: DTZ001
        case _:
            return None


def _cast_double(value: Literal) -> float | None:
    match value:
        case str():
            return double_of(value)
        case bool():
            return None
        case int() if abs(value) <= _DOUBLE_EXACT:
            return float(value)
        case float() | Decimal():
            return float(value)
        case _:
            return None
