"""Tables of two days, and rows that arrive there without Spark."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipindex.build.builder import index_files
from skipindex.build.runners import LocalRunner
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.arrival import arrive
from skipindex.rewrite.selection.cubes import runs_of_write
from skipindex.rewrite.selection.target import Target
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.new_files import NewFiles, SaveMode
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.table import table_of
from tests.rewrite.killing import Killed, killed_at, killed_in
from tests.tables import put


def arrived(
    folder: Path,
    mode: SaveMode,
    *,
    lost: int = 0,
    values: Sequence[int] = (1, 2, 3),
    rows: Mapping[int, Mapping[str, Sequence[int]]] | None = None,
    along: Target | None = None,
    batch: Batch | None = None,
) -> Snapshot | None:
    """New rows in partitions, a file in each, by pyarrow.

    Args:
        folder: of the table.
        mode: what becomes of the rows that are there.
        lost: how many more rows the writer claims to have written.
        values: of column x, in the partitions of days 2 and 3.
        rows: columns by day, for other rows than those.
        along: what the files are said to be clustered by.
        batch: of a stream, which the rows are.
    """
    location = location_of(folder)
    by_day = rows or {day: {"x": values, "i": [day] * len(values)} for day in (2, 3)}

    def write(staged: str) -> int:
        for day, columns in by_day.items():
            to = folder / staged / f"day={day}"
            to.mkdir(parents=True)
            table = pa.table(dict(columns))
            pq.write_table(table, to / "part-00000-xyz.c000.snappy.parquet")
        (folder / staged / "_SUCCESS").write_bytes(b"")
        return sum(len(columns["x"]) for columns in by_day.values()) + lost

    def index(files: Sequence[FileInfo]) -> tuple[Manifest, TableProperties]:
        new = table_of(location, files)
        made = index_files(new, {"x": "bitmap"}, runner=LocalRunner(1))
        layout = None if mode is SaveMode.APPEND else {"cluster_by": []}
        told = TableProperties(layout=layout)
        return made, told if along is None else told | runs_of_write(new.paths, along)

    return arrive(location, mode, write=write, index=index, batch=batch)


def overwrite_killed(
    folder: Path,
    at: str = "copy",
    mode: SaveMode = SaveMode.OVERWRITE,
    **written: Any,
) -> None:
    """Overwrite, and die when the rows are committed and not visible yet.

    Args:
        folder: of the table.
        at: the change of the file system that is not made any more.
        mode: to append a batch of a stream instead.
        **written: rows, as ``arrived`` takes them.
    """
    with pytest.MonkeyPatch.context() as patch, killed_in(Location, at):
        patch.setattr(NewFiles, "withdraw", lambda *_, **__: None)
        arrived(folder, mode, **written)


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


def deaths(
    begun: Path, write: Callable[[Path], object], steps: range, *, after: bool = False
) -> Iterator[tuple[int, Path]]:
    """Copies of a table whose writer died at a step, until one lives.

    Args:
        begun: the table, or a folder that is not there; the copies are beside it.
        write: what is killed.
        steps: where it dies, by the changes of the file system from 0.
        after: it dies when that change is made, and not before.
    """
    for step in steps:
        folder = again(begun, step)
        try:
            with killed_at(step, after=after), warnings.catch_warnings(action="ignore"):
                write(folder)
        except Killed:
            yield step, folder
        else:
            return
    raise AssertionError("it does not end")


def again(begun: Path, number: int) -> Path:
    """A copy of a table beside it, if there is a table."""
    folder = begun.with_name(str(number))
    return copied(begun, folder) if begun.exists() else folder
