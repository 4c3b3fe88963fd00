"""The ``date`` table, with the slips of the generator that the answers rest on.

Two months are misspelled, the day of the week is one late, and the flag of the
last day of the month is 0 on that day.  All three are in every published answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

FIRST_DAY: Final = dt.date(1992, 1, 1)
N_DAYS: Final = 2556  # one short of the seven years: 1998-12-31 is missing

SCHEMA: Final = (
    "d_datekey INT, d_date STRING, d_dayofweek STRING, d_month STRING, d_year INT, "
    "d_yearmonthnum INT, d_yearmonth STRING, d_daynuminweek INT, "
    "d_daynuminmonth INT, d_daynuminyear INT, d_monthnuminyear INT, "
    "d_weeknuminyear INT, d_sellingseason STRING, d_lastdayinweekfl INT, "
    "d_lastdayinmonthfl INT, d_holidayfl INT, d_weekdayfl INT"
)

_DAYS = (
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
)  # fmt: skip
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "Augest",
    "September", "Octorber", "November", "December",
)  # fmt: skip
_SEASONS = (
    "Winter", "Winter", "Winter", "Spring", "Summer", "Summer", "Summer", "Summer",
    "Fall", "Fall", "Christmas", "Christmas",
)  # fmt: skip
_HOLIDAYS = (  # month, day
    (1, 1), (2, 20), (4, 20), (5, 20), (7, 20), (8, 20), (9, 20), (10, 20), (11, 20),
    (12, 24),
)  # fmt: skip


def date_rows() -> Iterator[tuple[int | str, ...]]:
    """Yield the rows of the table, in the order of the days."""
    for offset in range(N_DAYS):
        day = FIRST_DAY + dt.timedelta(days=offset)
        month = _MONTHS[day.month - 1]
        # Sunday is 1, and the generator is one day late.
        day_in_week = (day.isoweekday() + 1) % 7 + 1
        day_in_year = day.timetuple().tm_yday
        last_in_month = (day + dt.timedelta(days=1)).day == 1
        yield (
            day.year * 10000 + day.month * 100 + day.day,
            f"{month} {day.day}, {day.year}",
            _DAYS[day_in_week - 1],
            month,
            day.year,
            day.year * 100 + day.month,
            f"{month[:3]}{day.year}",
            day_in_week,
            day.day,
            day_in_year,
            day.month,
            day_in_year // 7 + 1,
            _SEASONS[day.month - 1],
            int(day_in_week == 7),
            int(not last_in_month),
            int((day.month, day.day) in _HOLIDAYS),
            int(2 <= day_in_week <= 6),
        )
