"""Optimize and vacuum, killed at each step: nobody ever reads other rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skipindex.api import open_table
from skipindex.log.replacements import Rewrites
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.location import Location
from tests.rewrite.arrow_writer import (
    everything,
    listed,
    optimized,
    rows_of,
    seen_by_both,
)
from tests.rewrite.killing import Killed, killed_at
from tests.tables import build, put

NOW = timedelta(0)
WISH: dict[str, Any] = {"cluster_by": ["x"], "rows_per_file": 40, "cube_size": 2000}


EACH_STEP = pytest.mark.parametrize(
    ("after", "stride"),
    [
        pytest.param(False, 3, id="some"),
        pytest.param(False, 1, id="before", marks=pytest.mark.slow),
        pytest.param(True, 1, id="after", marks=pytest.mark.slow),
    ],
)
"""Where a writer is killed: before or after each change, or before one in three.

Of those, a killed optimize has one that comes after its commit.
"""


def fill(folder: Path, n_files: int, *, first: int = 0) -> Path:
    for i in range(first, first + n_files):
        for day in (1, 2):
            source = np.random.default_rng(2 * i + day)
            x = source.integers(0, 100, 20)
            put(folder / f"day={day}" / f"{i}.parquet", {"x": x, "i": [i] * 20})
    return folder


def copied(folder: Path, target: Path) -> Path:
    """A copy with the times of its files: a table that is the same to its log."""
    return Path(shutil.copytree(folder, target, copy_function=shutil.copy2))


def steps(run: Callable[[], Any], *, after: bool) -> Iterator[int]:
    """Kill ``run`` at one step after the other, until it lives."""
    for step in range(200):
        try:
            with killed_at(step, after=after) as calls:
                run()
        except Killed:
            yield step
        else:
            assert len(calls) <= step
            return
    raise AssertionError("it does not end")


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
        vacuum(folder, retention=NOW)
        assert seen_by_both(folder) == (before, before), step
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
        assert seen_by_both(folder) == (before, before), step
        vacuum(folder, retention=NOW)
        assert seen_by_both(folder) == (before, before), step
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


def check_swept(folder: Path) -> None:
    """After two runs, as the first supersedes commits of its own, nothing is left."""
    vacuum(folder, retention=NOW)
    table = open_table(folder)
    manifest = table.state.snapshot.manifest
    left = {path for path in everything(folder) if "/log/" not in path}
    data = {path for path in left if not path.startswith("_skipindex/")}
    assert data == set(table.paths)
    packs = {f"_skipindex/packs/{pack.name}" for pack in manifest.packs}
    others = {path for path in left - data if "/manifests/" not in path}
    assert others == packs
    named = {segment.path for segment in table.state.snapshot.segments}
    assert left - data - others == named
    folders = {path.name for path in folder.rglob("*") if path.is_dir()}
    assert not any(name.startswith("_skipindex-") for name in folders)


def test_steps_are_counted(tmp_path: Path) -> None:
    """The test of the tests: a write that is killed leaves nothing or all."""
    location = Location(str(tmp_path))
    assert list(steps(lambda: location.write("a", b"1"), after=False)) == [0]
    assert everything(tmp_path) == {"a"}
