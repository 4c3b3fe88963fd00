from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import pairwise

from ssb.data.calendar import SCHEMA, date_rows


def test_calendar_of_the_generator() -> None:
    names = [field.split()[0] for field in SCHEMA.split(", ")]
    rows = [dict(zip(names, row, strict=True)) for row in date_rows()]
    assert [row["d_datekey"] for row in (rows[0], rows[-1])] == [19920101, 19981230]
    assert len(rows) == 2556
    distinct = {name: len({row[name] for row in rows}) for name in names}
    assert distinct == {
        "d_datekey": 2556, "d_date": 2556, "d_dayofweek": 7, "d_month": 12,
        "d_year": 7, "d_yearmonthnum": 84, "d_yearmonth": 84, "d_daynuminweek": 7,
        "d_daynuminmonth": 31, "d_daynuminyear": 366, "d_monthnuminyear": 12,
        "d_weeknuminyear": 53, "d_sellingseason": 5, "d_lastdayinweekfl": 2,
        "d_lastdayinmonthfl": 2, "d_holidayfl": 2, "d_weekdayfl": 2,
    }  # fmt: skip
    # 1992-01-01 was a Wednesday; the generator is one day late.
    assert rows[0] == {
        "d_datekey": 19920101, "d_date": "January 1, 1992",
        "d_dayofweek": "Thursday", "d_month": "January", "d_year": 1992,
        "d_yearmonthnum": 199201, "d_yearmonth": "Jan1992", "d_daynuminweek": 5,
        "d_daynuminmonth": 1, "d_daynuminyear": 1, "d_monthnuminyear": 1,
        "d_weeknuminyear": 1, "d_sellingseason": "Winter", "d_lastdayinweekfl": 0,
        "d_lastdayinmonthfl": 1, "d_holidayfl": 1, "d_weekdayfl": 1,
    }  # fmt: skip
    by_key = {row["d_datekey"]: row for row in rows}
    assert by_key[19940831]["d_month"] == "Augest"
    assert by_key[19940831]["d_yearmonth"] == "Aug1994"
    assert by_key[19940831]["d_lastdayinmonthfl"] == 0
    assert by_key[19941001]["d_date"] == "Octorber 1, 1994"
    assert by_key[19960229]["d_lastdayinmonthfl"] == 0
    assert by_key[19980107]["d_weeknuminyear"] == 2
    assert {row["d_dayofweek"] for row in rows if row["d_daynuminweek"] == 1} == {
        "Sunday"
    }
    holidays = Counter(row["d_year"] for row in rows if row["d_holidayfl"])
    assert set(holidays.values()) == {10}
    seasons = {row["d_monthnuminyear"]: row["d_sellingseason"] for row in rows}
    assert [seasons[month] for month in (3, 4, 5, 8, 9, 10, 11, 12)] == [
        "Winter", "Spring", "Summer", "Summer", "Fall", "Fall", "Christmas",
        "Christmas",
    ]  # fmt: skip
    days = [dt.date.fromisoformat(str(key)) for key in by_key]
    assert {b - a for a, b in pairwise(days)} == {dt.timedelta(days=1)}
