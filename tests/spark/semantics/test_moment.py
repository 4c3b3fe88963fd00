"""The moment of a plan, as Spark computes it: values, types, and rows read later."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.functions.clock import Clock
from skipindex.conditions.functions.zones import ZoneRules, offsets_here, relying_on
from skipindex.conditions.sql.moment import at_moment
from skipindex.conditions.sql.parser import parse
from skipindex.errors import PlanError
from skipindex.expressions import Comparison, literal_sql
from tests.spark.reading.whole import NO_PUSHDOWN, ZONE, rows, rows_of_each, settings
from tests.spark.versions import SPARK
from tests.tables import build, put_all

pytestmark = pytest.mark.spark

INSTANTS = (
    *("now()", "current_timestamp", "cast(now() AS timestamp)"),
    *(["now()::timestamp_ltz"] if SPARK >= (4, 0) else []),
    *("date_trunc('{unit}', now())", "cast(current_date AS timestamp)"),
    *("date_trunc('{unit}', current_date)", "timestamp(curdate() - {n})"),
)
DAYS = (
    *("current_date", "curdate()", "cast(now() AS date)", "to_date(now())"),
    *("date(localtimestamp())", "date_sub(now(), {n})", "date_add(current_date, {n})"),
    *("add_months(now(), {n})", "trunc(now(), '{unit}')", "last_day(current_date())"),
    *("current_date - {n}", "current_date() + {n}S", "make_date(2026, 1, 31)"),
)
CLOCKS = ("localtimestamp()", "cast(now() AS timestamp_ntz)")
STEPS = (
    *("{n} DAYS", "-{n} DAY", "'{n}' HOUR", "{n} MINUTES", "- '{n}' SECONDS"),
    *("{n} WEEKS {n} DAYS", "{n} MONTHS", "{n} YEARS {n} MONTHS", "'{n} days 2 hours'"),
    *("'{n} 02:03' DAY TO MINUTE", "-'1-{n}' YEAR TO MONTH", "'1 23' DAY TO HOUR"),
    *("'-{n} 02:03:04.000005' DAY TO SECOND", "'{n}:59' HOUR TO MINUTE"),
    *("'{n}:00:01.5' HOUR TO SECOND", "'{n}:59' MINUTE TO SECOND", "{n}.25 SECONDS"),
    *("1 HOUR -{n} MILLISECONDS 3 MICROSECONDS", "'-{n}' MONTH", "24 HOURS"),
    *("1 DAY - {n} HOURS", "2 SECOND 1 DAY", "'interval 1 day'", "7 days"),
)
READ = (
    *("year({0})", "month({0})", "dayofmonth({0})", "hour({0})", "minute({0})"),
    *("string(date({0}))", "date_format({0}, 'yyyy-MM-dd')", "bigint({0})"),
    *(
        "quarter({0})",
        "weekofyear({0})",
        "unix_date(date({0}))",
        "datediff({0}, now())",
    ),
    *("unix_timestamp()", "current_timezone()", "unix_timestamp() - {n}"),
)
UNITS = ("YEAR", "quarter", "MM", "week", "DAY", "hour", "MINUTE", "second")
ZONES = (
    *("UTC", "+05:30", "Europe/Berlin", "America/New_York", "Pacific/Apia"),
    *("Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo"),
)
MOMENTS = (
    *(
        "2026-11-22 08:35:12.123456",
        "2026-10-25 12:00:00",
        "2026-03-29 00:59:59.999999",
    ),
    *("2024-02-29 23:59:59", "2026-12-31 23:30:00", "2012-01-01 05:00:00"),
    *("2026-10-25 01:30:00", "2026-01-31 00:00:00", "1999-12-31 12:00:00"),
)


def expressions(random_: random.Random, number: int) -> list[str]:
    """Some of what can be made of the moment."""

    def filled(form: str, inner: str = "") -> str:
        n, unit = random_.choice((0, 1, 3, 9, 11)), random_.choice(UNITS)
        return (
            form.format(inner, n=n, unit=unit)
            if inner
            else form.format("now()", n=n, unit=unit)
        )

    found = [filled(form) for form in (*INSTANTS, *DAYS, *CLOCKS, *READ)]
    for _ in range(number):
        text = filled(random_.choice((*INSTANTS, *DAYS, *CLOCKS)))
        for _ in range(random_.randrange(1, 3)):
            step = f"INTERVAL {filled(random_.choice(STEPS))}"
            sign = random_.choice("+-")
            text = f"{text} {sign} {step}"
        if random_.random() < 0.4:
            text = filled(random_.choice((*DAYS, *READ)).replace("now()", "{0}"), text)
        found.append(text)
    return found


def constant_of(text: str, now: datetime, zone: str) -> tuple[str, str] | None:
    """What an engine computes, and the value that a plan has for it, in SQL."""
    written, moment = at_moment(f"x = {text}", now, zone)
    with relying_on(ZoneRules(offsets_here)):
        tree = with_values(parse(written), zone)
    if moment is None or not isinstance(tree, Comparison):
        return None
    value = literal_sql(tree.value)
    of_clock = isinstance(tree.value, datetime) and tree.value.tzinfo is None
    if of_clock and ("localtimestamp" in text or "ntz" in text):
        value = value.replace("TIMESTAMP", "TIMESTAMP_NTZ", 1)
    return written.removeprefix("x = "), value


@pytest.mark.few(1)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_some_constants_are_those_of_spark(spark: SparkSession, ansi: str) -> None:
    check_constants(spark, ansi, 4)


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_constants_are_those_of_spark(spark: SparkSession, ansi: str) -> None:
    check_constants(spark, ansi, 12)


def check_constants(spark: SparkSession, ansi: str, n: int) -> None:
    """What Spark does not take is not computed either."""
    random_ = random.Random(len(ansi))
    judged = tried = 0
    pairs = random_.sample([*itertools.product(ZONES, MOMENTS)], n)
    for zone, stamp in pairs:
        now = datetime.fromisoformat(stamp).replace(tzinfo=UTC)
        constants = {}
        for text in expressions(random_, 15):
            tried += 1
            constant = constant_of(text, now, zone)
            if constant is not None:
                constants[text] = constant
        judged += len(constants)
        columns = ", ".join(
            f"struct(({text}) <=> {value}, string({text}))"
            for text, value in constants.values()
        )
        with settings(spark, {ZONE: zone, "spark.sql.ansi.enabled": ansi}):
            (row,) = spark.sql(f"SELECT {columns}").collect()
        for constant, (alike, text) in zip(constants.values(), row, strict=True):
            assert alike, (zone, now, constant, text)
    assert judged > 0.6 * tried


@pytest.mark.few(1)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_functions_are_those_of_spark(spark: SparkSession, zone: str) -> None:
    """Of one moment, which Spark says."""
    names = (
        *("now()", "current_timestamp()", "current_timestamp", "current_date()"),
        *("current_date", "curdate()", "localtimestamp()", "unix_timestamp()"),
        *("current_timezone()", "date_sub(now(), 3)", "cast(now() AS date)"),
    )
    with settings(spark, {ZONE: zone}):
        pairs = ", ".join(f"string({n}), typeof({n})" for n in names)
        said = spark.sql(f"SELECT unix_micros(now()), {pairs}").head()
        assert said is not None
        now = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=said[0])
        values = [at_moment(f"x = {name}", now, zone)[0][4:] for name in names]
        pairs = ", ".join(f"string({v}), typeof({v})" for v in values)
        assert spark.sql(f"SELECT {pairs}").head() == said[1:]


@pytest.mark.slow
def test_intervals_of_old_settings(spark: SparkSession) -> None:
    """``spark.sql.legacy.interval.enabled``: of another type, but of the same value."""
    now = datetime(2026, 10, 25, 12, 30, tzinfo=UTC)
    name = "spark.sql.legacy.interval.enabled"
    texts = [
        f"{start} {sign} INTERVAL {step.format(n=9)}"
        for start in ("now()", "current_date", "localtimestamp()")
        for sign in "+-"
        for step in (*STEPS, "36 HOURS", "'1 12' DAY TO HOUR")
    ]
    for zone in ("Europe/Berlin", "UTC"):
        known = [constant_of(text, now, zone) for text in texts]
        constants = [one for one in known if one is not None]
        for old in ("true", "false"):
            with settings(spark, {ZONE: zone, name: old}):
                tests = [f"({text}) <=> {value}" for text, value in constants]
                (row,) = spark.sql(f"SELECT {', '.join(tests)}").collect()
            wrong = [c for c, alike in zip(constants, row, strict=True) if not alike]
            assert not wrong


NOW = datetime(2026, 10, 27, 9, 15, tzinfo=UTC)
TEXTS = (
    *("ts >= now() - interval 7 days", "d = current_date()", "d > current_date - 3"),
    *("ts > now() - INTERVAL 36 HOURS AND d < current_date", "ts <= now()"),
    *("d BETWEEN date_sub(now(), 4) AND cast(now() AS date)", "n > localtimestamp()"),
    *("ts >= date_trunc('month', now() - INTERVAL 2 MONTHS)", "d <> current_date"),
    *(
        "ts < current_date - INTERVAL 36 HOURS",
        "ts >= current_date() - interval 2 days",
    ),
    *("s = date_format(current_date() - 1, 'yyyyMMdd')", "NOT (d >= current_date - 2)"),
    *("ts > now() - make_interval(0, 0, 0, 2)", "month(d) = month(now())"),
    *("n >= now() - INTERVAL 1 DAY", "d + INTERVAL 2 DAYS > current_date"),
    *("ts + INTERVAL '1 12' DAY TO HOUR > now()", "ts > now() OR s = 'x'"),
    *("CASE WHEN ts > now() THEN d > current_date ELSE d < current_date - 4 END",),
    *("length(uuid()) = 36 AND d = current_date", "unix_timestamp() - 90000 < l"),
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """Twelve files, of 14 hours each, around NOW and an end of summer time."""
    folder = tmp_path_factory.mktemp("moment")
    files = []
    for i in range(12):
        hours = [NOW + timedelta(hours=14 * (i - 9) + k) for k in range(14)]
        files.append(
            {
                "d": [hour.date() for hour in hours],
                "ts": pa.array(hours, pa.timestamp("us", "UTC")),
                "n": pa.array(
                    [h.replace(tzinfo=None) for h in hours], pa.timestamp("us")
                ),
                "s": [f"{hour:%Y%m%d}" for hour in hours],
                "l": [int(hour.timestamp()) for hour in hours],
            }
        )
    return build(put_all(folder, files), {"*": "bitmap"})


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_rows_are_those_of_the_moment(
    spark: SparkSession, table: sx.Table, zone: str | None
) -> None:
    """Law 7, where the filter is what Spark makes of the functions at that moment."""
    skipped = 0
    with settings(spark, {ZONE: zone or "Asia/Tokyo", **NO_PUSHDOWN}):
        whole = spark.read.parquet(table.state.location.spark_path())
        then = [at_moment(text, NOW, None)[0] for text in TEXTS]
        for text, wanted in zip(TEXTS, rows_of_each(whole, then), strict=True):
            plan = table.plan(text, timezone=zone, now=NOW)
            assert rows(plan.read(spark)) == wanted, text
            assert plan.count(spark) == len(wanted), text
            low, high = plan.count_bounds
            assert low <= len(wanted), text
            assert high is None or len(wanted) <= high, text
            skipped += len(plan.skipped)
    assert skipped > 12 * len(TEXTS) / (4 if zone else 20)


COLUMNS: dict[str, Callable[[], Column]] = {
    "ts > now()": lambda: sf.col("ts") > sf.now(),
    "ts <= current_timestamp()": lambda: sf.col("ts") <= sf.current_timestamp(),
    "d = current_date()": lambda: sf.col("d") == sf.current_date(),
    "d >= date_sub(current_date(), 2)": lambda: (
        sf.col("d") >= sf.date_sub(sf.current_date(), 2)
    ),
    "ts > now() - INTERVAL 2 DAYS": lambda: (
        sf.col("ts") > sf.now() - sf.expr("INTERVAL 2 DAYS")
    ),
    "ts >= now() - INTERVAL '30' HOUR": lambda: (
        sf.col("ts") >= sf.expr("now() - INTERVAL '30' HOUR")
    ),
    "dayofmonth(d) = dayofmonth(current_date())": lambda: (
        sf.dayofmonth("d") == sf.dayofmonth(sf.current_date())
    ),
    "ts > now() - INTERVAL 100000 SECONDS": lambda: (
        sf.col("ts") > sf.now() - timedelta(seconds=100_000)
    ),
    "ts > now() - INTERVAL '3' DAY": lambda: (
        sf.col("ts") > sf.now() - sf.make_interval(days=sf.lit(3))
    ),
    "n < localtimestamp()": lambda: sf.col("n") < sf.localtimestamp(),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("text", COLUMNS)
def test_columns_are_of_the_moment_too(
    spark: SparkSession, table: sx.Table, text: str
) -> None:
    options = {"timezone": "UTC", "now": NOW}
    with settings(spark, {ZONE: "UTC", **NO_PUSHDOWN}):
        plan = table.plan(COLUMNS[text](), **options)
        same = table.plan(text, **options)
        assert plan.moment is not None
        assert plan.paths == same.paths
        assert plan.paths != table.paths
        assert rows(plan.read(spark)) == rows(same.read(spark))


def test_a_column_that_no_text_can_say_is_left_to_spark(
    spark: SparkSession, table: sx.Table
) -> None:
    odd = sf.udf(lambda n: n % 2 == 1, "boolean", useArrow=False)
    with settings(spark, {ZONE: "UTC", **NO_PUSHDOWN}):
        plan = table.plan((sf.col("ts") > sf.now()) & odd("l"), timezone="UTC", now=NOW)
        assert plan.moment is None
        assert plan.paths == table.paths
        assert rows(plan.read(spark)) == []


def test_read_takes_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    """And the clock: the rows of today and of the last two hours."""
    now = datetime.now(UTC)
    files = [
        {
            "ts": pa.array([now + timedelta(hours=h)], pa.timestamp("us", "UTC")),
            "h": [h],
        }
        for h in (-400, -30, -1, 1)
    ]
    table = build(put_all(tmp_path, files))
    for zone in ("Europe/Berlin", "UTC"):
        with settings(spark, {ZONE: zone}):
            text = "ts BETWEEN now() - INTERVAL 2 HOURS AND now()"
            found = sx.read(table, text, spark=spark)
            assert [row.h for row in found.collect()] == [-1]
            assert len(found.inputFiles()) == 1
            text = "ts > current_timestamp() - INTERVAL 2 DAYS"
            found = sx.read(table, text, spark=spark)
            assert sorted(row.h for row in found.collect()) == [-30, -1, 1]
            assert len(found.inputFiles()) == 3


def test_spark_may_have_other_rules_of_a_zone(
    spark: SparkSession, table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Clock.wall

    def ahead(clock: Clock, instant: datetime) -> datetime:
        return own(clock, instant) + timedelta(days=1)

    monkeypatch.setattr(Clock, "wall", ahead)
    plan = table.plan("d = current_date()", timezone="Europe/Berlin", now=NOW)
    assert plan.where == "d = DATE '2026-10-28'"
    with settings(spark, {ZONE: "Europe/Berlin"}):
        with pytest.raises(PlanError, match=r"Spark reads current_date\(\) as another"):
            plan.read(spark)
        with pytest.raises(PlanError, match="rules of time zones"):
            sx.read(table, "d = current_date()", spark=spark)
