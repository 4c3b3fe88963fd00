"""The values of Spark SQL literals, exactly, or the reason why not.

A value that depends on a setting of the session, on the Spark version or on the
type of the column that it will meet is never guessed: ``NotJudgedError`` makes
the condition around it one that every row may match.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from skipindex.conditions.binding.literal_casts import (
    INTEGER_SUFFIXES,
    MAX_DECIMAL_DIGITS,
    float_of,
    in_range,
)
from skipindex.conditions.trees.times import date_of, timestamp_of, wall_clock_of
from skipindex.expressions import Literal
from skipindex.expressions.domain import INT64_MAX, INT64_MIN
from skipindex.expressions.not_judged import NotJudgedError

SUFFIX_TYPES: Final = {**INTEGER_SUFFIXES, "F": "FLOAT"}
"""The types of numbers by their suffixes."""
_NUMBER: Final = re.compile(r"(?P<digits>[\d.]+(?:[eE][+-]?\d+)?)(?P<suffix>\D*)")
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
    "%": "\\%",  # not an escape of its own, but one of LIKE
    "_": "\\_",
}


def number(text: str, *, negative: bool) -> int | Decimal | float:
    """The value of a numeric literal, of the type that Spark gives it."""
    match = _NUMBER.fullmatch(text)
    assert match is not None, text
    digits, suffix = match["digits"], match["suffix"].upper()
    signed = "-" + digits if negative else digits
    if suffix == "F":
        return float_of(signed)
    if suffix in INTEGER_SUFFIXES:
        return in_range(Decimal(signed), INTEGER_SUFFIXES[suffix], text)
    if suffix == "D" or (not suffix and "E" in digits.upper()):
        double = float(signed)
        if math.isinf(double):
            raise ValueError(f"{text!r} is outside of the range of double")
        return double
    value = _decimal(signed)
    whole = not suffix and digits.isdecimal()
    return int(value) if whole and INT64_MIN <= value <= INT64_MAX else value


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

    def value(match: re.Match[str]) -> str:
        if match[0] == quote * 2:
            return quote if doubled else ""
        return _escape(match)

    # Only quotes outside of escapes can be doubled: \'' is an escape and a quote.
    pattern = f"{quote}{quote}|{_ESCAPE.pattern}"
    joined = re.sub(pattern, value, body, flags=re.DOTALL)
    try:  # two halves of a pair, each written as \uXXXX, are one character
        return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise NotJudgedError("a lone surrogate is not a character") from None


def has_doubled_quote(text: str) -> bool:
    """Whether Spark 3 and Spark 4 read the string ``text`` differently."""
    quote = text[0]
    return quote not in "rR" and quote * 2 in _ESCAPE.sub("", text[1:-1])


def literal(type_name: str, text: str) -> Literal:
    """The value of ``DATE '...'``, ``TIMESTAMP '...'`` or ``X'...'``.

    Raises:
        ValueError: no such day or time, or no hexadecimal digits.
    """
    if type_name not in _READERS:
        raise NotJudgedError(f"a literal of type {type_name.lower()}")
    return _READERS[type_name](text)


def _bytes_of(text: str) -> bytes:
    try:
        return bytes.fromhex("0" * (len(text) % 2) + text)
    except ValueError:
        raise ValueError(f"no hexadecimal digits: {text!r}") from None


_READERS: Final[dict[str, Callable[[str], Literal]]] = {
    "X": _bytes_of,
    "DATE": date_of,
    "TIMESTAMP": timestamp_of,
    "TIMESTAMP_LTZ": timestamp_of,
    "TIMESTAMP_NTZ": wall_clock_of,
}


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


def _escape(match: re.Match[str]) -> str:
    unit, point, octal, other = match.groups()
    if other is not None:
        return _ESCAPED.get(other, other)
    code = int(octal, 8) if octal else int(unit or point, 16)
    if code > 0x10FFFF:
        raise NotJudgedError(f"{match[0]!r} is not a character")
    return chr(code)
