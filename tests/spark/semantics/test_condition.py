"""PySpark columns as predicates: the same files and rows as their text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.conditions.sql.parser import parse
from skipindex.expressions import literal_sql, to_sql
from skipindex.spark.engine import condition_text
from tests.conditions.catalogue.by_spark import session
from tests.conditions.catalogue.tables import table_of
from tests.spark.reading.whole import NO_PUSHDOWN, rows, rows_of_each, settings
from tests.tables import build, put_all

pytestmark = pytest.mark.spark
c = sf.col

FUNCTIONS: dict[str, Callable[[], Column]] = {
    "abs(i)": lambda: sf.abs("i"),
    "add_months(d, 1)": lambda: sf.add_months("d", 1),
    "ascii(s)": lambda: sf.ascii("s"),
    "bit_length(s)": lambda: sf.bit_length("s"),
    "concat(s, 'x')": lambda: sf.concat("s", sf.lit("x")),
    "date_add(d, 1)": lambda: sf.date_add("d", 1),
    "date_format(d, 'yyyy')": lambda: sf.date_format("d", "yyyy"),
    "date_sub(d, 1)": lambda: sf.date_sub("d", 1),
    "date_trunc('month', t)": lambda: sf.date_trunc("month", "t"),
    "datediff(d, DATE '2020-01-01')": lambda: sf.datediff(
        "d", sf.lit(date(2020, 1, 1))
    ),
    "dayofmonth(d)": lambda: sf.dayofmonth("d"),
    "dayofweek(d)": lambda: sf.dayofweek("d"),
    "dayofyear(d)": lambda: sf.dayofyear("d"),
    "hour(t)": lambda: sf.hour("t"),
    "instr(s, 'a')": lambda: sf.instr("s", "a"),
    "last_day(d)": lambda: sf.last_day("d"),
    "length(s)": lambda: sf.length("s"),
    "locate('a', s, 2)": lambda: sf.locate("a", "s", 2),
    "lower(s)": lambda: sf.lower("s"),
    "lpad(s, 3, 'x')": lambda: sf.lpad("s", 3, "x"),
    "ltrim(s)": lambda: sf.ltrim("s"),
    "make_date(2020, i, 2)": lambda: sf.make_date(sf.lit(2020), "i", sf.lit(2)),
    "minute(t)": lambda: sf.minute("t"),
    "month(d)": lambda: sf.month("d"),
    "octet_length(s)": lambda: sf.octet_length("s"),
    "pmod(i, 7)": lambda: sf.pmod("i", sf.lit(7)),
    "quarter(d)": lambda: sf.quarter("d"),
    "repeat(s, 2)": lambda: sf.repeat("s", 2),
    "reverse(s)": lambda: sf.reverse("s"),
    "round(i, -1)": lambda: sf.round("i", -1),
    "rpad(s, 3, 'x')": lambda: sf.rpad("s", 3, "x"),
    "rtrim(s)": lambda: sf.rtrim("s"),
    "second(t)": lambda: sf.second("t"),
    "signum(i)": lambda: sf.signum("i"),
    "substring(s, 2, 1)": lambda: sf.substring("s", 2, 1),
    "trim(s)": lambda: sf.trim("s"),
    "trunc(d, 'year')": lambda: sf.trunc("d", "year"),
    "weekofyear(d)": lambda: sf.weekofyear("d"),
    "year(d)": lambda: sf.year("d"),
    "coalesce(i, 3)": lambda: sf.coalesce("i", sf.lit(3)),
    "i - 1": lambda: c("i") - 1,
    "1 - i": lambda: 1 - c("i"),
    "i * 2": lambda: c("i") * 2,
    "i / 2": lambda: c("i") / 2,
    "i % 2": lambda: c("i") % 2,
}
"""Each is equal to the value that it has in one of the rows."""

SPARKS_OWN: dict[str, Callable[[], Column]] = {
    "another escape": lambda: sf.expr("s LIKE 'a/_' ESCAPE '/' OR s LIKE 'ab'"),
    "several patterns": lambda: sf.expr("s LIKE ANY ('ab', 'x%')"),
    "a NOT of all patterns": lambda: sf.expr("NOT s LIKE ALL ('a%', '%')"),
    "trimmed characters": lambda: sf.expr("trim(BOTH 'a' FROM s) = 'b'"),
    "a try": lambda: sf.expr("try_add(i, 2147483646) IS NULL"),
    "a cast that is tried": lambda: sf.expr("try_cast(s AS INT) IS NULL"),
    "an int of 16 bits": lambda: c("i") == sf.expr("3S"),
    "a float of 32 bits": lambda: c("i") == sf.expr("3.0F"),
    "a NULL with a type": lambda: c("i").eqNullSafe(sf.lit(None).cast("int")),
    "a wall clock": lambda: sf.expr("t > TIMESTAMP_NTZ '2020-01-01 00:00:00'"),
    "bytes": lambda: c("s").cast("binary") == sf.lit(b"ab"),
    "a year beyond Python's": lambda: c("d") < sf.expr("DATE '+12345-01-01'"),
    "a day of the old calendar": lambda: c("d") > date(1500, 1, 1),
    "fewer digits than its type": lambda: c("i") == Decimal("12.0"),
    "NaN": lambda: c("i") < sf.lit(float("nan")),
    "a long OR": lambda: reduce(or_, [c("i") == k for k in range(10, 80)]),
    "deep parentheses": lambda: reduce(lambda one, _: ~one, range(80), c("i") > 12),
    "a list of nothing": lambda: c("i").isin(),
    "a NULL in a list": lambda: c("i").isin(13, None),
}


def _read(text: str) -> str:
    """The condition as it is read; Spark 3 has one name for one function."""
    return to_sql(parse(text)).replace("substr(", "substring(")


def test_functions_are_read_as_their_text(spark: SparkSession, table: sx.Table) -> None:
    with settings(spark, NO_PUSHDOWN):
        whole = spark.read.parquet(table.state.location.spark_path()).where("i = 12")
        values = whole.select(*(make() for make in FUNCTIONS.values())).first()
    assert values is not None
    for (text, make), value in zip(FUNCTIONS.items(), values, strict=True):
        read = condition_text(make() == sf.lit(value))
        at = value.astimezone(UTC) if isinstance(value, datetime) else value
        literal = literal_sql(at)
        assert _read(read) == _read(f"{text} = {literal}")
        assert "2.parquet" in table.plan(read, timezone=spark.conf.get(_ZONE)).paths


@pytest.mark.slow
def test_what_is_more_than_its_operands_loses_no_row(
    spark: SparkSession, table: sx.Table
) -> None:
    with settings(spark, NO_PUSHDOWN):
        whole = spark.read.parquet(table.state.location.spark_path())
        made = {name: make() for name, make in SPARKS_OWN.items()}
        wanted = rows_of_each(whole, [*made.values()])
        for (name, column), expected in zip(made.items(), wanted, strict=True):
            assert rows(sx.read(table, column, spark=spark)) == expected, name


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    files: list[dict[str, Any]] = [
        {
            "i": pa.array([k, k + 10, None], pa.int32()),
            "s": ["ab", "xyz", None] if k % 2 else ["a", "A", "line\nbreak"],
            "d": [date(2018 + k, 1, 1), date(2018 + k, 12, 31), None],
            "t": pa.array(
                [datetime(2018 + k, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")
            ),
            "a.b": [k, k, k],
        }
        for k in range(5)
    ]
    return build(
        put_all(tmp_path, files), dict.fromkeys(("i", "s", "d", "t"), "bitmap")
    )


_ZONE = "spark.sql.session.timeZone"


def test_a_python_function_is_no_built_in_of_its_name(
    spark: SparkSession, table: sx.Table
) -> None:
    def upper(text):  # type: ignore[no-untyped-def]  # Spark would read the hints
        return "never" if text is None else "found"

    mine = sf.udf(upper, "string", useArrow=False)
    column = (mine(c("s")) == "found") & (c("i") > 12)
    plan = table.plan(column)
    assert plan.paths == ["3.parquet", "4.parquet"]
    assert rows(plan.read(spark)) == rows(
        spark.read.parquet(table.state.location.spark_path()).where("i > 12 AND s > ''")
    )
    assert plan.count(spark) == plan.read(spark).count() > 0


def test_what_has_no_text_keeps_the_files(spark: SparkSession, table: sx.Table) -> None:
    for column in (sf.rand() < 0.5, c("s").rlike("^a"), c("i") > c("`a.b`")):
        assert len(table.plan(column).paths) == 5


# --- over columns of every type -------------------------------------------------


def _alternating(levels: int) -> Column:
    found = c("i") == 1
    for k in range(levels):
        found = (found & (c("l") > -k)) if k % 2 else (found | (c("y") == k))
    return found


OF_EVERY_TYPE: dict[str, Callable[[], Column]] = {
    "isin()": lambda: c("i").isin([]),
    "~isin()": lambda: ~c("i").isin([]),
    "isin list": lambda: c("s").isin(["a", "b", None]),
    "isin set": lambda: c("i").isin({1, 2}),
    "getItem struct": lambda: c("st")["x"] == 1,
    "getField": lambda: c("st").getField("y").getField("z") == "a",
    "startswith, isNull": lambda: c("s").startswith("a") | c("i").isNull(),
    "contains": lambda: c("s").contains("b") & (-c("i") < 3),
    "escaped": lambda: (c("s") == "line\nbreak") | ~c("s").isin("a", "it's"),
    "a dot in a name": lambda: c("`x.y`") == 1,
    "dotted": lambda: c("st.x") == 1,
    "dotted []": lambda: c("st.y")["z"].startswith("a"),
    "map": lambda: c("m")["k"] == 1,
    "array": lambda: c("arr")[0] == 1,
    "item by column": lambda: c("arr")[c("i") % 2] == 1,
    "getItem": lambda: c("arr").getItem(0) == 1,
    "struct()[x]": lambda: sf.struct(c("i").alias("q"))["q"] == 1,
    "withField": lambda: c("st").withField("q", sf.lit(1))["q"] == 1,
    "dropFields": lambda: c("st").dropFields("y")["x"] == 1,
    "rlike": lambda: c("s").rlike("^a"),
    "ilike": lambda: c("s").ilike("A%"),
    "like escape": lambda: sf.like(c("s"), sf.lit("a/%"), sf.lit("/")),
    "try_cast": lambda: c("s").try_cast("int") == 1,
    "cast": lambda: c("i").cast("decimal(12,2)") == 1,
    "cast struct": lambda: c("st").cast("string").contains("1"),
    "cast interval": lambda: c("y").cast("interval day") > sf.expr("INTERVAL 0 DAY"),
    "udf": lambda: sf.udf(lambda x: x, "int", useArrow=False)(c("i")) == 1,
    "rand": lambda: sf.rand() >= 0,
    "bitwise": lambda: c("i").bitwiseAND(1) == 1,
    "~bitwise": lambda: sf.bitwise_not(c("i")) == -2,
    "eqNullSafe": lambda: c("i").eqNullSafe(None),
    "== None": lambda: c("i") == None,  # noqa: E711 (a NULL for Spark)
    "isNaN": lambda: c("d").isNaN(),
    "boolean": lambda: c("b"),
    "~boolean": lambda: ~c("b"),
    "xor": lambda: (c("i") == 1) != (c("l") == 1),
    "between": lambda: c("d").between(0.5, 1.5),
    "decimal > float": lambda: c("dec") > 1.5,
    "decimal isin float": lambda: c("dec").isin(1.5, 2.0),
    "int > float": lambda: c("i") > 1.5,
    "string == int": lambda: c("s") == 1,
    "bool == int": lambda: c("b") == 1,
    "array literal": lambda: c("arr") == sf.array(sf.lit(1), sf.lit(2)),
    "when": lambda: sf.when(c("i") > 1, c("s")).when(c("b"), "x") == "x",
    "coalesce": lambda: sf.coalesce(c("st.x"), c("i"), sf.lit(0)) == 1,
    "lambda": lambda: sf.exists("arr", lambda x: x > 1),
    "window of time": lambda: sf.window("ts", "1 day").start > sf.lit("2020-01-01"),
    "metadata": lambda: c("_metadata.file_name").endswith("parquet"),
    "metadata []": lambda: c("_metadata")["file_size"] > 0,
    "interval": lambda: c("ts") + sf.expr("INTERVAL 1 DAY") > "2020-01-01",
    "make_interval": lambda: c("ts") > sf.now() - sf.make_interval(days=sf.lit(7)),
    "substr": lambda: c("s").substr(1, 1) == "a",
    "expr": lambda: sf.expr("i = 1 OR st.x = 2"),
    "alias": lambda: (c("i") == 1).alias("named"),
    "astype": lambda: c("i").astype("string") == "1",
    "chain of AND": lambda: _chain(100, sf.lit(True)),
    "alternating": lambda: _alternating(100),
    "sum": lambda: sum([c("i")] + [sf.lit(1)] * 100, sf.lit(0)) == 101,
    "nested NOT": lambda: _negated(101),
}
if not hasattr(Column, "try_cast"):  # methods of Spark 4
    del OF_EVERY_TYPE["try_cast"], OF_EVERY_TYPE["isNaN"]


def _chain(n: int, start: Column) -> Column:
    for k in range(n):
        start = start & (c("i") != 1000 + k)
    return start


def _negated(n: int) -> Column:
    found = c("i") == 1
    for _ in range(n):
        found = ~found
    return found


@pytest.mark.slow
def test_columns_of_every_kind(spark: SparkSession) -> None:
    table, wrong = table_of("every"), {}
    with session(spark, "UTC", ansi=False):
        frame = spark.read.parquet(table.state.location.spark_path())
        for name, make in OF_EVERY_TYPE.items():
            column = make()
            plan = table.plan(column, timezone="UTC")
            plan.explain()
            found = plan.read(spark).count(), plan.count(spark)
            n = frame.where(column).count()
            low, high = plan.count_bounds
            if found != (n, n) or not low <= n <= (n if high is None else high):
                wrong[name] = (found, n, plan.count_bounds, plan.where)
    assert wrong == {}
