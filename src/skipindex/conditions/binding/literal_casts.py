"""Casts of literals that no session setting and no rounding can change."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from skipindex.conditions.binding.literal_cuts import double_of
from skipindex.conditions.functions.casts import INTEGER_BITS
from skipindex.conditions.functions.clock import Clock
from skipindex.conditions.functions.decimals import CAST_DIGITS
from skipindex.conditions.trees.times import date_of, timestamp_of, wall_clock_of
from skipindex.expressions import Literal
from skipindex.expressions.domain import EPOCH_UTC
from skipindex.expressions.not_judged import NotJudgedError

INTEGER_SUFFIXES: Final = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT"}
MAX_DECIMAL_DIGITS: Final = 38
_FLOAT_MAX: Final = float(np.finfo(np.float32).max)
_FLOAT_EXACT: Final = 1 << 24
"""Up to here every integer is a float; beyond, and without ANSI mode, Spark
compares an integer column with a FLOAT literal after rounding the column."""
_FLOAT_TINY: Final = 1e-50
"""Nearer to zero than to any other float."""
_INTEGER_TEXT: Final = re.compile(r" *[+-]?[0-9]+ *")
_DECIMAL_TEXT: Final = re.compile(r" *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+) *")
_CLOCK_TYPES: Final = {"DATE", "TIMESTAMP_NTZ"}
_SECOND: Final = timedelta(seconds=1)
_DOUBLE_EXACT: Final = 1 << 53
"""Up to here every integer is a double."""
_GREGORIAN: Final = 1583
"""The first whole year of the calendar that old settings of Spark have too."""


def cast(
    value: Literal, type_name: str, parameters: Sequence[int], clock: Clock | None
) -> Literal:
    """``CAST(value AS type)`` where no session and no rounding changes it."""
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
            result = _cast_other(value, type_name, clock)
    except ValueError:
        result = None
    if result is None and isinstance(value, datetime) and type_name in _CLOCK_TYPES:
        raise NotJudgedError("it depends on the session's time zone")
    if result is None:
        raise NotJudgedError(f"the cast of {value!r} to {type_name.lower()}")
    return result


def _cast_integer(value: Literal, type_name: str) -> int | None:
    if isinstance(value, str) and _INTEGER_TEXT.fullmatch(value):
        value = int(value)
    if isinstance(value, datetime) and type_name in {"BIGINT", "LONG"}:
        fixed = isinstance(value.tzinfo, timezone)
        return (value - EPOCH_UTC) // _SECOND if fixed else None
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


def _cast_other(value: Literal, type_name: str, clock: Clock | None) -> Literal:
    match type_name, value:
        case "DOUBLE", _:
            return _cast_double(value)
        case "FLOAT" | "REAL", str() if _DECIMAL_TEXT.fullmatch(value):
            return float_of(value)
        case "FLOAT" | "REAL", _:
            double = _cast_double(value)
            if double is None or math.isnan(double) or math.isinf(double):
                return double
            small = abs(double) < _FLOAT_EXACT
            return double if small and _nearest_float(double) == double else None
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
        case "STRING", date() if not isinstance(value, datetime) and (
            value.year >= _GREGORIAN
        ):
            return value.isoformat()
        case _, datetime() if clock and type_name in _CLOCK_TYPES:
            return _by_clock(clock, value, type_name)
        case "TIMESTAMP" | "TIMESTAMP_LTZ", str():
            return timestamp_of(value)
        case "TIMESTAMP_NTZ", str():
            return wall_clock_of(value)
        case "TIMESTAMP" | "TIMESTAMP_LTZ", datetime():
            return value
        case "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ", date() if not isinstance(
            value, datetime
        ):
            return datetime(value.year, value.month, value.day)  # noqa: DTZ001
        case _:
            return None


def _by_clock(clock: Clock, value: datetime, type_name: str) -> date:
    """What the session's local time shows at a time."""
    instant = value if value.tzinfo is not None else clock.instant(value)
    shown = clock.wall(instant)
    return shown.date() if type_name == "DATE" else shown


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


def in_range(value: int | Decimal, type_name: str, text: str) -> int:
    """``value`` as an integer of that type."""
    half = 1 << (INTEGER_BITS[type_name] - 1)
    if not -half <= value < half:
        raise ValueError(f"{text!r} is outside of the range of {type_name.lower()}")
    return int(value)


def float_of(text: str) -> float:
    """The 32-bit float nearest to ``text``, in one rounding, as a double."""
    double = float(text)
    if abs(double) < _FLOAT_TINY:
        return math.copysign(0.0, double)
    if math.isinf(double) or abs(Fraction(text)) > _FLOAT_MAX:
        raise ValueError(f"{text!r} is outside of the range of float")
    near = _nearest_float(double)
    if Fraction(text) != Fraction(double):  # rounded twice: a neighbour may be nearer
        steps = (np.nextafter(np.float32(near), np.float32(w)) for w in (-1e38, 1e38))
        candidates = (near, *map(float, steps))
        near = min(candidates, key=lambda c: abs(Fraction(c) - Fraction(text)))
    if abs(near) >= _FLOAT_EXACT:
        raise NotJudgedError("a FLOAT literal that an integer column may round to")
    return near


def _nearest_float(double: float) -> float:
    """The 32-bit float nearest to ``double``, as a double."""
    near: float = struct.unpack("<f", struct.pack("<f", double))[0]
    return near
