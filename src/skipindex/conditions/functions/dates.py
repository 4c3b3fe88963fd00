"""Functions of dates and of local times.

A timestamp is an instant; its date and its hours are those of the session's local
time.  With a zone of one fixed offset that is arithmetic.  With any other zone, or
with none known, the local time is only known to a day: enough to bound a range.  The
ends of the range are exact where the plan may rely on the zone's rules (``zones``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Final

from skipindex.conditions.functions import calendar
from skipindex.conditions.functions.calendar import CLOCK_UNITS, DAY, SECOND
from skipindex.conditions.functions.patterns import pattern_of
from skipindex.conditions.functions.registry import (
    Argument,
    Coercion,
    Function,
    FunctionTable,
    UnsureError,
    in_bits,
    integer,
)
from skipindex.conditions.functions.zones import (
    Offsets,
    Pieces,
    fixed_offset,
    shift_of,
    to_existing,
    to_instant,
    to_wall,
)
from skipindex.expressions.domain import INT64_MAX, INT64_MIN, Domain

FUNCTIONS: Final = FunctionTable()

DATE: Final = Domain("date")
WALL_CLOCK: Final = Domain("timestamp_ntz")
INSTANT: Final = Domain("timestamp")
_INT: Final = integer(32)
SURE_NANOSECONDS: Final = (
    INT64_MIN + 400 * DAY * 1000,
    INT64_MAX - 400 * DAY * 1000,
)
"""Between these, truncating to a year is no overflow.  The ends themselves are infinite
times to some readers."""
UNITS: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MM", "MON"), "MONTH"),
    "WEEK": "WEEK",
}
TRUNCATED: Final = {
    **CLOCK_UNITS,
    "DD": DAY,
    "MILLISECOND": 1000,
}


def wall_clock(zone: str | None) -> Function:
    """From an instant to the session's local time."""
    return _moved(WALL_CLOCK, zone, 1, to_wall)


def instant(zone: str | None) -> Function:
    """From a local time of the session to an instant."""
    return _moved(INSTANT, zone, -1, to_instant)


def existing(zone: str | None) -> Function | None:
    """From a local time to the one that its instant has; None if that is the same.

    A zone skips an hour in spring, and some have skipped a whole day: a local time in
    between is moved forward by what is skipped, whatever the rules are.
    """
    if zone is not None and fixed_offset(zone) is not None:
        return None
    key = None if zone is None else ("existing", zone)
    result = _moved(WALL_CLOCK, zone, 1, to_existing)
    return replace(result, key=key, is_later=True)


def _moved(
    domain: Domain, zone: str | None, sign: int, pieces: Callable[[Offsets], Pieces]
) -> Function:
    offset = None if zone is None else fixed_offset(zone)
    if offset is None:
        reason = "it depends on the session's time zone: pass timezone=…"
        if zone is not None:
            reason = "the time zone's rules are known only approximately"
        key: Hashable = None if zone is None else (domain.name, zone)
        exact = None if zone is None else shift_of(zone, pieces)
        apply = exact.wall if exact is not None and pieces is to_wall else _nearly
        return Function(
            domain, apply, 1, slack=DAY, exact=exact, reason=reason, key=key
        )
    distance = offset.utcoffset(None) // calendar.MICROSECOND * sign
    span = INT64_MIN + max(-distance, 0), INT64_MAX - max(distance, 0)
    key = domain.name, distance
    return Function(domain, lambda t: in_bits(t + distance, 64), 1, span, key=key)


def is_sure_of_years(function: Function) -> bool:
    """Whether it makes a time of four digits' years of what it is sure of alone."""
    match function.key:
        case "midnight" | (str(), int()):  # a shift, by an offset of hours
            return True
    return False


def _nearly(_: int) -> int:
    raise UnsureError


def microseconds(domain: Domain, *, up: bool) -> Function:
    """From nanoseconds to microseconds, at the upper or the lower end of what is read.

    Some readers round down, some towards zero and some to the nearest.
    """
    low, high = SURE_NANOSECONDS

    def rounded(nanoseconds: int) -> int:
        if not low <= nanoseconds <= high:
            raise UnsureError
        return -(-nanoseconds // 1000) if up else nanoseconds // 1000

    return Function(
        Domain(domain.nanoseconds),
        rounded,
        1,
        SURE_NANOSECONDS,
        reason="nanoseconds near the ends of 64 bits: they overflow, or are infinite",
        key=("microseconds", domain, up),
    )


def to_date() -> Function:
    """From a local time to its day."""
    return Function(DATE, lambda t: t // DAY, 1, key="to_date")


def unix_seconds() -> Function:
    """From an instant to whole seconds, towards zero: a cast takes those below."""

    def seconds(t: int) -> int:
        return t // SECOND if t >= 0 else -(-t // SECOND)

    return Function(integer(64), seconds, 1, key="unix_seconds")


def midnight() -> Function:
    """From a day to its first moment."""
    span = INT64_MIN // DAY + 1, INT64_MAX // DAY
    return Function(WALL_CLOCK, lambda d: in_bits(d * DAY, 64), 1, span, key="midnight")


def _part(name: str, read: Callable[[int], int], *, rises: bool = False) -> None:
    """Register an integer that is read off a day."""

    @FUNCTIONS.named(
        *name.split(), takes="date, timestamp_ntz", coercion=Coercion.CLOCK
    )
    def resolver(moment: Argument) -> Function:
        if moment.is_a("date"):
            return Function(_INT, read, int(rises))
        return Function(_INT, lambda t: read(t // DAY), int(rises))


_part("year", lambda d: calendar.civil(d)[0], rises=True)
_part("quarter", lambda d: (calendar.civil(d)[1] + 2) // 3)
_part("month", lambda d: calendar.civil(d)[1])
_part("day dayofmonth", lambda d: calendar.civil(d)[2])
_part("dayofyear", lambda d: d - calendar.truncated(d, "YEAR") + 1)
_part("dayofweek", lambda d: (calendar.weekday(d) + 1) % 7 + 1)
_part("weekday", calendar.weekday)
_part("weekofyear", calendar.iso_week)


def _clock(name: str, unit: int, modulus: int) -> None:
    """Register an integer that is read off a clock."""

    @FUNCTIONS.named(name, takes="timestamp_ntz", coercion=Coercion.CLOCK)
    def resolver(_: Argument) -> Function:
        return Function(_INT, lambda t: t // unit % modulus)


_clock("hour", 3600 * SECOND, 24)
_clock("minute", 60 * SECOND, 60)
_clock("second", SECOND, 60)


@FUNCTIONS.named("unix_date", takes="date", coercion=Coercion.DATE)
def _unix_date(_: Argument) -> Function:
    return Function(_INT, lambda d: d, 1)


@FUNCTIONS.named("last_day", takes="date", coercion=Coercion.DATE)
def _last_day(_: Argument) -> Function:
    def last(day: int) -> int:
        year, month, of_month = calendar.civil(day)
        return in_bits(day - of_month + calendar.month_length(year, month), 32)

    return Function(DATE, last, 1, (-(1 << 31), (1 << 31) - 32))


@FUNCTIONS.named("trunc", takes="date any", coercion=Coercion.DATE)
def _trunc(_: Argument, word: Argument) -> Function | None:
    unit = UNITS.get(_word(word))
    if unit is None:
        return None
    span = -(1 << 31) + 366, (1 << 31) - 1
    return Function(
        DATE, lambda d, _: in_bits(calendar.truncated(d, unit), 32), 1, span
    )


@FUNCTIONS.named("date_trunc", takes="any timestamp_ntz", coercion=Coercion.INSTANT)
def _date_trunc(word: Argument, _: Argument) -> Function | None:
    """A local time, truncated; the caller converts it back to an instant."""
    unit, length = UNITS.get(_word(word)), TRUNCATED.get(_word(word))
    span = INT64_MIN + 367 * DAY, INT64_MAX
    if length is not None:
        return Function(WALL_CLOCK, lambda _, t: in_bits(t - t % length, 64), 1, span)
    if unit is None:
        return None
    return Function(
        WALL_CLOCK,
        lambda _, t: in_bits(calendar.truncated(t // DAY, unit) * DAY, 64),
        1,
        span,
    )


def _word(argument: Argument) -> str:
    """The unit that a constant names, or nothing."""
    return argument.value.upper() if isinstance(argument.value, str) else ""


def _shift(days: Argument, sign: int) -> Function:
    span = None
    if days.is_constant and isinstance(days.value, int):
        step = sign * days.value
        span = -(1 << 31) + max(-step, 0), (1 << 31) - 1 - max(step, 0)
    return Function(
        DATE, lambda d, n: in_bits(d + sign * n, 32), 1 if span else 0, span
    )


@FUNCTIONS.named("date_add", "dateadd", takes="date int32", coercion=Coercion.DATE)
def _date_add(_: Argument, days: Argument) -> Function:
    return _shift(days, 1)


@FUNCTIONS.named("date_sub", takes="date int32", coercion=Coercion.DATE)
def _date_sub(_: Argument, days: Argument) -> Function:
    return _shift(days, -1)


@FUNCTIONS.named("add_months", takes="date int32", coercion=Coercion.DATE)
def _add_months(_: Argument, number: Argument) -> Function | None:
    months = number.value
    if not isinstance(months, int):
        return None
    margin = 31 * abs(months) + 31
    span = -(1 << 31) + margin, (1 << 31) - 1 - margin
    if span[0] >= span[1]:
        return None
    return Function(DATE, lambda d, n: in_bits(calendar.add_months(d, n), 32), 1, span)


@FUNCTIONS.named("datediff", "date_diff", takes="date date", coercion=Coercion.DATE)
def _datediff(end: Argument, start: Argument) -> Function | None:
    direction = 1 if start.is_constant else -1
    if not end.is_constant and not start.is_constant:
        direction = 0
    # Far from the ends of the type nothing overflows.
    span = -(1 << 29), 1 << 29
    fixed = next((a.value for a in (end, start) if a.is_constant), 0)
    if not isinstance(fixed, int) or abs(fixed) > 1 << 29:
        return None
    return Function(_INT, lambda a, b: in_bits(a - b, 32), direction, span)


@FUNCTIONS.named("make_date", takes="int32 int32 int32")
def _make_date(*_: Argument) -> Function:
    def make(year: int, month: int, day: int) -> int:
        if not (1 <= year <= 9999 and 1 <= month <= 12):
            raise UnsureError
        if not 1 <= day <= calendar.month_length(year, month):
            raise UnsureError
        return calendar.day_number(year, month, day)

    return Function(DATE, make)


_GREGORIAN: Final = calendar.day_number(1582, 10, 15)
_LAST: Final = calendar.day_number(9999, 12, 31)
SHOWN_DAYS: Final = (_GREGORIAN, _LAST)
"""The days whose year has four digits, and that Spark's old formatter shows as they
are (``spark.sql.legacy.timeParserPolicy``): it knows the Julian calendar."""
_SHOWN_CLOCKS: Final = (_GREGORIAN * DAY, (_LAST + 1) * DAY - 1)
ISO_CLOCK_SPAN: Final = (calendar.day_number(1, 1, 1) * DAY, (_LAST + 1) * DAY - 1)
"""The local times whose year has four digits."""


@FUNCTIONS.named(
    "date_format",
    takes="date string, timestamp_ntz string",
    coercion=Coercion.INSTANT,
)
def _date_format(moment: Argument, pattern: Argument) -> Function | None:
    if not isinstance(pattern.value, str):
        return None
    form = pattern_of(pattern.value)
    if form.digits not in {0, 3}:  # Spark's old formatter shows milliseconds
        return None

    def shown(moment: int) -> str:
        if not _SHOWN_CLOCKS[0] <= moment <= _SHOWN_CLOCKS[1]:
            raise UnsureError
        return form.shown(moment)

    text = Domain("string")
    if moment.is_a("date"):
        return Function(text, lambda d, _: shown(d * DAY), 1, SHOWN_DAYS)
    return Function(text, lambda t, _: shown(t), 1, _SHOWN_CLOCKS)
