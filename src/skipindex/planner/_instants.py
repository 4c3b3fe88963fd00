"""The instants of wall clocks, which partition folders write without a zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skipindex.domain import EPOCH_UTC
from skipindex.planner._calendar import DAY
from skipindex.planner._cuts import fixed_offset
from skipindex.table import in_any_zone

_MICROSECOND: Final = timedelta(microseconds=1)


def instants(zone: str | None) -> Callable[[int], tuple[int, int]]:
    """The first and the last instant that a wall clock of the zone may be.

    Exact in a zone without rules.  Otherwise Java's copy of the rules may be older or
    newer than ours, so an instant is only trusted to a day.
    """
    if zone is None:
        return in_any_zone
    offset = fixed_offset(zone)
    if offset is not None:
        shift = (offset.utcoffset(None) or timedelta()) // _MICROSECOND
        return lambda wall: (wall - shift, wall - shift)
    try:
        rules = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return in_any_zone

    def near(wall: int) -> tuple[int, int]:
        moment = (EPOCH_UTC + wall * _MICROSECOND).replace(tzinfo=rules)
        instant = (moment - EPOCH_UTC) // _MICROSECOND
        return instant - DAY, instant + DAY

    return near
