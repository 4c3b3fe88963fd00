"""Plans for a query's final conditions: they skip what plans for its text skip."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.spark.catalyst import drawn
from tests.spark.catalyst.final import final_conditions, final_plan
from tests.spark.reading.whole import (
    INTERPRETED,
    check_counts,
    counts_by_file,
    is_taken,
    settings,
)

pytestmark = pytest.mark.spark


def swept(
    frame: DataFrame, table: sx.Table, texts: Iterable[str], zone: str = "UTC"
) -> tuple[list[str], list[str]]:
    """Plans that are wrong, and those that skip less than the plan of the text."""
    wrong, less = [], []
    plans = {}
    for text in dict.fromkeys(texts):
        if not is_taken(frame, text):
            continue
        try:
            found = final_conditions(frame.where(text))
        except (PySparkException, Py4JJavaError):  # what it folds fails
            continue
        if found is None:
            continue
        plans[text] = final_plan(table, found, zone=zone)
        more = set(plans[text].paths) - set(table.plan(text, timezone=zone).paths)
        if more:
            less.append(f"{text} => {found.text}: reads {len(more)} more")
    for text, counts in zip(plans, counts_by_file(frame, list(plans)), strict=True):
        try:
            if counts is not None:
                check_counts(plans[text], counts, text)
        except AssertionError as error:
            wrong.append(f"{error}")
    return wrong, less


SESSIONS = [("UTC", "true"), ("+05:30", "false")]


@pytest.mark.slow
@pytest.mark.parametrize(("zone", "ansi"), SESSIONS)
def test_drawn_conditions(
    spark: SparkSession, tmp_path: Path, zone: str, ansi: str
) -> None:
    folder = drawn.write(tmp_path / "table", seed=11)
    table = sx.build_indexes(folder, {"*": "bitmap"}, workers=1).table
    wanted = {
        **INTERPRETED,
        "spark.sql.session.timeZone": zone,
        "spark.sql.ansi.enabled": ansi,
    }
    with settings(spark, wanted):
        frame = spark.read.parquet(table.state.location.spark_path())
        texts = islice(drawn.Conditions(seed=12), 150)
        wrong, less = swept(frame, table, texts, zone=zone)
    assert not wrong, "\n".join(wrong)
    assert not less, "\n".join(less)
