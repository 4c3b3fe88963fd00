"""Conditions that depend on a zone with rules, by the rules of the driver."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.planner.plan import plan_files
from tests.conditions.functions.test_wall_clocks import shifted
from tests.spark.pruning.scans import rows_of, unpruned
from tests.spark.reading.whole import ZONE, settings
from tests.tables import build, put_all

pytestmark = pytest.mark.spark

CONDITIONS = {
    "CAST(t AS DATE) = DATE '2024-10-27'": 25,
    "to_date(t) > '2024-10-26' AND year(t) = 2024": 35,
    "date_trunc('DAY', t) = TIMESTAMP '2024-10-26 00:00:00'": 13,
    "t >= '2024-10-27 02:30:00'": 32,
    "date_format(t, 'yyyy-MM-dd HH') < '2024-10-27 01'": 14,
}
"""With the number of hours that match; each is a file."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 48 hours around a change of the clocks in Berlin."""
    root = tmp_path_factory.mktemp("hours")
    first = datetime(2024, 10, 26, 9, tzinfo=UTC)
    hours = [first + timedelta(hours=n) for n in range(48)]
    kind = pa.timestamp("us", "UTC")
    put_all(root, [{"t": pa.array([hour], kind)} for hour in hours])
    build(root, {"t": "bitmap"})
    return root


@pytest.fixture
def pruned(spark: SparkSession, table: Path) -> Iterator[SparkSession]:
    with settings(spark, {ZONE: "Europe/Berlin"}):
        sx.enable(spark)
        spark.read.parquet(str(table)).createOrReplaceTempView("hours")
        yield spark
        spark.catalog.dropTempView("hours")
        sx.disable(spark)


@pytest.mark.parametrize(("condition", "n_hours"), CONDITIONS.items())
def test_the_rules_are_those_of_the_driver(
    pruned: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
    n_hours: int,
) -> None:
    """Whatever Python takes for the rules, and exactly the files with matches."""
    text = f"SELECT * FROM hours WHERE {condition}"
    whole = unpruned(pruned, text)
    assert len(whole) == n_hours
    assert plan_files.__kwdefaults__ is not None
    monkeypatch.setitem(plan_files.__kwdefaults__, "offsets", shifted)
    assert rows_of(pruned.sql(text)) == whole
    assert sx.last_plans(pruned)[-1].n_read == n_hours


def test_rows_are_counted_by_the_rules_of_the_driver(pruned: SparkSession) -> None:
    pruned.conf.set("skipindex.answers", "true")
    try:
        text = "SELECT count(*) FROM hours WHERE CAST(t AS DATE) = DATE '2024-10-27'"
        assert pruned.sql(text).head() == (25,)
        assert "count(*)" in sx.last_plans(pruned)[-1].answered
    finally:
        pruned.conf.unset("skipindex.answers")


def test_a_zone_of_an_expression_is_not_that_of_the_session(
    pruned: SparkSession,
) -> None:
    """Its offsets are not told, so it is known to a day."""
    other = "to_date(from_utc_timestamp(t, 'Asia/Tokyo')) = DATE '2024-10-28'"
    text = f"SELECT * FROM hours WHERE {other} AND CAST(t AS DATE) >= '2024-10-27'"
    assert rows_of(pruned.sql(text)) == unpruned(pruned, text)
