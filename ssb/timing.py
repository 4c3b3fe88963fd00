"""Unchanged SQL through Spark, unpruned and pruned in turn."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from ssb.grid.records import TimedQuery

SWITCH: Final = "skipindex.enabled"
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
    texts: Sequence[tuple[str, str]],
    *,
    rounds: int,
    folder: Path | None = None,
    ordered: bool = False,
    log: Callable[[str], None] = lambda _: None,
) -> tuple[TimedQuery, ...]:
    """Run each text without and with skipping, in turn, ``rounds`` times.

    A first pair of runs is metered and not timed; it also warms up the JVM and the
    page cache for both sides alike.

    Args:
        spark: a session; skipping is enabled on it for the time of the call.
        texts: names and SQL of the queries.
        rounds: timed runs of each side.
        folder: of the table whose files are counted; None is of all tables.
        ordered: whether rows must come in the same order.
        log: told about every query.
    """
    sx.enable(spark)
    try:
        timed = []
        for i, (name, text) in enumerate(texts, 1):
            timed.append(_timed(spark, folder, name, text, rounds, ordered=ordered))
            log(f"{i} of {len(texts)}: {name}")
        return tuple(timed)
    finally:
        spark.conf.unset(SWITCH)
        sx.disable(spark)


def _timed(
    spark: SparkSession,
    folder: Path | None,
    name: str,
    text: str,
    rounds: int,
    *,
    ordered: bool,
) -> TimedQuery:
    sides = {on: _Side() for on in (False, True)}
    for turn in range(-1, rounds):
        for on, side in sides.items():
            spark.conf.set(SWITCH, str(on).lower())
            if turn < 0:
                with _metered(spark, side):
                    df = spark.sql(text)
                    df.collect()
                read = files_read(df)
                side.files = sum(read.values()) if folder is None else read[folder.name]
                continue
            began = time.perf_counter()
            rows = spark.sql(text).collect()
            side.seconds.append(time.perf_counter() - began)
            side.rows = list(map(tuple, rows))
            if not ordered:
                side.rows.sort(key=repr)
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


def files_read(df: DataFrame, metric: str = "numFiles") -> Counter[str]:
    """How many files the scans of a query that ran have read, by folder.

    By the metrics of Spark's own scans; ``"filesSize"`` is the bytes of those files.
    """
    found: Counter[str] = Counter()

    def visit(node: Any) -> None:
        name = node.getClass().getSimpleName()
        inner: Callable[[], Any] | None = None
        if name == "AdaptiveSparkPlanExec":
            inner = node.executedPlan
        elif name.endswith("QueryStageExec"):
            inner = node.plan
        if inner is not None:
            visit(inner())
        if name == "FileSourceScanExec":
            folder = Path(str(node.relation().location().rootPaths().apply(0))).name
            n = int(node.metrics().apply(metric).value())
            found[folder] += n
        for nodes in (node.children(), node.subqueries()):
            for i in range(nodes.size()):
                visit(nodes.apply(i))

    visit(df._jdf.queryExecution().executedPlan())  # noqa: SLF001 (no public name)
    return found
