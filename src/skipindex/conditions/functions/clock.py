"""The session's local time, by which constants of a condition are computed.

Java's copy of a zone's rules may be another one than Python's.  So a plan relies on the
offsets around what it computes, or, of its moment, the engine is asked for the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skipindex.conditions.functions.calendar import (
    CLOCK_UNITS,
    DAY,
    MICROSECOND,
    MONTHS,
    add_months,
    truncated,
)
from skipindex.conditions.functions.dates import (
    FUNCTIONS,
    TRUNCATED,
    UNITS,
    WALL_CLOCK,
)
from skipindex.conditions.functions.registry import Argument, UnsureError
from skipindex.conditions.functions.zones import fixed_offset, relies_here
from skipindex.expressions.domain import EPOCH, EPOCH_UTC, Domain
from skipindex.expressions.not_judged import NotJudgedError


@dataclass(frozen=True, slots=True)
class Clock:
    """The local time of a time zone.

    Args:
        rules: the zone.
        has_rules: whether its offset changes.
        relied: the zone's name, if the plan has to rely on its rules.
    """

    rules: tzinfo
    has_rules: bool
    relied: str = ""

    def wall(self, instant: datetime) -> datetime:
        """What the clock shows at an instant."""
        self._rely(instant.date())
        return _in_zone(instant, self.rules).replace(tzinfo=None, fold=0)

    def instant(self, wall: datetime) -> datetime:
        """When the clock shows a time."""
        self._rely(wall.date())
        shown = [wall.replace(tzinfo=self.rules, fold=fold) for fold in (0, 1)]
        if shown[0].utcoffset() != shown[1].utcoffset():
            raise NotJudgedError("a local time that occurs twice, or never")
        return _in_zone(shown[0], UTC)

    def _rely(self, day: date) -> None:
        """Rely on the offsets around a day; ``NotJudgedError`` if they are unknown."""
        if self.relied and not relies_here(self.relied, _number(day)):
            raise NotJudgedError("it depends on the session's time zone")

    def later(self, instant: datetime, number: int, unit: str) -> datetime:
        """An instant moved by so many units.

        Months and days are those of the local time.  24 hours are a day of it too,
        except for old settings and intervals of ``make_interval``.
        """
        wall = self.wall(instant)
        if unit not in CLOCK_UNITS or unit == "DAY":
            return self.instant(moved(wall, number, unit))
        micros = number * CLOCK_UNITS[unit]
        days = abs(micros) // DAY * (1 if micros > 0 else -1)
        by_days = self.instant(wall + timedelta(days=days)) if days else instant
        later = instant + micros * MICROSECOND
        if by_days + (micros - days * DAY) * MICROSECOND != later:
            raise NotJudgedError("24 hours that are not a day of local time")
        return later

    def truncated(self, unit: str, instant: datetime) -> datetime:
        """``date_trunc``."""
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


def clock_of(zone: str | None, *, relies: bool = False) -> Clock | None:
    """The clock of a zone; None if it is not known here."""
    if zone is None:
        return None
    offset = fixed_offset(zone)
    if offset is not None:
        return Clock(offset, has_rules=False)
    try:
        return Clock(ZoneInfo(zone), has_rules=True, relied=zone if relies else "")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def moved(wall: datetime, number: int, unit: str) -> datetime:
    """A local time moved by so many units; the last day of a month where it ends."""
    if unit not in MONTHS:
        return wall + timedelta(**{f"{unit.lower()}s": number})
    day = add_months(_number(wall.date()), number * MONTHS[unit])
    return datetime.combine(_date(day), wall.timetz())


def formatted(shown: datetime, pattern: str) -> str:
    """``date_format`` of a moment that the session's clock shows."""
    constant = Argument(Domain("string"), is_constant=True, value=pattern)
    result = FUNCTIONS["date_format"].resolve([Argument(WALL_CLOCK), constant])
    moment = (shown.replace(tzinfo=UTC) - EPOCH_UTC) // MICROSECOND
    try:
        if result is not None:
            return str(result.apply(moment, pattern))
    except UnsureError:
        pass  # Spark may show it otherwise
    raise NotJudgedError("the function date_format")


def _number(day: date) -> int:
    return (day - EPOCH).days


def _date(number: int) -> date:
    return EPOCH + timedelta(days=number)
