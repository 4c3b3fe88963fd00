"""What readers see of a table, now and after a vacuum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq

from skipindex.api import open_table
from skipindex.rewrite.vacuum import vacuum
from skipindex.source import SparkListing
from skipindex.storage.file_system.location import location_of

Rows = Counter[str]
NOW = timedelta(0)


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


def check_total(folder: Path, n_rows: int) -> None:
    """Both readers see so many rows, before and after the next vacuum."""
    assert totals(folder) == [n_rows, n_rows]
    vacuum(folder, retention=NOW)
    assert totals(folder) == [n_rows, n_rows], "after vacuum"


def check_swept(folder: Path) -> None:
    """After two runs, as the first supersedes commits of its own, nothing is left."""
    vacuum(folder, retention=NOW)
    table = open_table(folder)
    snapshot = table.state.snapshot
    left = {path for path in everything(folder) if "/log/" not in path}
    packs = {f"_skipindex/packs/{pack.name}" for pack in snapshot.manifest.packs}
    assert left == {*table.paths, *packs, *(one.path for one in snapshot.segments)}
    assert not [path for path in folder.rglob("_skipindex-*") if path.is_dir()]
