"""Appending rows to a table in the layout that it has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from skipindex.errors import LayoutError, TableError
from skipindex.indexes._runners import Progress
from skipindex.indexes.build import Request, build
from skipindex.layout import QueryTree, n_files_for
from skipindex.rewrite.candidates import present_indexes
from skipindex.spark._columns import column, resolve
from skipindex.spark.build import SparkRunner
from skipindex.spark.cluster import apply_clustering, cluster
from skipindex.storage.location import Location
from skipindex.table import Table, open_table


def append(
    df: DataFrame,
    table: Table | Location | str | os.PathLike[str],
    *,
    indexes: Request | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Table:
    """Add the rows of ``df`` as new files, laid out and indexed as the others are.

    A query tree sends them the ways that it sent the first rows; other clusterings
    are fitted to the new rows.  No file that is there is changed, and until the
    call ends the new ones are read by every query.

    Args:
        df: rows with the columns of the table, in any order.
        table: what ``write_table`` wrote.
        indexes: as for ``build_indexes``; None is the indexes that the table has.
        options: for Spark's Parquet writer, such as ``compression``.
        progress: called with the number of index tasks done and of all.

    Raises:
        TableError: there is no such table, or its columns are not those of ``df``.
        LayoutError: nothing says how the table is laid out.
    """
    opened = open_table(table).refresh()
    layout = opened.snapshot.properties.get("layout")
    if not isinstance(layout, dict):
        raise LayoutError(
            f"{opened.location.full('')!r} has no layout of its own (append to it "
            "with Spark, and call build_indexes)"
        )
    names = [info.name for info in opened.columns]
    if sorted(names) != sorted(df.columns):
        raise TableError(
            f"cannot append columns {sorted(df.columns)} to {sorted(names)}"
        )
    parts: list[str] = layout.get("partition_by", [])
    laid_out = _laid_out(df.select(*map(column, names)), layout, parts)
    writer = laid_out.write.mode("append").options(**(options or {}))
    if parts:
        writer = writer.partitionBy(*parts)
    writer.parquet(opened.location.spark_path())
    request = present_indexes(opened) if indexes is None else indexes
    runner = SparkRunner(df.sparkSession)
    return build(opened.refresh(), request, runner=runner, progress=progress).table


def _laid_out(df: DataFrame, layout: Mapping[str, Any], parts: list[str]) -> DataFrame:
    within = layout.get("sort_within") or None
    if "tree" in layout:
        tree = QueryTree.from_json(layout["tree"])
        return apply_clustering(df, tree, sort_within=within, partition_by=parts)
    if layout.get("cluster_by") and layout.get("curve"):
        n_rows = df.count()
        return cluster(
            df,
            by=layout["cluster_by"],
            curve=layout["curve"],
            n_files=n_files_for(n_rows, layout["rows_per_file"]),
            n_rows=n_rows,
            sort_within=within,
            partition_by=parts,
        )
    if within:
        names = resolve(df, within, role="sort by")
        return df.sortWithinPartitions(*map(column, names))
    return df
