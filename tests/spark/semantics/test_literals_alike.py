"""One literal by three ways: SQL text, a PySpark ``Column`` and ``sx.col``.

Spark counts what each means.  Where the text means the same as the ``Column``, the
three plans have the same files and counts.  But a date or a time of Python's becomes
one of Java's old classes on its way into a ``Column``, which are not Spark's before
1582 and, in some time zones of the JVM, before 1937.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.errors import PredicateError
from skipindex.expressions import Literal, literal_sql, to_sql
from skipindex.expressions.literals import literal_of
from skipindex.planner.plan import Plan
from skipindex.spark.engine import condition_text
from tests.spark.reading.whole import INTERPRETED, ZONE, settings
from tests.tables import build, put

pytestmark = pytest.mark.spark

OLD = [
    *("0001-01-01 00:00:00", "0999-12-31 23:59:59", "1499-12-23 00:00:00"),
    *("1500-01-01 00:00:00", "1500-02-28 12:00:00", "1582-10-04 23:59:59.999999"),
    *("1582-10-10 00:00:00", "1582-10-14 12:00:00", "1582-10-15 00:00:00"),
    *("1700-01-01 00:00:00", "1847-11-30 23:58:45", "1883-11-18 12:03:57"),
    *("1899-12-31 23:59:59.5", "1936-12-31 23:40:28", "1937-07-01 00:00:00"),
    *("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2020-03-08 02:30:00"),
    *("2024-11-03 01:30:00", "9999-12-31 23:59:59.999999"),
]
CLOCKS = [datetime.fromisoformat(text) for text in OLD]
INSTANTS = [clock.replace(tzinfo=UTC) for clock in CLOCKS]
GREGORIAN = date(1582, 10, 15)
DAYS = sorted({clock.date() for clock in CLOCKS})
DECIMALS = [Decimal(text) for text in ("0", "0.01", "1.50", "-1.5", "99999999.99")]
COLUMNS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "ts": (pa.timestamp("us", "UTC"), INSTANTS),
    "ntz": (pa.timestamp("us"), CLOCKS),
    "d": (pa.date32(), DAYS),
    "i": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31)]),
    "l": (pa.int64(), [0, 1, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "y": (pa.int8(), [0, 1, 127, -128]),
    "f": (pa.float32(), [0.0, 1.5, 0.1, math.nan, -math.inf]),
    "db": (pa.float64(), [0.0, -0.0, 0.1, 1.5, math.nan, math.inf, 5e-324]),
    "dec": (pa.decimal128(10, 2), DECIMALS),
    "b": (pa.bool_(), [True, False]),
    "s": (
        pa.string(),
        ["", "a", "it's", "a\\b", "\x00", "\u30bf", "\U0010ffff", "${x}"],
    ),
    "bin": (pa.binary(), [b"", b"\x00", b"\xff\xfe", b"it's"]),
}
OTHERS: dict[str, Sequence[Any]] = {
    "ts": [
        *DAYS,
        *(
            moment.astimezone(timezone(timedelta(hours=-7)))
            for moment in INSTANTS[3:-1]
        ),
        *(moment.astimezone(ZoneInfo("Europe/Amsterdam")) for moment in INSTANTS[9:-1]),
        *(moment + timedelta(days=9) for moment in INSTANTS[1:9]),
        *(moment + timedelta(days=10) for moment in INSTANTS[1:9]),
    ],
    "ntz": [*DAYS, *INSTANTS],
    "d": [day + timedelta(days=n) for day in DAYS[:-1] for n in (1, 9, 10)],
    "i": [1.0, 1.5, Decimal("1.0"), Decimal("0.5"), 2**31, 2**63, True, np.int8(1)],
    "l": [2.0**53, Decimal(2**53 + 1), 2**63, -(2**63) - 1, np.int64(1), np.uint8(1)],
    "y": [128, -129, 1000, Decimal("126.5"), np.int16(127)],
    "f": [1, 0.5, Decimal("0.1"), np.float32(0.1), np.float64(0.1), 16777217],
    "db": [0, 1, Decimal("0.1"), np.float32(1.5), 2**53 + 1, -math.inf],
    "dec": [0, 1, Decimal("1.505"), Decimal("1E+2"), 1.5, 10**9, Decimal("0.0001")],
    "b": [np.bool_(True)],
    "s": ["b", "\ud7ff", "\uffff", "\n\r\t", "'", "\\", "%_", "a" * 300, 1, b"a"],
    "bin": [bytearray(b"a"), b"it", "a"],
}
COMPARED = ["=", "!=", "<", "<=", ">", ">=", "<=>", "in"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """A file for every value, alike in all columns; one of them is of NULLs."""
    folder = tmp_path_factory.mktemp("literals")
    for n in range(max(len(values) for _, values in COLUMNS.values())):
        columns = {
            name: pa.array([values[n % len(values)]] * 2, dtype)
            for name, (dtype, values) in COLUMNS.items()
        }
        put(folder / f"{n}.parquet", columns)
    nulls = {name: pa.nulls(2, dtype) for name, (dtype, _) in COLUMNS.items()}
    put(folder / "null.parquet", nulls)
    return build(folder, dict.fromkeys(COLUMNS, "bitmap"))


def by_column(name: str, operator: str, value: Any) -> Column:
    left, right = sf.col(name), sf.lit(value)
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "<=>":
            return left.eqNullSafe(right)
        case _:
            return left.isin(right, right)


def by_builder(name: str, operator: str, value: Any) -> Any:
    left: Any = sx.col(name)
    match operator:
        case "=":
            return left == value
        case "!=":
            return left != value
        case "<":
            return left < value
        case "<=":
            return left <= value
        case ">":
            return left > value
        case ">=":
            return left >= value
        case "<=>":
            return left.eq_null_safe(value)
        case _:
            return left.isin(value, value)


def by_text(name: str, operator: str, literal: Literal) -> str:
    text = literal_sql(literal)
    if operator == "in":
        return f"{name} IN ({text}, {text})"
    return f"{name} {operator} {text}"


def holds(plan: Plan, counts: Counter[str], where: str) -> None:
    """Law 1 for every file."""
    found, kept = plan.row_counts, set(plan.paths)
    for i, path in enumerate(plan.table.paths):
        n = counts[path]
        assert path in kept or n == 0, f"{where}: {path}"
        assert found.lower[i] <= n, f"{where}: {path}"


@contextmanager
def jvm_zone(spark: SparkSession, name: str) -> Iterator[None]:
    """Java's old classes take the zone of the JVM."""
    assert spark._jvm is not None
    zones: Any = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(name))
    try:
        yield
    finally:
        zones.setDefault(before)


def count(
    frame: DataFrame, pairs: Sequence[tuple[Column, str | None]]
) -> list[tuple[Counter[str], Counter[str]] | None]:
    """Rows by file, of the column and of the text; None where Spark fails."""
    columns = [column for column, _ in pairs]
    texts = [sf.expr(text or "FALSE") for _, text in pairs]
    try:
        rows = frame.select(sf.input_file_name(), *columns, *texts).collect()
    except PySparkException:
        if len(pairs) == 1:
            return [None]
        half = len(pairs) // 2
        return count(frame, pairs[:half]) + count(frame, pairs[half:])
    found: list[tuple[Counter[str], Counter[str]] | None] = []
    for k in range(len(pairs)):
        of_column, of_text = Counter[str](), Counter[str]()
        for row in rows:
            path = unquote(row[0]).rpartition("/")[2]
            of_column[path] += row[1 + k] is True
            of_text[path] += row[1 + len(pairs) + k] is True
        found.append((of_column, of_text))
    return found


def sweep(
    spark: SparkSession,
    table: sx.Table,
    names: Sequence[str],
    *,
    zone: str = "UTC",
    ansi: str = "false",
    operators: Sequence[str] = COMPARED,
) -> tuple[int, int]:
    """How many literals were compared by a ``Column``, and how many alike by text."""
    asked: list[tuple[str, str, Any, Column, str | None]] = []
    wanted = {**INTERPRETED, ZONE: zone, "spark.sql.ansi.enabled": ansi}
    with settings(spark, wanted):
        frame = spark.read.parquet(table.state.location.spark_path())
        for name in names:
            for value in [*COLUMNS[name][1], *OTHERS[name], None]:
                for operator in operators:
                    try:
                        column = by_column(name, operator, value)
                        frame.where(column)
                    except (PySparkException, Py4JError, ValueError, TypeError):
                        continue  # no literal of PySpark's, or not of this column
                    try:
                        text = by_text(name, operator, literal_of(value))
                        frame.where(text)
                    except (PySparkException, PredicateError):
                        text = None
                    asked.append((name, operator, value, column, text))
        counted: list[tuple[Counter[str], Counter[str]] | None] = []
        for start in range(0, len(asked), 100):
            part = [(column, text) for *_, column, text in asked[start : start + 100]]
            counted += count(frame, part)
        alike = 0
        for k, (name, operator, value, column, text) in enumerate(asked):
            counts = counted[k]
            if counts is None:  # ANSI mode makes an error of the cast
                continue
            of_column, of_text = counts
            where = f"{name} {operator} {value!r} in {zone}"
            plan = table.plan(column, timezone=zone)
            holds(plan, of_column, f"Column: {where}: {condition_text(column)}")
            if text is None:
                continue
            built = by_builder(name, operator, value)
            plans = [table.plan(p, timezone=zone) for p in (text, built)]
            for other in plans:
                holds(other, of_text, f"text: {where}")
            assert plans[0].paths == plans[1].paths, f"{where}: {to_sql(built)}"
            plain = not isinstance(value, np.generic | datetime | bytearray)
            if plain and isinstance(value, date) and value < GREGORIAN:
                plain = False  # Java's old class makes another day of it
            if of_column == of_text and plain:
                alike += 1
                assert plan.paths == plans[0].paths, where
                assert plan.count_bounds == plans[0].count_bounds, where
    return len(asked), alike


@pytest.mark.slow
def test_old_dates_and_times_are_those_that_spark_makes_of_them(
    spark: SparkSession, table: sx.Table
) -> None:
    with jvm_zone(spark, "UTC"):
        asked, _ = sweep(spark, table, ["ts"], operators=["="])
    assert asked > 40
    instant = datetime(1500, 1, 1, tzinfo=UTC)
    plan = table.plan(sf.col("ts") == sf.lit(instant))
    assert "1499-12-23" in plan.where
    assert plan.paths == [f"{OLD.index('1499-12-23 00:00:00')}.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["false", "true"])
@pytest.mark.parametrize("zone", ["UTC", "+09:00", "America/New_York"])
def test_every_literal_by_every_way(
    spark: SparkSession, table: sx.Table, zone: str, ansi: str
) -> None:
    with jvm_zone(spark, "UTC"):
        asked, alike = sweep(spark, table, list(COLUMNS), zone=zone, ansi=ansi)
    print(f"{asked} literals by a Column, {alike} alike by text")
    assert asked > 1000
    assert alike > 500


@pytest.mark.slow
@pytest.mark.parametrize(
    "java", ["America/New_York", "Europe/Amsterdam", "Africa/Monrovia", "Asia/Manila"]
)
def test_old_times_in_the_zones_of_java(
    spark: SparkSession, table: sx.Table, java: str
) -> None:
    with jvm_zone(spark, java):
        for zone in ("UTC", java):
            asked, _ = sweep(spark, table, ["ts", "ntz", "d"], zone=zone)
            assert asked > 300


def test_sub_minute_offsets_have_a_text(table: sx.Table) -> None:
    """Offsets of local mean time have seconds; SQL has no form for them."""
    amsterdam = datetime(1900, 1, 1, tzinfo=ZoneInfo("Europe/Amsterdam"))
    assert amsterdam.utcoffset() == timedelta(minutes=17, seconds=30) or (
        amsterdam.utcoffset() == timedelta(minutes=19, seconds=32)
    )
    for moment in (amsterdam, amsterdam.replace(tzinfo=timezone(timedelta(seconds=1)))):
        tree = sx.col("ts") < moment
        text = to_sql(tree)
        for operator in ("<", ">="):
            condition = text.replace("<", operator)
            plan = table.plan(condition)
            assert 0 < len(plan.paths) < len(table.paths), condition


def test_instants_beyond_the_years_of_a_datetime(table: sx.Table) -> None:
    """A clock time behind 9999 or before 1 is moved as a number, and is no error."""
    last = f"{len(OLD) - 1}.parquet"
    for zone in ("+09:00", "-09:00", "UTC", "America/New_York", None):
        for text in (
            "ntz < TIMESTAMP '9999-12-31 23:59:59Z'",
            "ntz > TIMESTAMP '0001-01-01 00:00:00Z'",
            "ts < TIMESTAMP '9999-12-31 23:59:59'",
            "ts > TIMESTAMP '0001-01-01 00:00:00'",
            "ts = TIMESTAMP '9999-12-31 23:59:59.999999-18:00'",
            "ntz = TIMESTAMP '0001-01-01 00:00:00+18:00'",
            "CAST(ts AS DATE) >= DATE '9999-12-31'",
            "ntz <= DATE '9999-12-31'",
        ):
            table.plan(text, timezone=zone)
    early = table.plan("ntz < TIMESTAMP '9999-12-31 12:00:00Z'", timezone="+09:00")
    assert last not in early.paths
    late = table.plan("ntz < TIMESTAMP '9999-12-31 23:59:59Z'", timezone="+09:00")
    assert last in late.paths
