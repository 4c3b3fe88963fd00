"""Packing, cubes and candidates, as plain values."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.rewrite.selection.bin_packing import pack, runs
from skipindex.rewrite.selection.cubes import Cube, cubes_of_write
from skipindex.rewrite.selection.grouping import (
    Mode,
    plan_clustering,
    plan_joining,
    rounds,
)
from skipindex.rewrite.selection.target import EligibleFile, Target

weights = st.lists(st.integers(0, 100), max_size=40)


@given(weights=weights, limit=st.integers(1, 120))
def test_bins_hold_everything_once_and_not_too_much(
    weights: list[int], limit: int
) -> None:
    bins = pack(weights, limit)
    assert sorted(i for items in bins for i in items) == list(range(len(weights)))
    sums = [sum(weights[i] for i in items) for items in bins]
    assert all(
        total <= limit or len(items) == 1
        for total, items in zip(sums, bins, strict=True)
    )
    light = sorted(total for total in sums if total <= limit)
    assert all(a + b > limit for a, b in pairwise(light)), "two bins fit into one"


def test_check_05_files_are_packed_by_size() -> None:
    assert pack([60, 40, 50, 50, 100, 130], 100) == [[0, 1], [2, 3], [4], [5]]
    assert pack([], 10) == []


@given(weights=weights, limit=st.integers(1, 120))
def test_runs_keep_the_order_and_reach_the_limit(
    weights: list[int], limit: int
) -> None:
    found = runs(weights, limit)
    assert [i for items in found for i in items] == list(range(len(weights)))
    for items in found[:-1]:
        assert sum(weights[i] for i in items) >= limit
        assert sum(weights[i] for i in items[:-1]) < limit


def file(path: str, size: int = 10, n_rows: int = 10) -> EligibleFile:
    day = path.partition("/")[0] if "/" in path else ""
    return EligibleFile(path, (("day", day),) if day else (), size, n_rows)


TARGET = Target(("x",), "hilbert", rows_per_file=100, cube_size=30)


def cube(*paths: str, sealed: bool = False, **changes: Any) -> Cube:
    target = Target(
        **{
            "cluster_by": ("x",),
            "curve": "hilbert",
            "rows_per_file": 100,
            "cube_size": 30,
            **changes.pop("target", {}),
        }
    )
    run = changes.pop("run", "1")
    return Cube(target.shape(), target.size(), run, sealed, frozenset(paths))


def chosen(files: list[EligibleFile], cubes: list[Cube], mode: Mode) -> list[set[str]]:
    groups = plan_clustering(files, cubes, TARGET, mode=mode)
    return [{f.path for f in group.files} for group in groups]


FILES = [file(name) for name in "abcdef"]


def test_sealed_cubes_are_left_alone() -> None:
    cubes = [cube("a", "b", "c", sealed=True), cube("d")]
    assert chosen(FILES[:4], cubes, Mode.INCREMENTAL) == []
    assert chosen(FILES[:5], cubes, Mode.INCREMENTAL) == [{"d", "e"}]
    assert chosen(FILES[:5], cubes, Mode.FULL) == [{"a", "b", "c"}, {"d", "e"}]


def test_two_unsealed_cubes_become_one() -> None:
    cubes = [cube("a"), cube("b", run="2")]
    assert chosen(FILES[:2], cubes, Mode.INCREMENTAL) == [{"a", "b"}]


def test_a_cube_is_sealed_by_what_went_in() -> None:
    (large, small) = plan_clustering(FILES[:4], [], TARGET, mode=Mode.INCREMENTAL)
    assert (large.sealed, small.sealed) == (True, False)


@pytest.mark.parametrize(
    "target",
    [
        {"cluster_by": ("y",)},
        {"cluster_by": ("x", "y")},
        {"curve": "zorder"},
        {"sort_within": ("y",)},
    ],
)
def test_a_cube_of_another_shape_is_none(target: dict[str, Any]) -> None:
    cubes = [cube("a", "b", sealed=True, target=target)]
    assert chosen(FILES[:2], cubes, Mode.INCREMENTAL) == [{"a", "b"}]


def test_full_does_nothing_where_one_run_has_done_it() -> None:
    one = [cube("a", "b"), cube("c", sealed=True)]
    assert chosen(FILES[:3], one, Mode.FULL) == []
    assert chosen(FILES[:4], one, Mode.FULL) != []
    assert chosen(FILES[:3], [one[0], cube("c", run="2")], Mode.FULL) != []
    other = cube("a", "b", "c", target={"rows_per_file": 7})
    assert chosen(FILES[:3], [other], Mode.FULL) != []
    assert chosen(FILES[:3], [other], Mode.INCREMENTAL) == []


def test_partitions_do_not_mix() -> None:
    files = [file(f"day={i % 2}/{i}") for i in range(8)]
    groups = plan_clustering(files, [], TARGET, mode=Mode.INCREMENTAL)
    assert Counter(group.values for group in groups) == {
        (("day", "day=0"),): 2,
        (("day", "day=1"),): 2,
    }
    turns = rounds(groups)
    assert [len(turn) for turn in turns] == [2, 2]
    assert all(len({group.values for group in turn}) == 2 for turn in turns)
    assert {group.folder for group in groups} == {"day=0", "day=1"}


def test_hidden_files_are_replaced_beside_visible_ones() -> None:
    (group,) = plan_clustering(
        [file("day=1/_skipindex-7-0/a"), file("day=1/sub/b")],
        [],
        TARGET,
        mode=Mode.FULL,
    )
    assert group.folder == "day=1"


def test_joining_stops_when_nothing_is_new() -> None:
    target = Target((), "hilbert", rows_per_file=25)
    (group,) = plan_joining(FILES[:5], [], target)
    assert [len(run) for run in group.bins] == [2, 2]
    assert len(group.left) == 1
    done = Cube(target.shape(), target.size(), "1", False, frozenset("mno"))
    files = [file("m", 20, 20), file("n", 4, 4), file("o", 1, 1), file("p", 25, 25)]
    assert plan_joining(files, [done], target) == []
    assert plan_joining([*files, file("q", 1, 1)], [done], target) != []
    assert plan_joining(FILES, [cube(*"abcdef")], target) == [], "clustered"


def test_check_05_number_of_files() -> None:
    files = [file("a", size=950, n_rows=95), file("b", size=100, n_rows=10)]
    assert Target((), "hilbert", bytes_per_file=100).n_files(files) == 10
    assert Target((), "hilbert", bytes_per_file=2000).n_files(files) == 1
    assert Target((), "hilbert", rows_per_file=10).n_files(files) == 11


def test_a_table_written_whole_is_one_run() -> None:
    cubes = cubes_of_write(["day=1/a", "day=1/b", "day=2/c"], [20, 20, 10], TARGET)
    assert [(sorted(c.paths), c.sealed) for c in cubes] == [
        (["day=1/a", "day=1/b"], True),
        (["day=2/c"], False),
    ]
    files = [file("day=1/a"), file("day=1/b"), file("day=2/c")]
    assert chosen(files, cubes, Mode.FULL) == chosen(files, cubes, Mode.INCREMENTAL)
    assert chosen(files, cubes, Mode.FULL) == []
    assert Cube.from_json(cubes[0].to_json()) == cubes[0]
