"""Scans of the data source API version 2 that are none of Iceberg."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.spark.pruning.questions import make
from tests.tables import made

pytestmark = pytest.mark.spark


def test_other_scans_stay_with_and_without_iceberg(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = made(tmp_path / "t", make)
    name = "spark.sql.sources.useV1SourceList"
    before = spark.conf.get(name)
    sx.enable(spark)
    try:
        spark.conf.set(name, "")
        frame = spark.read.parquet(str(table)).where("id = 17")
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
        assert "RelationV2" in plan
        assert [row.id for row in frame.collect()] == [17]
        spark.conf.set(name, before)
        frame = spark.read.parquet(str(table)).where("id = 17")
        assert [row.id for row in frame.collect()] == [17]
        told = [(one.n_files, one.problem) for one in sx.last_plans(spark)]
    finally:
        spark.conf.set(name, before)
        sx.disable(spark)
    assert told == [(4, "")]
