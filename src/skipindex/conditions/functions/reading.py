"""Functions that read dates and times from text, with a pattern and without one.

A text that is not of the form has no value, or is an error: only Spark knows.  Other
settings of Spark read more texts by a pattern, and days before 1582-10-15 as others, so
no text is known to have no value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skipindex.conditions.functions import calendar
from skipindex.conditions.functions.calendar import DAY, SECOND
from skipindex.conditions.functions.dates import DATE, SHOWN_DAYS, WALL_CLOCK
from skipindex.conditions.functions.patterns import pattern_of
from skipindex.conditions.functions.registry import (
    Argument,
    Function,
    FunctionTable,
    TextInterval,
    UnsureError,
)
from skipindex.expressions.atoms import after_prefix

FUNCTIONS: Final = FunctionTable()

DATE_OF_TEXT: Final = "date of text"
CLOCK_OF_TEXT: Final = "clock of text"
"""Keys of the casts; the second has the zone that texts of other zones get."""

_DATE: Final = r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_DATE_TEXT: Final = re.compile(rf"{_DATE}(?:[ T].*)?)?)?", re.DOTALL)
_TIME: Final = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,6}))?"
_CLOCK_TEXT: Final = re.compile(rf"{_DATE}(?:[ T]{_TIME})?)?)?")
_ODD: Final[Sequence[TextInterval]] = ((b"", b"1"), (b"\x7f", b"\x80"))
"""Texts that begin with a blank, a control character, a sign or a zero."""
_WITHOUT_DATE: Final[Sequence[TextInterval]] = (
    (b"T", b"U"),
    *((f"{hour}:".encode(), f"{hour};".encode()) for hour in range(1, 24)),
)
"""Times alone, which are those of the day of writing."""
_FARTHEST: Final = 36 * 3600 * SECOND
"""From the local time of one zone to that of another."""
_EVERY_TEXT: Final[Sequence[TextInterval]] = ((None, None),)
_PLAIN_DAYS: Final = (
    calendar.day_number(1000, 1, 1),
    calendar.day_number(10_000, 1, 1),
)
"""Between these, years that are written without a zero before them have four digits."""


@FUNCTIONS.named("to_timestamp_ntz", "to_timestamp", "to_date", takes="string string")
@FUNCTIONS.named("try_to_timestamp", takes="string string")
@FUNCTIONS.named("unix_timestamp", "to_unix_timestamp", takes="string string")
def _by_pattern(_: Argument, pattern: Argument) -> Function | None:
    """The local time of a text; the caller makes of it what the function returns."""
    if not isinstance(pattern.value, str):
        return None
    form = pattern_of(pattern.value)

    def read(text: str, _: str) -> int:
        moment = form.read(text)
        if moment is None or moment < SHOWN_DAYS[0] * DAY:
            raise UnsureError
        return moment

    return Function(WALL_CLOCK, read, texts=form)


@dataclass(frozen=True, slots=True)
class CastTexts:
    """The texts that a cast reads: parts without zeros too, and blanks around.

    Args:
        unit: of the values in a day.
        slack: how far, in this unit, a value may lie from the day that its text shows.
        odd: intervals of texts that may have any value.
    """

    unit: int
    slack: int = 0
    odd: Sequence[TextInterval] = _ODD

    def may_read(self, _: bytes) -> bool:
        """Any text may be one."""
        return True

    def between(self, low: int | None, high: int | None) -> Sequence[TextInterval]:
        """Intervals of all texts with a value in ``[low, high)``."""
        if low is None or high is None:
            return _EVERY_TEXT
        first = (low - self.slack) // self.unit
        last = (high - 1 + self.slack) // self.unit
        if not _PLAIN_DAYS[0] <= first <= last < _PLAIN_DAYS[1]:
            return _EVERY_TEXT
        start, end = calendar.civil(first), calendar.civil(last)
        # Parts that are omitted are 1.  The least of the texts has all zeros, and the
        # greatest none: it begins with the parts that all values have in common.
        year, month, day = start
        least = f"{year}-{month:02}-{day:02}".removesuffix("-01").removesuffix("-01")
        n = 3 if start == end else 2 if start[:2] == end[:2] else 1
        stop = after_prefix("-".join(map(str, end[:n])).encode())
        # A control character that is dropped, behind parts of which the last are left
        # out, is the one that lies above the signs and digits of others.
        ends = [f"{year}\x7f"] if n > 1 and start[1:] == (1, 1) else []
        ends += [f"{year}-{month}\x7f"] if n == 3 and day == 1 else []
        cut = ((end.encode(), after_prefix(end.encode())) for end in ends)
        return (*self.odd, (least.encode(), stop), *cut)


def date_of_text() -> Function:
    """From text to the date that it begins with."""

    def read(text: str) -> int:
        return _day(_DATE_TEXT.fullmatch(text))

    return Function(DATE, read, texts=CastTexts(1), key=DATE_OF_TEXT)


def clock_of_text(zone: str | None, *, moves: bool) -> Function:
    """From text to a local time.

    Where it ``moves``, a text may name another zone, and its value is the local time of
    the session's ``zone`` then.
    """

    def read(text: str) -> int:
        match = _CLOCK_TEXT.fullmatch(text)
        day = _day(match)
        assert match is not None
        hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
        if hour > 23 or minute > 59 or second > 59:
            raise UnsureError
        fraction = int((match[7] or "").ljust(6, "0"))
        return day * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + fraction

    if not moves:
        texts, zone = CastTexts(DAY), ""
    else:
        texts = CastTexts(DAY, _FARTHEST, (*_ODD, *_WITHOUT_DATE))
    key = None if zone is None else (CLOCK_OF_TEXT, zone)
    return Function(WALL_CLOCK, read, texts=texts, key=key)


def _day(match: re.Match[str] | None) -> int:
    if match is None:
        raise UnsureError
    year, month, day = (int(part or 1) for part in match.groups()[:3])
    if not (year and 1 <= month <= 12):
        raise UnsureError
    if not 1 <= day <= calendar.month_length(year, month):
        raise UnsureError
    return calendar.day_number(year, month, day)
