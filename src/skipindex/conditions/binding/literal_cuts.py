"""Bringing literals into a column's domain exactly, or refusing them.

A literal cuts an ordered domain in two places: ``ge`` is the least value that is
``>=`` the literal, ``gt`` the least that is ``>`` it.  Between them lie the values
that equal it: one, or none, or (for a bigint against a double) several.  Every
comparison then is a half-open range, and nothing is rounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from skipindex.conditions.functions.calendar import DAY, MICROSECOND, day_of_text
from skipindex.conditions.functions.decimals import ceiling_of, fits_decimal, floor_of
from skipindex.conditions.functions.registry import least_integer
from skipindex.conditions.functions.zones import (
    fixed_offset,
    instant_at,
    shift_of,
    to_instant,
)
from skipindex.expressions import Literal
from skipindex.expressions.atoms import Value, successor
from skipindex.expressions.domain import (
    EPOCH,
    EPOCH_UTC,
    INT64_MAX,
    INT64_MIN,
    NAN,
    Domain,
    big_decimal_key,
    float_key,
)

_DOUBLE_TEXT: Final = re.compile(
    r" *[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity) *| *nan *",
    re.IGNORECASE,
)
_DECIMAL_TEXT: Final = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?")
_INTEGER_TEXT: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_EXACT_DIGITS: Final = 15
_TRUE: Final = {"true", "t", "yes", "y", "1"}
_FALSE: Final = {"false", "f", "no", "n", "0"}
_TIME_TEXT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T]((?!24)\d\d:\d\d:\d\d(?:\.\d{1,6})?))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a literal cuts the domain; None is "no value is that large".

    Args:
        ge: the least value that is at least the literal.
        gt: the least value that is greater than the literal.
        slack: the true cut lies within this distance; 0 is exact.
    """

    ge: Value | None
    gt: Value | None
    slack: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a literal cannot be brought into the domain."""

    reason: str


def cut(domain: Domain, value: Literal, zone: str | None) -> Cut | Refusal:
    """Where ``value``, which is not NULL, cuts ``domain`` under Spark's rules."""
    if isinstance(value, Decimal) and not value.is_finite():
        return Refusal("a decimal of Spark is a finite number")
    match domain.name:
        case "bool":
            result = _truth(value)
        case "int":
            result = _integer(domain, value)
        case "float":
            result = _float(domain, value)
        case "decimal" | "big_decimal":
            result = _decimal(domain, value)
        case "date":
            result = _date(value)
        case "timestamp":
            return _timestamp(value, zone)
        case "timestamp_ntz":
            return _wall_clock(value, zone)
        case "string":
            result = _text(value)
        case _:
            result = _at(value) if isinstance(value, bytes) else _text(value)
    if result is None:
        kind = type(value).__name__
        return Refusal(f"comparing the {domain.name} column with {kind} needs a cast")
    return result


def _at(value: Value) -> Cut:
    """Exactly one value equals the literal."""
    if isinstance(value, int):
        return _clamped(value, value + 1)
    return Cut(value, successor(value))


def _clamped(ge: int, gt: int) -> Cut:
    """Cuts beyond int64 lie outside all values."""

    def inside(bound: int) -> int | None:
        return None if bound > INT64_MAX else max(bound, INT64_MIN)

    return Cut(inside(ge), inside(gt))


def _integer(domain: Domain, value: Literal) -> Cut | None:
    match value:
        case bool():
            return None
        case int():
            return _clamped(value, value + 1)
        case float():
            return Cut(*_interval_of(value, float))
        case Decimal():
            if not fits_decimal(domain, [value]):
                return None
            return _clamped(ceiling_of(value), floor_of(value) + 1)
        case str() if _INTEGER_TEXT.fullmatch(value):
            # Read alike with and without ANSI only within the column's own type.
            number = int(value)
            limit = 1 << (domain.bits - 1)
            return _at(number) if -limit <= number < limit else None
        case _:
            return None


def _interval_of(
    value: float,
    to_double: Callable[[int], float],
    ends: tuple[int, int] = (INT64_MIN, INT64_MAX),
) -> tuple[int | None, int | None]:
    """The least integers whose double is at least, and greater than, ``value``."""
    if value != value:  # noqa: PLR0124 (NaN is greater than every number)
        return None, None

    def least(reached: Callable[[float], bool]) -> int | None:
        return least_integer(*ends, lambda i: reached(to_double(i)))

    return least(lambda d: d >= value), least(lambda d: d > value)


def double_of(text: str) -> float | None:
    """The double that Spark casts a text to, in ANSI mode and without it."""
    return float(text) if _DOUBLE_TEXT.fullmatch(text) else None


def _truth(value: Literal) -> Cut | None:
    """A boolean's cut; without ANSI mode Spark compares them with numbers too."""
    match value:
        case str():
            word = value.strip(" ").lower()
            return _at(int(word in _TRUE)) if word in _TRUE | _FALSE else None
        case bool() | int() | Decimal():
            return _clamped(ceiling_of(Decimal(value)), floor_of(Decimal(value)) + 1)
        case float():
            return Cut(*_interval_of(value, float, (0, 1)))
        case _:
            return None


def _float(domain: Domain, value: Literal) -> Cut | None:
    match value:
        case bool():
            return None
        case int():
            if not INT64_MIN <= value <= INT64_MAX:
                return None
            # Without ANSI, Spark compares a float column with an int as floats.
            if domain.bits < 64 and int(np.float32(value)) != value:
                return None
            number = float(value)
        case float():
            number = value
        case Decimal():
            number = float(value)
        case str():
            result = double_of(value)
            # Without ANSI mode, Spark makes a float of it next to a float column.
            if result is None or (domain.bits < 64 and not _is_float(result)):
                return None
            number = result
        case _:
            return None
    key = float_key(number)
    return Cut(key, None if key == NAN else key + 1)


def _decimal_as_double(domain: Domain, value: float) -> Cut:
    """A double's cut of decimals: Spark compares both as doubles."""
    unit: int = 10**domain.scale
    most: int = 10**domain.digits - 1
    ge, gt = _interval_of(value, lambda unscaled: unscaled / unit, (-most, most))
    if domain.name == "decimal":
        return Cut(ge, gt)
    return Cut(
        None if ge is None else big_decimal_key(ge),
        None if gt is None else big_decimal_key(gt),
    )


def _is_float(value: float) -> bool:
    """Whether a double is one of the floats, and not beyond them."""
    with np.errstate(over="ignore"):
        return value != value or float(np.float32(value)) == value  # noqa: PLR0124


def _decimal(domain: Domain, value: Literal) -> Cut | None:
    if isinstance(value, str):
        value = _decimal_of(domain, value)
    if isinstance(value, float):
        return _decimal_as_double(domain, value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if not fits_decimal(domain, [value]):
        return None
    number = Decimal(value)
    ge = ceiling_of(number, domain.scale)
    gt = floor_of(number, domain.scale) + 1
    if domain.name == "decimal":
        return _clamped(ge, gt)
    if abs(ge) > 10**38:  # beyond all values, on one side
        end = None if ge > 0 else b""
        return Cut(end, end)
    key = big_decimal_key(ge)
    return Cut(key, successor(key) if gt > ge else key)


def _decimal_of(domain: Domain, text: str) -> Decimal | None:
    """The number of a text next to a column of decimals, if all of Spark agree."""
    # One version, or mode, makes a decimal of the column's type of it, which rounds;
    # another makes doubles of both, which tell 15 digits apart.
    if domain.digits > _EXACT_DIGITS or not _DECIMAL_TEXT.fullmatch(text):
        return None
    value = Decimal(text)
    unscaled = floor_of(value, domain.scale)
    exact = unscaled == ceiling_of(value, domain.scale)
    return value if exact and abs(unscaled) < 10**domain.digits else None


def _text(value: Literal) -> Cut | None:
    if not isinstance(value, str):
        return None
    try:
        return _at(value.encode())
    except UnicodeEncodeError:  # a lone surrogate is no UTF-8
        return None


def _date(value: Literal) -> Cut | None:
    if isinstance(value, str):
        day = day_of_text(value)
        return None if day is None else _at(day)
    if isinstance(value, datetime) or not isinstance(value, date):
        return None
    return _at((value - EPOCH).days)


def _moment(value: Literal) -> datetime | None:
    """A date, a datetime, or the text of one; None for anything else."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001
    if not isinstance(value, str):
        return None
    parts = _TIME_TEXT.fullmatch(value)
    if parts is None:
        return None
    try:
        return datetime.fromisoformat(" ".join(filter(None, parts.groups())))
    except ValueError:
        return None


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH_UTC) // MICROSECOND


def _timestamp(value: Literal, zone: str | None) -> Cut | Refusal:
    moment = _moment(value)
    if moment is None:
        return Refusal(f"Spark may read the timestamp {value!r} as a different one")
    if isinstance(moment.tzinfo, ZoneInfo) and not moment.fold:
        # It is written as the name of a region (``literal_sql``).
        return _in_region(moment.replace(tzinfo=None), moment.tzinfo.key)
    if moment.tzinfo is not None:
        return _at(_microseconds(moment))
    if zone is None:
        return Refusal("it depends on the session's time zone: pass timezone=…")
    offset = fixed_offset(zone)
    if offset is not None:
        return _at(_microseconds(moment.replace(tzinfo=offset)))
    return _in_region(moment, zone, is_day=not isinstance(value, datetime | str))


def _in_region(moment: datetime, zone: str, *, is_day: bool = False) -> Cut | Refusal:
    """A local time of a zone with rules."""
    known = instant_at(zone, _microseconds(moment), is_day=is_day)
    if known is not None:
        return _at(known)
    # Without rules to rely on, the cut is only trusted to a day, in the direction that
    # keeps more files.
    try:
        instant = _microseconds(moment.replace(tzinfo=ZoneInfo(zone)))
    except (ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        return Refusal(f"the session's time zone {zone!r} is not known here")
    return Cut(instant, instant + 1, slack=DAY)


def _wall_clock(value: Literal, zone: str | None) -> Cut | Refusal:
    moment = _moment(value)
    if moment is None:
        return Refusal(f"Spark may read the timestamp {value!r} as a different one")
    if isinstance(value, datetime):
        # It may be an instant to Spark; only without summer time are the wall
        # clocks of a zone and its instants in the same order everywhere.
        if zone is None:
            return Refusal("it depends on the session's time zone: pass timezone=…")
        offset = fixed_offset(zone)
        if offset is None:
            return _wall_clock_in_region(value, zone)
        if isinstance(moment.tzinfo, ZoneInfo):
            return Refusal("the time zone's rules are known only approximately")
        if moment.tzinfo is not None:
            # In integers: the local time may be beyond the years of Python.
            distance = offset.utcoffset(None) // MICROSECOND
            return _at(_microseconds(moment) + distance)
    return _at(_microseconds(moment))


def _wall_clock_in_region(value: datetime, zone: str) -> Cut | Refusal:
    """The local time of an instant, if no other is near whose order is another."""
    at, shift = _timestamp(value, zone), shift_of(zone, to_instant)
    if isinstance(at, Refusal):
        return at
    assert isinstance(at.ge, int)
    shown = None if at.slack or shift is None else shift(at.ge)
    if shift is None or shown is None or shift(at.ge + 1) != shown + 1:
        return Refusal("the time zone's rules are known only approximately")
    return _at(shown)
