"""Values as Spark compares them: against Spark's own counts, file by file."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import skipindex as sx
from tests.spark.reading.whole import ZONE, check_law_1, check_law_7, settings
from tests.spark.versions import SPARK, since
from tests.strategies import predicates, tables, to_arrow
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark

KINDS = ["bitmap", "bloom"]


@pytest.mark.slow
@given(data=st.data())
@hypothesis_settings(
    max_examples=5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_law_1_with_random_tables_and_conditions(
    spark: SparkSession, tmp_path: Path, data: st.DataObject
) -> None:
    drawn = data.draw(tables(max_columns=5, min_rows=12, max_rows=24))
    trees = [
        data.draw(predicates(drawn, max_leaves=4, two_columns=True)) for _ in range(25)
    ]
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    table, n = to_arrow(drawn), len(next(iter(drawn.values())).values)
    edges = [0, n // 3, 2 * n // 3, n]
    put_all(folder, [table.slice(a, b - a) for a, b in pairwise(edges)])
    opened = build(folder, dict.fromkeys(drawn, "bitmap"))
    check_law_1(spark, opened, trees, spark__sql__session__timeZone="UTC")


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [pa.float64(), pa.float32()], ids=str)
def test_traps_c1_and_c2_files_of_pyarrow_with_nan(
    spark: SparkSession, tmp_path: Path, dtype: pa.DataType
) -> None:
    """Their footers leave NaN out.  Spark needs its own push-down off for them."""
    files: list[list[float | None]] = [[math.nan, 1.0], [-0.0, 0.5], [None, -math.inf]]
    put_all(tmp_path, [{"v": pa.array(own, dtype)} for own in files])
    expected = {
        "v > 100": 1,
        "v >= 2": 1,
        "v > 1": 1,
        "v <> 1.0": 3,
        "v NOT IN (1.0)": 3,
        "NOT (v <= 1)": 1,
        "v = CAST('NaN' AS DOUBLE)": 1,
        "v < CAST('NaN' AS DOUBLE)": 3,
        "v = 0.0": 1,
        "v = -0.0": 1,
        "v <=> 0": 1,
        "v IS NULL": 1,
        "v < -1e300": 1,
    }
    table = build(tmp_path, {"v": KINDS})
    plans = check_law_1(spark, table, list(expected))
    assert {p.where: len(p.paths) for p in plans} == expected
    check_law_7(spark, tmp_path, "v > 100")


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_traps_c17_to_c19_timestamps_as_spark_writes_them(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """In fixed zones, and in one with summer time."""
    output = {"spark.sql.parquet.outputTimestampType": kind, ZONE: "UTC"}
    with settings(spark, output):
        df = spark.range(0, 18, 1, 3).selectExpr(
            "timestamp'2020-01-08 00:30:00' + make_dt_interval(id * 10) AS ts",
            "timestamp_ntz'2020-01-08 00:30:00' + make_dt_interval(id * 10) AS ntz",
        )
        df.write.mode("overwrite").parquet(str(tmp_path))
    table = build(tmp_path, {"ts": KINDS, "ntz": KINDS})
    conditions = [
        "ts = TIMESTAMP '2020-02-17 00:30:00'",
        "ts < '2020-01-18 00:00:00'",
        "ts >= DATE '2020-06-26'",
        "ts = TIMESTAMP '2020-03-28 00:30:00+00:00'",
        "ts IN (TIMESTAMP '2020-01-08 00:30:00Z', TIMESTAMP '1999-01-01 00:00:00Z')",
        "ntz = TIMESTAMP_NTZ '2020-02-17 00:30:00'",
        "ntz < '2020-01-18'",
        "ntz > TIMESTAMP '2020-06-20 00:00:00'",
    ]
    for zone in ("UTC", "-08:00", "America/New_York", "Asia/Kathmandu"):
        session = {"spark__sql__session__timeZone": zone}
        plans = check_law_1(spark, table, conditions, **session)
        if zone in {"UTC", "-08:00"}:
            assert all(len(plan.paths) < 3 for plan in plans), zone
    with settings(spark, {ZONE: "America/New_York"}):
        plan = check_law_7(spark, tmp_path, "ts < '2020-01-28 12:00:00'")
    assert len(plan.paths) == 1


@since(4, 0, what="an int file read as bigint")
def test_trap_c20_types_that_became_wider(spark: SparkSession, tmp_path: Path) -> None:
    wide = {"i": pa.array([1, 2**40], pa.int64()), "f": pa.array([0.1, 1e300])}
    narrow = {"i": pa.array([2, 7], pa.int32()), "f": pa.array([0.1, 2], pa.float32())}
    put_all(tmp_path, [wide, narrow])
    table = build(tmp_path, {"i": KINDS, "f": KINDS})
    conditions = ["i = 7", "i > 100", "f = 0.1D", "f > 1.5", "f < 0.11", "f IN (0.1)"]
    plans = check_law_1(spark, table, conditions)
    assert [len(plan.paths) for plan in plans] == [1, 1, 1, 2, 2, 1]


@pytest.mark.few(1)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_conditions_mean_the_same_with_and_without_ansi(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    columns = {
        "l": pa.array([7, 2**53 + 1, -(2**63), 2**63 - 1], pa.int64()),
        "y": pa.array([7, -128, 127, None], pa.int8()),
        "f": pa.array([16777216.0, 0.1, math.nan, -0.0], pa.float32()),
        "s": ["7", "07", "x", ""],
        "d": pa.array([0, 18_262, None, 1], pa.date32()),
        "b": [True, False, None, True],
        "bin": [b"7", b"", b"\xff", b"x"],
    }
    put_all(tmp_path, [pa.table(columns).slice(i, 1) for i in range(4)])
    table = build(tmp_path, {"l": KINDS, "y": "bitmap", "f": KINDS, "s": KINDS})
    conditions = [
        "l = '7'",
        "l IN ('7', '8')",
        "l < 7.5",
        "l = 1e1",
        "l = 9007199254740992D",
        "l = 9007199254740993D",
        "l IN (9007199254740992D)",
        "l >= 9223372036854775807D",
        "l > 9223372036854775806",
        "l = -9223372036854775808",
        "y = 127",
        "y > 300",
        "y = '7'",
        "y < 1000000000000",
        "y IN (7, 3.5)",
        "f = 16777217",
        "f = 16777216",
        "f = 0.1",
        "f = 0.1D",
        "f IN (0.1D, 7)",
        "f = 0",
        "s = 'x'",
        "s > '06'",
        "d = '2020-01-01'",
        "d IN ('2020-01-01', '2021-01-01')",
        "d <= DATE '1970-01-02'",
        "b",
        "b = true",
        "NOT b",
        "b <> false",
        "bin > X'37'",
        "bin = X''",
    ]
    check_law_1(spark, table, conditions, spark__sql__ansi__enabled=ansi)


def test_decimals_whose_common_type_has_too_few_digits(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark then rounds the column before it compares: 1e10 + 1e-20 IN (1e10)."""
    columns = {
        "wide": [Decimal("10000000000.00000000000000000001"), Decimal("-1.5")],
        "near": [Decimal("5.00000000000000000001"), Decimal("-1.5")],
        "small": [Decimal("5.00001"), Decimal("-1.5")],
        "big": [10**15 + 1, -(2**62)],
        "unsigned": [7, 2**32 - 1],
    }
    types = {
        "wide": pa.decimal128(38, 20),
        "near": pa.decimal128(38, 20),
        "small": pa.decimal128(10, 5),
        "big": pa.int64(),
        "unsigned": pa.uint32(),
    }
    table = pa.table({name: pa.array(columns[name], types[name]) for name in columns})
    put_all(tmp_path, [table.slice(i, 1) for i in range(2)])
    conditions = [
        "wide IN (10000000000)",
        "wide IN (10000000000L, 5)",
        "wide = 10000000000",
        "wide IN (1.5BD, 5)",
        "wide > 9999999999.99999999999999999999BD",
        "wide <= -1.5BD",
        "near IN (5)",
        "near IN (5L)",
        "near = CAST(5 AS BIGINT)",
        "near = 5",
        "small IN (5)",
        "small = 5.00001BD",
        "small IN (5.00001BD, 100000000000000000000BD)",
        "small < 5.000010000000000000000000000000001BD",
        "small != 5.000010000000000000000000000000001BD",
        "small = CAST(5 AS DECIMAL(38, 0))",
        "small IN (CAST('5' AS DECIMAL(37, 0)), 6)",
        "near = CAST(5 AS DECIMAL(18, 0))",
        "near < CAST(5.1 AS DECIMAL(20, 1))",
        "small <= CAST('5.00001' AS DECIMAL(18, 5))",
        "5.00001BD = CAST(5 AS DECIMAL(38, 0))",
        "0.00000000000000000000000000000000000001BD = 0BD",
        "big IN (1000000000000001.0BD)",
        "big = 1000000000000001.0000000000000000000001BD",
        "big IN (1000000000000001.00000000000000001BD, 5)",
        "unsigned = 7.0000000000000000000000000001BD",
        "unsigned IN (7, 4294967295)",
    ]
    plans = check_law_1(spark, build(tmp_path), conditions)
    judged = {plan.where for plan in plans if len(plan.paths) < 2}
    assert {
        "small = 5.00001BD",
        "near = CAST(5 AS DECIMAL(18, 0))",
        "wide <= -1.5BD",
        "wide > 9999999999.99999999999999999999BD",
    } <= judged


def test_trap_c10_char_columns_are_compared_as_the_reader_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By path Spark knows no CHAR, unless a DataFrame of the table was written."""
    inserted, copied = tmp_path / "inserted", tmp_path / "copied"
    spark.sql("DROP TABLE IF EXISTS padded")
    spark.sql(
        f"CREATE TABLE padded (c CHAR(5), v VARCHAR(5)) USING parquet "
        f"LOCATION 'file:{inserted}'"
    )
    try:
        spark.sql("INSERT INTO padded VALUES ('ab', 'ab')")
        spark.table("padded").write.parquet(str(copied))
    finally:
        spark.sql("DROP TABLE padded")
    conditions = ["c = 'ab'", "c = 'ab   '", "v = 'ab'", "v = 'ab   '", "c IN ('ab')"]
    noted, unknown = [1, 1, 1, 0, 1], [0, 1, 1, 0, 0]
    # What Spark inserts before 4.1 has the note of a CHAR in its footer too.
    for folder, kept in (
        (inserted, unknown if SPARK >= (4, 1) else noted),
        (copied, noted),
    ):
        plans = check_law_1(spark, build(folder), conditions)
        assert [len(plan.paths) for plan in plans] == kept
        check_law_7(spark, folder, "c = 'ab'")


@since(4, 0, what="collations")
def test_trap_c11_collated_columns_prune_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.sql(
        "SELECT 'A' AS p, 'A' COLLATE UTF8_LCASE AS c, 'A' COLLATE UNICODE AS u"
    )
    df.write.mode("overwrite").parquet(str(tmp_path))
    plans = check_law_1(spark, build(tmp_path), ["c = 'a'", "u > 'a'", "p = 'a'"])
    assert [len(plan.paths) for plan in plans] == [1, 1, 0]
    check_law_7(spark, tmp_path, "c = 'a'")
    with pytest.raises(sx.UnsupportedTypeError, match="'c': the column has a coll"):
        sx.build_indexes(tmp_path, {"c": "bitmap"}, workers=1)


def test_dates_before_the_gregorian_calendar(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A file of the hybrid calendar holds another number for the same day."""
    day = date(1500, 1, 1)
    put(tmp_path / "new" / "f.parquet", {"d": pa.array([day], pa.date32())})
    legacy = {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}
    with settings(spark, legacy):
        df = spark.sql("SELECT DATE '1500-01-01' AS d")
        df.write.parquet(str(tmp_path / "old"))
    assert pq.read_table(tmp_path / "old").column("d")[0].as_py() != day
    for name in ("new", "old"):
        table = build(tmp_path / name)
        (plan,) = check_law_1(spark, table, ["d = DATE '1500-01-01'"])
        assert len(plan.paths) == 1
