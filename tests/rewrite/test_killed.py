"""Optimize and vacuum, killed at each step: nobody ever reads other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skipindex.api import open_table
from skipindex.log.replacements import Rewrites
from skipindex.rewrite.vacuum import vacuum
from tests.rewrite.arrow_writer import (
    NOW,
    check_rows,
    check_swept,
    copied,
    fill,
    listed,
    optimized,
    rows_of,
    seen_by_both,
)
from tests.rewrite.killing import EACH_STEP, Killed, killed_at
from tests.tables import build

WISH: dict[str, Any] = {"cluster_by": ["x"], "rows_per_file": 40, "cube_size": 2000}


@EACH_STEP
def test_a_killed_optimize_reads_as_before_or_as_after(
    tmp_path: Path, after: bool, stride: int
) -> None:
    n_seen = set()
    begun = fill(tmp_path / "begun", 3)
    build(begun, {"x": "bitmap"})
    before = rows_of(begun, listed(begun))
    old = open_table(begun).paths
    for step in range(stride - 1, 200, stride):
        folder = copied(begun, tmp_path / str(step))
        try:
            with killed_at(step, after=after):
                optimized(folder, **WISH)
        except Killed:
            pass
        else:
            break
        table = open_table(folder)
        assert seen_by_both(folder) == (before, before), step
        assert listed(folder) == old
        new = [path for path in table.paths if path not in old]
        assert not new or not set(table.paths) & set(old), "before or after, no mixture"
        n_seen.add(len(new))
        assert table.plan("x < 5").paths != []
        check_rows(folder, before, step)
        check_swept(folder)
        optimized(folder, **WISH)
        assert seen_by_both(folder) == (before, before), step
    assert step > 8
    assert 0 in n_seen
    assert len(n_seen) == 2, "some died after the commit"


@EACH_STEP
def test_a_killed_second_optimize_too(tmp_path: Path, after: bool, stride: int) -> None:
    """Its files are hidden already, and some of them go."""
    begun = fill(tmp_path / "begun", 2)
    optimized(begun, **WISH)
    fill(begun, 1, first=2)
    before = rows_of(begun, listed(begun))
    for step in range(stride // 2, 200, stride):
        folder = copied(begun, tmp_path / str(step))
        try:
            with killed_at(step, after=after):
                optimized(folder, **{**WISH, "mode": "full"})
        except Killed:
            pass
        else:
            break
        check_rows(folder, before, step)
        check_swept(folder)


@EACH_STEP
def test_a_killed_vacuum_is_finished_by_the_next(
    tmp_path: Path, after: bool, stride: int
) -> None:
    begun = fill(tmp_path / "begun", 2)
    build(begun, {"x": "bitmap"})
    before = rows_of(begun, listed(begun))
    optimized(begun, **WISH)
    optimized(begun, cluster_by=["i"], indexes={"i": []}, where="day = 1")
    for step in range(stride // 2, 200, stride):
        folder = copied(begun, tmp_path / str(step))
        try:
            with killed_at(step, after=after):
                vacuum(folder, retention=NOW)
        except Killed:
            pass
        else:
            break
        ours, theirs = seen_by_both(folder)
        assert ours == before, step
        assert not before - theirs, "who lists the folder misses no row"
        publishing = bool(rewrites(folder).replacements or rewrites(folder).shown)
        assert theirs == before or publishing, step
        vacuum(folder, retention=NOW)
        assert seen_by_both(folder) == (before, before), step
        check_swept(folder)
        table = open_table(folder)
        assert table.paths == listed(folder)
        assert table.state.index_gaps == {}
    assert step > 15
    assert open_table(folder).paths == listed(folder)


def rewrites(folder: Path) -> Rewrites:
    return open_table(folder).state.snapshot.rewrites
