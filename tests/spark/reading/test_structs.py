"""Fields of structs through Spark: the same rows with a plan and without."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.reading.read import read
from tests.spark.reading.whole import rows, rows_of_each

pytestmark = pytest.mark.spark

ROWS = [
    (1, ((5, "x"), 7)),
    (2, None),
    (3, (None, 9)),
    (4, ((None, "y"), None)),
    (5, ((50, "z"), 70)),
    (6, ((51, None), 71)),
]
SCHEMA = "i INT, a STRUCT<b: STRUCT<c: BIGINT, t: STRING>, `x.y`: INT>"


def test_fields_are_read_as_without_a_plan(spark: SparkSession, tmp_path: Path) -> None:
    for i in range(0, len(ROWS), 2):
        frame = spark.createDataFrame(ROWS[i : i + 2], SCHEMA)
        frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "t"))
    folder = str(tmp_path / "t")
    kinds = ["bitmap", "bit_sliced"]
    wanted = {"a.b.c": kinds, "a.b.t": kinds, "a.`x.y`": kinds}
    table = sx.build_indexes(folder, wanted, workers=1).table
    whole = spark.read.parquet(folder)
    conditions = {
        "a.b.c = 50": 1,
        "A.B.C > 6": 1,
        "a.b.c IS NULL": 2,
        "a.b.t LIKE '%y%'": 1,
        "a.`x.y` BETWEEN 8 AND 10": 1,
        "a.`x.y` IS NULL AND a.b.t = 'y'": 1,
        "NOT (a.b.c = 5)": 1,
        "a.b.c <=> NULL": 2,
        "a.b.c = 6": 0,
        "a IS NULL": 3,
    }
    kept = rows_of_each(whole, [*conditions])
    for (condition, n_files), expected in zip(conditions.items(), kept, strict=True):
        plan = sx.plan_files(condition, table=table, timezone="UTC")
        assert len(plan.paths) == n_files, condition
        assert rows(read(spark, table.state, condition)) == expected
