"""Time zones: fixed offsets, and offsets that change by rules.

Java and Python have a copy of the rules each, and one may be newer.  A plan relies on
the offsets around some days, and remembers them: an engine whose offsets are others
gets another plan.  Without an engine the plan's own offsets count.  Where no offsets
are known, an instant is only trusted to a day.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skipindex.conditions.functions.calendar import (
    DAY,
    MICROSECOND,
    SECOND,
    day_number,
)
from skipindex.conditions.functions.registry import UnsureError, least_integer
from skipindex.expressions.domain import EPOCH_UTC, INT64_MAX, INT64_MIN

Offsets: TypeAlias = tuple[tuple[int, int], ...]
"""When a zone's clocks change, and how far they are ahead of UTC from then on, both in
seconds.  The first pair is of the begin of the time that is asked about."""
OffsetsOf: TypeAlias = Callable[[str, int, int], Offsets | None]
"""The offsets of a zone from one instant to another, in seconds; None if unknown."""
Pieces: TypeAlias = "list[tuple[int, int, int]]"
"""Where a clock is shifted, from and to, and by how much, in microseconds.  Two pieces
have values in common that may be shifted either way."""

_DAYS: Final = day_number(1900, 1, 1), day_number(2038, 1, 1)
"""Rules of older days are uncertain, and those of later days are predictions."""
_EVERY_DAY: Final = 0, _DAYS[1]
"""The days of values that are converted one by one.  Of those before 1970, copies of
the rules differ most."""
_AROUND: Final = 2
"""Days before and after one.  No clock is farther from UTC than 18 hours, and none was
ever put forward or back by more than 24."""
_MOST: Final = 256
"""Days that a plan relies on: an engine is asked for each."""
_ANY_ZONE: Final = 18 * 3600 * SECOND
"""No zone of Java is farther from UTC, in microseconds."""
_DAY: Final = DAY // SECOND
"""In seconds.  No clock was ever changed twice in three days since 1900."""


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """Rules of time zones, and those of them that a plan relies on.

    Args:
        offsets: of a zone.
        relied: by zone, and begin and end in seconds, the offsets.
    """

    offsets: OffsetsOf
    relied: dict[tuple[str, int, int], Offsets] = field(default_factory=dict)

    def around(self, zone: str, day: int) -> Offsets | None:
        """The offsets around a day, which are relied on; None if they are not known."""
        if not _DAYS[0] <= day < _DAYS[1]:
            return None
        return self.between(zone, day - _AROUND, day + 1 + _AROUND)

    def between(self, zone: str, first: int, stop: int) -> Offsets | None:
        """The same from one day to another."""
        asked = zone, first * _DAY, stop * _DAY
        result = self.relied.get(asked)
        if result is None and len(self.relied) < _MOST:
            result = self.offsets(*asked)
            if result is not None:
                self.relied[asked] = result
        return result

    def are_those_of(self, offsets: OffsetsOf) -> bool:
        """Whether what is relied on holds by other rules."""
        return all(offsets(*asked) == known for asked, known in self.relied.items())


def no_offsets(_zone: str, _low: int, _high: int) -> None:
    """Offsets that are not known."""


def listed_offsets(zone: str, changes: Sequence[int]) -> OffsetsOf:
    """The offsets of one zone, from alternating changes and offsets after them."""
    starts, after = changes[::2], changes[1::2]

    def offsets(asked: str, low: int, high: int) -> Offsets | None:
        first, stop = bisect_right(starts, low), bisect_right(starts, high)
        if asked != zone or not first:
            return None
        later = zip(starts[first:stop], after[first:stop], strict=True)
        return (low, after[first - 1]), *later

    return offsets


@lru_cache(maxsize=1024)
def offsets_here(zone: str, low: int, high: int) -> Offsets | None:
    """The offsets by Python's own rules, for a number of days."""
    try:
        rules = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None

    def offset(second: int) -> int:
        moment = (EPOCH_UTC + timedelta(seconds=second)).astimezone(rules)
        return (moment.utcoffset() or timedelta()) // timedelta(seconds=1)

    result = [(low, offset(low))]
    for start in range(low, high, _DAY):
        before = result[-1][1]
        if offset(start + _DAY) != before:

            def changed(second: int, before: int = before) -> bool:
                return offset(second) != before

            at = least_integer(start, start + _DAY, changed)
            assert at is not None
            result.append((at, offset(at)))
    return tuple(result)


_current: ContextVar[ZoneRules | None] = ContextVar("rules of time zones", default=None)


@contextmanager
def relying_on(rules: ZoneRules) -> Iterator[None]:
    """Convert by rules within a ``with``."""
    token = _current.set(rules)
    try:
        yield
    finally:
        _current.reset(token)


def relies_here(zone: str, day: int) -> bool:
    """Whether the plan relies on offsets around a day, which are Python's own."""
    rules = _current.get()
    offsets = None if rules is None else rules.around(zone, day)
    around = (day - _AROUND) * _DAY, (day + 1 + _AROUND) * _DAY
    return offsets is not None and offsets == offsets_here(zone, *around)


@dataclass(frozen=True, slots=True)
class Shift:
    """A step between the instants and the local times of a zone with rules.

    Args:
        zone: its name.
        pieces: the step, made of the offsets around a day.
        rules: that are relied on.
    """

    zone: str
    pieces: Callable[[Offsets], Pieces]
    rules: ZoneRules = field(compare=False)

    def __call__(self, bound: int) -> int | None:
        """The least value that is shifted to ``bound`` or beyond it.

        None if that is not known, or if a greater value is shifted to less.
        """
        offsets = self.rules.around(self.zone, bound // DAY)
        if offsets is None:
            return None
        pieces = self.pieces(offsets)
        reached = [min(b, max(a, bound - distance)) for a, b, distance in pieces]
        both = list(zip(pieces, reached, strict=True))
        least = min(at for (_, stop, _), at in both if at < stop)
        is_sure = all(max(start, least) >= at for (start, _, _), at in both)
        return least if is_sure else None

    def wall(self, instant: int) -> int:
        """What a clock of the zone shows at an instant."""
        first, stop = _EVERY_DAY
        inside = first * DAY <= instant < stop * DAY
        offsets = self.rules.between(self.zone, first, stop) if inside else None
        if offsets is None:
            raise UnsureError
        last = bisect_right(offsets, instant // SECOND, key=itemgetter(0)) - 1
        return instant + offsets[last][1] * SECOND


def shift_of(zone: str, pieces: Callable[[Offsets], Pieces]) -> Shift | None:
    """The step by the rules of this plan; None if it has none."""
    rules = _current.get()
    return None if rules is None else Shift(zone, pieces, rules)


def to_wall(offsets: Offsets) -> Pieces:
    """From instants to local times."""
    starts = [start * SECOND for start, _ in offsets[1:]]
    shifts = [offset * SECOND for _, offset in offsets]
    return list(zip([INT64_MIN, *starts], [*starts, INT64_MAX], shifts, strict=True))


def to_instant(offsets: Offsets) -> Pieces:
    """From local times to instants.

    Of one that is shown twice, or never, Spark takes the offset before the change or
    that after it: it depends on the function, and a cast of a column that is compared
    becomes a comparison of local times.
    """
    start, result = INT64_MIN, []
    for (_, before), (at, after) in pairwise(offsets):
        stop = (at + max(before, after)) * SECOND
        result.append((start, stop, -before * SECOND))
        start = (at + min(before, after)) * SECOND
    return [*result, (start, INT64_MAX, -offsets[-1][1] * SECOND)]


def to_existing(offsets: Offsets) -> Pieces:
    """From local times to those that are shown."""
    start, result = INT64_MIN, []
    for (_, before), (at, after) in pairwise(offsets):
        if after > before:
            gap, end = (at + before) * SECOND, (at + after) * SECOND
            result += [(start, gap, 0), (gap, end, end - gap)]
            start = end
    return [*result, (start, INT64_MAX, 0)]


def instant_at(zone: str, wall: int, *, is_day: bool) -> int | None:
    """The instant of a local time, the first of two; None if that is not known.

    One that is never shown is moved forward by what is skipped.  Of a day that begins
    so, Spark takes what is shown first.
    """
    rules = _current.get()
    offsets = None if rules is None else rules.around(zone, wall // DAY)
    if offsets is None:
        return None
    for (_, before), (at, after) in pairwise(offsets):
        if wall < (at + max(before, after)) * SECOND:
            instant = wall - before * SECOND
            return None if is_day and instant > at * SECOND else instant
    return wall - offsets[-1][1] * SECOND


def in_any_zone(wall: int) -> tuple[int, int]:
    """The instants that a local time may be, whatever the zone."""
    return wall - _ANY_ZONE, wall + _ANY_ZONE


def instants(zone: str | None) -> Callable[[int], tuple[int, int]]:
    """The first and the last instant that a local time of the zone may be.

    Exact in a zone without rules.
    """
    offset = None if zone is None else fixed_offset(zone)
    if offset is None:
        return in_any_zone
    shift = (offset.utcoffset(None) or timedelta()) // MICROSECOND
    return lambda wall: (wall - shift, wall - shift)


def fixed_offset(zone: str) -> timezone | None:
    """The zone's offset if it never changes, else None."""
    if zone.upper() in {"UTC", "Z", "GMT", "ETC/UTC", "UTC+0", "+00:00"}:
        return UTC
    match = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d\d):(\d\d)", zone)
    if match is None or int(match[2]) > 18:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)
