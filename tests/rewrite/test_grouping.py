"""Packing, cubes and candidates, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.log.properties import NO_PROPERTIES, TableProperties
from skipindex.rewrite.selection.bin_packing import pack, runs
from skipindex.rewrite.selection.boxes import Boxes
from skipindex.rewrite.selection.cubes import (
    Run,
    Runs,
    runs_of,
    runs_of_write,
    with_runs,
)
from skipindex.rewrite.selection.grouping import (
    Mode,
    plan_clustering,
    plan_joining,
    rounds,
)
from skipindex.rewrite.selection.target import EligibleFile, Target
from skipindex.storage.file_system.names import round_of
from tests.tables import build, put

weights = st.lists(st.integers(0, 100), max_size=40)


@given(weights=weights, limit=st.integers(1, 120))
def test_bins_hold_everything_once_and_not_too_much(
    weights: list[int], limit: int
) -> None:
    bins = pack(weights, limit)
    assert sorted(i for items in bins for i in items) == list(range(len(weights)))
    sums = [sum(weights[i] for i in items) for items in bins]
    for total, items in zip(sums, bins, strict=True):
        assert total <= limit or len(items) == 1
    light = sorted(total for total in sums if total <= limit)
    assert all(a + b > limit for a, b in pairwise(light)), "two bins fit into one"


def test_check_05_files_are_packed_by_size() -> None:
    assert pack([60, 40, 50, 50, 100, 130], 100) == [[0, 1], [2, 3], [4], [5]]


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


def written(
    name: str, run: int = 1, number: int = 0, *sizes: int, folder: str = ""
) -> EligibleFile:
    """A file with the name that a round of a run gives it."""
    path = f"{folder}part-{ord(name):05d}-{run:032x}-{number}.parquet"
    return file(path, *sizes)


def wrote(run: int = 1, *, sealed: int = 0, **changes: Any) -> dict[str, Run]:
    told = {"cluster_by": ("x",), "curve": "hilbert", "rows_per_file": 100}
    target = Target(**{**told, "cube_size": 30, **changes})
    return {f"{run:032x}": Run.of(target, sealed=sealed)}


TARGET = Target(("x",), "hilbert", rows_per_file=100, cube_size=30)


def chosen(files: list[EligibleFile], known: Runs, mode: Mode) -> list[set[str]]:
    groups = plan_clustering(files, known, TARGET, mode=mode)
    return [{f.path for f in group.files} for group in groups]


def names(*files: EligibleFile) -> set[str]:
    return {one.path for one in files}


FILES = [file(name) for name in "abcdef"]
A, B, C = (written(name) for name in "abc")
OPEN, LATER, NEW = written("c", 1, 1), written("c", 2), FILES[0]
"""Of the round after that of A, B and C; of another run; and of nobody of us."""
SHAPES: list[dict[str, Any]] = [
    {"cluster_by": ("y",)},
    {"cluster_by": ("x", "y")},
    {"curve": "zorder"},
    {"sort_within": ("y",)},
]
_RUN = f"{1:032x}-0"
OTHERS = {
    "Spark": "part-00000-6f1c7b5e-3a0f-4d0e-9a43-0f6d8b0f2f11-c000.snappy.parquet",
    "no round": f"part-00000-{1:032x}.parquet",
    "another round": f"part-00000-{1:032x}-c000.parquet",
    "a prefix": f"copy-of-part-00000-{1:032x}-0.parquet",
    "an append": f"part-00000-{2:032x}-0.parquet",
}
SEALED = wrote(sealed=1)
BOTH = wrote() | wrote(2)
INCREMENTAL, FULL = Mode.INCREMENTAL, Mode.FULL
CUBES: dict[str, tuple[Mode, list[EligibleFile], Runs, list[list[EligibleFile]]]] = {
    "nothing new": (INCREMENTAL, [A, B, C, OPEN], SEALED, []),
    "sealed, not": (INCREMENTAL, [A, B, C, OPEN, NEW], SEALED, [[OPEN, NEW]]),
    "sealed, full": (FULL, [A, B, C, OPEN, NEW], SEALED, [[A, B, C], [OPEN, NEW]]),
    "two that are not sealed": (INCREMENTAL, [A, LATER], BOTH, [[A, LATER]]),
    "sealed by what came out": (INCREMENTAL, [A, B, C, NEW], wrote(), [[NEW]]),
    "too little came out": (INCREMENTAL, [A, B, NEW], wrote(), [[A, B, NEW]]),
    "one run has done it": (FULL, [A, B, OPEN], SEALED, []),
    "two runs have": (FULL, [A, B, LATER], BOTH, [[A, B, LATER]]),
    "another size": (FULL, [A, B], wrote(rows_per_file=7), [[A, B]]),
    "another size, left": (INCREMENTAL, [A, B], wrote(rows_per_file=7), []),
    "hidden": (FULL, [A, file(f"_skipindex-{_RUN}/part-00001-{_RUN}")], wrote(), []),
}
for shape in SHAPES:
    other = wrote(sealed=1, **shape)
    CUBES[f"clustered by {shape}"] = INCREMENTAL, [A, B], other, [[A, B]]
for who, name in OTHERS.items():
    both = [file(name), B]
    CUBES[f"name of {who}"] = INCREMENTAL, both, wrote(), [both]


@pytest.mark.parametrize("case", CUBES)
def test_what_is_rewritten(case: str) -> None:
    """Sealed cubes are left alone, and whatever we have not written is in none."""
    mode, files, known, expected = CUBES[case]
    assert chosen(files, known, mode) == [names(*group) for group in expected]


def test_a_cube_is_sealed_by_what_went_in() -> None:
    (large, small) = plan_clustering(FILES[:4], {}, TARGET, mode=INCREMENTAL)
    assert (large.sealed, small.sealed) == (True, False)
    few = [written("a", 1, 0, 1), written("b", 2, 0, 1)]
    assert chosen(few, SEALED | wrote(2, sealed=1), INCREMENTAL) == []


WIDE = Target(("x",), "hilbert", rows_per_file=100, cube_size=10**6)


def merged(
    sizes: list[int], fresh: int, ratio: float, boxes: Boxes | None = None
) -> set[str]:
    """What is rewritten of cubes of one file each, ``a`` and so on, and a new file."""
    cubes = [written(chr(97 + i), i + 1, 0, size) for i, size in enumerate(sizes)]
    known = runs_wide(range(len(cubes)))
    files = [*cubes, *([file("new", fresh)] if fresh else [])]
    target = replace(WIDE, ratio=ratio)
    groups = plan_clustering(files, known, target, mode=INCREMENTAL, boxes=boxes)
    assert len(groups) <= 1
    found = {f.path for group in groups for f in group.files}
    return {chr(int(path[5:10])) if "part" in path else path for path in found}


def runs_wide(runs: Iterable[int]) -> dict[str, Run]:
    return {k: how for i in runs for k, how in wrote(i + 1, cube_size=10**6).items()}


@pytest.mark.parametrize(
    ("sizes", "fresh", "ratio", "expected"),
    [
        ([100, 10], 2, 5, {"b", "new"}),
        ([60, 10], 2, 5, {"a", "b", "new"}),
        ([61, 10], 2, 5, {"b", "new"}),
        ([100, 11], 2, 5, {"new"}),
        ([100, 10], 2, 0, {"new"}),
        ([100, 10], 2, math.inf, {"a", "b", "new"}),
        ([100, 20], 0, 5, {"a", "b"}),
        ([101, 20], 0, 5, set()),
        ([101, 1, 20], 0, 5, set()),
        ([100, 1, 20], 0, 5, {"a", "c"}),
        ([100], 0, math.inf, set()),
        ([], 5, 5, {"new"}),
    ],
)
def test_cubes_are_merged_that_are_not_too_heavy(
    sizes: list[int], fresh: int, ratio: float, expected: set[str]
) -> None:
    """The lightest first; each counts for the next."""
    assert merged(sizes, fresh, ratio) == expected


def boxes_of(files: Mapping[str, tuple[int, int]]) -> Boxes:
    low, high = np.array([*files.values()], np.int64).T
    rows = {path: i for i, path in enumerate(files)}
    return Boxes(rows, low[:, None], high[:, None])


def rewritten_at(
    files: list[EligibleFile], places: Mapping[str, tuple[int, int]]
) -> set[str]:
    """What is rewritten of a cube and new files that lie at these places."""
    groups = plan_clustering(
        files,
        wrote(cube_size=10**6),
        WIDE,
        mode=INCREMENTAL,
        boxes=boxes_of({file.path: places[file.path] for file in files}),
    )
    return {f.path for group in groups for f in group.files}


def test_of_a_cube_the_files_are_rewritten_that_lie_where_the_new_ones_do() -> None:
    cube, new = [A, B, C], file("new")
    places = {A.path: (0, 9), B.path: (10, 19), C.path: (20, 29)}
    for where, expected in (
        ((15, 17), names(B, new)),
        ((30, 31), names(new)),  # a new day touches none of the days before
        ((5, 25), names(*cube, new)),
    ):
        assert rewritten_at([*cube, new], {**places, new.path: where}) == expected


def test_a_few_late_rows_do_not_rewrite_the_days_before() -> None:
    """Of the new files only those count that lie where the old ones do."""
    old = [written(chr(97 + i), 1, 0, 10) for i in range(10)]
    new = [file(f"new-{i}") for i in range(10)]
    places = {f.path: (i, i) for i, f in enumerate(old)}
    places |= {f.path: (10, 10) for f in new}
    places[new[0].path] = (0, 10)
    assert rewritten_at([*old, *new], places) == names(*new)


@given(data=st.data())
def test_what_is_left_ends(data: st.DataObject) -> None:
    """With nothing new, runs come to an end; each makes fewer cubes."""
    ratio = data.draw(st.sampled_from([0.5, 2, 5, math.inf]))
    n = data.draw(st.integers(1, 12))
    weigh = st.integers(1, 100)
    cubes = {i: data.draw(st.lists(weigh, min_size=1, max_size=4)) for i in range(n)}
    for _ in range(n):
        files = [
            written(chr(97 + j), run + 1, 0, size)
            for run, sizes in cubes.items()
            for j, size in enumerate(sizes)
        ]
        target = replace(WIDE, ratio=ratio)
        groups = plan_clustering(files, runs_wide(cubes), target, mode=INCREMENTAL)
        if not groups:
            break
        gone = {round_of(f.path) for group in groups for f in group.files}
        assert len(gone) > 1
        runs_gone = {int(found[0], 16) - 1 for found in gone if found}
        total = sum(size for run in runs_gone for size in cubes.pop(run))
        cubes[max(cubes, default=0) + n + 1] = [total]
    assert not groups


def test_a_file_without_statistics_may_lie_anywhere(tmp_path: Path) -> None:
    for i, values in enumerate(([1, 2], [3, 4], [None, None])):
        put(tmp_path / f"{i}.parquet", {"x": pa.array(values, "int64")})
    build(tmp_path, {"x": "bitmap"})
    put(tmp_path / "3.parquet", {"x": [9]})
    table = sx.open_table(tmp_path).state
    boxes = Boxes.of(table, ["x"])
    one, other, null, unknown = (file(f"{i}.parquet") for i in range(4))
    assert boxes.meeting([one, other, null, unknown], [one]) == [one, null, unknown]
    assert boxes.meeting([one, other], [unknown]) == [one, other]


def test_partitions_do_not_mix() -> None:
    files = [file(f"day={i % 2}/{i}") for i in range(8)]
    turns = rounds(plan_clustering(files, {}, TARGET, mode=INCREMENTAL))
    for turn, is_sealed in zip(turns, (True, False), strict=True):
        assert [group.values for group in turn] == [
            (("day", "day=0"),),
            (("day", "day=1"),),
        ]
        assert [group.folder for group in turn] == ["day=0", "day=1"]
        assert {group.sealed for group in turn} == {is_sealed}


def test_a_round_makes_sealed_cubes_or_others() -> None:
    sizes = {"day=1": [10, 10, 10, 10], "day=2": [10], "day=3": [30]}
    files = [file(f"{day}/{i}", n) for day in sizes for i, n in enumerate(sizes[day])]
    groups = plan_clustering(files, {}, TARGET, mode=FULL)
    found = [[(g.folder, g.sealed) for g in turn] for turn in rounds(groups)]
    assert found == [
        [("day=1", True), ("day=3", True)],
        [("day=1", False), ("day=2", False)],
    ]


def test_hidden_files_are_replaced_beside_visible_ones() -> None:
    files = [file("day=1/_skipindex-7-0/a"), file("day=1/sub/b")]
    (group,) = plan_clustering(files, {}, TARGET, mode=FULL)
    assert group.folder == "day=1"


def test_joining_stops_when_nothing_is_new() -> None:
    target = Target((), "hilbert", bytes_per_file=25)
    (group,) = plan_joining(FILES[:5], {}, target)
    assert [len(run) for run in group.bins] == [2, 2]
    known = {f"{1:032x}": Run.of(target)}
    files = [written("m", 1, 0, 20), written("n", 1, 0, 4), file("o", 1), file("p", 25)]
    assert plan_joining(files, known, target) == []
    (group,) = plan_joining([*files, file("q", 1)], known, target)
    assert len(group.files) > 2, "what was joined before is joined with it"
    other = {f"{1:032x}": Run.of(Target((), "hilbert", bytes_per_file=24))}
    assert plan_joining(files, other, target) != []
    clustered = [written(name, 1, 0, 4) for name in "abc"]
    assert plan_joining(clustered, wrote(), target) == []


def test_joined_rows_fit_together_no_more() -> None:
    target = Target((), "hilbert", rows_per_file=25)
    left = [written("m", 1, 0, 1, 20), written("n", 1, 0, 1, 20), file("o", 1, 10)]
    assert plan_joining(left, {}, target) == []
    (group,) = plan_joining([*left, file("q", 1, 5)], {}, target)
    assert len(group.files) == 2


def test_check_05_number_of_files() -> None:
    files = [file("a", size=950, n_rows=95), file("b", size=100, n_rows=10)]
    assert Target((), "hilbert", bytes_per_file=100).n_files(files) == 10
    assert Target((), "hilbert", bytes_per_file=2000).n_files(files) == 1
    assert Target((), "hilbert", rows_per_file=10).n_files(files) == 11


def test_a_table_written_whole_is_one_run() -> None:
    large = [written(name, folder="day=1/") for name in "abc"]
    files = [*large, written("d", folder="day=2/")]
    known = runs_of(runs_of_write([one.path for one in files], TARGET))
    assert known == wrote()
    for mode in Mode:
        assert chosen(files, known, mode) == []
    fresh = [file("day=1/e"), file("day=2/e")]
    assert chosen([*files, *fresh], known, Mode.INCREMENTAL) == [
        names(fresh[0]),
        names(files[-1], fresh[1]),
    ]
    plain = Target((), "hilbert", rows_per_file=100)
    assert runs_of_write([files[0].path], plain) == NO_PROPERTIES


def test_runs_without_files_are_forgotten() -> None:
    known = wrote() | wrote(2, sealed=3) | wrote(3, curve="zorder")
    paths = [written("a").path, written("b", 2).path, "part-0.parquet"]
    properties = with_runs(NO_PROPERTIES, known, paths)
    assert runs_of(properties) == wrote() | wrote(2, sealed=3)
    assert len((properties.runs or {})["targets"]) == 1
    again, notes = TableProperties.from_json(properties.to_json())
    assert (again, notes) == (properties, ())
    assert with_runs(properties, known, ["part-0.parquet"]) == NO_PROPERTIES
