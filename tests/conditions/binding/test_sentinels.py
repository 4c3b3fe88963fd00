"""The first and the last day of all, which people write for "ever" and "never".

Zones move their clocks out of the years that dates of Python have.  That is no error,
and no row is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.expressions import Comparison, Literal, Operator, Predicate, Reference
from skipindex.expressions.domain import EPOCH_UTC
from tests.tables import build, kept, put, put_all

CLOCKS = [
    datetime(1, 1, 1),
    datetime(2020, 2, 29, 12),
    datetime(9999, 12, 31, 23, 59, 59),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
]
OFFSETS = {"UTC": 0, "+18:00": 18, "-18:00": -18, "UTC+05:30": 5.5}
ZONES = [*OFFSETS, "America/New_York", "Asia/Tokyo", "Pacific/Apia", None]
OPERATORS = {
    Operator.LT: [-1],
    Operator.LE: [-1, 0],
    Operator.GT: [1],
    Operator.GE: [0, 1],
    Operator.EQ: [0],
    Operator.NULL_SAFE_EQ: [0],
    Operator.NE: [-1, 1],
    Operator.NULL_SAFE_NE: [-1, 1],
}
"""By operator, the signs of value minus literal that it is TRUE for."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """A file for every clock, which is one of UTC for ``ts``, and one of NULLs."""
    schema = pa.schema(
        {
            "ts": pa.timestamp("us", "UTC"),
            "ntz": pa.timestamp("us"),
            "d": pa.date32(),
            "s": pa.string(),
        }
    )
    rows: list[dict[str, Any]] = [
        {"ts": c.replace(tzinfo=UTC), "ntz": c, "d": c.date(), "s": str(c.date())}
        for c in CLOCKS
    ]
    files = [pa.Table.from_pylist([row], schema) for row in [*rows, {}]]
    folder = put_all(tmp_path_factory.mktemp("sentinels"), files)
    return build(folder, dict.fromkeys(schema.names, "bitmap"))


def compared(name: str, operator: Operator, value: Literal) -> Predicate:
    return Comparison(Reference((name,)), operator, value)


def micros(clock: datetime, hours: float = 0) -> int:
    """The instant of a clock of a zone that is ahead of UTC by so much."""
    wall = (clock.replace(tzinfo=UTC) - EPOCH_UTC) // timedelta(microseconds=1)
    return wall - int(hours * 3_600_000_000)


def files_with(operator: Operator, *literals: int) -> list[str]:
    """Of those whose value compares so with all the literals."""
    found = []
    for i, value in enumerate(map(micros, CLOCKS)):
        signs = {(value > literal) - (value < literal) for literal in literals}
        if signs <= {*OPERATORS[operator]}:
            found.append(f"{i}.parquet")
    return found + ["4.parquet"] * (operator is Operator.NULL_SAFE_NE)


@pytest.mark.parametrize("zone", OFFSETS)
def test_fixed_offsets_are_exact(table: sx.Table, zone: str) -> None:
    for clock, operator in product(CLOCKS, OPERATORS):
        found = kept(table, compared("ts", operator, clock), timezone=zone)
        assert found == files_with(operator, micros(clock, OFFSETS[zone])), clock
        for hours in (18, -18, 0):
            moment = clock.replace(tzinfo=timezone(timedelta(hours=hours)))
            found = kept(table, compared("ts", operator, moment), timezone=zone)
            assert found == files_with(operator, micros(clock, hours)), moment
            found = kept(table, compared("ntz", operator, moment), timezone=zone)
            hours_ahead = hours - OFFSETS[zone]
            assert found == files_with(operator, micros(clock, hours_ahead)), moment


@pytest.mark.few(3)
@pytest.mark.parametrize("zone", ZONES)
def test_regions_lose_no_file(table: sx.Table, zone: str | None) -> None:
    """What is TRUE whatever the offset is."""
    texts = product(("ts", "ntz"), ("", "Asia/Tokyo", "Pacific/Apia", "America/Lima"))
    for (name, region), clock, operator in product(texts, CLOCKS, OPERATORS):
        moment = clock.replace(tzinfo=ZoneInfo(region) if region else None)
        ends = (micros(clock, hours) for hours in range(-36, 37))
        wanted = files_with(operator, *ends)
        for literal in (moment, f"{clock} {region}".strip()):
            condition = compared(name, operator, literal)
            found = kept(table, condition, timezone=zone)
            assert {*wanted} <= {*found}, condition


def conditions() -> Iterator[str]:
    """Functions of clocks next to the sentinels, and literals on their other side."""
    days = ("DATE '0001-01-01'", "DATE '9999-12-31'", "'9999-12-31'", "'0001-01-01'")
    times = (
        *("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
        *("TIMESTAMP '9999-12-31 23:59:59-18:00'", "'9999-12-31 23:59:59'"),
        *("TIMESTAMP '0001-01-01 00:00:00+18:00'", "'0001-01-01 00:00:00'"),
        *("TIMESTAMP '9999-12-31 20:00:00 America/New_York'",),
        *("TIMESTAMP '0001-01-01 00:00:00 Asia/Tokyo'",),
        *("TIMESTAMP_NTZ '9999-12-31 23:59:59'", "TIMESTAMP_NTZ '0001-01-01 00:00:00'"),
    )
    moments = ("{0} + INTERVAL '1' DAY", "{0} - INTERVAL '1' DAY", "{0}")
    steps = ("date_trunc('WEEK', {0})", "{0} + INTERVAL '9' MONTH", "timestamp({0})")
    dates = (
        "CAST({0} AS DATE)",
        "date_add({0}, 1)",
        "date_sub({0}, 1)",
        "trunc({0}, 'YEAR')",
    )
    numbers = ("year({0}) >= 9999", "month({0}) = 1", "hour({0}) = 23", "day({0}) < 1")
    numbers += ("unix_timestamp({0}) > 0", "weekofyear({0}) = 52", "year({0}) = 10000")
    names = ("ts", "ntz", "d")
    for name, term, literal in product(names, (*moments, *steps), (*times, *days)):
        for operator in ("<", ">=", "=", "<=>"):
            yield f"{term.format(name)} {operator} {literal}"
    for name, term, day in product(names, (*dates, "last_day({0})", "{0}"), days):
        yield f"{term.format(name)} > {day}"
        yield f"NOT ({term.format(name)} <=> {day})"
        yield f"{term.format(name)} IN ({day}, '2020-02-29')"
    for name, text in product(names, numbers):
        yield text.format(name)
    for day in days:
        yield f"CAST(s AS DATE) <= {day}"
        yield f"CAST(s AS TIMESTAMP) <= {day}"
        yield f"ts BETWEEN {day} AND {day}"
        yield f"CAST(ts AS STRING) > {day}"


@pytest.mark.few(1)
@pytest.mark.parametrize("zone", ["+18:00", "-18:00", "America/New_York", None])
def test_nothing_about_the_sentinels_is_an_error(
    table: sx.Table, zone: str | None
) -> None:
    for text in conditions():
        plan = table.plan(text, timezone=zone)
        low, high = plan.count_bounds
        assert 0 <= low <= (5 if high is None else high), text
    assert plan.explain()


@pytest.mark.few(6)
@pytest.mark.parametrize("zone", ["UTC", "+18:00", "America/New_York", None])
@pytest.mark.parametrize("declared", ["UTC", "-18:00", "Asia/Tokyo", None])
def test_folders_of_the_sentinels(
    tmp_path: Path, zone: str | None, declared: str | None
) -> None:
    """Columns of folders, and folders that were made of a column, in UTC."""
    for i, clock in enumerate(CLOCKS):
        day, time = str(clock)[:19].split(" ")
        folder = f"day={day}/at={day} {time.replace(':', '%3A')}"
        moment = pa.array([clock.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))
        put(tmp_path / folder / f"{i}.parquet", {"ts": moment})
    derived = sx.Derived({"day": "CAST(ts AS DATE)"}, declared)
    table = sx.open_table(tmp_path, derived=derived)
    texts = [text for text in conditions() if "ts" in text]
    for text in texts[::9]:
        table.plan(text, timezone=zone)
        table.plan(text.replace("ts", "at"), timezone=zone)
    for clock in CLOCKS if declared in {"UTC", None} else []:
        found = kept(table, f"ts = TIMESTAMP '{clock}Z'", timezone=zone)
        assert any(f"day={str(clock)[:10]}/" in path for path in found), clock
    last = kept(table, f"day >= '{date.max}'", timezone=zone)
    assert [path[-9:] for path in last] == ["2.parquet", "3.parquet"]
