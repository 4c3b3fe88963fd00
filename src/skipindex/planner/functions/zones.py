"""Time zones: those without rules are exact, those with rules are known to a day."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skipindex.expressions.domain import EPOCH_UTC
from skipindex.planner.functions.calendar import DAY, MICROSECOND
from skipindex.table import in_any_zone


def instants(zone: str | None) -> Callable[[int], tuple[int, int]]:
    """The first and the last instant that a wall clock of the zone may be.

    Exact in a zone without rules.  Otherwise Java's copy of the rules may be older or
    newer than ours, so an instant is only trusted to a day.
    """
    if zone is None:
        return in_any_zone
    offset = fixed_offset(zone)
    if offset is not None:
        shift = (offset.utcoffset(None) or timedelta()) // MICROSECOND
        return lambda wall: (wall - shift, wall - shift)
    try:
        rules = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return in_any_zone

    def near(wall: int) -> tuple[int, int]:
        moment = (EPOCH_UTC + wall * MICROSECOND).replace(tzinfo=rules)
        instant = (moment - EPOCH_UTC) // MICROSECOND
        return instant - DAY, instant + DAY

    return near


def fixed_offset(zone: str) -> timezone | None:
    """The zone's offset if it never changes, else None."""
    if zone.upper() in {"UTC", "Z", "GMT", "ETC/UTC", "UTC+0", "+00:00"}:
        return UTC
    match = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d\d):(\d\d)", zone)
    if match is None or int(match[2]) > 18:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)
