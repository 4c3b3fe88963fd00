"""A slice of the sweeps: each step of each writer killed, or failing in each way."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest

from skipindex.api import open_table
from skipindex.rewrite.vacuum import vacuum
from tests.rewrite import failing, kill_and_damage
from tests.rewrite.arriving import deaths, fill
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.failing import BAD_SECTOR, KINDS
from tests.rewrite.kill_and_damage import WRITERS
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

SOME = ["append", "overwrite files", "vacuum", "build again"]


def check(cases: Iterable[tuple[str, str | None]], *, more_than: int = -1) -> None:
    """There are so many cases, and nothing is wrong in any."""
    told = dict(cases)
    assert len(told) > more_than
    assert {case: problem for case, problem in told.items() if problem} == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["vacuum of two", "optimize"])
def test_every_row_counts_once_whatever_is_lost(tmp_path: Path, name: str) -> None:
    check(kill_and_damage.sweep(name, tmp_path, stride=127), more_than=5)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_every_row_counts_once_at_each_step(tmp_path: Path, name: str) -> None:
    check(kill_and_damage.sweep(name, tmp_path))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_a_writer_that_fails_anywhere_has_done_all_or_none(
    tmp_path: Path, name: str
) -> None:
    check(failing.sweep(name, tmp_path, stride=7, kinds=["no number"]), more_than=5)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_a_file_that_gives_half_of_its_bytes_is_not_taken_for_damaged(
    tmp_path: Path, name: str
) -> None:
    check(failing.sweep(name, tmp_path, kinds=[BAD_SECTOR]), more_than=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_fails_in_any_way_has_done_all_or_none(
    tmp_path: Path, name: str, kind: str
) -> None:
    check(failing.sweep(name, tmp_path, kinds=[kind]))


# Optimize and vacuum, killed at each step: nobody ever reads other rows


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
