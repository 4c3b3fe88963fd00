"""The names of clustered files stand in a file, which a commit names."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from skipindex.api import open_table
from skipindex.errors import StorageError, TableError
from skipindex.rewrite.arrival import SaveMode
from skipindex.rewrite.expiry import expire
from skipindex.rewrite.selection.cubes import cubes_of
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import LOG, MANIFESTS
from skipindex.storage.log import Snapshot, commit, newest_snapshot
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import TableProperties
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import optimized, seen_by_both
from tests.tables import flip, put

NOW = timedelta(0)
WISH: dict[str, Any] = {"cluster_by": ["x"], "rows_per_file": 20, "cube_size": 500}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for day in (2, 3):
        for i in range(3):
            put(
                tmp_path / f"day={day}" / f"{i}.parquet", {"x": [i] * 20, "i": [i] * 20}
            )
    optimized(tmp_path, **WISH)
    return tmp_path


def with_names(n: int) -> Callable[[Snapshot], tuple[Manifest, TableProperties]]:
    """A cube of so many files, as a version has recorded it that had no file."""

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        cube = {
            "shape": {"cluster_by": ["x"], "curve": "hilbert", "sort_within": []},
            "size": {},
            "run": "r",
            "sealed": True,
            "paths": [f"day=1/part-{i:06}.parquet" for i in range(n)],
        }
        return base.manifest, replace(base.properties, cubes=[cube])

    return change


def cube_files(folder: Path) -> list[Path]:
    return sorted((folder / MANIFESTS).glob("*.cubes.json"))


@pytest.mark.parametrize("n", [10, 5000])
def test_an_append_costs_the_same_whatever_is_clustered(folder: Path, n: int) -> None:
    location = location_of(folder)
    commit(location, with_names(n), operation="test")
    before = {path: path.stat().st_mtime_ns for path in cube_files(folder)}
    arrived(folder, SaveMode.APPEND)
    vacuum(folder)
    assert {path: path.stat().st_mtime_ns for path in cube_files(folder)} == before
    sizes = [path.stat().st_size for path in (folder / LOG).iterdir()]
    assert max(sizes[1:]) < 12_000
    (cube,) = cubes_of(location, open_table(folder).state.snapshot.properties)
    assert len(cube.paths) == n


def test_what_was_clustered_stays_so_until_and_after_it_is_visible(
    folder: Path,
) -> None:
    for _ in range(2):
        assert optimized(folder, **WISH).files_in == 0
        vacuum(folder, retention=NOW)
    assert len(cube_files(folder)) == 1
    (folder / "day=2" / "9.parquet").write_bytes(
        (put(folder.parent / "new.parquet", {"x": [7], "i": [7]})).read_bytes()
    )
    assert optimized(folder, **WISH).files_in == 1
    vacuum(folder, retention=NOW)
    assert optimized(folder, **WISH).files_in == 0


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: flip(path, 30)])
def test_without_its_file_all_is_clustered_again(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    before = seen_by_both(folder)
    (path,) = cube_files(folder)
    spoil(path)
    assert open_table(folder).notes == ()
    assert optimized(folder, **WISH).files_in > 0
    assert seen_by_both(folder)[0] == before[0]
    assert optimized(folder, **WISH).files_in == 0


def test_a_file_that_cannot_be_read_now_is_not_written_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Location.read

    def read(self: Location, path: str, limit: int) -> bytes:
        if path.endswith(".cubes.json"):
            raise OSError(errno.EIO, "Input/output error")
        return original(self, path, limit)

    monkeypatch.setattr(Location, "read", read)
    assert open_table(folder).notes == (), "a reader needs none"
    arrived(folder, SaveMode.APPEND)
    with pytest.raises(StorageError, match=r"cannot read .*cubes\.json"):
        optimized(folder, **WISH)


def test_the_file_of_the_newest_commit_is_not_garbage(folder: Path) -> None:
    location = location_of(folder)
    commit(location, with_names(3), operation="test")
    assert len(cube_files(folder)) == 2
    vacuum(folder, retention=NOW)
    expire(location)
    (left,) = cube_files(folder)
    record = newest_snapshot(location).properties.cube_file or {}
    assert left.name == record["name"]
    assert not open_table(folder).verify().orphans


def test_a_file_that_no_reader_would_take_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cube_files(folder)
    monkeypatch.setattr("skipindex.storage.log.cube_file.MAX_COMMIT", 5000)
    with pytest.raises(TableError, match="the file of cubes would have"):
        commit(location_of(folder), with_names(1000), operation="test")
    assert cube_files(folder) == before
