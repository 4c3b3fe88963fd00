"""The session's wall clock, for constants that a plan computes once.

A constant that is computed here also stands in the condition that the engine evaluates:
both then mean the same rows.  Java's copy of a zone's rules may be another one, so the
engine is asked whether it computes the same value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skipindex.expressions.domain import EPOCH, EPOCH_UTC, Domain
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.functions.calendar import (
    CLOCK_UNITS,
    DAY,
    MICROSECOND,
    MONTHS,
    add_months,
    truncated,
)
from skipindex.planner.functions.dates import (
    FUNCTIONS,
    TRUNCATED,
    UNITS,
    WALL_CLOCK,
)
from skipindex.planner.functions.registry import Argument
from skipindex.planner.functions.zones import fixed_offset


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock of a time zone.

    Args:
        rules: the zone.
        has_rules: whether its offset changes.
    """

    rules: tzinfo
    has_rules: bool

    def wall(self, instant: datetime) -> datetime:
        """What the clock shows at an instant.

        Raises:
            NotJudgedError: it shows a year beyond those of Python.
        """
        return _in_zone(instant, self.rules).replace(tzinfo=None, fold=0)

    def instant(self, wall: datetime) -> datetime:
        """When the clock shows a time.

        Raises:
            NotJudgedError: it does so twice, or never, or beyond the years of Python.
        """
        shown = [wall.replace(tzinfo=self.rules, fold=fold) for fold in (0, 1)]
        if shown[0].utcoffset() != shown[1].utcoffset():
            raise NotJudgedError("a wall clock that is shown twice, or never")
        return _in_zone(shown[0], UTC)

    def later(self, instant: datetime, number: int, unit: str) -> datetime:
        """An instant moved by so many units.

        Months and days are those of the wall clock.  24 hours are a day of it too,
        except for old settings and intervals of ``make_interval``.

        Raises:
            NotJudgedError: the wall clock, or the kind of interval, matters.
        """
        wall = self.wall(instant)
        if unit not in CLOCK_UNITS or unit == "DAY":
            return self.instant(moved(wall, number, unit))
        micros = number * CLOCK_UNITS[unit]
        days = abs(micros) // DAY * (1 if micros > 0 else -1)
        by_days = self.instant(wall + timedelta(days=days)) if days else instant
        later = instant + micros * MICROSECOND
        if by_days + (micros - days * DAY) * MICROSECOND != later:
            raise NotJudgedError("24 hours that are no day of the wall clock")
        return later

    def truncated(self, unit: str, instant: datetime) -> datetime:
        """``date_trunc``.

        Raises:
            NotJudgedError: there is no such unit, or the wall clock is not unique.
        """
        wall, name = self.wall(instant), unit.upper()
        if name in UNITS:
            day = truncated(_number(wall.date()), UNITS[name])
            return self.instant(datetime.combine(_date(day), datetime.min.time()))
        length = TRUNCATED.get(name)
        if length is None:
            raise NotJudgedError("the function date_trunc")
        of_day = (wall - datetime.combine(wall, datetime.min.time())) // MICROSECOND
        return self.instant(wall - of_day % length * MICROSECOND)


def _in_zone(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:
        raise NotJudgedError("a time beyond the years 1 to 9999") from None


_current: ContextVar[Clock | None] = ContextVar("session's clock", default=None)


def clock_of(zone: str | None) -> Clock | None:
    """The clock of a zone; None if it is not known here."""
    if zone is None:
        return None
    offset = fixed_offset(zone)
    if offset is not None:
        return Clock(offset, has_rules=False)
    try:
        return Clock(ZoneInfo(zone), has_rules=True)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def current_clock() -> Clock | None:
    """The clock by which constants are computed; None where none may be."""
    return _current.get()


@contextmanager
def computing_by(clock: Clock | None) -> Iterator[None]:
    """Compute constants by a clock within a ``with``."""
    token = _current.set(clock)
    try:
        yield
    finally:
        _current.reset(token)


def moved(wall: datetime, number: int, unit: str) -> datetime:
    """A wall clock moved by so many units; the last day of a month where it ends."""
    if unit not in MONTHS:
        return wall + timedelta(**{f"{unit.lower()}s": number})
    day = add_months(_number(wall.date()), number * MONTHS[unit])
    return datetime.combine(_date(day), wall.timetz())


def formatted(shown: datetime, pattern: str) -> str:
    """``date_format`` of a moment that the session's clock shows.

    Raises:
        NotJudgedError: it is another pattern.
        UnsureError: it is a moment that Spark may show otherwise.
    """
    constant = Argument(Domain("string"), is_constant=True, value=pattern)
    result = FUNCTIONS["date_format"].resolve([Argument(WALL_CLOCK), constant])
    if result is None:
        raise NotJudgedError("the function date_format")
    moment = (shown.replace(tzinfo=UTC) - EPOCH_UTC) // MICROSECOND
    return str(result.apply(moment, pattern))


def _number(day: date) -> int:
    return (day - EPOCH).days


def _date(number: int) -> date:
    return EPOCH + timedelta(days=number)
