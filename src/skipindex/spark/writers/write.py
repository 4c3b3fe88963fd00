"""Writing a table: cluster, let Spark write Parquet, index, commit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from skipindex.advice.advised_build import AdviceRequest, to_build
from skipindex.build.builder import Request, column_requests, index_files
from skipindex.build.runners import Progress
from skipindex.errors import LayoutError, TableError
from skipindex.layout import Workload, n_files_for
from skipindex.layout import curve as named_curve
from skipindex.rewrite.arrival import Mode, arrive, is_leftover
from skipindex.rewrite.optimize import ROWS_PER_FILE
from skipindex.rewrite.selection.grouping import Target, cubes_of_write
from skipindex.spark.columns import arrow_schema
from skipindex.spark.placement.cluster import apply_clustering, cluster, fit_workload
from skipindex.spark.runner import SparkRunner
from skipindex.spark.writers.writing import sorted_within, write_counted
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.storage.log import Snapshot
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import TableProperties
from skipindex.table import (
    TableState,
    check_folder,
    open_state,
    require_plain,
    table_of,
)


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
) -> TableState:
    """See ``skipindex.write_table``."""
    location = location_of(path)
    _check(df, cluster_by, curve, partition_by, rows_per_file)
    check_folder(location)
    there = [file.path for file in location.list()]
    if not plain:
        require_plain(location, there, insist=True)
    if not overwrite and not all(map(is_leftover, there)):
        raise TableError(
            f"{location.full('')!r} is not empty (pass overwrite=True to replace it)"
        )
    if indexes is not None:  # what cannot be built is refused at once
        column_requests(_planned(df, location, partition_by), indexes)
    layout: dict[str, Any] = {
        "partition_by": list(partition_by),
        "sort_within": list(sort_within or ()),
        "rows_per_file": rows_per_file,
    }
    limit = 0
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
    else:
        laid_out = sorted_within(df, sort_within or (), partition_by)
        limit = rows_per_file
    if not isinstance(cluster_by, Workload):
        layout |= {
            "cluster_by": list(cluster_by),
            "curve": curve if cluster_by else None,
        }
    by = tuple(layout.get("cluster_by", ())) if layout.get("curve") else ()
    order = tuple(sort_within or ())
    target = Target(by, layout.get("curve") or "linear", order, rows_per_file)

    def index(files: Sequence[FileInfo]) -> tuple[Manifest, TableProperties]:
        new = table_of(location, files)
        wanted = to_build(new, indexes, AdviceRequest())
        runner = SparkRunner(df.sparkSession)
        manifest = index_files(new, wanted.request, runner=runner, progress=progress)
        cubes = cubes_of_write(new.paths, new.sizes.tolist(), target)
        laid = TableProperties(layout=layout, cubes=[cube.to_json() for cube in cubes])
        return manifest, wanted.properties | laid

    arrive(
        location,
        Mode.OVERWRITE if overwrite else Mode.CREATE,
        write=lambda folder: write_counted(
            laid_out,
            location,
            folder,
            partition_by=partition_by,
            options={"maxRecordsPerFile": str(limit), **(options or {})},
        ),
        index=index,
    )
    return open_state(location)


def _planned(
    df: DataFrame, location: Location, partition_by: Sequence[str]
) -> TableState:
    """A table of these columns and no rows, to see what can be indexed."""
    fields = [f for f in df.schema if f.name not in partition_by]
    hive = "/".join(f"{name}=0" for name in partition_by)
    return TableState(
        location,
        [FileInfo(f"{hive}/0.parquet", 1, 0)],
        pa.schema([_arrow_field(field) for field in fields]),
        {},
        Snapshot(-1, Manifest.empty()),
        schema_path="",
        partition_types={},
    )


def _arrow_field(field: StructField) -> pa.Field:
    try:
        return arrow_schema(StructType([field])).field(0)
    except PySparkException:  # no Arrow type, so no index either
        return pa.field(field.name, pa.null())


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
