"""Dates, times and intervals as Spark SQL writes them, for every session.

A form whose value depends on the session, the version or the day is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skipindex.conditions.functions.calendar import CLOCK_UNITS, SECOND
from skipindex.expressions import Call
from skipindex.expressions.not_judged import NotJudgedError

INTERVAL_UNITS: Final = {
    "YEAR": (12, "MONTH"),
    "MONTH": (1, "MONTH"),
    "WEEK": (7, "DAY"),
    "DAY": (1, "DAY"),
    "HOUR": (1, "HOUR"),
    "MINUTE": (1, "MINUTE"),
    "SECOND": (1, "SECOND"),
    "MILLISECOND": (1000, "MICROSECOND"),
    "MICROSECOND": (1, "MICROSECOND"),
}
"""What a unit of an interval is made of."""
_MADE: Final = {
    "make_ym_interval": ("YEAR", "MONTH"),
    "make_dt_interval": ("DAY", "HOUR", "MINUTE", "SECOND"),
    "make_interval": ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
}
INTERVAL_FUNCTIONS: Final = frozenset(_MADE)
_LENGTHS: Final = {**CLOCK_UNITS, "MONTH": 1}
_PART: Final = re.compile(r"([+-]?)([0-9]{1,18})(?:\.([0-9]{1,6}))?")
_MOST: Final = 10**9
_MOST_MICROSECONDS: Final = 10**18
"""Below them are the numbers that are read."""
_IN_TEXT: Final = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s+([A-Za-z]+)", re.ASCII)
_FIELDS: Final = ("DAY", "HOUR", "MINUTE", "SECOND")
_DATE: Final = r" *(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
_DATE_TEXT: Final = re.compile(_DATE + r")?)? *", re.ASCII)
_TIMESTAMP_TEXT: Final = re.compile(
    _DATE + r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{0,6}))?"
    r"(?: ?(?P<zone>Z|UTC|[+-]\d{1,2}:\d{1,2}|[A-Z][A-Za-z]+/[A-Za-z_]+))?)?)?)?)? *",
    re.ASCII,
)

_ISO: Final = re.compile(
    r"(?!0000)\d{4}-\d\d-\d\d (?!24)\d\d:\d\d:\d\d(?:\.\d{6})?", re.ASCII
)
"""What Python's own parser reads as we do; since 3.14 it takes 24:00:00, too."""


def date_of(text: str) -> date:
    """The value of ``DATE 'text'``, and of a cast of the text."""
    match = _DATE_TEXT.fullmatch(text)
    if match is None or match["year"] == "0000":
        raise NotJudgedError(f"the date {text!r}")
    try:
        return date(*_day(match))
    except ValueError:
        raise ValueError(f"no date: {text!r}") from None


def timestamp_of(text: str) -> datetime:
    """The value of ``TIMESTAMP 'text'``; without a zone, a local time."""
    if _ISO.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"no timestamp: {text!r}") from None
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None or match["year"] == "0000":
        raise NotJudgedError(f"the timestamp {text!r}")
    hour, minute, second = (int(match[n] or 0) for n in ("hour", "minute", "second"))
    micros = int((match["fraction"] or "").ljust(6, "0"))
    try:
        clock = time(hour, minute, second, micros)
        value = datetime.combine(date(*_day(match)), clock)
    except ValueError:
        raise ValueError(f"no timestamp: {text!r}") from None
    return value.replace(tzinfo=_zone(match["zone"]))


def wall_clock_of(text: str) -> datetime:
    """The value of ``TIMESTAMP_NTZ 'text'``."""
    value = timestamp_of(text)
    if value.tzinfo is not None:
        raise NotJudgedError("a time zone in a timestamp without one")
    return value


def _day(match: re.Match[str]) -> tuple[int, int, int]:
    return int(match["year"]), int(match["month"] or 1), int(match["day"] or 1)


def _zone(text: str | None) -> tzinfo | None:
    """The offset, or the region, whose rules Java may know otherwise than we do."""
    if text is None:
        return None
    if "/" in text:
        try:
            return ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise NotJudgedError(f"the time zone {text!r}") from None
    if text in {"Z", "UTC"}:
        return UTC
    hours, minutes = map(int, text[1:].split(":"))
    if hours * 60 + minutes > 18 * 60 or minutes > 59:
        raise ValueError(f"no time zone: {text!r}")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


def interval_of(parts: Sequence[tuple[str, str]]) -> Call:
    """The interval of numbers with units, as ``INTERVAL 1 DAY 2 HOURS`` has them.

    Its unit is the smallest that is named: it decides on the interval's type.
    """
    total, smallest = 0, ""
    signs, units = set(), set()
    for text, name in parts:
        match = _PART.fullmatch(text)
        known = INTERVAL_UNITS.get(name.upper().removesuffix("S"))
        if match is None or known is None or (match[3] and known[1] != "SECOND"):
            raise NotJudgedError("an interval")
        factor, unit = known
        number = factor * int(match[2])
        if number >= (_MOST_MICROSECONDS if unit == "MICROSECOND" else _MOST):
            raise NotJudgedError("an interval")
        if match[3]:
            number, unit = number * SECOND + int(match[3].ljust(6, "0")), "MICROSECOND"
        number = -number if match[1] == "-" else number
        if number:
            signs.add(number > 0)
        units.add(unit)
        smallest = min(smallest or unit, unit, key=_LENGTHS.__getitem__)
        total += number * _LENGTHS[unit]
    if not parts or (units > {"MONTH"}) or (units > {"DAY"} and len(signs) > 1):
        raise NotJudgedError("an interval")
    if smallest == "MONTH" and total % 12 == 0:
        return Call("interval", (total // 12, "YEAR"))
    if smallest == "MICROSECOND" and total % SECOND == 0:
        smallest = "SECOND"
    return Call("interval", (total // _LENGTHS[smallest], smallest))


def interval_of_text(text: str) -> Call:
    """``INTERVAL '1 day 2 hours'``."""
    parts = [(match[1], match[2]) for match in _IN_TEXT.finditer(text)]
    if not parts or _IN_TEXT.sub("", text).strip():
        raise NotJudgedError("an interval")
    return interval_of(parts)


def interval_between(text: str, first: str, last: str, sign: str = "") -> Call:
    """``INTERVAL '1 02:03' DAY TO MINUTE``, ``INTERVAL '1-2' YEAR TO MONTH``."""
    if (first, last) == ("YEAR", "MONTH"):
        units: Sequence[str] = ("YEAR", "MONTH")
        pattern = r"(\d{1,4})-(\d|1[01])"
    elif first in _FIELDS and last in _FIELDS[_FIELDS.index(first) + 1 :]:
        units = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
        pieces = {"HOUR": r"(\d|[01]\d|2[0-3])", "SECOND": r"([0-5]?\d(?:\.\d{1,6})?)"}
        rest = [pieces.get(unit, r"([0-5]?\d)") for unit in units[1:]]
        pattern = r"(\d{1,9})" + (" " if first == "DAY" else ":") + ":".join(rest)
    else:
        raise NotJudgedError("an interval")
    match = re.fullmatch("([+-]?)" + pattern, text, re.ASCII)
    if match is None:
        raise NotJudgedError("an interval")
    before = "-" if (match[1] == "-") != (sign == "-") else ""
    numbers = [before + number for number in match.groups()[1:]]
    return interval_of(list(zip(numbers, units, strict=True)))


def made_interval(name: str, numbers: Sequence[int]) -> Call:
    """``make_interval`` and its like, of whole numbers in their order."""
    units = _MADE[name]
    if len(numbers) > len(units):
        raise NotJudgedError(f"the function {name}")
    parts = [(str(n), u) for n, u in zip(numbers, units, strict=False) if n]
    if name == "make_dt_interval":  # of the type DAY TO SECOND
        return interval_of([*parts, ("0", "SECOND")])
    made = interval_of(parts)
    if len({INTERVAL_UNITS[unit][1] in {"MONTH", "DAY"} for _, unit in parts}) > 1:
        raise NotJudgedError(f"the function {name}")
    return made
