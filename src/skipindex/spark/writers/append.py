"""Appending rows to a table in the layout that it has."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from skipindex.build.builder import index_files
from skipindex.build.column_requests import Request, column_requests
from skipindex.build.runners import Progress
from skipindex.build.wanted import wanted_of
from skipindex.errors import LayoutError, TableError, first_line
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.arrival import arrive
from skipindex.rewrite.selection.cubes import runs_of_write
from skipindex.rewrite.selection.target import ROWS_PER_FILE
from skipindex.source import require_unbucketed
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.new_files import SaveMode
from skipindex.spark.catalog import add_partitions, named_by_folder
from skipindex.spark.columns import spark_schema
from skipindex.spark.runner import SparkRunner
from skipindex.spark.ship import has_driver
from skipindex.spark.writers.derived import completed, refusing_contradictions
from skipindex.spark.writers.layout_request import target_of
from skipindex.spark.writers.stream import require_known, require_whole
from skipindex.spark.writers.table_types import conformed
from skipindex.spark.writers.writing import lay_out, write_counted
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import visible_name
from skipindex.storage.file_system.sidecar import require_no_sidecar
from skipindex.storage.telling import part
from skipindex.table import TableState, open_state


@refusing_contradictions()
def append(
    df: DataFrame,
    table: TableState | Location | str | os.PathLike[str],
    *,
    indexes: Request | None = None,
    name: str = "",
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    batch: Batch | None = None,
    after: Batch | None = None,
) -> TableState:
    """See ``skipindex.append``; ``name`` is that in a catalog, if it was given.

    A ``batch`` of a stream that the table has is not added again.  It comes ``after``
    one that was added.
    """
    opened = appendable(table, name)
    if batch is not None:
        require_whole(opened, batch)
    if after is not None:
        require_known(opened, after)
    location, layout = opened.location, opened.snapshot.properties.layout
    assert layout is not None
    request = wanted_of(opened) if indexes is None else indexes
    column_requests(opened, request)  # what cannot be built is refused now
    rows = conformed(
        completed(df, opened),
        _schema(df.sparkSession, opened, name),
        set() if name else {p.name for p in opened.partitions},
    )
    folders: set[str] = set()
    runner = SparkRunner(df.sparkSession)
    tell = part("laying out", "steps", 1)
    laid_out = lay_out(
        rows, layout, location, rows_per_file=_rows_per_file(opened, layout)
    )
    tell(1)

    def index(files: Sequence[FileInfo]) -> tuple[Manifest, TableProperties]:
        new = opened.over(files)
        folders.update(_folders(new.paths))
        manifest = index_files(new, request, runner=runner, progress=progress)
        # They follow the table's curve: optimize need not cluster them alone.
        return manifest, runs_of_write(new.paths, target_of(layout))

    done = arrive(
        location,
        SaveMode.APPEND,
        write=lambda folder: write_counted(
            laid_out, location, folder, options, like=opened
        ),
        index=index,
        known=opened.snapshot,
        batch=batch,
    )
    folders -= _folders(opened.paths)
    was_there = batch is not None and batch.is_in(opened.snapshot.properties)
    if done is not None and was_there:
        # A run that was killed may not have told the catalog.
        folders = _folders(done.manifest.paths)
    if opened.partitions and folders and has_driver(df.sparkSession):
        _tell_catalog(df.sparkSession, location, name, sorted(folders))
    return opened.refresh(done)


def _folders(paths: Iterable[str]) -> set[str]:
    return {visible_name(path).rpartition("/")[0] for path in paths}


def appendable(
    table: TableState | Location | str | os.PathLike[str], name: str
) -> TableState:
    """The table as it is now, opened; an error if no rows can be added to it."""
    opened = open_state(table, fresh=True)
    location = opened.location
    opened.require_appendable()
    require_no_sidecar(location, "append")
    if name and opened.partitions and opened.options.folders is None:
        raise TableError(
            f"cannot append to {name!r}, as the folders of its partitions are not "
            "named k=v (accepted: a table whose folders are named so)"
        )
    require_unbucketed(opened.folder, opened.paths)
    if opened.snapshot.properties.layout is None:
        raise LayoutError(
            f"{location.full('')!r} has no layout of its own (append to it "
            "with Spark, and call build_indexes)"
        )
    return opened


def _tell_catalog(
    spark: SparkSession, location: Location, name: str, folders: Sequence[str]
) -> None:
    """Add new partitions to the catalog, or say that it does not have them."""
    # The rows are there, so what fails is a warning.
    why = "append by the name of the table adds them"
    if name:
        try:
            add_partitions(spark, name, folders)
        except PySparkException as error:
            why = first_line(error)
        else:
            return
    else:
        name, known = named_by_folder(spark, location)
        folders = [folder for folder in folders if folder not in known]
    if name and folders:
        warnings.warn(
            f"rows were added to partitions that {name} does not have in the catalog, "
            f"such as {folders[0]!r}, so queries by that name do not see them: {why} "
            f"(accepted: MSCK REPAIR TABLE {name})",
            stacklevel=5,
        )


def _schema(spark: SparkSession, table: TableState, name: str) -> StructType:
    """The columns of the table; by path the partitions as text, as of no type."""
    if name and table.declared is not None:
        return spark_schema(table.declared)
    result = (
        spark.read.option("__globPaths__", "false")
        .option("mergeSchema", "false")
        .parquet(table.location.spark_path(table.schema_path))
        .schema
    )
    names = [partition.name for partition in table.partitions]
    return StructType(
        [
            *(field for field in result if field.name not in names),
            *(StructField(name, StringType()) for name in names),
        ]
    )


def _rows_per_file(table: TableState, layout: Mapping[str, Any]) -> int:
    """The target in rows, by the files that are there where it is one in bytes."""
    rows, n_bytes = layout.get("rows_per_file"), layout.get("bytes_per_file")
    if rows is not None or n_bytes is None:
        return int(rows or ROWS_PER_FILE)
    known = table.n_rows.above_zero()
    n_rows = int(table.n_rows.or_else(0).sum())
    if not n_rows:
        return ROWS_PER_FILE
    return max(1, int(n_bytes * n_rows // table.sizes[known].sum()))
