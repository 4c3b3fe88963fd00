"""Query level of a cell: unchanged SQL through Spark, unpruned and pruned in turn."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import skipindex as sx
from ssb.grid.records import TimedQuery
from ssb.star_form import SWITCH, files_read

VECTORED: Final = "parquet.hadoop.vectored.io.enabled"
"""Vectored reads go past the counters of Spark's tasks, so a metered run has none."""


@dataclass(slots=True)
class _Side:
    """The runs of one query on one side."""

    seconds: list[float] = field(default_factory=list)
    n_bytes: int = 0
    files: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)


def time_queries(
    spark: SparkSession,
    folder: Path,
    texts: Sequence[tuple[str, str]],
    *,
    rounds: int,
) -> tuple[TimedQuery, ...]:
    """Run each text without and with skipping, in turn, ``rounds`` times.

    A first pair of runs is metered and not timed; it also warms up the JVM and the
    page cache for both sides alike.

    Args:
        spark: a session; skipping is enabled on it for the time of the call.
        folder: of the table whose files are counted.
        texts: names and SQL of the queries.
        rounds: timed runs of each side.
    """
    sx.enable(spark)
    try:
        return tuple(
            _timed(spark, folder, name, text, rounds=rounds) for name, text in texts
        )
    finally:
        spark.conf.unset(SWITCH)
        sx.disable(spark)


def _timed(
    spark: SparkSession, folder: Path, name: str, text: str, *, rounds: int
) -> TimedQuery:
    sides = {on: _Side() for on in (False, True)}
    for turn in range(-1, rounds):
        for on, side in sides.items():
            spark.conf.set(SWITCH, str(on).lower())
            if turn < 0:
                with _metered(spark, side):
                    df = spark.sql(text)
                    df.collect()
                side.files = files_read(df).get(folder.name, 0)
                continue
            began = time.perf_counter()
            rows = spark.sql(text).collect()
            side.seconds.append(time.perf_counter() - began)
            side.rows = sorted(map(tuple, rows), key=repr)
    plain, pruned = sides[False], sides[True]
    return TimedQuery(
        query=name,
        plain=tuple(plain.seconds),
        pruned=tuple(pruned.seconds),
        n_bytes=(plain.n_bytes, pruned.n_bytes),
        files=(plain.files, pruned.files),
        equal=plain.rows == pruned.rows,
    )


@contextmanager
def _metered(spark: SparkSession, side: _Side) -> Iterator[None]:
    """Count the bytes that tasks read meanwhile, as Spark counts them."""
    spark.conf.set(VECTORED, "false")
    before = input_bytes(spark)
    try:
        yield
    finally:
        spark.conf.unset(VECTORED)
        side.n_bytes = input_bytes(spark) - before


def input_bytes(spark: SparkSession) -> int:
    """The bytes that all tasks of the application have read so far."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 (no public name)
    context.listenerBus().waitUntilEmpty()  # its events come later than the rows
    executors = context.statusStore().executorList(False)
    return sum(
        int(executors.apply(i).totalInputBytes()) for i in range(executors.size())
    )
