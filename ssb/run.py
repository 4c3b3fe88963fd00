"""The skipping benchmark: which files each query needs, and is the answer right.

For every layout and query it counts the files that are kept with min/max, with
bloom filters beside them, and with row-level bitmaps too, next to the *oracle*:
the files that truly hold a matching row, found by scanning all of them.  Then the
query runs on the whole table and on the plan, and the answers are compared.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation

import skipindex as sx
from ssb.data.generate import Log
from ssb.queries import Query

KINDS = {
    "minmax": ("minmax",),
    "bloom": ("minmax", "bloom"),
    "bitmaps": None,
}
"""The kinds that each column of the report may use; None is all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query on one layout.

    Args:
        query: its name.
        matched: rows for which its condition is TRUE.
        files: of the table.
        kept: files kept by the kinds of ``KINDS``.
        oracle: files that hold a matching row.
        lost: files that hold a matching row and were skipped; must be empty.
        n_bytes: of all files, and of those read.
        plan_seconds: to plan with all kinds, the least of some times.
        seconds: of the query on the whole table, and on the plan with planning.
        equal: whether both gave the same rows.
        counted: between how many and how many rows match, as the plan says.
    """

    query: str
    matched: int
    files: int
    kept: Mapping[str, int]
    oracle: int
    lost: tuple[str, ...]
    n_bytes: tuple[int, int]
    plan_seconds: float
    seconds: tuple[float, float]
    equal: bool
    counted: tuple[int, int | None]

    @property
    def is_right(self) -> bool:
        """No file with a match was skipped, and the answers are the same."""
        low, high = self.counted
        enclosed = low <= self.matched and (high is None or self.matched <= high)
        return self.equal and not self.lost and enclosed

    @property
    def is_tight(self) -> bool:
        """With bitmaps, only files that hold a match were kept, and all counted."""
        known = self.counted == (self.matched, self.matched)
        return self.kept["bitmaps"] == self.oracle and known


def run_layout(
    spark: SparkSession,
    table: sx.Table,
    queries: Sequence[Query],
    *,
    repeat: int,
    log: Log,
) -> list[Outcome]:
    """Run ``queries`` on one layout, each ``repeat`` times; the fastest counts."""
    log(f"scanning {len(table)} files for the truth")
    truth = matches_per_file(spark, table, queries)
    outcomes = []
    for i, query in enumerate(queries, 1):
        outcomes.append(_run_query(spark, table, query, truth[query.name], repeat))
        log(f"{i} of {len(queries)}: {query.name}")
    return outcomes


def matches_per_file(
    spark: SparkSession, table: sx.Table, queries: Sequence[Query]
) -> dict[str, dict[str, int]]:
    """For every query the files with a matching row, and how many each holds."""
    whole = spark.read.parquet(table.state.location.spark_path())
    return matches_of(whole.withColumn("file", F.col("_metadata.file_name")), queries)


def matches_of(rows: DataFrame, queries: Sequence[Query]) -> dict[str, dict[str, int]]:
    """For every query the files with a matching row, and how many each holds.

    One scan without any filter, so that no statistics can hide a row.

    Args:
        rows: with the name of their ``file``.
        queries: what is asked.
    """
    counts = [
        F.sum(F.expr(f"CASE WHEN {q.where} THEN 1 ELSE 0 END")).alias(f"q{i}")
        for i, q in enumerate(queries)
    ]
    found: dict[str, dict[str, int]] = {query.name: {} for query in queries}
    for row in rows.groupBy("file").agg(*counts).collect():
        for i, query in enumerate(queries):
            if row[f"q{i}"]:
                found[query.name][row["file"]] = row[f"q{i}"]
    return found


def _run_query(
    spark: SparkSession,
    table: sx.Table,
    query: Query,
    truth: Mapping[str, int],
    repeat: int,
) -> Outcome:
    plans = {
        name: table.plan(query.where, kinds=kinds) for name, kinds in KINDS.items()
    }
    plan = plans["bitmaps"]
    kept = set(plan.paths)

    def whole() -> DataFrame:
        return spark.read.parquet(table.state.location.spark_path())

    def pruned() -> DataFrame:
        return table.plan(query.where).read(spark)

    timings: list[tuple[float, float]] = []
    plan_seconds = float("inf")
    for _ in range(repeat):
        began = time.perf_counter()
        len(table.plan(query.where).paths)
        plan_seconds = min(plan_seconds, time.perf_counter() - began)
        seconds_whole, expected = _timed(spark, query, whole)
        seconds_pruned, answer = _timed(spark, query, pruned)
        timings.append((seconds_whole, seconds_pruned))
    return Outcome(
        query=query.name,
        matched=sum(truth.values()),
        files=len(table),
        kept={name: len(p.paths) for name, p in plans.items()},
        oracle=len(truth),
        lost=tuple(sorted(set(truth) - kept)),
        n_bytes=(int(table.state.sizes.sum()), sum(task.size for task in plan.tasks)),
        plan_seconds=plan_seconds,
        seconds=(min(w for w, _ in timings), min(p for _, p in timings)),
        equal=_same_rows(expected, answer),
        counted=plan.count_bounds,
    )


def _timed(
    spark: SparkSession, query: Query, source: Callable[[], DataFrame]
) -> tuple[float, list[tuple[object, ...]]]:
    """Seconds from the source to the rows of the answer, and these rows."""
    began = time.perf_counter()
    source().createOrReplaceTempView("ssb_source")
    rows = spark.sql(query.sql("ssb_source")).collect()
    return time.perf_counter() - began, [tuple(row) for row in rows]


def _same_rows(
    a: Iterable[tuple[object, ...]], b: Iterable[tuple[object, ...]]
) -> bool:
    """The same rows the same number of times; ties may come in any order."""
    return Counter(a) == Counter(b)
