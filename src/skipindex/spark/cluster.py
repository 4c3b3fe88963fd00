"""Clustering of a DataFrame: partition i becomes data file i."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema

from skipindex.errors import LayoutError
from skipindex.layout.clustering import Clustering
from skipindex.spark._columns import column, require_order, resolve
from skipindex.spark._partition import by_number, labels
from skipindex.spark._place import place_column
from skipindex.spark._router import Router
from skipindex.spark.ship import ship_package

SAMPLE_ROWS: Final = 200_000
"""About 2 % noise in the size of a file at 100 files, 6 % at 1000."""

_SEED: Final = 20_260_101
"""Fixed, so that the same rows are sampled and laid out alike every time."""


def cluster(
    df: DataFrame,
    *,
    by: Sequence[str],
    n_files: int,
    curve: str = "hilbert",
    sort_within: Sequence[str] | None = None,
    partition_by: Sequence[str] = (),
    n_rows: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> DataFrame:
    """Return the same rows in ``n_files`` partitions that follow a curve.

    Rows, schema, column order, nullability and column metadata are those of
    ``df``.  Written as it is, every partition gives one data file (and one for each
    value of ``partition_by`` in it), numbered along the curve.  A row goes by its
    content alone, so a task that Spark repeats sends it to the same file.

    The clustering columns are read once now, for the sample (twice, to count,
    without ``n_rows``); all columns are read once when the result is used.

    Args:
        df: any batch DataFrame.
        by: clustering columns, in order of importance; two to four work best.
        n_files: how many partitions to make.  They hold nearly equal numbers of
            rows; rows alike in every column always share one.
        curve: ``"hilbert"``, ``"zorder"`` or ``"linear"``.
        sort_within: order of rows inside a file; None is along the curve.
        partition_by: hive partition columns of the table to be written.  They
            come before the curve, so that each value is in few files.
        n_rows: the number of rows of ``df``, if known.
        sample_rows: how many rows to sample, about.

    Raises:
        LayoutError: if a column is missing, named twice or has no order, if there
            is no such curve, or if ``n_files`` is below 1.
    """
    clustering = fit_clustering(
        df,
        by=by,
        n_files=n_files,
        curve=curve,
        partition_by=partition_by,
        n_rows=n_rows,
        sample_rows=sample_rows,
    )
    return apply_clustering(
        df, clustering, sort_within=sort_within, partition_by=partition_by
    )


def fit_clustering(
    df: DataFrame,
    *,
    by: Sequence[str],
    n_files: int,
    curve: str = "hilbert",
    partition_by: Sequence[str] = (),
    n_rows: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Clustering:
    """Return the clustering that a sample of ``df`` suggests; see ``cluster``."""
    named = resolve(df, by, role="cluster by")
    parts = resolve(df, partition_by, role="partition by")
    for name in named:
        if name in parts:
            msg = (
                f"cannot cluster by partition column {name!r}: "
                f"a file holds one value of it"
            )
            raise LayoutError(msg)
    columns = (*named, *parts)
    for name in columns:
        require_order(df.schema[name])
    keys = df.select(*map(column, columns))
    if n_rows is None:
        n_rows = keys.count()
    if n_rows > sample_rows:
        keys = keys.sample(fraction=sample_rows / n_rows, seed=_SEED)
    return Clustering.fit(
        _to_arrow(keys), named, n_files=n_files, curve=curve, partition_by=parts
    )


def apply_clustering(
    df: DataFrame,
    clustering: Clustering,
    *,
    sort_within: Sequence[str] | None = None,
    partition_by: Sequence[str] = (),
) -> DataFrame:
    """Return the rows where the clustering puts them; see ``cluster``."""
    ship_package(df.sparkSession)
    first = resolve(df, partition_by, role="partition by")
    inner = resolve(df, sort_within or (), role="sort within files by")
    n_files = clustering.cuts.n_files
    router = Router(clustering, labels(n_files))

    place = _unused_name(df)
    placed = df.withColumn(place, place_column(df, router))
    sent = by_number(placed, n_files, sf.col(f"{place}.label"))
    # The partition columns come first because Spark's writer wants them so.
    order = [column(name) for name in (*first, *inner)]
    if not inner:
        order.append(sf.col(f"{place}.key"))
    return sent.sortWithinPartitions(*order).drop(place)


def _to_arrow(df: DataFrame) -> pa.Table:
    if hasattr(df, "toArrow"):
        return df.toArrow()
    # What toPandas does before Spark 4.0.
    batches = df._collect_as_arrow()  # type: ignore[operator]  # noqa: SLF001
    if batches:
        return pa.Table.from_batches(batches)
    return to_arrow_schema(df.schema).empty_table()


def _unused_name(df: DataFrame) -> str:
    taken = {name.casefold() for name in df.columns}
    return next(name for i in count() if (name := f"_place{i}") not in taken)
