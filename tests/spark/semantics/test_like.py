"""LIKE as Spark means it, against plans of every kind that answers it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.tables import build, put_all

pytestmark = pytest.mark.spark

FILES = [
    ["a%b", "a_b", "axb", "ab"],
    ["a\U0001f33cb", "a\U0001f33c", "aéb"],
    ["a\nb", "A B", " ab ", ""],
    ["disk full", "disks", None],
    ["x" * 70 + "needle", "back\\slash"],
]
PATTERNS = [
    *("a_b", "a%b", "%a%b%", "_", "__", "%_%", "", "%"),
    *("a\\%b", "a\\_b", "%\\%%", "%\\_%", "%\\\\\\\\%", "%sl%"),
    *("%\U0001f33c", "_\U0001f33c_", "%\U0001f33c%", "%é_"),
    *("%disk%", "disk %", "%full", "%DISK%", "%needle", "%isk%u_l"),
]
KINDS = ["bitmap", "bit_sliced", "ngram_bloom", "token_bloom"]


def test_like_keeps_the_files_that_spark_finds_rows_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    put_all(tmp_path, [{"c": own} for own in FILES])
    table = build(tmp_path, {"c": [*KINDS, sx.NGramBloom(n=2)]})
    whole = spark.read.parquet(str(tmp_path)).cache()
    whole.createOrReplaceTempView("like_values")
    conditions = [f"c LIKE '{p}'" for p in PATTERNS]
    conditions += [f"c NOT LIKE '{p}'" for p in PATTERNS]
    conditions += ["contains(c, 'isk')", "endswith(c, 'b')", "c LIKE 'a!%b' ESCAPE '!'"]
    counts = [f"count_if({condition})" for condition in conditions]
    truth = spark.sql(f"SELECT {', '.join(counts)} FROM like_values").first()
    assert truth is not None
    for condition, n_true in zip(conditions, truth, strict=True):
        plan = table.plan(condition)
        low, high = plan.count_bounds
        assert low <= n_true <= (high or 0), condition
        assert "\U0001f33c" in condition or low == high, condition
        for kind in KINDS[2:]:
            loose = table.plan(condition, kinds=[kind])
            assert set(loose.paths) >= set(plan.paths), condition


def test_bytes_that_are_no_text_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    """Spark decodes them for some patterns, and every bad byte becomes U+FFFD."""
    folder = str(tmp_path / "t")
    raw = "(X'61FF62'), (X'61E262'), (X'FF'), (X'EFBFBD')"
    rows = spark.sql(f"SELECT CAST(b AS STRING) AS c FROM VALUES {raw} AS t(b)")
    rows.coalesce(1).write.parquet(folder)
    table = build(tmp_path / "t", {"c": KINDS})
    conditions = [
        f"c {word} '{pattern}'"
        for pattern in ("a_b", "a%b", "%\ufffd%", "_", "%b", "_%b", "%\ufffd", "a__b")
        for word in ("LIKE", "NOT LIKE")
    ]
    counts = [f"count_if({condition})" for condition in conditions]
    truth = spark.read.parquet(folder).selectExpr(*counts).first()
    assert truth is not None
    for condition, n_true in zip(conditions, truth, strict=True):
        low, high = table.plan(condition).count_bounds
        assert low <= n_true, condition
        assert high is None or n_true <= high, condition
