"""Dates and timestamps as Spark SQL writes them, where the session does not matter.

A form whose value depends on the session, the version or the day is not judged.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skipindex.expressions.not_judged import NotJudgedError

_DATE: Final = r" *(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
_DATE_TEXT: Final = re.compile(_DATE + r")?)? *", re.ASCII)
_TIMESTAMP_TEXT: Final = re.compile(
    _DATE + r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{0,6}))?"
    r"(?: ?(?P<zone>Z|UTC|[+-]\d{1,2}:\d{1,2}|[A-Z][A-Za-z]+/[A-Za-z_]+))?)?)?)?)? *",
    re.ASCII,
)


def date_of(text: str) -> date:
    """The value of ``DATE 'text'``, and of a cast of the text.

    Raises:
        ValueError: there is no such day.
        NotJudgedError: another form, which Spark may take too.
    """
    found = _DATE_TEXT.fullmatch(text)
    if found is None or found["year"] == "0000":
        raise NotJudgedError(f"the date {text!r}")
    try:
        return date(*_day(found))
    except ValueError:
        raise ValueError(f"no date: {text!r}") from None


def timestamp_of(text: str) -> datetime:
    """The value of ``TIMESTAMP 'text'``; without a zone, a wall clock.

    Raises:
        ValueError: there is no such time.
        NotJudgedError: another form, which Spark may take too.
    """
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


def wall_clock_of(text: str) -> datetime:
    """The value of ``TIMESTAMP_NTZ 'text'``.

    Raises:
        ValueError: there is no such time.
        NotJudgedError: it has a zone, or another form.
    """
    value = timestamp_of(text)
    if value.tzinfo is not None:
        raise NotJudgedError("a time zone in a timestamp without one")
    return value


def _day(found: re.Match[str]) -> tuple[int, int, int]:
    return int(found["year"]), int(found["month"] or 1), int(found["day"] or 1)


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
