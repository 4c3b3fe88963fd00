"""The golden tables of this format, written once: ``tests/golden/table/<name>``.

``python -m tests.traps.golden_tables`` writes those that are not there.  The tests read
the bytes that are in the repository, whatever this module would write today.

``partly_known``: files 0 to 2 are indexed on ``n``, ``s`` and ``x``, nothing is known
of ``unasked``, and file 3 came after the build.

``segments``: files 0 to 8 were built on ``x`` and ``s``, then 9 was appended, 0
overwritten and 5 deleted, with a build after each.  File 10 came last.

``unfinished``: files 0 and 1 of day 1 were rewritten, and a vacuum was killed before it
deleted them.  Then rows came for days 2 and 3.

``of_0_1_0`` is what version 0.1.0 has left of the same: format 1, which none writes.
``indexed_by_0_1_0`` is its table of segments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.build.builder import index_files
from skipindex.build.runners import LocalRunner
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.vacuum import vacuum
from skipindex.source import commit
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.location import Location
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import CHANGES, Killed
from tests.tables import build, put, set_mtime

TABLES: Final = Path(__file__).parents[1] / "golden" / "table"
WRITTEN: Final = 1_600_000_000.0
"""Seconds since 1970: the modification mark of all its visible files."""


def _put(path: Path, columns: Mapping[str, Any]) -> None:
    put(path, columns)
    set_mtime(path, WRITTEN)


def _partly_known(folder: Path) -> None:
    """A build of some columns alone, without the statistics of the others."""
    nan = math.nan
    files: list[dict[str, list[Any]]] = [
        {
            "n": [1, 2, None, 4],
            "s": ["ab", "b", None, "d"],
            "x": [0.5, nan, None, -1.0],
        },
        {"n": [10, 20, 30, 40], "s": [*"klmn"], "x": [1.0, 2.0, 3.0, 4.0]},
        {"n": [None] * 4, "s": [None] * 4, "x": [None] * 4},
        {"n": [50, 51], "s": ["q", None], "x": [9.0, 9.5]},
    ]
    unasked = [[1, None, 3, 4], [5, 6, 7, 8], [None] * 4, [9, 10]]
    types = {"n": pa.int64(), "s": pa.string(), "x": pa.float64()}

    def add(i: int) -> None:
        typed = {name: pa.array(files[i][name], types[name]) for name in types}
        typed["unasked"] = pa.array(unasked[i], pa.int64())
        _put(folder / f"{i}.parquet", typed)

    for i in range(3):
        add(i)
    table = sx.open_table(folder)
    wanted = {
        "n": ["minmax", "bitmap", "range_bitmap", "bit_sliced"],
        "s": ["minmax", "bloom", "bitmap"],
        "x": ["minmax", "bitmap"],
    }
    found = index_files(table.state, wanted, runner=LocalRunner(1))
    found = found.without_stats({"unasked"})

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest.merge(found), base.properties

    commit(table.state.location, change, operation="build")
    add(3)


def _segments(folder: Path) -> None:
    def add(i: int, first: int, n: int) -> None:
        numbers = range(first, first + n)
        _put(
            folder / f"{i}.parquet",
            {"x": [*numbers], "s": [f"v{x % 7}" for x in numbers]},
        )

    for i in range(9):
        add(i, 10 * i, 5)
    build(folder, {"x": "bitmap", "s": ["bloom", "bitmap"]})
    add(9, 90, 5)
    build(folder)
    add(0, 500, 8)
    build(folder)
    (folder / "5.parquet").unlink()
    build(folder)
    add(10, 100, 5)


def _unfinished(folder: Path) -> None:
    for i, day in enumerate((1, 1, 2, 2)):
        _put(folder / f"day={day}/{i}.parquet", {"x": [i, i + 10], "i": [i, i]})
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"], where="day = 1")
    with _dying_at("delete_own", after=False):
        vacuum(folder, retention=timedelta(0))
    arrived(folder, SaveMode.APPEND)


@contextmanager
def _dying_at(name: str, *, after: bool) -> Iterator[None]:
    """Let the process die at its first change of this name, and change nothing more."""
    original = getattr(Location, name)

    def dying(*args: Any) -> None:
        if after:
            original(*args)
        for change in CHANGES:
            patch.setattr(Location, change, _dead)
        raise Killed(name)

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(Location, name, dying)
        yield


def _dead(*_: Any) -> None:
    raise Killed


WRITERS: Final[Mapping[str, Callable[[Path], None]]] = {
    "partly_known": _partly_known,
    "segments": _segments,
    "unfinished": _unfinished,
}


def main() -> None:
    """Write the tables that are not there."""
    for name, write in WRITERS.items():
        if not (TABLES / name).exists():
            write(TABLES / name)


if __name__ == "__main__":
    main()
