"""PySpark columns as predicates: the same files and rows as their text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.expressions import to_sql
from skipindex.planner.sql.parser import parse
from skipindex.spark.condition import condition_text
from tests.spark.reading.whole import NO_PUSHDOWN, rows, settings
from tests.tables import build, put_all

pytestmark = pytest.mark.spark
c = sf.col

CASES: dict[str, Callable[[], Column]] = {
    "i > 3": lambda: c("i") > 3,
    r"s NOT IN ('a', 'b\'c') AND i = 1": lambda: (
        ~c("s").isin("a", "b'c") & (c("i") == 1)
    ),
    "i >= 1 AND i <= 2": lambda: c("i").between(1, 2),
    "s LIKE 'a%'": lambda: c("s").like("a%"),
    "s LIKE 'x%' OR i IS NULL": lambda: c("s").startswith("x") | c("i").isNull(),
    "s LIKE '%y%'": lambda: c("s").contains("y"),
    "d = DATE '2020-01-01'": lambda: c("d") == date(2020, 1, 1),
    "t > TIMESTAMP '2020-01-01 01:02:03.000004+00:00'": lambda: (
        c("t") > datetime(2020, 1, 1, 1, 2, 3, 4, tzinfo=UTC)
    ),
    "i = 1.50BD": lambda: c("i") == Decimal("1.50"),
    "i = 1099511627776": lambda: c("i") == 2**40,
    "i <=> 3": lambda: c("i").eqNullSafe(3),
    "year(d) = 2020": lambda: sf.year("d") == 2020,
    "upper(s) = 'A'": lambda: sf.upper(c("s")) == "A",
    "(i + 1) > 5": lambda: (c("i") + 1) > 5,
    "(i + 2) > 5 OR s = 'x'": lambda: sf.expr("i + 2 > 5 OR s = 'x'"),
    "negative(i) < 3": lambda: -c("i") < 3,
    "CAST(i AS STRING) = '1'": lambda: c("i").cast("string") == "1",
    "CASE WHEN i > 1 THEN 1 ELSE 0 END = 1": lambda: (
        sf.when(c("i") > 1, 1).otherwise(0) == 1
    ),
    "substr(s, 1, 1) = 'a'": lambda: c("s").substr(1, 1) == "a",
    "s = 'line\\nbreak'": lambda: c("s") == "line\nbreak",
    "`a.b` = 1": lambda: c("`a.b`") == 1,
}


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


def test_columns_are_read_as_their_text(spark: SparkSession, table: sx.Table) -> None:
    with settings(spark, NO_PUSHDOWN):
        whole = spark.read.parquet(table.location.spark_path())
        for text, make in CASES.items():
            column = make()
            assert to_sql(parse(condition_text(column))) == to_sql(parse(text))
            expected = rows(whole.where(column))
            assert rows(sx.read(table, column, spark=spark)) == expected, text
            plan = table.plan(column, timezone=spark.conf.get(_ZONE))
            same = table.plan(text, timezone=spark.conf.get(_ZONE))
            assert plan.paths == same.paths


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
        spark.read.parquet(table.location.spark_path()).where("i > 12 AND s > ''")
    )
    assert plan.count(spark) == plan.read(spark).count() > 0


def test_what_has_no_text_keeps_the_files(spark: SparkSession, table: sx.Table) -> None:
    for column in (sf.rand() < 0.5, c("s").rlike("^a"), c("i") > c("`a.b`")):
        assert len(table.plan(column).paths) == 5
