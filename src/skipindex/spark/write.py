"""Writing a table: cluster, let Spark write Parquet, index, commit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame

from skipindex.advice.build import Wish, build_wished
from skipindex.errors import LayoutError, TableError
from skipindex.indexes._runners import Progress
from skipindex.indexes.build import Request
from skipindex.layout import Workload, n_files_for
from skipindex.layout import curve as named_curve
from skipindex.rewrite.planning import PROPERTY, Target, cubes_of_write
from skipindex.spark._columns import column, resolve
from skipindex.spark.build import SparkRunner
from skipindex.spark.cluster import apply_clustering, cluster, fit_workload
from skipindex.storage.location import Location, location_of
from skipindex.storage.log import Snapshot, commit
from skipindex.table import Table, check_folder, open_table, require_plain

ROWS_PER_FILE: Final = 1_000_000


def write_table(
    df: DataFrame,
    path: str | os.PathLike[str],
    *,
    cluster_by: Sequence[str] | Workload = (),
    curve: str | None = "hilbert",
    partition_by: Sequence[str] = (),
    sort_within: Sequence[str] | None = None,
    rows_per_file: int = ROWS_PER_FILE,
    balance: str = "rows",
    indexes: Request | None = None,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    plain: bool = False,
) -> Table:
    """Write ``df`` as a table of Parquet files, clustered and indexed.

    The rows, the schema and the NULLs are those of ``df``; only their order and
    their distribution over files is ours.  Any Parquet reader can read the result.

    Args:
        df: any DataFrame of a classic session; it is evaluated three times (a
            count, a sample, the write), so cache it if it is expensive.
        path: a folder that does not exist, or is empty.
        cluster_by: columns that queries filter on; two to four work best.  Or a
            ``Workload``: the queries themselves, which choose the layout.
        curve: ``"hilbert"``, ``"zorder"``, ``"linear"`` or ``"hash"``; None writes
            ``df`` in the order that it has.  A workload chooses its own.
        partition_by: hive partition columns.
        sort_within: columns to sort by inside of each file; by default the curve.
        rows_per_file: target; a file holds about as many rows.
        balance: ``"rows"``, or ``"bytes"`` for as many files of nearly equal sizes
            before encoding.
        indexes: as for ``build_indexes``: None lets the advisor choose, and
            ``{"*": "minmax"}`` builds statistics alone.
        overwrite: replace what is at ``path``.
        options: for Spark's Parquet writer, such as ``compression``.
        progress: called with the number of index tasks done and of all.
        plain: replace a table of another format too, with its log.

    Raises:
        TableError: ``path`` is a file or a table of another format, or is not empty and
            ``overwrite`` is not set.
        LayoutError: the layout is impossible.
    """
    location = location_of(path)
    _check(df, cluster_by, curve, partition_by, rows_per_file)
    check_folder(location)
    there = [file.path for file in location.list()]
    if not plain:
        require_plain(location, there, insist=True)
    if not overwrite and there:
        raise TableError(
            f"{location.full('')!r} is not empty (pass overwrite=True to replace it)"
        )
    laid_out = df
    layout: dict[str, Any] = {
        "partition_by": list(partition_by),
        "sort_within": list(sort_within or ()),
        "rows_per_file": rows_per_file,
    }
    is_clustered = isinstance(cluster_by, Workload) or bool(cluster_by and curve)
    if isinstance(cluster_by, Workload):
        n_rows = df.count()
        choice = fit_workload(
            df,
            cluster_by,
            n_files=n_files_for(n_rows, rows_per_file),
            n_rows=n_rows,
            partition_by=partition_by,
            balance=balance,
        )
        laid_out = apply_clustering(
            df, choice.layout, sort_within=sort_within, partition_by=partition_by
        )
        layout |= choice.to_json() | {"workload": cluster_by.to_json()}
    elif cluster_by and curve is not None:
        n_rows = df.count()
        laid_out = cluster(
            df,
            by=cluster_by,
            curve=curve,
            n_files=n_files_for(n_rows, rows_per_file),
            n_rows=n_rows,
            sort_within=sort_within,
            partition_by=partition_by,
            balance=balance,
        )
    elif sort_within:
        names = resolve(df, sort_within, role="sort by")
        laid_out = df.sortWithinPartitions(*map(column, names))
    writer = laid_out.write.mode("overwrite").options(**(options or {}))
    # Whatever the session says, partitions that df does not have go too.
    writer = writer.option("partitionOverwriteMode", "static")
    if not is_clustered:
        writer = writer.option("maxRecordsPerFile", rows_per_file)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(location.spark_path())
    if not isinstance(cluster_by, Workload):
        layout |= {
            "cluster_by": list(cluster_by),
            "curve": curve if cluster_by else None,
        }
    by = tuple(layout.get("cluster_by", ())) if layout.get("curve") else ()
    order = tuple(sort_within or ())
    target = Target(by, layout.get("curve") or "linear", order, rows_per_file)
    _record(location, layout, target)
    runner = SparkRunner(df.sparkSession)
    table = open_table(location)
    return build_wished(table, indexes, Wish(), runner=runner, progress=progress).table


def _check(
    df: DataFrame,
    cluster_by: Sequence[str] | Workload,
    curve: str | None,
    partition_by: Sequence[str],
    rows_per_file: int,
) -> None:
    if isinstance(cluster_by, str) or isinstance(partition_by, str):
        raise LayoutError("cluster_by and partition_by are lists of column names")
    if curve is not None:
        named_curve(curve)
    if rows_per_file < 1:
        raise LayoutError(f"rows_per_file is {rows_per_file} (expected 1 or more)")
    named = () if isinstance(cluster_by, Workload) else tuple(cluster_by)
    for name in (*named, *partition_by):
        if name not in df.columns:
            raise LayoutError(
                f"no column {name!r} to lay out by (columns: {', '.join(df.columns)})"
            )
    both = sorted(set(named) & set(partition_by))
    if both:
        raise LayoutError(
            f"columns {both} are partition columns, so every file already holds one "
            "value of them; cluster by others"
        )


def _record(location: Location, layout: dict[str, Any], target: Target) -> None:
    """Commit how the table was laid out."""
    table = open_table(location)
    cubes = cubes_of_write(table.paths, table.sizes.tolist(), target)

    def change(base: Snapshot) -> Snapshot:
        properties = {**base.properties, "layout": layout}
        properties[PROPERTY] = [cube.to_json() for cube in cubes]
        return Snapshot(base.version + 1, base.manifest, properties)

    commit(location, change, operation="write")
