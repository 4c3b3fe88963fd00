"""CAST of a column: to wider types exactly, to narrower ones where nothing is lost."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from skipindex.conditions.functions import calendar
from skipindex.conditions.functions.calendar import DAY, SECOND
from skipindex.conditions.functions.dates import (
    DATE,
    ISO_CLOCK_SPAN,
    SHOWN_DAYS,
    midnight,
    to_date,
)
from skipindex.conditions.functions.numbers import DOUBLE, quotient
from skipindex.conditions.functions.registry import (
    Argument,
    Function,
    FunctionTable,
    UnsureError,
    in_bits,
    integer,
    type_range,
)
from skipindex.conditions.functions.text import STRING
from skipindex.expressions.domain import Domain, float_key

FUNCTIONS: Final = FunctionTable()

INTEGER_BITS: Final = {
    **dict.fromkeys(("TINYINT", "BYTE"), 8),
    **dict.fromkeys(("SMALLINT", "SHORT"), 16),
    **dict.fromkeys(("INT", "INTEGER"), 32),
    **dict.fromkeys(("BIGINT", "LONG"), 64),
}
_DECIMAL: Final = re.compile(r"(?:DECIMAL|DEC|NUMERIC)\((\d+)(?:,(\d+))?\)")
_INTEGER_TEXT: Final = re.compile(r"[+-]?[0-9]{1,99}")
"""Longer ones, of leading zeros perhaps, are left to Spark."""


@FUNCTIONS.named("cast", takes="any string")
def _cast(value: Argument, target: Argument) -> Function | None:
    """``cast(value, 'TYPE')``; the caller converts timestamps to local times."""
    if value.domain is None:
        return None
    result = _cast_to(value.domain, str(target.value))
    if result is None:
        return None
    apply = result.apply
    # The name of the type is an argument too.
    return replace(result, apply=lambda value, _: apply(value))


def _cast_to(source: Domain, target: str) -> Function | None:
    if target in INTEGER_BITS:
        return _to_integer(source, INTEGER_BITS[target])
    decimal = _DECIMAL.fullmatch(target)
    if decimal is not None:
        return _to_decimal(source, int(decimal[1]), int(decimal[2] or 0))
    match target:
        case "DOUBLE":
            return _to_double(source)
        case "STRING":
            return _to_string(source)
        case "DATE":
            return _to_date(source)
        case "TIMESTAMP_NTZ":
            if source.name == "timestamp_ntz":
                return Function(source, lambda t: t, 1)
            return midnight() if source.name == "date" else None
        case "BOOLEAN" if source.name == "bool":
            return Function(source, lambda b: b, 1)
        case _:
            return None


def _to_integer(source: Domain, bits: int) -> Function | None:
    target = integer(bits)
    low, high = type_range(target)
    match source.name:
        case "bool":
            return Function(target, lambda b: b, 1)
        case "int":
            if source.bits <= bits:
                return Function(target, lambda n: n, 1, is_identity=True)
            return Function(target, lambda n: in_bits(n, bits), 1, (low, high))
        case "float":

            def truncate(value: float) -> int:
                if value - value != 0.0:  # infinite, or NaN
                    raise UnsureError
                return in_bits(int(value), bits)

            span = float_key(float(low)), float_key(float(high + 1)) - 1
            return Function(target, truncate, 1, span)
        case "decimal":
            unit = 10**source.scale

            def cut_off(unscaled: int) -> int:
                return in_bits(quotient(unscaled, unit), bits)

            least, most = type_range(source)
            span = max(least, low * unit), min(most, high * unit)
            return Function(target, cut_off, 1, span)
        case "string":

            def read(text: str) -> int:
                stripped = text.strip(" ")
                if not _INTEGER_TEXT.fullmatch(stripped):
                    raise UnsureError
                return in_bits(int(stripped), bits)

            return Function(target, read)
        case _:
            return None


def _to_double(source: Domain) -> Function | None:
    match source.name:
        case "float":
            return Function(DOUBLE, lambda value: value, 1, is_identity=True)
        case "int":
            return Function(DOUBLE, float, 1)
        case "decimal":
            unit = 10**source.scale
            return Function(DOUBLE, lambda unscaled: unscaled / unit, 1)
        case _:
            return None


def _to_decimal(source: Domain, digits: int, scale: int) -> Function | None:
    if not scale <= digits <= 18:
        return None
    if source.name == "int":
        step: int = 10**scale
    elif source.name == "decimal" and source.scale <= scale:
        step = 10 ** (scale - source.scale)
    else:
        return None
    target = Domain("decimal", scale=scale, digits=digits)
    limit: int = (10**digits - 1) // step

    def rescale(value: int) -> int:
        if abs(value) > limit:
            raise UnsureError
        return value * step

    least, most = type_range(source)
    span = max(least, -limit), min(most, limit)
    return Function(target, rescale, 1, span)


def iso_moment(moment: int) -> str:
    """``2020-01-31 12:00:00.5``, as Spark casts a local time to text."""
    day, micros = divmod(moment, DAY)
    text = calendar.iso_date(day)
    if text is None:
        raise UnsureError
    seconds, fraction = divmod(micros, SECOND)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{text} {clock}{tail}"


def _iso_date(day: int) -> str:
    text = calendar.iso_date(day)
    if text is None or day < SHOWN_DAYS[0]:
        raise UnsureError
    return text


def _to_string(source: Domain) -> Function | None:
    match source.name:
        case "string":
            return Function(source, lambda text: text, 1, least=lambda value: value)
        case "int":
            return Function(STRING, str)
        case "bool":
            return Function(STRING, lambda b: "true" if b else "false", 1)
        case "date":
            return Function(STRING, _iso_date, 1, SHOWN_DAYS)
        case "timestamp_ntz":
            return Function(STRING, iso_moment, 1, ISO_CLOCK_SPAN)
        case _:
            return None


def _to_date(source: Domain) -> Function | None:
    match source.name:
        case "date":
            return Function(DATE, lambda day: day, 1)
        case "timestamp_ntz":
            return to_date()
        case _:
            return None
