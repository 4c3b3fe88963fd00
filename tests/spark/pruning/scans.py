"""What the scans of a query read, by Spark's own metrics, with and without pruning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession


def nodes(df: DataFrame, root: Any = None) -> Iterator[Any]:
    """The plan that ran, with its subqueries and cached frames; each node once.

    With ``root``, that plan.
    """
    jvm = df.sparkSession._jvm
    pending, seen = [root or df._jdf.queryExecution().executedPlan()], set()
    while pending:
        node = pending.pop()
        # The ids of nodes are no help: stages of each adaptive plan begin with 0.
        identity = jvm.java.lang.System.identityHashCode(node)
        if identity in seen:
            continue
        seen.add(identity)
        yield node
        kind = node.getClass().getSimpleName()
        if kind == "AdaptiveSparkPlanExec":
            pending.append(node.executedPlan())
        elif kind.endswith("QueryStageExec"):
            pending.append(node.plan())
        elif kind == "CommandResultExec":
            pending.append(node.commandPhysicalPlan())
        elif kind == "InMemoryTableScanExec":
            pending.append(node.relation().cachedPlan())
        for children in (node.children(), node.subqueries()):
            pending += [children.apply(i) for i in range(children.size())]


def scans(df: DataFrame, root: Any = None) -> list[Any]:
    """The scans of files in the plan that ran, in its subqueries and cached frames."""
    return [
        node
        for node in nodes(df, root)
        if node.getClass().getSimpleName() == "FileSourceScanExec"
    ]


def shown(df: DataFrame) -> dict[str, int]:
    """The metrics of the nodes of ours in the plan that ran."""
    found: dict[str, int] = {}
    for node in nodes(df):
        if node.getClass().getName().startswith("skipindex."):
            for one in (pairs := node.metrics().iterator()) and iter(pairs.next, None):
                found[one._1()] = one._2().value()
                if not pairs.hasNext():
                    break
    return found


def files_read(df: DataFrame, table: str = "") -> int:
    """How many files the scans of a query read, by the metrics of its first run.

    Args:
        df: the query.
        table: a part of the path of those scans that count.
    """
    df.collect()
    return files_of_run(df, table)


def files_of_run(df: DataFrame, table: str = "") -> int:
    """How many files the scans of a query read when it ran, once.

    Args:
        df: the query.
        table: as for ``files_read``.
    """
    return sum(
        scan.metrics().apply("numFiles").value()
        for scan in scans(df)
        if table in str(scan.relation().location().rootPaths().apply(0))
    )


def rows_of(df: DataFrame) -> list[Row]:
    return sorted(df.collect(), key=str)


@contextmanager
def set_for(spark: SparkSession, these: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session for a while; those that were not set are unset again."""
    before = {name: spark.conf.get(name, None) for name in these}
    try:
        for name, value in these.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)


def _run(df: DataFrame, table: str) -> tuple[list[Row], int]:
    """The rows of a query and the files that its scans read, of one run."""
    return rows_of(df), files_of_run(df, table)


def with_and_without(
    spark: SparkSession, query: Callable[[], DataFrame], table: str = ""
) -> tuple[list[Row], int, int]:
    """The rows of a query, and the files it reads with and without skipping."""
    spark.conf.set("skipindex.enabled", "false")
    expected, all_files = _run(query(), table)
    spark.conf.set("skipindex.enabled", "true")
    rows, some_files = _run(query(), table)
    assert rows == expected
    return expected, some_files, all_files


def same_rows(spark: SparkSession, query: Callable[[], DataFrame]) -> DataFrame:
    """A query that ran with skipping, and has the rows that it has without."""
    with set_for(spark, {"skipindex.enabled": "false"}):
        expected = [*map(str, rows_of(query()))]
    df = query()
    assert [*map(str, rows_of(df))] == expected
    return df


def dataset_of(spark: SparkSession, plan: object) -> DataFrame:
    """What a library makes that plans by itself: a frame of an optimized plan."""
    assert spark._jvm is not None
    sql = spark._jvm.org.apache.spark.sql
    package = sql.classic if spark.version >= "4" else sql
    return DataFrame(package.Dataset.ofRows(spark._jsparkSession, plan), spark)
