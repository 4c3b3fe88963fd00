"""Optimize and vacuum, killed at each step: nobody ever reads other rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from skipindex.api import open_table
from skipindex.rewrite.vacuum import vacuum
from tests.rewrite.arriving import deaths, fill
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import EACH_STEP
from tests.rewrite.seen import (
    NOW,
    check_rows,
    check_swept,
    listed,
    rows_of,
    seen_by_both,
)
from tests.tables import build

optimize = partial(optimized, cluster_by=["x"], rows_per_file=40, cube_size=2000)


@EACH_STEP
def test_a_killed_optimize_reads_as_before_or_as_after(
    tmp_path: Path, after: bool, stride: int
) -> None:
    n_seen, step = set(), 0
    begun = fill(tmp_path / "begun", 3)
    build(begun, {"x": "bitmap"})
    before, old = rows_of(begun, listed(begun)), open_table(begun).paths
    steps = range(stride - 1, 200, stride)
    for step, folder in deaths(begun, optimize, steps, after=after):
        table = open_table(folder)
        assert seen_by_both(folder) == (before, before), step
        assert listed(folder) == old
        new = [path for path in table.paths if path not in old]
        assert not new or not set(table.paths) & set(old), "before or after, no mixture"
        n_seen.add(len(new))
        assert table.plan("x < 5").paths != []
        check_rows(folder, before, step)
        check_swept(folder)
        optimize(folder)
        assert seen_by_both(folder) == (before, before), step
    assert step > 8
    assert 0 in n_seen
    assert len(n_seen) == 2, "some died after the commit"


@EACH_STEP
def test_a_killed_second_optimize_too(tmp_path: Path, after: bool, stride: int) -> None:
    """Its files are hidden already, and some of them go."""
    begun = fill(tmp_path / "begun", 2)
    optimize(begun)
    fill(begun, 1, first=2)
    before = rows_of(begun, listed(begun))
    whole = partial(optimize, mode="full")
    for step, folder in deaths(
        begun, whole, range(stride // 2, 200, stride), after=after
    ):
        check_rows(folder, before, step)
        check_swept(folder)


@EACH_STEP
def test_a_killed_vacuum_is_finished_by_the_next(
    tmp_path: Path, after: bool, stride: int
) -> None:
    step, begun = 0, fill(tmp_path / "begun", 2)
    build(begun, {"x": "bitmap"})
    before = rows_of(begun, listed(begun))
    optimize(begun)
    optimized(begun, cluster_by=["i"], indexes={"i": []}, where="day = 1")
    publish = partial(vacuum, retention=NOW)
    steps = range(stride // 2, 200, stride)
    for step, folder in deaths(begun, publish, steps, after=after):
        ours, theirs = seen_by_both(folder)
        assert ours == before, step
        assert not before - theirs, "who lists the folder misses no row"
        rewrites = open_table(folder).state.snapshot.rewrites
        assert theirs == before or rewrites.replacements or rewrites.shown, step
        vacuum(folder, retention=NOW)
        assert seen_by_both(folder) == (before, before), step
        check_swept(folder)
        table = open_table(folder)
        assert table.paths == listed(folder)
        assert table.state.index_gaps == {}
    assert step > 15
