"""The moment of a plan: one value for every ``now()``, in the plan and for Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.functions.zones import ZoneRules, offsets_here, relying_on
from skipindex.conditions.sql.moment import at_moment
from skipindex.conditions.sql.parser import parse
from skipindex.errors import PlanError, PredicateError
from skipindex.expressions import to_sql
from tests.tables import build, kept, put_all

NOW = datetime(2026, 11, 22, 8, 35, 12, 123456, tzinfo=UTC)
STAMP = "TIMESTAMP '2026-11-22 08:35:12.123456+00:00'"
BERLIN = "Europe/Berlin"


def computed(text: str, zone: str | None = BERLIN) -> str:
    """The condition with a literal for what is made of constants."""
    with relying_on(ZoneRules(offsets_here)):
        return to_sql(with_values(parse(text), zone))


def text_of(text: str, zone: str | None = BERLIN, now: datetime = NOW) -> str:
    return at_moment(text, now, zone)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ts > now()", f"ts > {STAMP}"),
        ("ts > current_timestamp", f"ts > {STAMP}"),
        ("ts > CURRENT_TIMESTAMP ( )", f"ts > {STAMP}"),
        ("d = current_date OR d = curdate()", "d = DATE '2026-11-22' OR d = {}"),
        ("n < localtimestamp()", "n < TIMESTAMP_NTZ '2026-11-22 09:35:12.123456'"),
        ("l < unix_timestamp()", "l < CAST(1795336512 AS BIGINT)"),
        ("z = current_timezone()", "z = 'Europe/Berlin'"),
        ("d > current_date - 7AND s = 'x'", "d > {} - 7AND s = 'x'"),
        ("datediff(current_date, d) <= 7", "datediff({}, d) <= 7"),
        ("x-datediff(d, d)--now()\n= now()", f"x-datediff(d, d)--now()\n= {STAMP}"),
        ("AND_ = 1 AND(now())<ts", f"AND_ = 1 AND({STAMP})<ts"),
        ("f(now()) = 1", f"f({STAMP}) = 1"),
        ("ts >= now() - INTERVAL 7 DAYS", f"ts >= {STAMP} - INTERVAL 7 DAYS"),
    ],
)
def test_functions_of_the_moment_are_literals(text: str, expected: str) -> None:
    today = "DATE '2026-11-22'"
    assert text_of(text.replace("{}", today)) == expected.replace("{}", today)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d > current_date - 7", "d > DATE '2026-11-15'"),
        ("d > current_date() - INTERVAL 1 MONTH", "d > DATE '2026-10-22'"),
        ("d >= date_sub(now(), 7)AND s = 'x'", "d >= DATE '2026-11-15' AND s = 'x'"),
        ("d IN (current_date, current_date - 1)", "d IN ({}, DATE '2026-11-21')"),
        ("d BETWEEN trunc(now(), 'MM') AND {}", "d BETWEEN DATE '2026-11-01' AND {}"),
        ("d = cast(now() AS date)", "d = {}"),
        ("d = now()::date", "d = {}"),
        ("d = to_date(now() - INTERVAL 9 HOURS)", "d = {}"),
        ("year(d) = year(now())", "year(d) = 2026"),
        ("hour(ts) = hour(now())", "hour(ts) = 9"),
        ("s = date_format(current_date, 'yyyyMM')", "s = '202611'"),
        ("s > string(current_date)", "s > '2026-11-22'"),
        (
            "ts >= date_trunc('month', now())",
            "ts >= TIMESTAMP '2026-10-31 23:00:00+00:00'",
        ),
        (
            "ts >= now() - INTERVAL 7 DAYS",
            "ts >= TIMESTAMP '2026-11-15 08:35:12.123456+00:00'",
        ),
        (  # summer time: the same wall clock
            "ts >= now() - INTERVAL 1 MONTH",
            "ts >= TIMESTAMP '2026-10-22 07:35:12.123456+00:00'",
        ),
        (  # not so for hours
            "ts >= now() - INTERVAL '1 02:03' DAY TO MINUTE",
            "ts >= TIMESTAMP '2026-11-21 06:32:12.123456+00:00'",
        ),
        ("x-datediff(curdate(), DATE '2027-01-01') = 1", "x-(-40) = 1"),
        ("(now() - INTERVAL 1 HOUR)<ts", "{HOUR}<ts"),
        ("current_date - INTERVAL 36 HOURS < ts", "{} - INTERVAL 36 HOURS < ts"),
    ],
)
def test_what_is_made_of_the_moment_is_one_literal(text: str, expected: str) -> None:
    today = "DATE '2026-11-22'"
    hour = "TIMESTAMP '2026-11-22 07:35:12.123456+00:00'"
    wanted = expected.replace("{}", today).replace("{HOUR}", hour)
    text = text_of(text.replace("{}", today))
    assert computed(text) == computed(wanted)
    assert "now()" not in text


@pytest.mark.parametrize(
    "text",
    [
        "current_date.x = 1",
        "t.current_date = 1",
        "`current_date` = DATE '2020-01-01'",
        "s = 'now()' AND now = 1",
        "now(1) = ts",
        "unix_timestamp(s, 'yyyy') = 1",
        "exists(a, now -> now > 1) AND ts > now()",
        "ts > (SELECT max(t) FROM x WHERE t < now())",
        "EXISTS (FROM x) AND d = current_date",
        "s = struct(1 AS current_date).x",
        "ts > ${day} AND ts < now()",
        "localtimestamp < ts",
        "current_time > '01:00'",
    ],
)
def test_other_names_stay(text: str) -> None:
    assert at_moment(text, NOW, BERLIN) == (text, None)


def test_a_column_comes_before_a_function_without_parentheses(tmp_path: Path) -> None:
    days = [date(2026, 11, 22), date(2026, 11, 23)]
    files = [{"d": [day], "CURRENT_DATE": [days[1]]} for day in days]
    table = build(put_all(tmp_path, files))
    options = {"timezone": "UTC", "now": NOW}
    assert kept(table, "d = current_date()", **options) == ["0.parquet"]
    assert kept(table, "d = current_date", **options) == ["0.parquet", "1.parquet"]
    assert table.plan("d = current_date", **options).moment is None


def test_without_a_zone_an_instant_alone_is_known() -> None:
    assert computed(text_of("ts > now() - INTERVAL 3 HOURS", None), None) == (
        "ts > TIMESTAMP '2026-11-22 05:35:12.123456+00:00'"
    )
    # The engine makes the rest of the same moment.
    assert "INTERVAL" in computed(text_of("ts > now() - INTERVAL 7 DAYS", None), None)
    assert text_of("d = current_date", None) == f"d = CAST({STAMP} AS DATE)"
    assert text_of("n < localtimestamp()", "No/Where") == (
        f"n < CAST({STAMP} AS TIMESTAMP_NTZ)"
    )


@pytest.mark.parametrize(
    ("now", "text"),
    [  # 02:30 is shown twice on 2026-10-25, and never on 2026-03-29
        ("2026-11-01 01:30", "ts > now() - INTERVAL 7 DAYS"),
        ("2026-04-05 00:30", "ts > now() - INTERVAL 7 DAYS"),
        ("2026-10-25 12:00", "ts > date_trunc('HOUR', now() - INTERVAL 635 MINUTES)"),
        # a day of 25 hours, which old settings count otherwise
        ("2026-10-25 12:00", "ts > now() - INTERVAL 24 HOURS"),
    ],
)
def test_a_wall_clock_that_is_not_unique_is_left_to_spark(now: str, text: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert "INTERVAL" in computed(text_of(text, now=moment))
    assert "INTERVAL" not in computed(text_of(text, "UTC", now=moment), "UTC")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """A file for each of ten days, the last of which is that of NOW."""
    files = []
    for i in range(10):
        day = NOW - timedelta(days=9 - i)
        files.append(
            {
                "d": [day.date()],
                "ts": pa.array([day], pa.timestamp("us", "UTC")),
                "n": pa.array([day.replace(tzinfo=None)], pa.timestamp("us")),
                "s": [f"{day:%Y%m%d}"],
            }
        )
    return build(put_all(tmp_path_factory.mktemp("days"), files))


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("ts >= now() - interval 7 days AND d <= current_date()", 8),
        ("ts >= now() - interval 3 days 1 hour", 4),
        ("ts > current_timestamp - INTERVAL '1 23:59:59' DAY TO SECOND", 2),
        ("d = current_date()", 1),
        ("current_date - 2 < d", 2),
        ("d BETWEEN date_sub(now(), 2) AND current_date", 3),
        ("NOT d < cast(now() AS date)", 1),
        ("n >= localtimestamp() - INTERVAL '2' DAY", 3),
        ("s >= date_format(current_date() - 4, 'yyyyMMdd')", 5),
        ("ts >= date_trunc('week', current_date())", 7),
        ("datediff(current_date(), d) < 3", 3),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", BERLIN])
def test_files_are_skipped_by_the_moment(
    table: sx.Table, text: str, last: int, zone: str
) -> None:
    if zone != "UTC" and "localtimestamp" in text:
        last -= 1  # clocks there are ahead of those of the files
    paths = [f"{i}.parquet" for i in range(10 - last, 10)]
    assert kept(table, text, timezone=zone, now=NOW) == paths


def test_a_plan_says_its_moment(table: sx.Table) -> None:
    text = "ts >= now() - interval 2 days AND d = current_date"
    plan = table.plan(text, timezone=BERLIN, now=NOW)
    assert plan.moment is not None
    assert plan.moment.now == NOW
    assert plan.where == (f"ts >= {STAMP} - interval 2 days AND d = DATE '2026-11-22'")
    assert plan.to_dict()["moment"] == {
        "now": "2026-11-22T08:35:12.123456+00:00",
        "constants": {
            "now()": STAMP,
            "current_date": "DATE '2026-11-22'",
        },
    }
    assert plan.explain().splitlines()[1:4] == [
        "  at 2026-11-22 08:35:12.123456+00:00",
        f"    now(): {STAMP}",
        "    current_date: DATE '2026-11-22'",
    ]
    # The text is a plan's own: the same files and rows at any time.
    again = table.plan(plan.where, timezone=BERLIN)
    assert again.paths == plan.paths == ["9.parquet"]
    assert again.moment is None
    plain = table.plan("d = DATE '2026-11-22'", timezone=BERLIN, now=NOW)
    assert plain.moment is None
    assert plain.to_dict()["moment"] is None


def test_the_clock_is_looked_at_once(table: sx.Table) -> None:
    before = datetime.now(UTC)
    plan = table.plan("ts < now() OR ts = current_timestamp")
    assert plan.moment is not None
    assert before <= plan.moment.now <= datetime.now(UTC)
    assert len({constant.value for constant in plan.moment.constants}) == 1


def test_the_moment_has_a_time_zone(table: sx.Table) -> None:
    with pytest.raises(PlanError, match="now=2026-01-01 00:00:00 has no time zone"):
        table.plan("ts < now()", now=datetime(2026, 1, 1))
    other = NOW.astimezone(ZoneInfo(BERLIN))
    assert table.plan("ts < now()", now=other).where == f"ts < {STAMP}"


def test_mistakes_are_shown_in_the_text_of_the_user() -> None:
    with pytest.raises(PredicateError, match=r"line 1, column 21 of 'ts > now\(\)"):
        at_moment("ts > now() AND d IS 7", NOW, BERLIN)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "+09:00", "-09:00"])
@pytest.mark.parametrize(
    "condition",
    [
        "ts > CAST(DATE '0001-01-01' AS TIMESTAMP)",
        "ts > CAST(TIMESTAMP_NTZ '0001-01-01 00:00:00' AS TIMESTAMP)",
        "ts < CAST(TIMESTAMP_NTZ '9999-12-31 23:59:59' AS TIMESTAMP)",
        "ts > date_trunc('DAY', DATE '0001-01-01')",
        "CAST(TIMESTAMP '0001-01-01 00:00:00' AS DATE) < d",
        "CAST(TIMESTAMP '0001-01-01 00:00:00+00:00' AS DATE) < d",
        "CAST(TIMESTAMP '9999-12-31 23:59:59+00:00' AS DATE) > d",
    ],
)
def test_times_beyond_the_years_of_python_are_for_spark(
    condition: str, zone: str
) -> None:
    """Beside ``now()``, by which days and wall clocks are computed here."""
    text, moment = at_moment(f"l < unix_timestamp() AND {condition}", NOW, zone)
    assert moment is not None
    assert text.endswith(f" AND {condition}")


def test_what_is_computed_relies_on_rules_of_the_zone(table: sx.Table) -> None:
    plan = table.plan("ts >= now() - interval 2 days", timezone=BERLIN, now=NOW)
    assert plan.paths == ["7.parquet", "8.parquet", "9.parquet"]
    assert plan.under(offsets_here) is plan
    assert len(plan.under(lambda _, low, high: ((low, 0),)).paths) == 10


@pytest.mark.parametrize("sign", ["+", "-"])
def test_hours_after_a_wall_clock_are_those_of_its_instant(
    tmp_path: Path, sign: str
) -> None:
    """Summer time begins at 01:00 UTC: 12 hours later, a clock shows 13 more."""
    rows = {"+": datetime(2026, 3, 29, 6, 30), "-": datetime(2026, 3, 28, 18, 30)}
    at = pa.array([rows[sign].replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))
    table = build(put_all(tmp_path, [{"ts": at}]))
    text = {
        "+": "ts < TIMESTAMP '2026-03-28 20:00:00' + INTERVAL 12 HOURS",
        "-": "ts > TIMESTAMP '2026-03-29 08:00:00' - INTERVAL 12 HOURS",
    }[sign]
    for zone in (BERLIN, None):
        assert kept(table, text, timezone=zone) == ["0.parquet"]
