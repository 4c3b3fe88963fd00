"""Rows rewritten without Spark, and what readers see of a table."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from skipindex.api import open_table
from skipindex.build.runners import LocalRunner
from skipindex.layout import CurveLayout
from skipindex.log import Snapshot, commit
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.optimize import OptimizeOptions, OptimizeReport, optimize_files
from skipindex.rewrite.selection.grouping import Group
from skipindex.rewrite.selection.target import EligibleFile, Target
from skipindex.rewrite.transaction import GroupWriter
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.location import location_of
from skipindex.table import SparkListing
from tests.tables import put

Rows = Counter[str]
NOW = timedelta(0)


def arrow_writer(table: sx.Table) -> Callable[[Target], GroupWriter]:
    """What Spark's writer does, with pyarrow."""
    root = Path(table.state.location.root)

    def read(files: Sequence[EligibleFile]) -> pa.Table:
        return pa.concat_tables(pq.ParquetFile(root / f.path).read() for f in files)

    def make(target: Target) -> GroupWriter:
        def write(groups: Sequence[Group], folder: str) -> None:
            for group in groups:
                hive = "/".join(part for part in group.folder.split("/") if "=" in part)
                to = root / folder / hive
                to.mkdir(parents=True, exist_ok=True)
                runs = [read(run) for run in group.bins]
                if target.cluster_by:
                    runs = clustered(read(group.files), group)
                for i, rows in enumerate(runs):
                    pq.write_table(rows, to / f"part-{i:05d}.c000.snappy.parquet")
                (root / folder / "_SUCCESS").write_bytes(b"")

        def clustered(rows: pa.Table, group: Group) -> list[pa.Table]:
            names, n_files = target.cluster_by, target.n_files(group.files)
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


def rows_of(root: Path, paths: Sequence[str]) -> Rows:
    """The rows of files with their partition folders, as text, counted."""
    found: Rows = Counter()
    for path in paths:
        hive = [part for part in path.split("/")[:-1] if "=" in part]
        for row in pq.ParquetFile(root / path).read().to_pylist():
            found[repr((hive, sorted(row.items())))] += 1
    return found


def listed(folder: Path) -> list[str]:
    """The files that a reader sees who knows nothing of commits."""
    files = list(location_of(folder).list())
    return sorted(file.path for file in files if SparkListing(files).is_read(file))


def everything(folder: Path) -> set[str]:
    """All files below the folder."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def seen_by_both(folder: Path) -> tuple[Rows, Rows]:
    """The rows that our reader reads, and one who lists the folder."""
    return rows_of(folder, open_table(folder).paths), rows_of(folder, listed(folder))


def make_own(folder: Path, layout: Mapping[str, Any] | None = None) -> sx.Table:
    """Let a folder be a table of ours."""

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        properties = replace(base.properties, layout=dict(layout or {}))
        return base.manifest, properties

    commit(location_of(folder), change, operation="test")
    return open_table(folder)


def fill(folder: Path, n_files: int, *, first: int = 0) -> Path:
    """Files of 20 rows in each of two days."""
    for i in range(first, first + n_files):
        for day in (1, 2):
            x = np.random.default_rng(2 * i + day).integers(0, 100, 20)
            put(folder / f"day={day}" / f"{i}.parquet", {"x": x, "i": [i] * 20})
    return folder


def copied(folder: Path, target: Path) -> Path:
    """A copy with the times of its files: a table that is the same to its log."""
    return Path(shutil.copytree(folder, target, copy_function=shutil.copy2))


def seen_alike(folder: Path) -> Rows:
    """The rows, which both readers see."""
    ours, theirs = seen_by_both(folder)
    assert ours == theirs
    return ours


def totals(folder: Path) -> list[int]:
    """How many rows our reader sees, and one who lists the folder."""
    return [rows.total() for rows in seen_by_both(folder)]


def check_rows(folder: Path, rows: Rows, case: object = "") -> None:
    """Both readers see these rows, before and after the next vacuum."""
    assert seen_by_both(folder) == (rows, rows), case
    vacuum(folder, retention=NOW)
    assert seen_by_both(folder) == (rows, rows), f"after vacuum {case}"


def check_swept(folder: Path) -> None:
    """After two runs, as the first supersedes commits of its own, nothing is left."""
    vacuum(folder, retention=NOW)
    table = open_table(folder)
    snapshot = table.state.snapshot
    left = {path for path in everything(folder) if "/log/" not in path}
    packs = {f"_skipindex/packs/{pack.name}" for pack in snapshot.manifest.packs}
    assert left == {*table.paths, *packs, *(one.path for one in snapshot.segments)}
    assert not [path for path in folder.rglob("_skipindex-*") if path.is_dir()]
