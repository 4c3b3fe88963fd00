"""Literals that Spark casts to NULL, or may, under every operator and NOT.

Without ANSI mode ``d <=> '2020-02-30'`` is ``d <=> NULL``, and ``IS DISTINCT FROM`` is
TRUE of the rows that are *not* NULL.  With ANSI mode such a literal is an error, and
those that can be cast are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

import skipindex as sx
from skipindex import col
from skipindex.expressions import to_sql
from tests.spark.reading.whole import settings
from tests.spark.semantics.test_functions import INTERPRETED, check, truth
from tests.spark.versions import FAILED
from tests.tables import build, put

pytestmark = pytest.mark.spark

NOON = datetime(2020, 1, 1, 12)
COLUMNS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "d": (pa.date32(), [date(2020, 1, 1), date(1, 1, 1), date(2024, 2, 29)]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [NOON.replace(tzinfo=UTC), NOON.replace(2021, tzinfo=UTC)],
    ),
    "ntz": (pa.timestamp("us"), [NOON, NOON.replace(2021, 1, 2, 0)]),
    "i": (pa.int32(), [1, 0, -5, 2**31 - 1]),
    "l": (pa.int64(), [1, 0, -5, 2**63 - 1]),
    "y": (pa.int8(), [1, 0, 127]),
    "f": (pa.float32(), [1.5, 0.0, float("nan")]),
    "db": (pa.float64(), [1.5, 0.0, float("nan"), float("inf")]),
    "dec": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal(0), Decimal(-1)]),
    "b": (pa.bool_(), [True, False]),
    "s": (pa.string(), ["x", "", "2020-01-01", "1", "1.5", "true"]),
    "bin": (pa.binary(), [b"x", b"", b"1"]),
}
LITERALS = [
    *("'2020-02-30'", "'x'", "'2020-01-01'", "'1.5'", "'1'", "''", "'NaN'", "'true'"),
    *("'99999999999999999999'", "'2020-01-01 24:00:00'", "'2020-01-01 12:00:00'"),
    *("'0000-01-01'", "'2020-1-1'", "' 1 '", "'1e400'", "NULL", "CAST(NULL AS INT)"),
    *("CAST('x' AS DATE)", "TRY_CAST('x' AS INT)", "CAST(300 AS TINYINT)", "1 / 0"),
    *(
        "make_date(2020, 2, 30)",
        "CAST('2020-02-30' AS TIMESTAMP)",
        "X'31'",
        "1",
        "TRUE",
    ),
]
OPERATORS = [
    *("{c} = {v}", "{c} <> {v}", "{c} < {v}", "{c} >= {v}", "{c} <=> {v}"),
    *("NOT ({c} = {v})", "NOT ({c} <> {v})", "NOT ({c} > {v})", "NOT ({c} <=> {v})"),
    *("{c} IS DISTINCT FROM {v}", "{c} IS NOT DISTINCT FROM {v}"),
    *("NOT ({c} IS DISTINCT FROM {v})", "{v} IS DISTINCT FROM {c}"),
    *("{c} IN ({v})", "{c} NOT IN ({v})", "{c} IN ({v}, NULL)", "NOT {c} IN ({v})"),
    *("{c} BETWEEN {v} AND {v}", "{c} NOT BETWEEN {v} AND {v}"),
]
NESTED = [
    *("({c} = {v}) IS NULL", "({c} <> {v}) IS TRUE", "({c} = {v}) IS NOT TRUE"),
    *("({c} <=> {v}) IS NOT TRUE", "({c} <=> {v}) = FALSE", "({c} < {v}) <=> FALSE"),
    *("({c} <=> {v}) IS NULL", "({c}, 1) IN (({v}, 1))", "({c}, 1) NOT IN (({v}, 1))"),
    *("CASE WHEN {c} = {v} THEN 1 ELSE 2 END = 2", "nullif({c}, {v}) IS NULL"),
    *("CASE WHEN {c} <=> {v} THEN 1 ELSE 2 END = 2", "if({c} <=> {v}, FALSE, TRUE)"),
    *("CASE {c} WHEN {v} THEN 1 END IS NULL", "coalesce({c}, {v}) IS NULL"),
    *("NOT ({c} <=> {v}) AND {c} IS NULL", "coalesce({c} IS DISTINCT FROM {v}, TRUE)"),
    *("NOT CASE WHEN {c} <=> {v} THEN TRUE ELSE FALSE END", "nvl({c} <> {v}, FALSE)"),
]


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    """A file of NULLs, one of values, and one of both."""
    for name, picked in (("nulls", [0]), ("values", [1, 2]), ("both", [0, 1, 0])):
        columns = {}
        for column, (dtype, values) in COLUMNS.items():
            parts: list[list[Any]] = [[None], list(values), [values[0]]]
            chosen = [value for i in picked for value in parts[i]]
            columns[column] = pa.array((chosen * 8)[:8], dtype)
        put(tmp_path / f"{name}.parquet", columns)
    return build(tmp_path, dict.fromkeys(COLUMNS, "bitmap"))


def conditions(
    columns: Iterable[str], literals: Iterable[str], forms: Iterable[str]
) -> list[str]:
    return [form.format(c=c, v=v) for c in columns for v in literals for form in forms]


def meaningful(spark: SparkSession, table: sx.Table, texts: Iterable[str]) -> list[str]:
    """Those that Spark's analyzer takes."""
    frame = spark.read.parquet(table.state.location.spark_path())
    found = []
    for text in texts:
        try:
            frame.where(text)
        except PySparkException:
            continue
        found.append(text)
    return found


def castable(spark: SparkSession, column: str) -> list[str]:
    """Texts and numbers that ANSI mode can cast to the column's type, and NULL."""
    kind = str(from_arrow_type(COLUMNS[column][0]).simpleString())
    usable = [v for v in LITERALS if v.startswith("'") or v in {"NULL", "1", "TRUE"}]
    if column in {"s", "bin"}:
        return [*(v for v in usable[:4] if v.startswith("'")), "NULL"]
    tried = []
    for literal in usable:
        try:
            found = spark.sql(
                f"SELECT TRY_CAST({literal} AS {kind}) IS NOT NULL"
            ).first()
        except PySparkException:  # no cast between these types
            continue
        if literal == "NULL" or (found is not None and found[0]):
            tried.append(literal)
    return tried


def said(
    spark: SparkSession, table: sx.Table, texts: list[str]
) -> Mapping[str, Mapping[str, int]]:
    """Spark's counts of those that do not fail."""
    try:
        return truth(spark, table, texts)
    except FAILED:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return {**said(spark, table, texts[:half]), **said(spark, table, texts[half:])}


def check_all(table: sx.Table, counted: Mapping[str, Mapping[str, int]]) -> None:
    """Law 1 with all kinds and with statistics alone, and enough files for LIMIT."""
    for text, counts in counted.items():
        total = sum(counts.values())
        for kinds in (None, ["minmax"]):
            options: Any = {"table": table, "timezone": "UTC", "kinds": kinds}
            plan = sx.plan_files(text, **options)
            check(plan, counts, text)
            low, high = plan.count_bounds
            assert low <= total, text
            assert high is None or total <= high, text
            for limit in (1, 5):
                few = sx.plan_files(text, limit=limit, **options)
                found = sum(counts[path] for path in few.paths)
                assert found >= min(limit, total), f"{text} LIMIT {limit}"


def session(ansi: str) -> dict[str, str]:
    zone = "spark.sql.session.timeZone"
    return {**INTERPRETED, zone: "UTC", "spark.sql.ansi.enabled": ansi}


def test_null_is_not_distinct_from_a_literal_cast_to_null(
    spark: SparkSession, table: sx.Table
) -> None:
    texts = conditions(["d"], LITERALS[1:3], [*OPERATORS, *NESTED])
    built = [~col("d").eq_null_safe("2020-02-30"), ~col("i").eq_null_safe("x")]
    with settings(spark, session("false")):
        counted = said(
            spark, table, meaningful(spark, table, [*texts, *map(to_sql, built)])
        )
    assert len(counted) > 60
    check_all(table, counted)
    plan = table.plan("d IS DISTINCT FROM '2020-02-30'", timezone="UTC")
    assert plan.row_counts.lower.sum() == 0
    same = table.plan("d IS DISTINCT FROM '2020-01-01'", timezone="UTC")
    counts = counted["d IS DISTINCT FROM '2020-01-01'"]
    assert same.count_bounds == (sum(counts.values()),) * 2


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["false", "true"])
@pytest.mark.parametrize("column", COLUMNS)
def test_every_literal_under_every_operator(
    spark: SparkSession, table: sx.Table, ansi: str, column: str
) -> None:
    with settings(spark, session(ansi)):
        literals = castable(spark, column) if ansi == "true" else LITERALS
        texts = conditions([column], literals, [*OPERATORS, *NESTED])
        counted = said(spark, table, meaningful(spark, table, texts))
    assert len(counted) > 30
    check_all(table, counted)
