"""The star form: unchanged SQL over five tables, before and after ``sx.enable``.

The fact table has three layouts: the order of generation, the files of the clustered
flat table with the fact's columns alone, and a clustering by attributes of the
dimensions that are looked up.  All are indexed by the keys of the joins.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation

import skipindex as sx
from skipindex.build.column_requests import Request
from skipindex.rewrite.selection.attributes import JoinedAttribute
from ssb.data.generate import Dataset, Log
from ssb.data.lineorder import COLUMNS
from ssb.layouts import CLUSTER_BY, INDEXES
from ssb.queries import DIMENSIONS, FACT, Query
from ssb.run import matches_of

SWITCH: Final = "skipindex.enabled"
FACT_INDEXES: Final[Request] = dict.fromkeys(
    (
        *("lo_discount", "lo_quantity", "lo_orderdate"),
        *("lo_custkey", "lo_suppkey", "lo_partkey"),
    ),
    "exact",
)
"""Of the columns that the queries join by or filter."""
ATTRIBUTES: Final = tuple(name for name in INDEXES if name[0] in DIMENSIONS)
"""Of the dimensions, what the queries filter."""


@dataclass(frozen=True, slots=True)
class StarOutcome:
    """One query on one layout of the fact table.

    Args:
        query: its name.
        files: of the fact table.
        read: files of it that the query read, plain and pruned.
        oracle: files that hold a row for which the conditions of the flat form hold.
        seconds: medians of the query from its text to its rows, plain and pruned.
        equal: whether both gave the same rows in the same order.
    """

    query: str
    files: int
    read: tuple[int, int]
    oracle: int
    seconds: tuple[float, float]
    equal: bool

    @property
    def is_right(self) -> bool:
        """The same rows in the same order, from all files that hold a match."""
        return self.equal and self.read[1] >= self.oracle

    @property
    def is_tight(self) -> bool:
        """Whether only files that hold a match were read."""
        return self.read[1] <= self.oracle


def attribute(dataset: Dataset, name: str) -> JoinedAttribute:
    """A column of a dimension, as the fact is joined with it."""
    table, key, table_key = DIMENSIONS[name[0]]
    return sx.via(key, dataset.tables[table], table_key, name)


def fact_layouts(
    spark: SparkSession, dataset: Dataset, clustered: sx.Table
) -> Mapping[str, Path]:
    """The folders of the fact table by layout; what is missing is written.

    Args:
        spark: a session.
        dataset: of SSB.
        clustered: the flat table, clustered.
    """
    return {
        "unordered": dataset.tables[FACT],
        "clustered by attributes": _as_flat(dataset, clustered),
        "clustered by attributes that are looked up": looked_up(spark, dataset),
    }


def _as_flat(dataset: Dataset, clustered: sx.Table) -> Path:
    """The fact's columns of the files of the flat table."""
    path = dataset.path / "lineorder_clustered"
    names = clustered.paths
    if not path.exists() or len(list(path.glob("*.parquet"))) != len(names):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for name in names:
            source = Path(clustered.state.location.full(name))
            rows = pq.read_table(source, columns=list(COLUMNS))
            # The metadata names the flat table's columns, and Spark believes it.
            pq.write_table(rows.replace_schema_metadata(None), path / source.name)
    return path


def looked_up(spark: SparkSession, dataset: Dataset) -> Path:
    """The fact table, clustered by what the flat one is clustered by."""
    path = dataset.path / "lineorder_looked_up"
    try:
        is_there = sx.open_table(path).state.snapshot.version >= 0
    except sx.TableError:
        is_there = False
    if not is_there:
        by = [
            attribute(dataset, name) if name in ATTRIBUTES else name
            for name in CLUSTER_BY
        ]
        sx.write_table(
            spark.read.parquet(str(dataset.tables[FACT])),
            path,
            layout=sx.Clustering(
                by=by, rows_per_file=-(-dataset.n_rows // dataset.n_files)
            ),
            indexes={"*": "minmax"},
            overwrite=True,
        )
    return path


def joined(spark: SparkSession, dataset: Dataset, fact: Path) -> DataFrame:
    """The rows of the fact, their ``file``, and the attributes of all dimensions."""
    rows = spark.read.parquet(str(fact)).withColumn(
        "file", F.col("_metadata.file_name")
    )
    for name, key, table_key in DIMENSIONS.values():
        dimension = spark.read.parquet(str(dataset.tables[name]))
        rows = rows.join(dimension, F.col(key) == F.col(table_key), "left")
    return rows


def define_views(spark: SparkSession, dataset: Dataset, fact: Path) -> None:
    """The five tables as temporary views, under the names of the benchmark."""
    for name, _, _ in DIMENSIONS.values():
        frame = spark.read.parquet(str(dataset.tables[name]))
        frame.createOrReplaceTempView(name)
    spark.read.parquet(str(fact)).createOrReplaceTempView(FACT)


def run_star(
    spark: SparkSession,
    dataset: Dataset,
    fact: Path,
    queries: Sequence[Query],
    *,
    repeat: int,
    log: Log,
) -> list[StarOutcome]:
    """Run ``queries`` on one layout, plain and pruned in turn, ``repeat`` times each.

    Args:
        spark: a session; skipping is enabled on it for the time of the call.
        dataset: of SSB.
        fact: the layout's folder, with its indexes.
        queries: to run.
        repeat: how often.
        log: told about every query.
    """
    truth = matches_of(joined(spark, dataset, fact), queries)
    files = len(sx.open_table(fact))
    outcomes = []
    sx.enable(spark)
    try:
        define_views(spark, dataset, fact)
        for i, query in enumerate(queries, 1):
            plain, pruned = interleaved(spark, query.star_sql(), repeat=repeat)
            outcomes.append(
                StarOutcome(
                    query.name,
                    files,
                    read=(
                        plain.files.get(fact.name, 0),
                        pruned.files.get(fact.name, 0),
                    ),
                    oracle=len(truth[query.name]),
                    seconds=(plain.seconds, pruned.seconds),
                    equal=plain.rows == pruned.rows,
                )
            )
            log(f"{i} of {len(queries)}: {query.name}")
    finally:
        sx.disable(spark)
    return outcomes


@dataclass(frozen=True, slots=True)
class Answer:
    """What a text gave.

    Args:
        rows: of the answer.
        files: that its scans read, by the name of the folder.
        seconds: the median, from the text to the rows.
    """

    rows: Sequence[tuple[Any, ...]]
    files: Mapping[str, int]
    seconds: float

    def read(self, folder: Path) -> int:
        """The files of a folder that were read."""
        return self.files.get(folder.name, 0)


def interleaved(
    spark: SparkSession, text: str, *, repeat: int
) -> tuple[Answer, Answer]:
    """The answers without and with skipping, in turn; a first pair is not timed."""
    timed: dict[bool, list[float]] = {False: [], True: []}
    answers: dict[bool, tuple[list[tuple[Any, ...]], Mapping[str, int]]] = {}
    for turn in range(-1, repeat):
        for on in (False, True):
            spark.conf.set(SWITCH, str(on).lower())
            began = time.perf_counter()
            df = spark.sql(text)
            rows = [tuple(row) for row in df.collect()]
            if turn >= 0 or repeat == 1:
                timed[on].append(time.perf_counter() - began)
            answers[on] = (rows, files_read(df))
    spark.conf.unset(SWITCH)
    plain, pruned = (Answer(*answers[on], median(timed[on])) for on in (False, True))
    return plain, pruned


def files_read(df: DataFrame, metric: str = "numFiles") -> dict[str, int]:
    """How many files the scans of a query that ran have read, by folder.

    By the metrics of Spark's own scans; ``"filesSize"`` is the bytes of those files.
    """
    found: dict[str, int] = {}

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
            found[folder] = found.get(folder, 0) + n
        for nodes in (node.children(), node.subqueries()):
            for i in range(nodes.size()):
                visit(nodes.apply(i))

    visit(df._jdf.queryExecution().executedPlan())  # noqa: SLF001 (no public name)
    return found
