"""A slice of the sweep in which each call of each writer fails in each way."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path

import pytest

from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import published
from skipindex.storage.publications import write_outcome
from tests.rewrite.arrow_writer import listed, optimized, seen_by_both
from tests.rewrite.failing import BAD_SECTOR, KINDS, sweep
from tests.rewrite.kill_and_damage import WRITERS, seen
from tests.rewrite.test_killed import fill
from tests.tables import build


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["append", "overwrite files", "vacuum", "build again"])
def test_a_writer_that_fails_anywhere_has_done_all_or_none(
    tmp_path: Path, name: str
) -> None:
    told = dict(sweep(name, tmp_path, stride=7, kinds=["no number"]))
    assert len(told) > 5
    assert {case: problem for case, problem in told.items() if problem} == {}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["append", "overwrite files", "vacuum", "build again"])
def test_a_file_that_gives_half_of_its_bytes_is_not_taken_for_damaged(
    tmp_path: Path, name: str
) -> None:
    told = dict(sweep(name, tmp_path, kinds=[BAD_SECTOR]))
    assert told
    assert {case: problem for case, problem in told.items() if problem} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_fails_in_any_way_has_done_all_or_none(
    tmp_path: Path, name: str, kind: str
) -> None:
    told = dict(sweep(name, tmp_path, kinds=[kind]))
    assert {case: problem for case, problem in told.items() if problem} == {}


def test_a_publication_whose_copies_are_damaged_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the outcome and the delete: its record is why the old files are none."""
    folder = fill(tmp_path, 1)
    build(folder, {"x": "bitmap"})
    old = set(listed(folder))
    optimized(folder, cluster_by=["x"])
    before = seen(folder)
    whole: dict[Path, bytes] = {}

    def then_damaged(location: Location, name: str, shown: Collection[str]) -> None:
        write_outcome(location, name, shown)
        for path in shown:
            copy = folder / published(path)
            whole[copy] = copy.read_bytes()
            copy.write_bytes(whole[copy][:-4] + b"DAMG")

    now = timedelta(0)
    with monkeypatch.context() as patch:
        patch.setattr("skipindex.rewrite.publish.write_outcome", then_damaged)
        vacuum(folder, retention=now)
    vacuum(folder, retention=now)
    assert old < set(listed(folder))
    for path, data in whole.items():
        path.write_bytes(data)
    assert seen(folder) == before
    vacuum(folder, retention=now)
    assert old.isdisjoint(listed(folder))
    assert seen_by_both(folder) == (before, before)
