"""What a table knows of clustered files: the names they have, and a property."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skipindex.api import open_table
from skipindex.rewrite.selection.cubes import runs_of
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.names import round_of
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import NOW
from tests.tables import put

WISH: dict[str, Any] = {"cluster_by": ["x"], "rows_per_file": 20, "cube_size": 500}
BEFORE = "65a294947daccdf119f24247947fee07.cubes.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for day in (2, 3):
        for i in range(3):
            columns = {"x": [i] * 20, "i": [i] * 20}
            put(tmp_path / f"day={day}" / f"{i}.parquet", columns)
    optimized(tmp_path, **WISH)
    return tmp_path


def runs(folder: Path) -> set[str]:
    return set(runs_of(open_table(folder).state.snapshot.properties))


def test_what_was_clustered_stays_so_until_and_after_it_is_visible(
    folder: Path,
) -> None:
    for _ in range(2):
        assert optimized(folder, **WISH).files_in == 0
        vacuum(folder, retention=NOW)
    put(folder / "day=2" / "9.parquet", {"x": [7], "i": [7]})
    assert optimized(folder, **WISH).files_in == 1
    vacuum(folder, retention=NOW)
    assert optimized(folder, **WISH).files_in == 0


def test_what_is_appended_is_clustered_although_we_wrote_it(folder: Path) -> None:
    before = set(open_table(folder).paths)
    arrived(folder, SaveMode.APPEND)
    fresh = set(open_table(folder).paths) - before
    assert fresh
    assert not {(round_of(path) or ("", 0))[0] for path in fresh} & {"", *runs(folder)}
    assert optimized(folder, **WISH).files_in == len(fresh)
    assert optimized(folder, **WISH).files_in == 0


def test_an_append_costs_the_same_whatever_is_clustered(folder: Path) -> None:
    optimized(folder, **{**WISH, "rows_per_file": 1}, mode="full")
    assert len(open_table(folder)) > 6
    arrived(folder, SaveMode.APPEND)
    vacuum(folder)
    properties = open_table(folder).state.snapshot.properties
    assert len(json.dumps(properties.runs)) < 300
