"""What Spark says of each row of the tables of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.conditions.catalogue.entries import (
    ANSI,
    BASE,
    FAILS,
    VARIES,
    Entry,
    with_truth,
)
from tests.conditions.catalogue.judges import doubt_of, is_refused, plan_of
from tests.conditions.catalogue.tables import rows_of, table_of
from tests.quick_run import NO_CODEGEN
from tests.spark.reading.whole import NO_PUSHDOWN, ZONE, settings
from tests.spark.versions import FAILED

SIGNS: Final = {True: "+", False: "-", None: "?"}
ALONE: Final = ("(select", "rand", "window(")
"""As one column of many, these drop or repeat rows for all of them."""
VARYING: Final = ("rand", "uuid")
_BATCH: Final = 200
"""Conditions that are asked by one job."""


@contextmanager
def session(spark: SparkSession, zone: str, *, ansi: bool) -> Iterator[None]:
    """The settings of a session for a while."""
    own = {ZONE: zone, "spark.sql.ansi.enabled": str(ansi).lower()}
    with settings(spark, {**NO_PUSHDOWN, **NO_CODEGEN, **own}):
        yield


def frame_of(spark: SparkSession, table: str, *, calm: bool = False) -> DataFrame:
    """The rows of a table, all or those that ANSI mode can compute with."""
    frame = spark.read.parquet(table_of(table).state.location.spark_path())
    spark.range(5).selectExpr("id k").createOrReplaceTempView("u")
    rows = rows_of(table)
    return (frame.where(f"nr < {rows.n_calm}") if calm else frame).alias("t")


def is_taken(frame: DataFrame, text: str) -> bool:
    """Whether Spark's analyser takes a condition, as a column or in a query."""
    try:
        dtype = frame.selectExpr(f"({text}\n)").schema[0].dataType
    except FAILED:
        pass
    else:
        return dtype.simpleString() in {"boolean", "void"}
    try:
        frame.where(text)
    except FAILED:
        return False
    return True


def truths(frame: DataFrame, texts: Sequence[str]) -> list[str]:
    """What Spark says of each row by each condition; ``FAILS`` where it fails."""
    if not texts:
        return []
    if len(texts) > _BATCH:
        return truths(frame, texts[:_BATCH]) + truths(frame, texts[_BATCH:])
    columns = [sf.expr(f"({text}\n)").alias(f"c{i}") for i, text in enumerate(texts)]
    try:
        rows = frame.select("nr", *columns).collect()
    except FAILED:
        if len(texts) == 1:
            return [FAILS]
        half = len(texts) // 2
        return truths(frame, texts[:half]) + truths(frame, texts[half:])
    rows.sort(key=lambda row: row["nr"])
    return ["".join(SIGNS[row[i + 1]] for row in rows) for i in range(len(texts))]


def filtered(frame: DataFrame, text: str) -> str:
    """The same by two filters, for what may be no column: a subquery."""
    found: dict[int, str] = {}
    try:
        for sign, condition in (("+", text), ("-", f"NOT ({text}\n)")):
            rows = frame.where(condition).select("nr").collect()
            found.update(dict.fromkeys((row["nr"] for row in rows), sign))
        numbers = [row["nr"] for row in frame.select("nr").collect()]
    except FAILED:
        return FAILS
    return "".join(found.get(number, "?") for number in sorted(numbers))


def said(
    spark: SparkSession, table: str, zone: str, texts: Sequence[str], *, ansi: bool
) -> dict[str, str]:
    """What Spark says by each condition that it takes; ANSI mode of calm rows."""
    with session(spark, zone, ansi=ansi):
        frame = frame_of(spark, table, calm=ansi)
        taken = [text for text in dict.fromkeys(texts) if is_taken(frame, text)]
        alone = [text for text in taken if any(one in text.lower() for one in ALONE)]
        many = [text for text in taken if text not in alone]
        found = dict(zip(many, truths(frame, many), strict=True))
        found |= {text: filtered(frame, text) for text in alone}
        found |= {t: VARIES for t in taken if any(one in t for one in VARYING)}
    return found


def asked(
    spark: SparkSession, some: Sequence[Entry], name: str = BASE
) -> Iterator[Entry]:
    """The conditions with what Spark says, and of the newest version our own marks.

    Args:
        spark: the session.
        some: conditions, those of a table and zone together.
        name: ``BASE``, or the number of an older version.

    What the newest version does not take stays without rows.
    """
    for (table, zone), group in groupby(some, lambda one: (one.table, one.zone)):
        own = list(group)
        texts = [one.text for one in own]
        base = said(spark, table, zone, texts, ansi=False)
        ansi = said(spark, table, zone, texts, ansi=True) if name == BASE else {}
        for entry in own:
            text = entry.text
            if name != BASE:
                yield with_truth(entry, name, base.get(text, FAILS))
                continue
            if text not in base:
                yield entry
                continue
            known = with_truth(entry, BASE, base[text])
            if base[text] not in {FAILS, VARIES}:
                known = with_truth(known, ANSI, ansi.get(text, FAILS))
            yield with_marks(known)


def with_marks(entry: Entry) -> Entry:
    """The condition with what a plan knows, and whether engines refuse it."""
    plan = plan_of(entry.table, entry.text, entry.zone)
    return replace(entry, doubt=doubt_of(plan), refused=is_refused(plan))
