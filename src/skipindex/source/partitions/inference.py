"""The types that Spark infers for partition columns, and their values.

Spark types every folder's text alone, and the column by the type that holds all of
them: ``int`` and ``bigint``, ``decimal`` for whole numbers of more digits, ``double``,
``timestamp``, ``date``, and ``string`` for what has no other in common.  Where only
its own parsers know (numbers in hexadecimal, digits of other scripts, odd dates),
the column is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final

import pyarrow as pa

from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import EPOCH, Domain, big_decimal_key, float_key

INSTANT: Final = pa.timestamp("us", "UTC")
"""A folder writes the local time of the session's zone."""
_DIGITS: Final = 38
"""Digits of the largest decimal of Spark."""
_BLANKS: Final = "".join(map(chr, range(0x21)))

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(
    r"[+-]?(?P<whole>[0-9]*)\.?(?P<fraction>(?<=\.)[0-9]*)?(?:[eE](?P<exponent>[+-]?[0-9]{1,9}))?"
)
_BOOLEANS: Final = frozenset({"true", "false"})
_DOUBLE: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?)"
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Python takes 24:00:00 for the next day since 3.14, Spark for no time.
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} (?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?"
)
# What Spark might take for a number, a date or a timestamp: begins like one, in
# the digits of any script, or is a name that Java's parseDouble knows.
_MAYBE_NUMBER: Final = re.compile(r"[\x00-\x20]*[+-]?(\.?\d|NaN|Infinity)")
# Begins with a digit, and is no number, date or time to any parser of Spark: letters,
# digits and underscores, and among them a letter that is no hexadecimal digit, no
# suffix or exponent of a number (d, f, e, x, p) and in no date (T, Z, UTC, GMT).
_CERTAIN_TEXT: Final = re.compile(r"[0-9]\w*[gijkmoqrsuvwyIJKOQRSVWY]\w*", re.ASCII)
_ESCAPED: Final = re.compile(r"%([0-9a-fA-F]{2})")


def unescape(text: str) -> str:
    """Hive's escapes: one character each, never the bytes of UTF-8."""
    if "%" not in text:
        return text
    return _ESCAPED.sub(lambda result: chr(int(result[1], 16)), text)


def infer_type(values: Collection[str]) -> pa.DataType | None:
    """The type that Spark infers for a partition column of these texts.

    The texts have the escapes of the folders, and none is NULL.  The type is None where
    Spark's own parsers decide, or its version, as without any value: the column is then
    left to Spark, and prunes nothing.
    """
    result = {_type_of(value) for value in values}
    known = result - {None}
    # One text among the values makes a text of the column, whatever the others are.
    if pa.string() in known:
        return pa.string()
    common = _common(known) if known else None
    return common if len(known) == len(result) or common == pa.string() else None


def _common(types: set[pa.DataType]) -> pa.DataType:
    """The type that holds values of all these types, as Spark widens them."""
    if len(types) == 1:
        return next(iter(types))
    if types <= {pa.date32(), INSTANT}:
        return INSTANT
    if types == {pa.int32(), pa.float64()}:
        return pa.float64()
    digits = {pa.int32(): 10, pa.int64(): 20}
    decimals = {dtype for dtype in types if pa.types.is_decimal(dtype)}
    if types - decimals <= digits.keys():
        if not decimals:
            return pa.int64()
        widths = {dtype.precision for dtype in decimals}
        widths |= {digits[dtype] for dtype in types - decimals}
        return pa.decimal128(max(widths), 0)
    return pa.string()


def _type_of(value: str) -> pa.DataType | None:
    """The type that Spark gives one text; None if only Spark knows."""
    if _INTEGER.fullmatch(value):
        for dtype in (pa.int32(), pa.int64()):
            if _fits(int(value), dtype):
                return dtype
    if _DOUBLE.fullmatch(value.strip(_BLANKS)):
        return _number_type(value)
    if _timestamp(unescape(value)) is not None:
        return INSTANT
    if _date(value) is not None:
        return pa.date32()
    is_text = not _MAYBE_NUMBER.match(value) or _CERTAIN_TEXT.fullmatch(value)
    return pa.string() if is_text else None


def _number_type(value: str) -> pa.DataType | None:
    """A decimal for whole numbers of up to 38 digits, as ``1e5`` is, else a double."""
    match = _NUMBER.fullmatch(value)
    if match is None:  # blanks, a suffix, NaN: not for decimals
        return pa.float64()
    digits = (match["whole"] + (match["fraction"] or "")).lstrip("0")
    zeros = int(match["exponent"] or 0) - len(match["fraction"] or "")
    if zeros < 0:
        return pa.float64()
    if not digits and zeros:
        return None
    width = len(digits) + zeros
    return pa.decimal128(max(width, 1), 0) if width <= _DIGITS else pa.float64()


def _fits(number: int, dtype: pa.DataType) -> bool:
    limit: int = 1 << (dtype.bit_width - 1)
    return -limit <= number < limit


def _date(value: str) -> date | None:
    if not _DATE.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _timestamp(value: str) -> datetime | None:
    if not _TIMESTAMP.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value.ljust(23, "0") if "." in value else value)
    except ValueError:
        return None


def is_of(value: str, dtype: pa.DataType) -> bool:
    """Whether a folder's text certainly reads as a value of ``dtype``."""
    types = pa.types
    if types.is_string(dtype):
        return _is_utf8(value)
    if types.is_signed_integer(dtype):
        return bool(_INTEGER.fullmatch(value)) and _fits(int(value), dtype)
    if types.is_boolean(dtype):
        return value in _BOOLEANS
    if types.is_date32(dtype):
        return _date(value) is not None
    if dtype == INSTANT:
        return _timestamp(unescape(value)) is not None or _date(value) is not None
    if types.is_float64(dtype):
        return _DOUBLE.fullmatch(value.strip(_BLANKS)) is not None
    if types.is_decimal128(dtype) and dtype.scale == 0:
        own = _number_type(value)
        if own is None:
            return False
        return bool(types.is_decimal(own) and own.precision <= dtype.precision)
    return False


def _is_utf8(value: str) -> bool:
    """Whether Java reads the same text: it replaces bytes that are no UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def typed(value: str, domain: Domain) -> Value:
    """A folder's text, its escapes undone, in the domain of its column.

    Of a timestamp, the microseconds of its local time as if the zone were UTC.
    """
    match domain.name:
        case "int":
            return int(value)
        case "bool":
            return int(value == "true")
        case "date":
            return (date.fromisoformat(value) - EPOCH).days
        case "decimal":
            return int(Decimal(value))
        case "big_decimal":
            return big_decimal_key(int(Decimal(value)))
        case "float":
            return float_key(float(value.strip(_BLANKS).rstrip("dDfF")))
        case "timestamp":
            moment = _timestamp(value)
            if moment is None:
                moment = datetime.combine(date.fromisoformat(value), time())
            wall = moment.replace(tzinfo=UTC) - datetime.fromtimestamp(0, UTC)
            return (wall.days * 86_400 + wall.seconds) * 1_000_000 + wall.microseconds
        case _:
            return value.encode()
