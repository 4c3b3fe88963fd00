"""The star form: unchanged SQL over five tables, before and after ``sx.enable``.

The fact table has three layouts: the order of generation, the files of the clustered
flat table with the fact's columns alone, and a clustering by attributes of the
dimensions that are looked up.  All are indexed by the keys of the joins.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation

import skipindex as sx
from skipindex.build.column_requests import Request
from skipindex.rewrite.selection.attributes import JoinedAttribute
from ssb.data.generate import Dataset, Log
from ssb.data.lineorder import COLUMNS
from ssb.files import data_files, is_written
from ssb.layouts import CLUSTER_BY, INDEXES
from ssb.queries import DIMENSIONS, FACT, Query
from ssb.run import matches_of
from ssb.timing import time_queries

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
    if not path.exists() or len(data_files(path)) != len(names):
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
    if not is_written(path):
        by = [
            attribute(dataset, name) if name in ATTRIBUTES else name
            for name in CLUSTER_BY
        ]
        sx.write_table(
            spark.read.parquet(str(dataset.tables[FACT])),
            path,
            layout=sx.Clustering(by=by, rows_per_file=dataset.rows_per_file),
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
    define_views(spark, dataset, fact)
    texts = [(query.name, query.star_sql()) for query in queries]
    return [
        StarOutcome(
            one.query,
            files,
            read=one.files,
            oracle=len(truth[one.query]),
            seconds=(median(one.plain), median(one.pruned)),
            equal=one.equal,
        )
        for one in time_queries(
            spark, texts, folder=fact, rounds=repeat, ordered=True, log=log
        )
    ]
