"""A condition that Spark accepts is judged or left to Spark, and never an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from tests.spark.reading.whole import settings
from tests.spark.semantics.catalogue import COLUMNS, TEXTS, accepted, calls
from tests.spark.semantics.test_functions import INTERPRETED, check
from tests.spark.semantics.test_sql_semantics import COLUMNS as VALUES
from tests.spark.semantics.test_sql_semantics import SCHEMA
from tests.spark.versions import FAILED

pytestmark = pytest.mark.spark
UTC = {
    **INTERPRETED,
    "spark.sql.session.timeZone": "UTC",
}
LAX = {**UTC, "spark.sql.ansi.enabled": "false"}
FILE = "file of the row"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """Two rows a file, of columns of every type."""
    spark.sparkContext.setLogLevel("OFF")  # many conditions fail, and are meant to
    folder = tmp_path_factory.mktemp("catalogue") / "table"
    rows = list(zip(*VALUES.values(), strict=True))
    with settings(spark, UTC):
        frame = spark.createDataFrame(rows, SCHEMA).repartitionByRange(3, "l", "i")
        frame.write.parquet(str(folder))
    return sx.build_indexes(folder, {"*": "bitmap"}, workers=1).table


@pytest.fixture(scope="module")
def frame(spark: SparkSession, table: sx.Table) -> DataFrame:
    return spark.read.parquet(table.state.location.spark_path())


def truth(
    frame: DataFrame, conditions: Sequence[str | Column]
) -> Iterator[dict[str, int] | None]:
    """The matching rows of every file; None where Spark fails when it runs."""
    files = dict.fromkeys(frame.inputFiles(), 0)
    some = [sf.expr(x) if isinstance(x, str) else x for x in conditions]
    named = [condition.alias(f"c{i}") for i, condition in enumerate(some)]
    try:
        rows = frame.select(sf.input_file_name().alias(FILE), *named).collect()
    except FAILED:
        if len(conditions) == 1:
            yield None
            return
        half = len(conditions) // 2
        yield from truth(frame, conditions[:half])
        yield from truth(frame, conditions[half:])
        return
    for i in range(len(conditions)):
        counts = Counter({unquote(file).rpartition("/")[2]: 0 for file in files})
        for row in rows:
            counts[unquote(row[FILE]).rpartition("/")[2]] += row[f"c{i}"] is True
        yield dict(counts)


def swept(
    frame: DataFrame, table: sx.Table, texts: Sequence[str]
) -> tuple[int, int, dict[str, str]]:
    """Plans of all texts that Spark takes: how many, how many ran, what failed."""
    taken = [text for text in dict.fromkeys(texts) if accepted(frame, text)]
    plans, failed = {}, {}
    for text in taken:
        try:
            plans[text] = table.plan(text, timezone="UTC")
        except Exception as error:  # noqa: BLE001 (that is what is looked for)
            failed[text] = repr(error)
    ran = 0
    # As one column of many, window() drops rows for all of them.
    apart = ("(SELECT", "rand", "window(")
    listed = [text for text in plans if not any(word in text for word in apart)]
    for start in range(0, len(listed), 200):
        part = listed[start : start + 200]
        for text, counts in zip(part, truth(frame, part), strict=True):
            if counts is None:
                continue
            ran += 1
            try:
                check(plans[text], counts, text)
            except AssertionError as error:
                failed[text] = str(error)
    return len(taken), ran, failed


def test_some_texts_of_every_kind(
    spark: SparkSession, frame: DataFrame, table: sx.Table
) -> None:
    check_texts(spark, frame, table, TEXTS[1::12])


@pytest.mark.slow
def test_texts_of_every_kind(
    spark: SparkSession, frame: DataFrame, table: sx.Table
) -> None:
    check_texts(spark, frame, table, TEXTS)


def check_texts(
    spark: SparkSession, frame: DataFrame, table: sx.Table, texts: Sequence[str]
) -> None:
    with settings(spark, LAX):
        n_taken, n_ran, failed = swept(frame, table, texts)
    assert not failed, "\n".join(f"{k}: {v}" for k, v in failed.items())
    assert n_taken > 0.9 * len(texts)
    assert n_ran > 0.9 * n_taken


def called(
    spark: SparkSession,
    frame: DataFrame,
    table: sx.Table,
    *,
    each: int,
    seed: int,
    every: int = 1,
) -> int:
    """How many conditions on calls of functions Spark took; all plans were right."""
    with settings(spark, LAX):
        texts = list(calls(spark, frame, each=each, seed=seed, every=every))
        n_taken, n_ran, failed = swept(frame, table, texts)
    assert not failed, "\n".join(f"{k}: {v}" for k, v in failed.items())
    assert n_ran > 0.7 * n_taken
    return n_taken


def test_calls_of_some_functions(
    spark: SparkSession, frame: DataFrame, table: sx.Table
) -> None:
    assert called(spark, frame, table, each=2, seed=3, every=16) > 20


@pytest.mark.slow
@pytest.mark.parametrize(("each", "seed"), [(6, 1), (24, 2)])
def test_calls_of_all_functions(
    spark: SparkSession, frame: DataFrame, table: sx.Table, each: int, seed: int
) -> None:
    n_taken = called(spark, frame, table, each=each, seed=seed)
    print(f"{n_taken} conditions")
    assert n_taken > 40 * each


@pytest.mark.slow
def test_columns_of_every_kind(
    spark: SparkSession, frame: DataFrame, table: sx.Table
) -> None:
    wrong = {}
    with settings(spark, LAX):
        for name, make in COLUMNS.items():
            column = make()
            assert accepted(frame, column), name
            plan = table.plan(column, timezone="UTC")
            plan.explain()
            found = plan.read(spark).count(), plan.count(spark)
            (n,) = {frame.where(column).count()}
            low, high = plan.count_bounds
            if found != (n, n) or not low <= n <= (n if high is None else high):
                wrong[name] = (found, n, plan.count_bounds, plan.where)
    assert wrong == {}
