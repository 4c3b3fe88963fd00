"""Batches of streams: each is added once, whatever happens to the writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from skipindex.errors import TableError
from skipindex.log import read_snapshot
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder import batch as batches
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.location import Location, location_of
from tests.rewrite.arriving import arrived, fill, overwrite_killed
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import meanwhile
from tests.rewrite.seen import NOW, check_swept, everything, listed, seen_alike, totals


def add(folder: Path, number: int, query: str = "q") -> None:
    arrived(
        folder,
        SaveMode.APPEND,
        rows={2: {"x": [number], "i": [number]}},
        batch=Batch(query, number),
    )


def streams(folder: Path) -> object:
    return read_snapshot(location_of(folder)).properties.streams


def test_a_batch_is_added_once(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    for number in (0, 1, 1, 5):
        add(tmp_path, number)
    assert seen_alike(tmp_path).total() == 40 + 3
    assert streams(tmp_path) == {"q": [5, 1]}
    files = everything(tmp_path)
    add(tmp_path, 5)
    assert everything(tmp_path) == files
    add(tmp_path, 5, "of another checkpoint")
    assert totals(tmp_path) == [44, 44]
    check_swept(tmp_path)


def test_an_older_batch_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    add(tmp_path, 7)
    files = everything(tmp_path)
    with pytest.raises(TableError, match="batch 6 of stream q is older than batch 7"):
        add(tmp_path, 6)
    assert everything(tmp_path) == files


@pytest.mark.parametrize("name", ["write_new", "copy", "delete"])
@pytest.mark.parametrize("after", [False, True])
def test_two_runs_of_a_batch_add_it_once(
    tmp_path: Path, name: str, after: bool
) -> None:
    fill(tmp_path, 1)
    with meanwhile(Location, name, lambda: add(tmp_path, 3), after=after):
        add(tmp_path, 3)
    assert totals(tmp_path) == [41, 41]
    vacuum(tmp_path, retention=NOW)
    assert totals(tmp_path) == [41, 41]
    check_swept(tmp_path)


def test_the_next_run_shows_what_a_killed_one_has_committed(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    overwrite_killed(tmp_path, mode=SaveMode.APPEND, batch=Batch("q", 3))
    assert totals(tmp_path) == [46, 40]
    shown = listed(tmp_path)
    arrived(tmp_path, SaveMode.APPEND, batch=Batch("q", 3))
    assert totals(tmp_path) == [46, 46]
    assert len(listed(tmp_path)) == len(shown) + 2


def test_a_batch_that_was_overwritten_or_rewritten_is_not_added_again(
    tmp_path: Path,
) -> None:
    fill(tmp_path, 1)
    add(tmp_path, 3)
    optimized(tmp_path, cluster_by=["x"], rows_per_file=1000, mode="full")
    add(tmp_path, 3)
    assert totals(tmp_path)[0] == 41
    arrived(tmp_path, SaveMode.OVERWRITE)
    add(tmp_path, 3)
    assert totals(tmp_path) == [6, 6]
    assert streams(tmp_path) == {"q": [3, 1]}


def test_the_streams_that_wrote_last_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_MOST_QUERIES", 3)
    fill(tmp_path, 1)
    for query in ("a", "b", "a", "c", "d"):
        add(tmp_path, len(listed(tmp_path)), query)
    known = streams(tmp_path)
    assert isinstance(known, dict)
    assert sorted(known) == ["a", "c", "d"]
