"""Every type of a Parquet column that has an order: plans count what Spark counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx

pytestmark = pytest.mark.spark

UTC_TIME = [datetime(1970, 1, 1, tzinfo=UTC), datetime(2020, 5, 1, 3, tzinfo=UTC)]
WALL = [time.replace(tzinfo=None) for time in UTC_TIME]
BIG = [Decimal(-(10**37)), Decimal(7), Decimal(10**37)]
COLUMNS: list[tuple[str, pa.DataType, Sequence[Any], str]] = [
    ("i8", pa.int8(), [-128, 5, 127], "5"),
    ("i16", pa.int16(), [-(2**15), 5, 2**15 - 1], "5"),
    ("i32", pa.int32(), [-(2**31), 5, 2**31 - 1], "5"),
    ("i64", pa.int64(), [-(2**63), 5, 2**63 - 1], "5"),
    ("u8", pa.uint8(), [0, 5, 255], "200"),
    ("u16", pa.uint16(), [0, 5, 2**16 - 1], "5"),
    ("u32", pa.uint32(), [0, 2**31, 2**32 - 1], str(2**31)),
    ("u64", pa.uint64(), [0, 2**63, 2**64 - 1], f"{2**63}"),
    ("f32", pa.float32(), [-0.0, 0.1, float("nan")], "0.0D"),
    ("f64", pa.float64(), [-0.0, 0.1, float("nan")], "0.1D"),
    ("b", pa.bool_(), [False, True], "TRUE"),
    ("d", pa.date32(), [date(1, 1, 1), date(2020, 5, 1)], "DATE '2020-05-01'"),
    ("d9", pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("2.25")], "2.25BD"),
    ("d18", pa.decimal128(18, 3), [Decimal("-1.500"), Decimal(9)], "9BD"),
    ("d38", pa.decimal128(38, 0), BIG, "7BD"),
    ("tms", pa.timestamp("ms", "UTC"), UTC_TIME, "TIMESTAMP '2020-05-01 03:00:00'"),
    ("tus", pa.timestamp("us", "UTC"), UTC_TIME, "TIMESTAMP '2020-05-01 03:00:00'"),
    ("nms", pa.timestamp("ms"), WALL, "TIMESTAMP_NTZ '2020-05-01 03:00:00'"),
    ("nus", pa.timestamp("us"), WALL, "TIMESTAMP_NTZ '2020-05-01 03:00:00'"),
    ("s", pa.string(), ["", "é", "z" * 90], "'é'"),
    ("y", pa.binary(), [b"", b"\xff\0", b"z"], "X'FF00'"),
    ("y2", pa.binary(2), [b"aa", b"\xff\0", b"zz"], "X'FF00'"),
]
OPERATORS = ("=", "<", "<=", ">", ">=", "!=")


@pytest.mark.parametrize(
    ("as_integer", "every"),
    [
        pytest.param(False, 5, id="some"),
        pytest.param(False, 1, id="fixed", marks=pytest.mark.slow),
        pytest.param(True, 1, id="integer", marks=pytest.mark.slow),
    ],
)
def test_plans_count_the_rows_that_spark_counts(
    spark: SparkSession, tmp_path: Path, as_integer: bool, every: int
) -> None:
    """Decimals as fixed-length bytes and as INT32 and INT64; all of it in a struct."""
    arrays = {
        name: pa.array([*values, None, *values][:5], dtype)
        for name, dtype, values, _ in COLUMNS
    }
    inside = pa.StructArray.from_arrays(
        list(arrays.values()),
        names=list(arrays),
        mask=pa.array([False, False, False, False, True]),
    )
    table = pa.table({**arrays, "st": inside})
    path = tmp_path / "t" / "f.parquet"
    path.parent.mkdir()
    pq.write_table(table, path, store_decimal_as_integer=as_integer)
    wanted = {
        prefix + name: ["bitmap", "bit_sliced"]
        for name in arrays
        for prefix in ("", "st.")
    }
    indexed = sx.build_indexes(path.parent, wanted, workers=1)
    assert not indexed.notes
    conditions = [
        f"{prefix}{name} {operator} {literal}"
        for name, _, _, literal in COLUMNS
        for operator in OPERATORS
        for prefix in ("", "st.")
    ]
    conditions += [f"{name} IS NULL" for name in wanted]
    conditions = conditions[::every]
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    whole = spark.read.parquet(str(path.parent)).cache()
    counts = whole.selectExpr(*(f"count_if({c})" for c in conditions)).first()
    assert counts is not None
    zone = spark.conf.get("spark.sql.session.timeZone")
    for condition, n_true in zip(conditions, counts, strict=True):
        plan = indexed.table.plan(condition, timezone=zone)
        low, high = plan.count_bounds
        assert high is not None
        assert low <= n_true <= high, condition
        if not plan.notes and "not judged" not in plan.explain():
            assert (low, high) == (n_true, n_true), condition
