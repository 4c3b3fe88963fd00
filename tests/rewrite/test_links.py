"""Nothing is written or deleted where a link leads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from skipindex.errors import TableError
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.new_files import SaveMode
from skipindex.source.folder.staging import delete_files
from skipindex.storage.file_system.location import location_of
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import NOW, everything, seen_by_both, totals
from tests.tables import build, put

DAYS = {day: {"x": [1, 2, 3], "i": [day] * 3} for day in (1, 2, 3)}
"""What is written, to the partitions behind the links too."""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    for name in ("day=2", "deep/day=2"):
        put(tmp_path / "outside" / name / "precious.parquet", {"x": [7], "i": [2]})
        (tmp_path / "outside" / name / "_SUCCESS").touch()
        (tmp_path / "outside" / name / "empty.parquet").touch()
    return tmp_path / "outside"


@pytest.fixture(params=["a partition", "its files"])
def folder(tmp_path: Path, outside: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "t"
    put(folder / "day=1" / "a.parquet", {"x": [3], "i": [1]})
    if request.param == "a partition":
        (folder / "day=2").symlink_to(outside / "day=2")
    else:
        (folder / "day=2").mkdir()
        link = folder / "day=2" / "linked.parquet"
        link.symlink_to(outside / "day=2" / "precious.parquet")
    return folder


def contents(outside: Path) -> dict[str, bytes]:
    return {path: (outside / path).read_bytes() for path in sorted(everything(outside))}


def test_nothing_that_a_link_leads_to_changes(folder: Path, outside: Path) -> None:
    """Whatever a writer says; and where it says that it is done, it is."""
    build(folder, {"x": "bitmap"})
    before = contents(outside)
    for mode in (SaveMode.APPEND, SaveMode.OVERWRITE):
        now, files = seen_by_both(folder), everything(folder)
        assert now[0] == now[1]
        try:
            arrived(folder, mode, rows=DAYS)
        except TableError as error:
            refused = str(error)
            assert "is a link" in refused or "partition" in refused
            assert seen_by_both(folder) == now
            new = everything(folder) - files
            assert all(path.startswith("_skipindex/") for path in new)
        else:
            assert seen_by_both(folder)[0] == seen_by_both(folder)[1], "it is whole"
        assert contents(outside) == before
    vacuum(folder, retention=NOW)
    assert contents(outside) == before


WRITERS: dict[str, Callable[[Path], object]] = {
    "append": partial(arrived, mode=SaveMode.APPEND),
    "overwrite": partial(arrived, mode=SaveMode.OVERWRITE),
    "optimize": partial(optimized, cluster_by=["x"], indexes={"x": "bitmap"}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_to_a_partition_is_refused(
    tmp_path: Path, outside: Path, name: str
) -> None:
    put(tmp_path / "t" / "day=1" / "a.parquet", {"x": [3], "i": [1]})
    put(outside / "day=2" / "b.parquet", {"x": [8], "i": [2]})
    (tmp_path / "t" / "day=2").symlink_to(outside / "day=2")
    before, files = seen_by_both(tmp_path / "t"), contents(outside)
    with pytest.raises(TableError, match=r"day=2' is a link"):
        WRITERS[name](tmp_path / "t")
    assert (seen_by_both(tmp_path / "t"), contents(outside)) == (before, files)


def test_files_are_deleted_in_this_very_folder_alone(
    tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "day=2").symlink_to(outside / "day=2")
    before = contents(outside)
    (tmp_path / "t" / "up").symlink_to(outside)
    paths = ["day=2/precious.parquet", "day=2/_SUCCESS", "up/day=2/precious.parquet"]
    delete_files(location_of(tmp_path / "t"), paths, folders=True)
    assert contents(outside) == before
    assert (tmp_path / "t" / "day=2").is_symlink()


def test_the_folder_of_a_table_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "t").symlink_to(tmp_path / "real")
    for mode in (SaveMode.APPEND, SaveMode.OVERWRITE):
        arrived(tmp_path / "t", mode)
    assert totals(tmp_path / "t") == [6, 6]
