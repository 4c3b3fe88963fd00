"""Instants and wall clocks of zones with rules, at the ends of ranges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.conditions.functions.registry import UnsureError
from skipindex.conditions.functions.zones import (
    Offsets,
    Shift,
    ZoneRules,
    instant_at,
    listed_offsets,
    no_offsets,
    offsets_here,
    relying_on,
    to_existing,
    to_instant,
    to_wall,
)
from skipindex.expressions import col
from skipindex.planner.plan import Plan, plan_files
from tests import oracle
from tests.tables import build, put_all

ZONES: Final = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour
    "America/Sao_Paulo",  # at midnight
    "Africa/Casablanca",  # four times a year
    "Pacific/Apia",  # a day was left out
    "Asia/Tehran",
    "America/Toronto",  # in 1919 from 23:30 to 00:30
    "America/Havana",
)
SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def at(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def micros(moment: datetime) -> int:
    """Of an instant, or of a wall clock as if it were in UTC."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def wall_at(zone: str, instant: int) -> int:
    return micros(at(instant).astimezone(ZoneInfo(zone)).replace(tzinfo=None))


def instants_at(zone: str, wall: int) -> list[int]:
    """The instants of a wall clock: two if it is shown twice."""
    local = [at(wall).replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1)]
    first, second = (micros(moment.astimezone(UTC)) for moment in local)
    return [first, second] if first < second else [first]


@cache
def changes(zone: str) -> list[int]:
    """When the clocks change, in seconds."""
    years = [datetime(year, 1, 1, tzinfo=UTC) for year in range(1901, 2038)]
    low, high = (micros(year) // SECOND for year in (years[0], years[-1]))
    step = 10 * 86_400
    parts = (offsets_here(zone, n, n + step) or () for n in range(low, high, step))
    return [second for part in parts for second, _ in part[1:]]


DISTANCES: Final = st.one_of(
    st.sampled_from([0, 1, -1, 1800 * SECOND, 3600 * SECOND, DAY]),
    st.integers(-30 * 3600, 30 * 3600).map(lambda n: n * SECOND),
    st.integers(-96, 96).map(lambda n: n * 900 * SECOND),
)


@st.composite
def places(draw: st.DrawFn) -> tuple[str, int, list[int]]:
    """A zone, an instant or wall clock near a change, and others near it."""
    zone = draw(st.sampled_from(ZONES))
    change = draw(st.sampled_from(changes(zone))) * SECOND
    bound = change + draw(DISTANCES)
    bound = draw(st.sampled_from([bound, wall_at(zone, bound), wall_at(zone, change)]))
    others = draw(st.lists(DISTANCES, min_size=1, max_size=20))
    return zone, bound, [bound + distance for distance in others]


def least(zone: str, pieces: object, bound: int) -> int | None:
    return Shift(zone, pieces, ZoneRules(offsets_here))(bound)  # type: ignore[arg-type]


@given(places())
def test_wall_clocks_from_a_bound_on(place: tuple[str, int, list[int]]) -> None:
    """They are the instants from one on, unless the clock shows the bound twice."""
    zone, bound, others = place
    found = least(zone, to_wall, bound)
    if found is None:
        assert len(instants_at(zone, bound)) == 2
        return
    for instant in (*others, *(found + n for n in (-1, 0, 1))):
        assert (wall_at(zone, instant) >= bound) == (instant >= found), at(instant)


@given(places())
def test_instants_from_a_bound_on(place: tuple[str, int, list[int]]) -> None:
    """They are those of the wall clocks from one on, by both offsets at a change."""
    zone, bound, others = place
    found = least(zone, to_instant, bound)
    if found is None:
        near = (n * SECOND for n in changes(zone))
        assert any(abs(change - bound) < DAY for change in near)
        return
    for wall in (*others, *(found + n for n in (-1, 0, 1))):
        for fold in (0, 1):
            local = at(wall).replace(tzinfo=ZoneInfo(zone), fold=fold)
            instant = micros(local.astimezone(UTC))
            assert (instant >= bound) == (wall >= found), at(wall)


@given(places())
def test_existing_clocks_from_a_bound_on(place: tuple[str, int, list[int]]) -> None:
    zone, bound, others = place
    found = least(zone, to_existing, bound)
    for wall in (*others, *((found or bound) + n for n in (-1, 0, 1))):
        shown = wall_at(zone, instants_at(zone, wall)[0])
        assert found is None or (shown >= bound) == (wall >= found), at(wall)


@given(places())
def test_literals_are_the_first_of_their_instants(
    place: tuple[str, int, list[int]],
) -> None:
    zone, wall, _ = place
    with relying_on(ZoneRules(offsets_here)):
        assert instant_at(zone, wall, is_day=False) == instants_at(zone, wall)[0]
        found = instant_at(zone, wall, is_day=True)
        is_shown = wall_at(zone, instants_at(zone, wall)[0]) == wall
        assert found in {instants_at(zone, wall)[0], None}
        assert not is_shown or found is not None


def test_a_day_whose_midnight_is_left_out_begins_when_it_is_shown_first() -> None:
    """Spark casts a date otherwise than a text; both are 00:30 and 01:00 there."""
    midnight = micros(datetime(1919, 3, 31, tzinfo=UTC))
    with relying_on(ZoneRules(offsets_here)):
        assert instant_at("America/Toronto", midnight, is_day=True) is None
        assert instant_at("America/Toronto", midnight, is_day=False) is not None


@pytest.mark.parametrize("year", [1, 1899, 2038, 9999])
def test_years_whose_rules_are_not_told_alike_are_known_to_a_day(year: int) -> None:
    rules = ZoneRules(offsets_here)
    day = micros(datetime(year, 7, 1, tzinfo=UTC)) // DAY
    assert rules.around("Europe/Berlin", day) is None
    assert not rules.relied


def test_so_many_days_are_relied_on() -> None:
    rules = ZoneRules(offsets_here)
    for day in range(1000):
        rules.around("Europe/Berlin", day)
    assert len(rules.relied) == 256
    assert rules.around("Europe/Berlin", 0), "as before"
    assert rules.around("Europe/Berlin", 999) is None


@pytest.mark.parametrize("zone", ZONES)
def test_listed_offsets_are_those_that_are_listed(zone: str) -> None:
    """As a driver lists them, of one zone."""
    begin = micros(datetime(1899, 12, 1, tzinfo=UTC)) // SECOND
    seconds = [begin, *changes(zone)]
    pairs = ((n, (offsets_here(zone, n, n) or ())[0][1]) for n in seconds)
    listed = listed_offsets(zone, [number for pair in pairs for number in pair])
    for second in changes(zone):
        for low, n_days in ((second - 86_400, 2), (second - 86_400, 1), (second, 1)):
            high = low + n_days * 86_400
            assert listed(zone, low, high) == offsets_here(zone, low, high)
    assert listed(zone, begin - 1, 0) is None
    assert listed("UTC", 0, 1) is None


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc", "", "EST5EDT6"])
def test_a_zone_that_is_not_known_here_has_no_offsets(zone: str) -> None:
    assert offsets_here(zone, 0, DAY // SECOND) is None


def hours(start: datetime, n: int) -> list[datetime]:
    return [start + timedelta(hours=i) for i in range(n)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """The hours around a change of the clocks in Berlin, two to a file."""
    moments = hours(datetime(2024, 10, 26, 20, tzinfo=UTC), 12)
    pairs = zip(moments[::2], moments[1::2], strict=True)
    kind = pa.timestamp("us", "UTC")
    folder = tmp_path_factory.mktemp("hours")
    put_all(folder, [{"t": pa.array(pair, kind)} for pair in pairs])
    return build(folder, {"t": "bitmap"})


@given(data=st.data())
def test_rows_are_those_of_the_oracle(data: st.DataObject) -> None:
    """In all engines: Arrow filters for every one of them."""
    zone = data.draw(st.sampled_from(ZONES))
    change = data.draw(st.sampled_from(changes(zone))) * SECOND
    near = st.integers(-40, 40).map(lambda n: at(change + n * 1800 * SECOND))
    rows = sorted(data.draw(st.lists(near, min_size=2, max_size=9)))
    literal = data.draw(near).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
    name = data.draw(
        st.sampled_from(["__eq__", "__lt__", "__le__", "__gt__", "__ge__"])
    )
    condition = getattr(col("t"), name)(literal)
    wanted = oracle.matching(condition, {"t": rows}, zone=ZoneInfo(zone))
    kind = pa.timestamp("us", "UTC")
    with TemporaryDirectory() as name:
        put_all(Path(name), [{"t": pa.array([row], kind)} for row in rows])
        found = build(Path(name), {"t": "bitmap"})
        plan = found.plan(condition, timezone=zone)
        kept = [int(path.partition(".")[0]) for path in plan.paths]
        assert kept == wanted
        assert plan.to_arrow().to_table()["t"].to_pylist() == [rows[i] for i in wanted]
        assert plan.count() == len(wanted)


@given(places())
def test_clocks_show_what_python_knows(place: tuple[str, int, list[int]]) -> None:
    zone, _, instants = place
    shift = Shift(zone, to_wall, ZoneRules(offsets_here))
    for instant in instants:
        if 0 <= instant < micros(datetime(2038, 1, 1, tzinfo=UTC)):
            assert shift.wall(instant) == wall_at(zone, instant)
        else:
            with pytest.raises(UnsureError):
                shift.wall(instant)


def test_values_that_are_converted_one_by_one_are_relied_on(table: sx.Table) -> None:
    plan = table.plan("hour(t) = 2", timezone="Europe/Berlin")
    assert rows_of(plan) == [datetime(2024, 10, 27, n, tzinfo=UTC) for n in (0, 1)]
    assert rows_of(plan.under(shifted)) == [datetime(2024, 10, 26, 23, tzinfo=UTC)]
    assert len(plan.under(no_offsets).paths) == 6


def shifted(zone: str, low: int, high: int) -> Offsets | None:
    """Other rules: all clocks are an hour later."""
    found = offsets_here(zone, low, high)
    return found and tuple((start, offset + 3600) for start, offset in found)


CONDITIONS: Final = [
    "t >= TIMESTAMP '2024-10-27 07:00:00'",
    "t IN (TIMESTAMP '2024-10-27 07:00:00')",
    "CAST(t AS DATE) < DATE '2024-10-27'",
    "hour(t) = 7",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_engine_with_other_rules_gets_another_plan(
    table: sx.Table, condition: str
) -> None:
    """The plan by our rules leaves out a row that matches by those of the engine."""
    plan = table.plan(condition, timezone="Europe/Berlin")
    assert plan.under(offsets_here) is plan
    there = plan_files(
        condition, table=table.state, timezone="Europe/Berlin", offsets=shifted
    )
    assert rows_of(there) != rows_of(plan)
    other = plan.under(shifted)
    assert (other.paths, rows_of(other)) == (there.paths, rows_of(there))
    wide = plan.under(no_offsets)
    assert set(wide.paths) >= {*plan.paths, *there.paths}
    assert not wide.rules.relied


def rows_of(plan: Plan) -> list[datetime]:
    return list(plan.to_arrow().to_table()["t"].to_pylist())
