"""Trap C-48: what another version did not know is not empty today.

The golden tables, which ``golden_tables`` describes, are read and written on by every
later version.  Their bytes are never written anew; only the modification marks are, as
git does not keep them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.build.builder import index_files
from skipindex.build.runners import LocalRunner
from skipindex.cli import main
from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.sql.parser import parse
from skipindex.errors import (
    IndexVersionError,
    SkipIndexError,
    StorageError,
    TableError,
)
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.vacuum import vacuum
from skipindex.source import commit
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import FOLDER
from tests.oracle import matching
from tests.rewrite.seen import everything
from tests.tables import (
    build,
    kept,
    put_all,
    rewrite_commit,
    set_mtime,
)
from tests.traps.golden_tables import TABLES, WRITTEN

EVERY = [f"{i}.parquet" for i in range(4)]
ANSWERS = {
    "n = 20": [1, 3],
    "n IS NULL": [0, 2, 3],
    "n IS NOT NULL": [0, 1, 3],
    "n NOT IN (1, 2)": [0, 1, 3],
    "n > 45": [3],
    "s = 'k'": [1, 3],
    "s < 'c' OR n = 40": [0, 1, 3],
    "x > 3.5": [0, 1, 3],
    "x = CAST('NaN' AS DOUBLE)": [0, 3],
}
"""The files that the version which wrote the table kept."""
UNASKED = (
    *("unasked = 7", "NOT unasked = 7", "unasked > 100", "unasked IN (1, 2)"),
    *("unasked IS NULL", "unasked IS NOT NULL"),
)
UPGRADES: dict[str, Callable[[Path], object]] = {
    "nothing is done": lambda _: None,
    "a kind of today": lambda older: build(older, {"s": "ngram_bloom"}),
    "an older kind": lambda older: build(older, {"n": "bitmap"}),
    "statistics of another column": lambda older: build(older, {"x": "minmax"}),
    "packs are merged": lambda older: sx.open_table(older).compact_indexes(),
    "an index is dropped": lambda older: sx.open_table(older).drop_indexes(
        kinds=["bloom"]
    ),
}
BUILDS = ("a kind of today", "an older kind", "statistics of another column")


@pytest.fixture
def older(tmp_path: Path) -> Path:
    return written("partly_known", tmp_path / "table")


def written(name: str, folder: Path) -> Path:
    """A copy of a golden table, with the marks that its files had."""
    shutil.copytree(TABLES / name, folder)
    for path in folder.glob("*.parquet"):
        set_mtime(path, WRITTEN)
    return folder


def check(folder: Path, condition: str) -> sx.Plan:
    """Files and rows that match are within what the plan says of them."""
    plan = sx.plan_files(condition, table=folder)
    tree = with_values(parse(condition))
    for i, path in enumerate(plan.table.paths):
        n = len(matching(tree, pq.read_table(folder / path).to_pydict()))
        assert path in plan.paths or not n, f"{path} holds a row: {condition}"
        low, high = plan.row_counts.lower[i], plan.row_counts.upper[i]
        assert low <= n, (path, condition)
        assert high < 0 or n <= high, (path, condition)
    return plan


def test_trap_c48_a_table_answers_as_it_did(older: Path) -> None:
    assert sx.open_table(older).state.index_gaps == {"never indexed": 1}
    for condition, files in ANSWERS.items():
        plan = check(older, condition)
        assert plan.paths == [EVERY[i] for i in files], condition
        assert plan.notes == ["1 files: never indexed"], condition


def test_trap_c48_payloads_are_still_exact(older: Path) -> None:
    for kind in ("bitmap", "range_bitmap", "bit_sliced"):
        plan = sx.plan_files("n >= 2 AND n < 20", table=older, kinds=[kind])
        assert plan.paths == ["0.parquet", "1.parquet", "3.parquet"], kind
        assert plan.row_counts.lower.tolist() == [2, 1, 0, 0], kind
        assert plan.row_counts.upper.tolist() == [2, 1, 0, -1], kind


@pytest.mark.few(4)
@pytest.mark.parametrize("upgrade", UPGRADES)
def test_trap_c48_what_was_unknown_is_not_empty_after_an_upgrade(
    older: Path, upgrade: str
) -> None:
    """Lance 7372: a legacy "unknown" became an exact set of no rows."""
    UPGRADES[upgrade](older)
    for condition in UNASKED:
        plan = check(older, condition)
        if upgrade in BUILDS:
            continue  # statistics of every column are there, for every file
        assert plan.paths == EVERY, condition
        assert not plan.row_counts.lower.any(), condition
        assert not plan.row_counts.exact.any(), condition
    for condition in ANSWERS:
        check(older, condition)


def test_trap_c48_what_is_known_of_new_files_is_not_known_of_old_ones(
    older: Path,
) -> None:
    """The manifests become one whose older rows have no such statistics."""
    table = sx.open_table(older)
    last = [file for file in table.state.location.list() if file.path == EVERY[3]]
    fresh = index_files(
        table.state.over(last), {"unasked": ["minmax", "bitmap"]}, runner=LocalRunner(1)
    )

    def merged(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest.merge(fresh), base.properties

    commit(table.state.location, merged, operation="test")
    for condition in UNASKED:
        plan = check(older, condition)
        assert plan.paths[:3] == EVERY[:3], condition
        assert not plan.row_counts.lower[:3].any(), condition
        assert not plan.row_counts.exact[:3].any(), condition
        assert plan.row_counts.exact[3], condition
    assert kept(older, "unasked > 100") == EVERY[:3]


STATISTICS = ("null_count", "nan_count", "low", "high", "low_exact", "high_exact")


@pytest.mark.few(3)
@pytest.mark.parametrize("upgrade", ["nothing is done", "a kind of today"])
@pytest.mark.parametrize("name", STATISTICS)
def test_trap_c48_a_statistic_that_was_not_kept_is_not_zero(
    tmp_path: Path, name: str, upgrade: str
) -> None:
    """As a version would have left it that did not write this statistic yet."""
    folder = put_all(
        tmp_path,
        [
            {"n": pa.array([1.5, None, float("nan")]), "s": ["a", "b", "c"]},
            {"n": pa.array([None, None], pa.float64()), "s": ["d", "e"]},
            {"n": pa.array([2.5, 2.5]), "s": ["f", "g"]},
        ],
    )
    build(folder, {"n": "minmax"})
    asked = ("n IS NULL", "n IS NOT NULL", "n = 2.5", "n < 2", "n > 1e300", "n <> 2.5")
    whole = {condition: check(folder, condition).paths for condition in asked}
    forget(folder, name)
    UPGRADES[upgrade](folder)
    for condition in asked:
        assert set(whole[condition]) <= set(check(folder, condition).paths), condition
    if name == "null_count":
        assert kept(folder, "n IS NULL") == EVERY[:3]


def forget(folder: Path, name: str) -> None:
    """Make one statistic of ``n`` unknown in all files."""

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        column = base.manifest.stats["n"]
        fields = list(column.values.type)
        assert name in {field.name for field in fields}
        arrays = [
            pa.nulls(len(column.values), field.type)
            if field.name == name
            else column.values.field(i)
            for i, field in enumerate(fields)
        ]
        values = pa.StructArray.from_arrays(arrays, fields=fields)
        stats = {**base.manifest.stats, "n": replace(column, values=values)}
        manifest = replace(base.manifest, stats=stats)
        return manifest, base.properties

    commit(location_of(folder), change, operation="test")


def test_trap_c48_a_table_of_a_newer_version_is_not_empty(older: Path) -> None:
    rewrite_commit(older, format=3)
    for condition in (*ANSWERS, *UNASKED):
        plan = check(older, condition)
        assert plan.paths == EVERY, condition
        assert plan.count_bounds == (0, None), condition
        assert "format 3, newer than ours (2)" in plan.notes[0]


SEGMENTS = {
    "x = 502": ["0.parquet", "10.parquet"],
    "x = 53": ["10.parquet"],
    "x = 91": ["10.parquet", "9.parquet"],
    "x >= 500": ["0.parquet", "10.parquet"],
    "s = 'v3' AND x < 12": ["1.parquet", "10.parquet"],
    "x = 0": ["10.parquet"],
    "x IN (1, 21, 88)": ["10.parquet", "2.parquet"],
    "s IS NULL": ["10.parquet"],
}
"""The files that the version which wrote the table of segments kept."""


@pytest.mark.few(4)
@pytest.mark.parametrize("upgrade", UPGRADES)
def test_a_table_of_segments_answers_as_it_did(tmp_path: Path, upgrade: str) -> None:
    folder = written("segments", tmp_path / "table")
    if upgrade == "nothing is done":
        segments = sx.open_table(folder).state.snapshot.segments
        assert [(one.n_rows, one.n_live) for one in segments] == [
            (9, 7),
            (1, 1),
            (1, 1),
        ]
    elif upgrade in BUILDS:
        build(folder, {"x": "bitmap", "s": "ngram_bloom"})
    else:
        UPGRADES[upgrade](folder)
    for condition, kept_then in SEGMENTS.items():
        plan = check(folder, condition)
        is_new = upgrade in BUILDS  # the last file is indexed now
        files = [path for path in kept_then if not (is_new and path == "10.parquet")]
        if upgrade == "an index is dropped" and "s" in condition:
            assert set(files) <= set(plan.paths), condition
        else:
            assert plan.paths == files, condition


def test_one_command_indexes_a_table_of_0_1_0_again(tmp_path: Path) -> None:
    folder = written("indexed_by_0_1_0", tmp_path / "table")
    before = sx.open_table(folder)
    assert re.search("version 0.1.0 wrote: its indexes are not used", before.notes[0])
    assert len(check(folder, "x = 502").paths) == len(before) == 10
    assert before.history()[0].files == 9
    assert main(["refresh", str(folder)]) == 0
    table = sx.open_table(folder)
    assert table.notes == ()
    assert table.status().indexed_files == 10
    kept_then = {one: check(folder, one).paths for one in SEGMENTS}
    assert all(len(kept_then[one]) < 10 for one in ("x = 502", "x = 91", "x = 0"))
    table.vacuum()
    assert table.vacuum(retention=timedelta(0)).n_bytes > 0, "of its indexes"
    assert table.verify().ok
    assert kept_then == {one: check(folder, one).paths for one in SEGMENTS}


@pytest.mark.parametrize(
    ("rewrites", "is_refused"),
    [
        ({"replacements": [], "trash": []}, False),
        ({"replacements": [], "trash": [["day=1/0.parquet", 1, 2]]}, True),
        (7, True),
    ],
)
def test_a_table_of_0_1_0_is_taken_as_it_is_listed_only_if_nothing_is_hidden(
    tmp_path: Path, rewrites: Any, *, is_refused: bool
) -> None:
    folder = written("indexed_by_0_1_0", tmp_path / "table")
    rewrite_commit(folder, format=1, properties={"rewrites": rewrites})
    with pytest.raises(SkipIndexError) if is_refused else nullcontext():
        build(folder, {"x": "exact"})
        assert len(check(folder, "x = 502").paths) == 1


def test_a_table_of_0_1_0_is_refused_and_read_once_nothing_is_hidden(
    tmp_path: Path,
) -> None:
    """The sentence says what to do; what it leaves of the folder stays ours."""
    folder = tmp_path / "table"
    shutil.copytree(TABLES / "of_0_1_0", folder)
    before = everything(folder)
    wanted = "format 1, which version 0.1.0 wrote .* vacuum the table twice .* delete"
    with pytest.raises(StorageError, match=f"is unknown which files .* {wanted}"):
        sx.open_table(folder)
    with pytest.raises(TableError, match=wanted):
        vacuum(folder)
    assert everything(folder) == before
    for hidden in folder.glob("day=*/_skipindex-*/*"):
        hidden.rename(hidden.parents[1] / hidden.name)  # as that vacuum does
    for old in ("day=1/0.parquet", "day=1/1.parquet"):
        (folder / old).unlink()
    table = sx.open_table(folder)
    assert re.search(wanted, table.notes[0])
    assert table.plan("x = 10").paths == list(table.paths)
    with pytest.raises(IndexVersionError, match=wanted):
        build(folder, {"x": "bitmap"})
    shutil.rmtree(folder / FOLDER)
    build(folder, {"x": "bitmap"})
    table = sx.open_table(folder)
    assert table.notes == ()
    assert 0 < len(table.plan("x = 10").paths) < len(table)


def test_a_table_of_an_unfinished_vacuum_has_each_row_once(tmp_path: Path) -> None:
    """Git gives its files other times, as every copy does."""
    folder = tmp_path / "table"
    shutil.copytree(TABLES / "unfinished", folder)
    wanted = [0, 1, 2, 3, 10, 11, 12, 13, *[1, 2, 3] * 2]

    def rows() -> list[int]:
        paths = sx.open_table(folder).paths
        found = (pq.ParquetFile(folder / path).read(["x"]) for path in paths)
        return sorted(x for table in found for x in table["x"].to_pylist())

    assert rows() == sorted(wanted)
    sx.open_table(folder).vacuum(retention=timedelta(0))
    assert rows() == sorted(wanted)
    assert not any("_skipindex-" in path for path in sx.open_table(folder).paths)
    assert len(list(folder.glob("day=*/*.parquet"))) == 5
