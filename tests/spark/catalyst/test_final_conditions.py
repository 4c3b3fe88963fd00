"""Plans for a query's final conditions: they skip what plans for its text skip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.spark.engine import condition_text
from tests.spark.catalyst import drawn
from tests.spark.catalyst.final import final_conditions, final_plan
from tests.spark.reading.whole import settings
from tests.spark.semantics.catalogue import TEXTS, accepted
from tests.spark.semantics.test_catalogue import LAX, UTC, truth
from tests.spark.semantics.test_functions import check
from tests.spark.semantics.test_sql_semantics import COLUMNS as VALUES
from tests.spark.semantics.test_sql_semantics import SCHEMA

pytestmark = pytest.mark.spark
JUDGED = Path(__file__).parents[1] / "semantics" / "sql_judged.txt"


LESS = {
    # Without ANSI mode Spark compares the dates as text, and plans say nothing of the
    # text of days that its old formatter shows otherwise.
    "dt IN ('2020-01-01')",
    # A plan for the text knows that a column is hidden, and that the rest is not.
    "CASE WHEN _metadata.file_size > 0 THEN i ELSE 0 END = 1",
}
"""Texts whose plans skip more than those for the final conditions."""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """Two rows a file, of columns of every type."""
    spark.sparkContext.setLogLevel("OFF")  # many conditions fail, and are meant to
    folder = tmp_path_factory.mktemp("final") / "table"
    rows = list(zip(*VALUES.values(), strict=True))
    with settings(spark, UTC):
        frame = spark.createDataFrame(rows, SCHEMA).repartitionByRange(7, "l", "i")
        frame.write.parquet(str(folder))
    return sx.build_indexes(folder, {"*": "bitmap"}, workers=1).table


@pytest.fixture(scope="module")
def frame(spark: SparkSession, table: sx.Table) -> DataFrame:
    return spark.read.parquet(table.state.location.spark_path())


def swept(
    frame: DataFrame, table: sx.Table, texts: Iterable[str], zone: str = "UTC"
) -> tuple[list[str], list[str]]:
    """Plans that are wrong, and those that skip less than the plan of the text."""
    wrong, less = [], []
    plans = {}
    for text in dict.fromkeys(texts):
        # As one column of many, these drop or repeat rows for all of them.
        if any(word in text for word in ("(SELECT", "rand", "window(")):
            continue
        if not accepted(frame, text):
            continue
        try:
            found = final_conditions(frame.where(text))
        except (PySparkException, Py4JJavaError):  # what it folds fails
            continue
        if found is None:
            continue
        plans[text] = final_plan(table, found, zone=zone)
        more = set(plans[text].paths) - set(table.plan(text, timezone=zone).paths)
        if more and text not in LESS:
            less.append(f"{text} => {found.text}: reads {len(more)} more")
    for text, counts in zip(plans, truth(frame, list(plans)), strict=True):
        try:
            if counts is not None:
                check(plans[text], counts, text)
        except AssertionError as error:
            wrong.append(f"{error}")
    return wrong, less


def judged() -> list[str]:
    return JUDGED.read_text().splitlines()


def check_texts(
    spark: SparkSession,
    frame: DataFrame,
    table: sx.Table,
    texts: Sequence[str],
    ansi: str = "false",
) -> None:
    with settings(spark, {**LAX, "spark.sql.ansi.enabled": ansi}):
        wrong, less = swept(frame, table, texts)
    assert not wrong, "\n".join(wrong)
    assert not less, "\n".join(less)


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_texts_that_a_plan_judges(
    spark: SparkSession, frame: DataFrame, table: sx.Table, ansi: str
) -> None:
    check_texts(spark, frame, table, judged(), ansi)


def test_some_texts_of_every_kind(
    spark: SparkSession, frame: DataFrame, table: sx.Table
) -> None:
    check_texts(spark, frame, table, TEXTS[::40])


@pytest.mark.slow
def test_texts_of_every_kind(
    spark: SparkSession, frame: DataFrame, table: sx.Table
) -> None:
    check_texts(spark, frame, table, TEXTS)


SESSIONS = [("UTC", "true"), ("+05:30", "false")]


@pytest.mark.slow
@pytest.mark.parametrize(("zone", "ansi"), SESSIONS)
def test_drawn_conditions(
    spark: SparkSession, tmp_path: Path, zone: str, ansi: str
) -> None:
    folder = drawn.write(tmp_path / "table", seed=11)
    table = sx.build_indexes(folder, {"*": "bitmap"}, workers=1).table
    wanted = {**UTC, "spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}
    with settings(spark, wanted):
        frame = spark.read.parquet(table.state.location.spark_path())
        texts = islice(drawn.Conditions(seed=12), 150)
        wrong, less = swept(frame, table, texts, zone=zone)
    assert not wrong, "\n".join(wrong)
    assert not less, "\n".join(less)


def test_some_columns_of_texts_are_planned_as_the_texts(
    frame: DataFrame, table: sx.Table
) -> None:
    check_columns(frame, table, judged()[5::7])


@pytest.mark.slow
def test_a_column_of_a_text_is_planned_as_the_text(
    frame: DataFrame, table: sx.Table
) -> None:
    check_columns(frame, table, judged())


def check_columns(frame: DataFrame, table: sx.Table, texts: Sequence[str]) -> None:
    less = []
    for text in (text for text in texts if accepted(frame, text)):
        kept = table.plan(sf.expr(text), timezone="UTC").paths
        more = set(kept) - set(table.plan(text, timezone="UTC").paths)
        if more and text != "i = TRY_CAST('1' AS INT)":
            less.append(f"{text} => {condition_text(sf.expr(text))}")
    assert not less, "\n".join(less)
