"""Writing a table: cluster, let Spark write Parquet, index, commit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from skipindex.advice.advised_build import AdviceRequest, to_build
from skipindex.build.builder import index_files
from skipindex.build.column_requests import Request, column_requests
from skipindex.build.runners import Progress
from skipindex.build.wanted import asked_before
from skipindex.errors import TableError
from skipindex.layout import Workload
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.arrival import arrive, is_leftover
from skipindex.rewrite.selection.attributes import JoinedAttribute
from skipindex.rewrite.selection.cubes import runs_of_write
from skipindex.rewrite.selection.target import ROWS_PER_FILE
from skipindex.source import (
    check_folder,
    folder_of,
    newest_usable,
    require_plain,
    require_unbucketed,
)
from skipindex.source.folder.exclusive import DECLARED
from skipindex.source.folder.new_files import SaveMode
from skipindex.spark.columns import declared
from skipindex.spark.runner import SparkRunner
from skipindex.spark.writers.derived import computed, in_session
from skipindex.spark.writers.layout_request import LayoutRequest, target_of
from skipindex.spark.writers.writing import write_counted
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.storage.file_system.names import is_data_file
from skipindex.storage.telling import part
from skipindex.table import Derived, TableState, open_state, table_of

NOTHING: Final = Derived()
"""Declares nothing."""


def write_table(
    df: DataFrame,
    path: Location | str | os.PathLike[str],
    *,
    cluster_by: Sequence[str | JoinedAttribute] | Workload = (),
    curve: str | None = "hilbert",
    partition_by: Sequence[str] | Mapping[str, str] = (),
    derived: Derived = NOTHING,
    sort_within: Sequence[str] | None = None,
    rows_per_file: int = ROWS_PER_FILE,
    bytes_per_file: int | None = None,
    rows_per_group: int | None = None,
    balance: str = "rows",
    indexes: Request | None = None,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    plain: bool = False,
    exclusive: bool = False,
) -> TableState:
    """See ``skipindex.write_table``.

    ``derived`` says what ``partition_by`` was made of, if that is known.
    """
    location = location_of(path)
    if isinstance(partition_by, Mapping):
        derived = in_session(df, partition_by)
        partition_by = list(partition_by)
        df = computed(df, _planned(df, location, partition_by).declaring(derived))
    request = LayoutRequest(
        cluster_by,
        curve,
        partition_by,
        sort_within or (),
        rows_per_file,
        balance,
        bytes_per_file,
        rows_per_group,
    )
    request.check(df)
    _check_empty(location, overwrite=overwrite, plain=plain)
    planned = _planned(df, location, partition_by)
    if indexes is None and overwrite:
        before = newest_usable(location, None).properties
        indexes = asked_before(before, planned) or None
    if indexes is not None:  # what cannot be built is refused now
        column_requests(planned, indexes)
    runner = SparkRunner(df.sparkSession)
    tell = part("laying out", "steps", 1)
    laid_out = request.lay_out(df, location, options)
    tell(1)

    def index(files: Sequence[FileInfo]) -> tuple[Manifest, TableProperties]:
        new = table_of(location, files)
        wanted = to_build(new, indexes, AdviceRequest())
        manifest = index_files(new, wanted.request, runner=runner, progress=progress)
        recorded = TableProperties(
            layout=laid_out.layout,
            derived=derived.to_json() if derived.columns else None,
            exclusive=DECLARED if exclusive else None,
        )
        runs = runs_of_write(new.paths, target_of(laid_out.layout))
        return manifest, wanted.properties | recorded | runs

    arrive(
        location,
        SaveMode.OVERWRITE if overwrite else SaveMode.CREATE,
        write=lambda folder: write_counted(laid_out, location, folder, options),
        index=index,
    )
    return open_state(location)


def _check_empty(location: Location, *, overwrite: bool, plain: bool) -> None:
    """Refuse a folder of another format, and one with files unless they may go."""
    check_folder(location)
    there = [file.path for file in location.list()]
    if not plain:
        require_plain(location, there, insist=True)
    require_unbucketed(location.plain_path(""), filter(is_data_file, there))
    if not overwrite and not all(map(is_leftover, there)):
        raise TableError(
            f"{location.full('')!r} is not empty (pass overwrite=True to replace it)"
        )


def _planned(
    df: DataFrame, location: Location, partition_by: Sequence[str]
) -> TableState:
    """A table of these columns and no rows, to see what can be indexed."""
    fields = [f for f in df.schema if f.name not in partition_by]
    hive = "/".join(f"{name}=0" for name in partition_by)
    schema = declared(StructType(fields))
    files = [FileInfo(f"{hive}/0.parquet", 1, 0)]
    return TableState(location, folder_of(files, schema, {}))
