"""The proleptic Gregorian calendar over all of Spark's days, years beyond 9999 too.

Days are counted from 1970-01-01.  The two conversions are those of Howard Hinnant,
"chrono-Compatible Low-Level Date Algorithms" (``days_from_civil``).
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Final

from skipindex.expressions.domain import EPOCH

DAY: Final = 86_400_000_000
"""Microseconds of a day."""
SECOND: Final = 1_000_000
"""Microseconds of a second."""
MICROSECOND: Final = timedelta(microseconds=1)
MONTHS: Final = {"MONTH": 1, "YEAR": 12}
"""The units of a calendar, which differ in length."""
CLOCK_UNITS: Final = {
    "DAY": DAY,
    "HOUR": 3600 * SECOND,
    "MINUTE": 60 * SECOND,
    "SECOND": SECOND,
    "MICROSECOND": 1,
}
"""Microseconds of the units of a local time, which are always as long."""

_ERA_YEARS: Final = 400
_ERA_DAYS: Final = 146_097
_SHIFT: Final = 719_468
"""Days from 0000-03-01 to 1970-01-01."""

_DATE_TEXT: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def day_number(year: int, month: int, day: int) -> int:
    """The number of a day that exists."""
    year -= month <= 2
    era, in_era = divmod(year, _ERA_YEARS)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    of_era = in_era * 365 + in_era // 4 - in_era // 100 + of_year
    return era * _ERA_DAYS + of_era - _SHIFT


def civil(number: int) -> tuple[int, int, int]:
    """Year, month and day of a day's number."""
    era, of_era = divmod(number + _SHIFT, _ERA_DAYS)
    in_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * in_era + in_era // 4 - in_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return in_era + era * _ERA_YEARS + (month <= 2), month, day


def month_length(year: int, month: int) -> int:
    """How many days a month has."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _LENGTHS[month - 1]


def add_months(number: int, months: int) -> int:
    """The same day so many months later, or the last of that month."""
    year, month, day = civil(number)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    return day_number(year, month + 1, min(day, month_length(year, month + 1)))


def weekday(number: int) -> int:
    """Monday is 0."""
    return (number + 3) % 7


def iso_week(number: int) -> int:
    """The week of the year in which the day's Thursday lies, from 1."""
    thursday = number - weekday(number) + 3
    year = civil(thursday)[0]
    return (thursday - day_number(year, 1, 1)) // 7 + 1


def truncated(number: int, unit: str) -> int:
    """The first day of the ``YEAR``, ``QUARTER``, ``MONTH`` or ``WEEK``."""
    if unit == "WEEK":
        return number - weekday(number)
    year, month, _ = civil(number)
    if unit == "YEAR":
        month = 1
    elif unit == "QUARTER":
        month -= (month - 1) % 3
    return day_number(year, month, 1)


def iso_date(number: int) -> str | None:
    """``2020-01-31``; None outside the years 1 to 9999."""
    year, month, day = civil(number)
    return f"{year:04}-{month:02}-{day:02}" if 1 <= year <= 9999 else None


def day_of_text(text: str) -> int | None:
    """The number of the day ``2020-01-31``; None for another form, or for no day."""
    if not _DATE_TEXT.fullmatch(text):
        return None
    try:
        return (date.fromisoformat(text) - EPOCH).days
    except ValueError:
        return None
