"""The values of Spark SQL literals, exactly, or the reason why not.

A value that depends on a setting of the session, on the Spark version or on the
type of the column that it will meet is never guessed: ``NotJudgedError`` makes
the condition around it one that every row may match.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from skipindex.planner._cuts import CAST_DIGITS
from skipindex.predicate import Literal


class NotJudgedError(Exception):
    """The condition is one for Spark alone; the message is the reason."""


INTEGER_BITS: Final = {
    "TINYINT": 8,
    "BYTE": 8,
    "SMALLINT": 16,
    "SHORT": 16,
    "INT": 32,
    "INTEGER": 32,
    "BIGINT": 64,
    "LONG": 64,
}
MAX_DECIMAL_DIGITS: Final = 38
_SUFFIX_TYPES: Final = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT"}
_FLOAT_MAX: Final = float(np.finfo(np.float32).max)
_FLOAT_EXACT: Final = 1 << 24
"""Up to here every integer is a float; beyond, and without ANSI mode, Spark
compares an integer column with a FLOAT literal after rounding the column."""
_FLOAT_TINY: Final = 1e-50
"""Nearer to zero than to any other float."""
_DOUBLE_EXACT: Final = 1 << 53

_NUMBER: Final = re.compile(r"(?P<digits>[\d.]+(?:[eE][+-]?\d+)?)(?P<suffix>\D*)")
_INTEGER_TEXT: Final = re.compile(r" *[+-]?[0-9]+ *")
_DECIMAL_TEXT: Final = re.compile(r" *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+) *")
_DOUBLE_TEXT: Final = re.compile(
    r" *[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity) *| *nan *",
    re.IGNORECASE,
)
_DATE: Final = r" *(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
_DATE_TEXT: Final = re.compile(_DATE + r")?)? *", re.ASCII)
_TIMESTAMP_TEXT: Final = re.compile(
    _DATE + r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{0,6}))?"
    r"(?: ?(?P<zone>Z|UTC|[+-]\d{1,2}:\d{1,2}))?)?)?)?)? *",
    re.ASCII,
)
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL
)
_ESCAPED: Final = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",  # kept whole, for LIKE
    "_": "\\_",
}


def number(text: str, *, negative: bool) -> int | Decimal | float:
    """The value of a numeric literal, of the type that Spark gives it.

    Raises:
        ValueError: the value is outside of its type, as Spark says too.
        NotJudgedError: a FLOAT that is not compared alike in every session.
    """
    found = _NUMBER.fullmatch(text)
    assert found is not None, text
    digits, suffix = found["digits"], found["suffix"].upper()
    signed = "-" + digits if negative else digits
    if suffix in _SUFFIX_TYPES:
        return _in_range(Decimal(signed), _SUFFIX_TYPES[suffix], text)
    if suffix == "F":
        return _float(signed)
    if suffix == "D" or (not suffix and "E" in digits.upper()):
        double = float(signed)
        if math.isinf(double):
            raise ValueError(f"{text!r} is outside of the range of double")
        return double
    value = _decimal(signed)
    whole = not suffix and digits.isdecimal()
    return int(value) if whole and -(1 << 63) <= value < 1 << 63 else value


def string(text: str, *, doubled: bool) -> str:
    r"""The value of a quoted string with Spark's escapes: ``'a\'b'``, ``r'\d'``.

    Args:
        text: the literal with its quotes.
        doubled: two quotes are one quote, as in Spark 4; otherwise none, as in
            Spark 3, which sees two strings in a row.

    Raises:
        NotJudgedError: an escape is no character.
    """
    if text[0] in "rR":
        return text[2:-1]
    quote, body = text[0], text[1:-1]
    if "\\" not in body:
        return body.replace(quote * 2, quote if doubled else "")
    # Only quotes outside of escapes can be doubled: \'' is an escape and a quote.
    pieces: list[str] = []
    position = 0
    for found in _ESCAPE.finditer(body):
        plain = body[position : found.start()]
        pieces += [plain.replace(quote * 2, quote if doubled else ""), _escape(found)]
        position = found.end()
    pieces.append(body[position:].replace(quote * 2, quote if doubled else ""))
    joined = "".join(pieces)
    try:  # two halves of a pair, each written as \uXXXX, are one character
        return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise NotJudgedError("a lone surrogate is no character") from None


def has_doubled_quote(text: str) -> bool:
    """Whether Spark 3 and Spark 4 read the string ``text`` differently."""
    quote = text[0]
    return quote not in "rR" and quote * 2 in _ESCAPE.sub("", text[1:-1])


def typed(type_name: str, text: str) -> Literal:
    """The value of ``DATE '...'``, ``TIMESTAMP '...'`` or ``X'...'``.

    Raises:
        ValueError: no such day or time, or no hexadecimal digits.
        NotJudgedError: a form whose value depends on the session or the day.
    """
    match type_name:
        case "X":
            try:
                return bytes.fromhex("0" * (len(text) % 2) + text)
            except ValueError:
                raise ValueError(f"no hexadecimal digits: {text!r}") from None
        case "DATE":
            return _date(text)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _timestamp(text)
        case "TIMESTAMP_NTZ":
            return _wall_clock(text)
        case _:
            raise NotJudgedError(f"a literal of type {type_name.lower()}")


def cast(value: Literal, type_name: str, parameters: tuple[int, ...]) -> Literal:
    """``CAST(value AS type)`` where no session and no rounding changes it.

    Raises:
        NotJudgedError: otherwise.
    """
    if value is None:
        return None
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


def _in_range(value: int | Decimal, type_name: str, text: str) -> int:
    half = 1 << (INTEGER_BITS[type_name] - 1)
    if not -half <= value < half:
        raise ValueError(f"{text!r} is outside of the range of {type_name.lower()}")
    return int(value)


def _decimal(text: str) -> Decimal:
    too_long = f"{text!r} has more than {MAX_DECIMAL_DIGITS} digits"
    try:
        value = Decimal(text)
    except ArithmeticError:  # an exponent beyond all bounds
        raise ValueError(too_long) from None
    if value.adjusted() >= MAX_DECIMAL_DIGITS:
        raise ValueError(too_long)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "digits alone were matched"
    if exponent > 0:  # Spark has no negative scale
        return Decimal(int(value))
    if max(len(digits), -exponent) > MAX_DECIMAL_DIGITS:
        raise ValueError(too_long)
    return value


def _float(text: str) -> float:
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
    near: float = struct.unpack("<f", struct.pack("<f", double))[0]
    return near


def _escape(found: re.Match[str]) -> str:
    unit, point, octal, other = found.groups()
    if other is not None:
        return _ESCAPED.get(other, other)
    code = int(octal, 8) if octal else int(unit or point, 16)
    if code > 0x10FFFF:
        raise NotJudgedError(f"{found[0]!r} is no character")
    return chr(code)


def _date(text: str) -> date:
    found = _DATE_TEXT.fullmatch(text)
    if found is None or found["year"] == "0000":
        raise NotJudgedError(f"the date {text!r}")
    try:
        return date(*_day(found))
    except ValueError:
        raise ValueError(f"no date: {text!r}") from None


def _timestamp(text: str) -> datetime:
    found = _TIMESTAMP_TEXT.fullmatch(text)
    if found is None or found["year"] == "0000":
        raise NotJudgedError(f"the timestamp {text!r}")
    hour, minute, second = (int(found[n] or 0) for n in ("hour", "minute", "second"))
    micros = int((found["fraction"] or "").ljust(6, "0"))
    try:
        clock = time(hour, minute, second, micros)
        value = datetime.combine(date(*_day(found)), clock)
    except ValueError:
        raise ValueError(f"no timestamp: {text!r}") from None
    return value.replace(tzinfo=_zone(found["zone"]))


def _day(found: re.Match[str]) -> tuple[int, int, int]:
    return int(found["year"]), int(found["month"] or 1), int(found["day"] or 1)


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in {"Z", "UTC"}:
        return UTC
    hours, minutes = map(int, text[1:].split(":"))
    if hours * 60 + minutes > 18 * 60 or minutes > 59:
        raise ValueError(f"no time zone: {text!r}")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


def _wall_clock(text: str) -> datetime:
    value = _timestamp(text)
    if value.tzinfo is not None:
        raise NotJudgedError("a time zone in a timestamp without one")
    return value


def _cast_integer(value: Literal, type_name: str) -> int | None:
    if isinstance(value, str) and _INTEGER_TEXT.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return _in_range(value, type_name, str(value))


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
            return _float(value)
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
            return _date(value)
        case "DATE", date() if not isinstance(value, datetime):
            return value
        case "TIMESTAMP" | "TIMESTAMP_LTZ", str():
            return _timestamp(value)
        case "TIMESTAMP_NTZ", str():
            return _wall_clock(value)
        case "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ", date() if not isinstance(
            value, datetime
        ):
            return datetime(value.year, value.month, value.day)  # noqa: DTZ001
        case _:
            return None


def _cast_double(value: Literal) -> float | None:
    match value:
        case str() if _DOUBLE_TEXT.fullmatch(value):
            return float(value)
        case bool():
            return None
        case int() if abs(value) <= _DOUBLE_EXACT:
            return float(value)
        case float() | Decimal():
            return float(value)
        case _:
            return None
