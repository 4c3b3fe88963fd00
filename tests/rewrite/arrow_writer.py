"""Rows rewritten without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow

import skipindex as sx
from skipindex.api import open_table
from skipindex.build.runners import LocalRunner
from skipindex.layout import CurveLayout
from skipindex.rewrite.optimize import OptimizeOptions, OptimizeReport, optimize_files
from skipindex.rewrite.selection.grouping import Group
from skipindex.rewrite.selection.target import EligibleFile, Target
from skipindex.rewrite.transaction import GroupWriter
from skipindex.source import DataFile, commit
from skipindex.source.parquet.stored import stored_schema
from skipindex.storage.file_system.location import location_of
from tests.log.pieces import saying


def _without_views(rows: pa.Table) -> pa.Table:
    """The same rows; some writers note that texts are views, and others that not."""
    for i, column in enumerate(rows.schema):
        if pa.types.is_string_view(column.type):
            rows = rows.set_column(i, column.name, rows[i].cast(pa.string()))
    return rows


def _read(path: Path) -> pa.Table:
    """All rows; times of INT96 are instants in microseconds, as Spark writes them."""
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    rows = _without_views(file.read())
    for leaf in (file.schema.column(i) for i in range(len(file.schema))):
        if leaf.physical_type == "INT96":
            place = rows.column_names.index(leaf.path)
            times = rows[place].cast(pa.timestamp("us", "UTC"))
            rows = rows.set_column(place, leaf.path, times)
    return rows


def _typed(path: Path) -> dict[str, pa.DataType]:
    """The types that Spark infers from a file."""
    with pa.OSFile(str(path)) as source:
        stored, _ = stored_schema(DataFile(source))
    return dict(zip(stored.names, stored.types, strict=True))


def arrow_writer(table: sx.Table) -> Callable[[Target], GroupWriter]:
    """What Spark's writer does, with pyarrow."""
    root = Path(table.state.location.root)

    source: Any = table.state.source

    def read(files: Sequence[EligibleFile]) -> pa.Table:
        if source.ids is not None:  # as Iceberg stores them
            parts = source.rows(table.state.location, [file.path for file in files])
            return pa.concat_tables(parts)
        found = [_read(root / file.path) for file in files]
        return pa.concat_tables(found, promote_options="default")

    def check(new: Path, files: Sequence[EligibleFile]) -> None:
        old = [_typed(root / file.path) for file in files]
        for name, dtype in _typed(new).items():
            known = {types[name] for types in old if name in types}
            assert dtype in known, f"{name} is {dtype} in a new file, {known} before"

    def make(target: Target) -> GroupWriter:
        def write(groups: Sequence[Group], folder: str) -> None:
            for group in groups:
                hive = "/".join(part for part in group.folder.split("/") if "=" in part)
                if not source.has_folders:
                    hive = ""
                to = root / folder / hive
                to.mkdir(parents=True, exist_ok=True)
                runs = [read(run) for run in group.bins]
                if target.cluster_by:
                    runs = clustered(read(group.files), group)
                if source.ids is not None:
                    schema = schema_to_pyarrow(source.columns)
                    runs = [rows.cast(schema) for rows in runs]
                for i, rows in enumerate(runs):
                    path = to / f"part-{i:05d}.c000.snappy.parquet"
                    pq.write_table(rows, path)
                    if not source.has_versions:
                        check(path, group.files)
                (root / folder / "_SUCCESS").write_bytes(b"")

        def clustered(rows: pa.Table, group: Group) -> list[pa.Table]:
            # A column that no file has is NULL in all rows, which does not order them.
            names = [one for one in target.cluster_by if one in rows.column_names]
            if not names:
                return [rows]
            n_files = target.n_files(group.files)
            fitted = CurveLayout.fit(rows, names, n_files=n_files, curve=target.curve)
            found = fitted.assign([rows.column(name) for name in fitted.columns])
            parts = [rows.filter(pa.array(found.files == i)) for i in range(n_files)]
            return [part for part in parts if len(part)]

        return write

    return make


def optimized(folder: Path | sx.Table, **wish: Any) -> OptimizeReport[sx.Table]:
    """Optimize without Spark."""
    table = open_table(folder).refresh()
    report: Any = optimize_files(
        table.state,
        OptimizeOptions(**{"in_place": True, **wish}),
        writer=arrow_writer(table),
        runner=LocalRunner(1),
    )
    return cast(OptimizeReport[sx.Table], replace(report, table=sx.Table(report.table)))


def make_own(folder: Path, layout: Mapping[str, Any] | None = None) -> sx.Table:
    """Let a folder be a table of ours."""
    commit(location_of(folder), saying(layout=dict(layout or {})), operation="test")
    return open_table(folder)
