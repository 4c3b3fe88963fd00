"""Optimize on Spark: the rows of chosen files, clustered or joined, rewritten."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from skipindex.build.runners import Progress
from skipindex.build.wanted import wanted_of
from skipindex.errors import EngineError, LayoutError
from skipindex.layout import Workload
from skipindex.rewrite.optimize import (
    OptimizeOptions,
    OptimizeReport,
    budget_of,
    optimize_files,
    require_own,
    sized,
    target_of,
)
from skipindex.rewrite.selection.attributes import JoinedAttribute, from_json
from skipindex.rewrite.selection.eligible_files import (
    check_rewritable,
    choose,
    eligible_files,
)
from skipindex.rewrite.selection.grouping import Group
from skipindex.rewrite.selection.target import EligibleFile, Target
from skipindex.spark.placement.cluster import fit_workload
from skipindex.spark.reading.frames import read_files
from skipindex.spark.reading.schema import table_schema, with_field_ids
from skipindex.spark.runner import SparkRunner
from skipindex.spark.settings import check_session
from skipindex.spark.ship import has_driver
from skipindex.spark.writers.file_size import check_row_groups
from skipindex.spark.writers.write import write_table
from skipindex.spark.writers.writing import (
    LaidOut,
    lay_out,
    own_session,
    sorted_within,
)
from skipindex.table import TableState, open_state, overlaps_of

_JOINS: Final = 200
"""Bins that one job joins; each is a part of its plan."""

_WHOLE: Final = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.unionOutputPartitioning": "false",
}
"""Settings under which a file that cannot be read fails the job, and a bin of small
files stays a partition when bins are united (Spark 4.3 makes one of all)."""

_BY_IDS: Final = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""Settings under which files are read and written as Iceberg defines them."""


def optimize(
    spark: SparkSession,
    table: TableState | str | os.PathLike[str],
    asked: OptimizeOptions,
    *,
    workload: Workload | None = None,
    into: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> OptimizeReport[TableState]:
    """See ``Table.optimize``; ``table`` is a state, a path or a URI."""
    _require_classic(spark)
    check_row_groups(spark, asked.rows_per_group)
    opened = open_state(table, fresh=True)
    settings = dict(options or {})
    if into is not None:
        _check_copy(asked)
        asked = with_choice(spark, opened, workload, asked)
        return _copy(spark, opened, asked, into, settings, progress)
    require_own(opened, in_place=asked.in_place)
    asked = with_choice(spark, opened, workload, asked)
    return optimize_files(
        opened,
        asked,
        writer=lambda target: _RowWriter(
            _strict(spark, opened), opened, target, settings
        ),
        runner=SparkRunner(spark),
        timezone=spark.conf.get("spark.sql.session.timeZone"),
        progress=progress,
    )


def _require_classic(spark: SparkSession) -> None:
    if not has_driver(spark):
        raise EngineError(
            "optimize needs a copy of the session, which Spark Connect cannot make "
            "(accepted: a classic session)"
        )
    check_session(spark)


def with_choice(
    spark: SparkSession,
    table: TableState,
    workload: Workload | None,
    asked: OptimizeOptions,
) -> OptimizeOptions:
    """What is asked, with the layout that the chosen rows suggest for a workload."""
    if workload is None:
        return asked
    _require_classic(spark)
    workload = workload.recorded(table.location)
    if asked.curve is not None:
        raise LayoutError(
            f"a workload chooses its curve (accepted: no curve={asked.curve!r}, or "
            "columns to cluster by)"
        )
    budget_of(asked)  # a mode or a budget that is none is refused before rows are read
    own, zone = _strict(spark, table), spark.conf.get("spark.sql.session.timeZone")
    files = eligible_files(table, choose(table, asked.where, timezone=zone))
    sizes = sized(
        target_of(table, replace(asked, cluster_by=()), {}), table, asked, files
    )
    df = read_files(own, table, [file.path for file in files], table_schema(own, table))
    choice = fit_workload(
        df,
        workload,
        n_files=sizes.n_files(files),
        n_rows=sum(file.n_rows for file in files),
        partition_by=[column.name for column in table.partitions],
    )
    return replace(asked, chosen=choice.to_json() | {"workload": workload.to_json()})


def _strict(spark: SparkSession, table: TableState) -> SparkSession:
    """A session of our own, in which what is read is whole."""
    own = own_session(spark, table)
    more = {} if table.source.ids is None else _BY_IDS
    for name, value in {**_WHOLE, **more}.items():
        if own.conf.isModifiable(name):  # this version of Spark knows it
            own.conf.set(name, value)
    return own


@dataclass(slots=True)
class _RowWriter:
    """Writes the rows of groups of files; a ``rewrite.transaction.GroupWriter``."""

    spark: SparkSession
    table: TableState
    target: Target
    options: Mapping[str, str]
    _schema: StructType | None = field(default=None, init=False)

    def __call__(self, groups: Sequence[Group], folder: str) -> None:
        layout = {
            **self.target.known,
            **self.target.shape(),
            "partition_by": self._partitions,
        }
        if self.target.cluster_by:
            laid_out = lay_out(
                self.read([file for group in groups for file in group.files]),
                layout,
                self.table.location,
                rows_per_file=self.target.rows_per_file,
                n_files=sum(self.target.n_files(group.files) for group in groups),
                n_rows=sum(group.n_rows for group in groups),
            )
            laid_out.write(self.table.location, folder, self.options)
            return
        bins = [run for group in groups for run in group.bins]
        for i in range(0, len(bins), _JOINS):
            frames = [self._joined(run) for run in bins[i : i + _JOINS]]
            joined = LaidOut(reduce(DataFrame.unionAll, frames), layout)
            joined.write(self.table.location, f"{folder}/{i}", self.options)

    def _joined(self, files: Sequence[EligibleFile]) -> DataFrame:
        one = self.read(files).coalesce(1)
        return sorted_within(one, self.target.sort_within, self._partitions)

    @property
    def _partitions(self) -> list[str]:
        return [column.name for column in self.table.partitions]

    def read(self, files: Sequence[EligibleFile]) -> DataFrame:
        """All rows; partition values as text, so that folders keep their names."""
        by_ids = self.table.source.ids is not None
        if self._schema is None:
            result = table_schema(self.spark, self.table)
            if by_ids:
                result = with_field_ids(result, self.table.source.places)
            self._schema = StructType(
                [
                    StructField(f.name, StringType(), f.nullable, f.metadata)
                    if f.name in self._partitions
                    else f
                    for f in result
                ]
            )
        paths = [file.path for file in files]
        return read_files(self.spark, self.table, paths, self._schema, by_ids=by_ids)


def _check_copy(asked: OptimizeOptions) -> None:
    if asked.where is not None or asked.in_place or asked.budget is not None:
        raise LayoutError(
            "into= writes a copy of the whole table (accepted without where, in_place "
            "and budget)"
        )


def _copy(
    spark: SparkSession,
    table: TableState,
    asked: OptimizeOptions,
    into: str | os.PathLike[str],
    options: Mapping[str, str],
    progress: Progress | None,
) -> OptimizeReport[TableState]:
    """Write the entire table to another folder."""
    table.require_plain_rows(table.paths, "Spark")
    request = wanted_of(table) if asked.indexes is None else asked.indexes
    target = target_of(table, asked, request)
    files = eligible_files(table, range(len(table)))
    if target.cluster_by:
        target = sized(target, table, asked, files)
    foreign = check_rewritable(table, files)
    n_rows = sum(file.n_rows for file in files)
    rows_per_file = target.rows_per_file or -(-n_rows // target.n_files(files))
    began = time.perf_counter()
    attributes = from_json(target.known, table.location)
    layout: Sequence[str | JoinedAttribute] | Workload
    layout = [attributes.get(name, name) for name in target.cluster_by]
    if "workload" in target.known:
        layout = Workload.from_json(target.known["workload"])
    written = write_table(
        _RowWriter(_strict(spark, table), table, target, options).read(files),
        into,
        cluster_by=layout,
        curve=target.curve,
        partition_by=[column.name for column in table.partitions],
        derived=table.derived,
        sort_within=target.sort_within or None,
        rows_per_file=max(1, rows_per_file),
        rows_per_group=target.known.get("rows_per_group"),
        indexes=request,
        options=options,
        progress=progress,
    )
    return OptimizeReport(
        table=written,
        files_in=len(table),
        files_out=len(written),
        bytes_in=int(table.sizes.sum()),
        bytes_out=int(written.sizes.sum()),
        n_rows=n_rows,
        files_left=0,
        sealed=0,
        least=None,
        overlap_before=overlaps_of(table, target.cluster_by),
        overlap_after=overlaps_of(written, target.cluster_by),
        seconds=time.perf_counter() - began,
        notes=tuple(
            f"the copy has a type of Spark for {name}"
            for name in sorted({name for names in foreign.values() for name in names})
        ),
    )
