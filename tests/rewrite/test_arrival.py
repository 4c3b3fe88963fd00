"""Rows that arrive: all of them or none, whatever happens to the writer."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.errors import TableError
from skipindex.log import read_snapshot
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.new_files import SaveMode
from skipindex.source.folder.publish import Publisher
from skipindex.storage.file_system.location import location_of
from tests.rewrite.arriving import again, arrived, fill, overwrite_killed
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import failing_at, meanwhile
from tests.rewrite.seen import (
    NOW,
    Rows,
    check_rows,
    check_swept,
    check_total,
    everything,
    listed,
    rows_of,
    seen_alike,
    seen_by_both,
    totals,
)
from tests.tables import build


def old_table(folder: Path) -> Path:
    """With files that an optimize has replaced, in one of its partitions."""
    fill(folder, 2)
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"], where="day = 1", rows_per_file=40)
    return folder


def prepared(begun: Path, mode: SaveMode) -> tuple[Rows, Rows]:
    """Make the table that a write in this mode finds; its rows, and those wanted."""
    arrived(begun.with_name("new"), SaveMode.CREATE)
    new = rows_of(begun.with_name("new"), listed(begun.with_name("new")))
    if mode is SaveMode.CREATE:
        return Counter(), new
    before = rows_of(old_table(begun), listed(begun))
    return before, before + new if mode is SaveMode.APPEND else new


def test_an_append_adds_rows_with_their_indexes(tmp_path: Path) -> None:
    folder = old_table(tmp_path)
    before = rows_of(folder, listed(folder))
    done = arrived(folder, SaveMode.APPEND)
    assert done is not None
    assert done.segments == read_snapshot(location_of(folder)).segments
    now = seen_alike(folder)
    assert (now - before).total() == 6
    assert not before - now
    table = sx.open_table(folder)
    assert table.state.index_gaps == {}
    served = {
        int(i) for use in table.state.blobs(table.state.resolve("x")) for i in use.rows
    }
    assert served >= set(range(len(table)))
    check_rows(folder, now)
    check_swept(folder)


def test_an_overwrite_leaves_nothing_of_the_old_table(tmp_path: Path) -> None:
    folder = old_table(tmp_path)
    (folder / "_metadata").write_bytes(b"of the old files")
    (folder / "day=1" / "nothing.parquet").write_bytes(b"")
    arrived(folder, SaveMode.OVERWRITE)
    now = seen_alike(folder)
    assert now.total() == 6
    assert {path.partition("/")[0] for path in listed(folder)} == {"day=2", "day=3"}
    assert not (folder / "_metadata").exists()
    assert sx.open_table(folder).state.index_gaps == {}
    check_rows(folder, now)
    check_swept(folder)


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
@pytest.mark.parametrize("lost", [1, -1])
def test_rows_that_are_lost_or_doubled_are_no_rows(
    tmp_path: Path, mode: SaveMode, lost: int
) -> None:
    folder = old_table(tmp_path)
    files = everything(folder)
    with pytest.raises(TableError, match=f"6 of {6 + lost} rows reached the files"):
        arrived(folder, mode, lost=lost)
    assert everything(folder) == files


def test_a_table_is_created_once(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    with pytest.raises(TableError):
        arrived(folder, SaveMode.CREATE, lost=1)
    assert not folder.exists()
    arrived(folder, SaveMode.CREATE)
    files = everything(folder)
    with pytest.raises(TableError, match="by another writer meanwhile"):
        arrived(folder, SaveMode.CREATE)
    assert everything(folder) - files <= {
        path for path in everything(folder) if "/packs/" in path
    }


BY_MODE = [
    SaveMode.APPEND,
    pytest.param(SaveMode.OVERWRITE, marks=pytest.mark.slow),
    pytest.param(SaveMode.CREATE, marks=pytest.mark.slow),
]
STRIDES = pytest.mark.parametrize(
    "stride", [3, pytest.param(1, marks=pytest.mark.slow)]
)


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", BY_MODE)
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@STRIDES
def test_a_writer_that_fails_leaves_none_and_one_that_returns_all(
    tmp_path: Path, mode: SaveMode, error: type[BaseException], stride: int
) -> None:
    """After Ctrl-C all or none, also when rows that are overwritten are gone."""
    n_failed, begun = 0, tmp_path / "begun"
    before, wanted = prepared(begun, mode)
    for step in range(0, 200, stride):
        folder, allowed = again(begun, step), [wanted]
        with (
            failing_at(step, error) as calls,
            warnings.catch_warnings(record=True, action="always") as told,
        ):
            try:
                arrived(folder, mode)
            except error:
                n_failed += 1
                allowed = [before] if error is OSError else [before, wanted]
        if Counter() not in allowed or listed(folder):
            ours, theirs = seen_by_both(folder)
            assert ours in allowed, step
            if not told and error is OSError:
                assert theirs == ours, step
            vacuum(folder, retention=NOW)
            assert seen_by_both(folder) == (ours, ours), step
        if len(calls) <= step:
            break
    assert n_failed * stride > 4


def test_a_vacuum_that_has_read_the_log_before_a_commit_takes_nothing_back(
    folder: Path,
) -> None:
    """It reads the log, the rows are committed, and then it looks at the files."""
    with meanwhile(Publisher, "due", lambda: overwrite_killed(folder)):
        vacuum(folder, retention=NOW)
    vacuum(folder, retention=NOW)
    assert totals(folder) == [6, 6]


def test_an_overwrite_replaces_rows_that_are_arriving(folder: Path) -> None:
    overwrite_killed(folder, values=[8, 9])
    assert totals(folder) == [4, 40]
    assert optimized(folder, cluster_by=["x"]).n_rows == 0, "arriving rows wait"
    arrived(folder, SaveMode.OVERWRITE)
    check_total(folder, 6)
