"""Runs of a budget: what they may rewrite, what they choose, and that they end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from benchmarks.incremental import (
    FULL,
    KINDS,
    ROW_BYTES,
    Table,
    by_either,
    old_table,
    uniform,
)
from skipindex.errors import LayoutError
from skipindex.rewrite.selection.boxes import Boxes
from skipindex.rewrite.selection.cubes import Run, runs_of
from skipindex.rewrite.selection.target import EligibleFile, Target
from skipindex.rewrite.selection.within import Within, plan_within
from tests.quick_run import examples
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import everything, listed, rows_of, seen_by_both
from tests.rewrite.test_optimize_files import N_ROWS, fill

COLUMNS = ("customer", "part")
SHARE = 0.3
"""The part of a table that a run may rewrite."""


def size_of(table: Table) -> int:
    return sum(map(len, table.files.values())) * ROW_BYTES


def lived(table: Table, *, most: int) -> list[int]:
    """The bytes of each run until one does nothing."""
    budget = size_of(table) * SHARE
    found = []
    for _ in range(most):
        found.append(table.optimize(budget=budget))
        assert found[-1] <= budget
        if not found[-1]:
            break
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_badly_clustered_table_becomes_good_in_a_few_runs(kind: str) -> None:
    table, full = (old_table(kind, n_rows=30_000) for _ in range(2))
    full.optimize(FULL)
    queries = by_either(np.random.default_rng(2), 0)
    best = full.kept(queries)
    assert table.kept(queries) > 3 * best
    # Each row is rewritten once to be clustered, and once along the curve.
    lived(table, most=2 * 4)
    assert table.kept(queries) < 1.5 * best
    assert lived(table, most=20)[-1] == 0, "and runs come to an end"
    assert table.kept(queries) < 1.5 * best


def test_files_that_nothing_tells_apart_are_not_rewritten_for_ever() -> None:
    table, random = Table(COLUMNS, 100), np.random.default_rng(1)
    for _ in range(15):
        table.append(uniform(random, 0, 1000) % 2)
    assert sum(lived(table, most=20)) < size_of(table)
    assert lived(table, most=1) == [0]


def file(name: str, size: int, run: int | None = None) -> EligibleFile:
    path = name if run is None else f"part-{ord(name):05d}-{run:032x}-0.parquet"
    return EligibleFile(path, (), size, size)


def target_of(**wish: Any) -> Target:
    return Target(("x",), "hilbert", **{"rows_per_file": 100, **wish})


def boxes_of(files: Sequence[EligibleFile], ranges: Sequence[tuple[int, int]]) -> Boxes:
    """Each file lies in one range of one column."""
    ends = np.array(ranges, np.int64).reshape(-1, 2)
    rows = {one.path: i for i, one in enumerate(files)}
    return Boxes(rows, ends[:, :1], ends[:, 1:])


def runs_by(levels: Sequence[int | None]) -> dict[str, Run]:
    """Runs by number, whose rows have this level, or none."""
    return {
        f"{run:032x}": Run.of(target_of(levels=() if level is None else (level,)))
        for run, level in enumerate(levels)
    }


def planned(
    files: Sequence[EligibleFile], ranges: Sequence[tuple[int, int]], **wish: Any
) -> tuple[Within, list[set[int]]]:
    """A plan of files over ranges of one column, and the files of its groups."""
    runs = wish.pop("runs", runs_by([None] * 10))
    found = plan_within(files, runs, target_of(), boxes_of(files, ranges), **wish)
    paths = [one.path for one in files]
    return found, [{paths.index(f.path) for f in g.files} for g in found.groups]


LAYERS = [file(chr(97 + i), 10, i % 2) for i in range(6)]
PAIRS = [(0, 9), (1, 8), (20, 29), (21, 28), (40, 49), (60, 69)]
"""Two places where files of two cubes lie, and two files that lie alone."""


def test_old_files_are_rewritten_where_others_lie_and_nowhere_else() -> None:
    _, groups = planned(LAYERS, PAIRS, budget=1000)
    assert groups == [{0, 1, 2, 3}]
    _, groups = planned(LAYERS, PAIRS, budget=20)
    assert groups in ([{0, 1}], [{2, 3}])
    found, groups = planned(LAYERS, PAIRS, budget=19)
    assert (groups, found.least) == ([], 20)
    found, groups = planned(LAYERS[4:], PAIRS[4:], budget=19)
    assert (groups, found.least) == ([], None), "nothing is to be gained"


def test_new_files_come_first_and_their_cube_has_no_level() -> None:
    files = [*LAYERS, file("new", 15)]
    found, groups = planned(files, [*PAIRS, (0, 70)], budget=40)
    assert groups[0] == {6}
    assert groups[1] in ({0, 1}, {2, 3})
    assert [group.level for group in found.groups] == [0, 1]
    found, groups = planned(files, [*PAIRS, (0, 70)], budget=14)
    assert groups == [], "two layers take 20"
    assert found.least == 15


@pytest.mark.parametrize(("level", "least"), [(0, 2), (1, 3), (2, 4), (3, 5)])
def test_rows_that_were_rewritten_with_nothing_new_need_more_layers(
    level: int, least: int
) -> None:
    for n in range(1, 6):
        # Of each cube one file lies where the others do, and one lies alone.
        files = [file(name, 10, run) for name in "ab" for run in range(n)]
        ends = [(0, 9)] * n + [(100 + run, 100 + run) for run in range(n)]
        found, groups = planned(files, ends, budget=1000, runs=runs_by([level] * n))
        assert [group.level for group in found.groups] == [level + 1] * (n >= least)
        assert groups == [set(range(n))] * (n >= least)


def test_what_lies_under_rows_of_a_lower_level_is_rewritten_with_them() -> None:
    """New rows are merged with old ones, however often these were rewritten."""
    files = [file(name, 10, run) for run in (0, 1) for name in "ab"]
    ends = [(0, 9), (100, 100), (0, 9), (101, 101)]
    for other, expected in ((7, []), (None, [1])):
        found, _ = planned(files, ends, budget=1000, runs=runs_by([7, other]))
        assert [group.level for group in found.groups] == expected


def test_a_run_does_what_one_without_a_budget_does_where_it_fits() -> None:
    files = [file("a", 10, 0), file("a", 20, 1), file("new", 15)]
    places = [(0, 9), (0, 9), (0, 9)]
    found, groups = planned(files, places, budget=45)
    assert groups == [{0, 1, 2}]
    assert [group.level for group in found.groups] == [0]
    _, groups = planned(files, places, budget=44)
    assert groups == [{2}]
    _, groups = planned(files[:2], places[:2], budget=30)
    assert groups == [{0, 1}]


pieces = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.integers(0, 20),
        st.integers(1, 30),
        st.none() | st.integers(0, 3),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=20,
)


@examples(300)
@given(
    pieces=pieces, budget=st.integers(0, 300), cube_size=st.sampled_from([40, 10**9])
)
def test_a_plan_keeps_to_its_budget_and_takes_each_file_once(
    pieces: list[tuple[int, int, int, int | None, int]], budget: int, cube_size: int
) -> None:
    files, ends = [], []
    for i, (low, width, size, run, day) in enumerate(pieces):
        name = f"{i}.parquet" if run is None else f"part-{i:05d}-{run:032x}-0.parquet"
        path, values = f"day={day}/{name}", (("day", str(day)),)
        files.append(EligibleFile(path, values, size, size))
        ends.append((low, low + width))
    target = target_of(rows_per_file=9, cube_size=cube_size)
    runs = {f"{run:032x}": Run.of(target) for run in range(4)}
    found = plan_within(files, runs, target, boxes_of(files, ends), budget=budget)
    taken = [file for group in found.groups for file in group.files]
    assert len(set(taken)) == len(taken)
    assert sum(file.size for file in taken) <= budget
    assert all(len({f.values for f in group.files}) == 1 for group in found.groups)
    assert found.least is None or (not taken and found.least > budget)
    fresh = [f for f, piece in zip(files, pieces, strict=True) if piece[3] is None]
    if any(file.size <= budget for file in fresh):
        assert set(taken) & set(fresh), "new files come first"


def test_a_run_of_optimize_keeps_to_its_budget(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    before = seen_by_both(folder)
    size = (folder / listed(folder)[0]).stat().st_size
    wish = {"cluster_by": ["x", "y"], "rows_per_file": N_ROWS}
    report = optimized(folder, **wish, budget=int(4.5 * size))
    assert 0 < report.bytes_in <= 4.5 * size
    for _ in range(30):
        last, report = report, optimized(folder, **wish, budget=int(4.5 * size))
        assert report.bytes_in <= 4.5 * size
        assert seen_by_both(folder) == before
        if not report.files_in:
            break
    assert report.files_in == 0
    assert report.least is None
    files = everything(folder)
    assert optimized(folder, **wish, budget="1GB").files_in in range(9)
    after = report.overlap_after["x"]
    assert after is not None
    assert after.mean < 6
    assert rows_of(folder, sx.open_table(folder).paths) == before[0]
    assert files <= everything(folder)
    levels = [how.size.get("levels") for how in runs_of_table(last.table).values()]
    assert any(levels), "rows that were rewritten with nothing new are known as that"


def runs_of_table(table: sx.Table) -> dict[str, Run]:
    return runs_of(table.state.snapshot.properties)


def test_a_budget_below_the_smallest_rewrite_does_nothing_and_says_so(
    tmp_path: Path,
) -> None:
    folder = fill(tmp_path)
    before = everything(folder)
    sizes = [(folder / path).stat().st_size for path in listed(folder)]
    report = optimized(folder, cluster_by=["x"], budget=100)
    assert (report.files_in, report.least) == (0, min(sizes))
    assert "no useful rewrite fits into the budget" in str(report)
    assert everything(folder) == before


def test_a_budget_bounds_what_is_joined(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    sizes = sorted((folder / path).stat().st_size for path in listed(folder))
    wish = {"cluster_by": [], "rows_per_file": 2 * N_ROWS}
    report = optimized(folder, **wish, budget=1)
    assert report.files_in == 0
    assert report.least is not None
    assert report.least >= sum(sizes[:2])
    report = optimized(folder, **wish, budget=5 * sizes[-1])
    assert (report.files_in, report.files_out) == (4, 2)
    assert optimized(folder, **wish).files_in == 4


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        *(
            ({"budget": budget}, "accepted: bytes, or a text such as '10GB'")
            for budget in (-1, True, 1.5, "ten", "10 apples", "")
        ),
        ({"budget": "1GB", "mode": "full"}, "rewrites all files, so it takes no"),
    ],
    ids=str,
)
def test_what_is_no_budget_is_refused(
    tmp_path: Path, wish: dict[str, Any], text: str
) -> None:
    with pytest.raises(LayoutError, match=text):
        optimized(fill(tmp_path, 1), cluster_by=["x"], **wish)
