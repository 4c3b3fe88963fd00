"""The layouts and the indexes that the benchmark compares.

*Unordered* is the flat table as it was generated, in the order of the orders.  The
other layouts hold the same rows in another order: along a Hilbert curve over the four
columns that the queries filter on most, along a curve that is chosen for the 13
queries, or with the answers of the 13 queries put together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.build.column_requests import Request
from ssb.data.generate import Dataset, Log
from ssb.files import is_written
from ssb.queries import QUERIES

CLUSTER_BY: Final = ("c_city", "s_city", "p_brand1", "lo_orderdate")
CURVE: Final = "hilbert"
WORKLOAD: Final = "workload"
ANSWERS: Final = "answers"
UNORDERED: Final = "unordered"
ASKED: Final = [query.where for query in QUERIES]
STATISTICS_ALONE: Final[Request] = {"*": "minmax"}

LAYOUTS: Final[Mapping[str, tuple[str, Sequence[str] | sx.Workload]]] = {
    CURVE: (f"clustered along a {CURVE} curve", CLUSTER_BY),
    WORKLOAD: (
        "clustered along a curve that is chosen for the 13 queries",
        sx.Workload(ASKED, method="curve"),
    ),
    ANSWERS: (
        "laid out by the answers of the 13 queries",
        sx.Workload(ASKED, method=ANSWERS),
    ),
}
"""What the rows are laid out by, and how the report calls it, by name."""

_EXACT_AND_BLOOM: Final = ["exact", "bloom"]

INDEXES: Final[Request] = {
    "d_year": "exact",
    "d_yearmonthnum": "exact",
    "d_yearmonth": _EXACT_AND_BLOOM,
    "d_weeknuminyear": "exact",
    "lo_orderdate": "exact",
    "lo_discount": "exact",
    "lo_quantity": "exact",
    "lo_custkey": _EXACT_AND_BLOOM,
    "lo_ordtotalprice": _EXACT_AND_BLOOM,
    "lo_extendedprice": "exact",
    "lo_revenue": _EXACT_AND_BLOOM,
    "c_region": "exact",
    "c_nation": "exact",
    "c_city": _EXACT_AND_BLOOM,
    "s_region": "exact",
    "s_nation": "exact",
    "s_city": _EXACT_AND_BLOOM,
    "p_mfgr": "exact",
    "p_category": "exact",
    "p_brand1": _EXACT_AND_BLOOM,
}
"""A row-level index on every column that a query filters on, and a bloom filter
where one is asked for equality."""


_SECONDS: Final = "_seconds"
"""The file beside the data that says how long they took to write."""


def layouts(
    dataset: Dataset, spark: SparkSession, *, log: Log, other: str = CURVE
) -> Mapping[str, sx.Table]:
    """Both layouts by what they are; the other one is written where it is missing.

    Args:
        dataset: of SSB.
        spark: the session that writes.
        log: told before anything is written.
        other: one of ``LAYOUTS``.
    """
    path = written(dataset, spark, log=log, name=other)
    return {
        UNORDERED: sx.open_table(dataset.flat),
        LAYOUTS[other][0]: sx.open_table(path),
    }


def written(dataset: Dataset, spark: SparkSession, *, log: Log, name: str) -> Path:
    """The folder of a layout, which is written where it is missing.

    Args:
        dataset: of SSB.
        spark: the session that writes.
        log: told before anything is written.
        name: one of ``LAYOUTS``.
    """
    path = folder_of(dataset, name)
    what, by = LAYOUTS[name]
    if not is_written(path):
        log(f"writing the table {what}")
        seconds = write_along(spark, dataset, path, by)
        (path / _SECONDS).write_text(f"{seconds:.1f}\n")
    return path


def write_along(
    spark: SparkSession,
    dataset: Dataset,
    path: Path,
    by: Sequence[str] | sx.Workload,
    curve: str = CURVE,
) -> float:
    """Write the rows of the flat table along a curve; the seconds that it takes.

    Args:
        spark: the session that writes.
        dataset: of SSB.
        path: of the table, which is replaced.
        by: columns, or what the layout is for.
        curve: its name.
    """
    layout = sx.Clustering(by=by, curve=curve, rows_per_file=dataset.rows_per_file)
    rows = flat_rows(spark, dataset)
    began = time.perf_counter()
    sx.write_table(rows, path, layout=layout, indexes=STATISTICS_ALONE, overwrite=True)
    return time.perf_counter() - began


def flat_rows(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """The flat table as it was generated."""
    return spark.read.parquet(str(dataset.flat))


def folder_of(dataset: Dataset, name: str) -> Path:
    """The folder of a layout, whether it is there or not."""
    return dataset.path / f"lineorder_flat_{name}"


def seconds_to_write(path: Path) -> float | None:
    """How long it took to write a layout; None if that was not stored."""
    stored = path / _SECONDS
    return float(stored.read_text()) if stored.exists() else None
