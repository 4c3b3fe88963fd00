"""Rows of many files as marks: the same counts as row by row, in samples and in all."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.build.column_requests import Request
from skipindex.errors import CorruptIndexError
from skipindex.indexes.kinds.run_length import RunLengthIndex
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.planner.stages import coded_files, row_marks
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.planner.stages.records import ROWS
from skipindex.planner.stages.rows import RowEvaluator, RowVerdict
from skipindex.source import commit
from tests.quick_run import examples
from tests.tables import build, put, put_all

Row = dict[str, Any]
Test = Callable[[Row], bool | None]
Counts = Callable[[Test], list[int]]

N_FILES: Final = 20
LIMITS: Final = {
    "SAMPLED_ROWS": 8,
    "_SAMPLED_FROM": 30,
    "_TRIED": 2,
    "_MARKS_AT_ONCE": 24,
    "_ROWS_AT_ONCE": 100,
    "_ROWS_HELD": 300,
    "_MOST_COPIED": 40,
    "FEW": 3,
}
"""So small that each branch is taken by files of some ten rows."""


def less(name: str, limit: Any) -> Test:
    return lambda row: None if row[name] is None else row[name] < limit


def among(name: str, *values: Any) -> Test:
    return lambda row: None if row[name] is None else row[name] in values


def negated(test: Test) -> Test:
    return lambda row: None if test(row) is None else not test(row)


BOTH: Final = ["exact", "bitmap"]
LEAVES: Final[Sequence[tuple[str, Test]]] = [
    ("a < 40", less("a", 40)),
    ("a < 3", less("a", 3)),
    ("a = 7", among("a", 7)),
    ("a IN (1, 9, 11, 30, 31, 50)", among("a", 1, 9, 11, 30, 31, 50)),
    ("a NOT IN (1, 9)", negated(among("a", 1, 9))),
    ("s = 'x3'", among("s", "x3")),
    ("s IN ('x1', 'x2', 'z')", among("s", "x1", "x2", "z")),
    ("NOT s < 'x2'", negated(less("s", "x2"))),
    ("n IS NULL", lambda row: row["n"] is None),
    ("n IS NOT NULL", lambda row: row["n"] is not None),
    ("n <> 2", negated(among("n", 2))),
    ("n < 2", less("n", 2)),
    ("r = 1", among("r", 1)),
    ("r < 3", less("r", 3)),
    ("s LIKE '%3'", lambda row: row["s"].endswith("3")),
]


def files_of(seed: int) -> list[list[Row]]:
    """Files of different lengths, with dictionaries of their own and the same ones."""
    rng = np.random.default_rng(seed)
    files = []
    for i in range(N_FILES):
        n = int(rng.choice([0, 1, 7, 8, 30, 75]))
        top = 60 if i % 3 else 8
        repeated = np.repeat(rng.integers(0, 4, n), 40)[:n]
        files.append(
            [
                {
                    "a": int(rng.integers(top)),
                    "s": f"x{rng.integers(5)}",
                    "n": None if rng.random() < 0.3 else int(rng.integers(4)),
                    "r": int(repeated[j]),
                }
                for j in range(n)
            ]
        )
    return files


def draw_tree(data: st.DataObject, depth: int = 2) -> tuple[str, Test]:
    if not depth or data.draw(st.integers(0, 2)) == 0:
        return data.draw(st.sampled_from(LEAVES))
    word = data.draw(st.sampled_from(["AND", "OR"]))
    parts = [draw_tree(data, depth - 1) for _ in range(data.draw(st.integers(2, 3)))]
    tests = [test for _, test in parts]

    def judge(row: Row) -> bool:
        results = [bool(test(row)) for test in tests]  # UNKNOWN counts as FALSE
        return all(results) if word == "AND" else any(results)

    return f" {word} ".join(f"({text})" for text, _ in parts), judge


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in LIMITS.items():
        monkeypatch.setattr(row_marks, name, limit)
    monkeypatch.setattr(coded_files, "SAMPLED_ROWS", LIMITS["SAMPLED_ROWS"])


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[sx.Table, Counts]]:
    """Tables, and how many rows of each of their files make a test TRUE."""
    schema = pa.schema({"a": "i8", "s": "str", "n": "i8", "r": "i4"})
    result = []
    kinds: list[Request] = [{}, {"n": "run_length"}, {"s": "bitmap"}]
    for seed, others in enumerate([*kinds, {"a": ["bitmap", "exact"], "s": BOTH}]):
        files = files_of(seed)
        folder = tmp_path_factory.mktemp("marks")
        put_all(folder, [pa.Table.from_pylist(rows, schema) for rows in files])
        counts = partial(count_all, files)
        result.append((build(folder, {"*": "exact", **others}), counts))
    return result


def count_all(files: Sequence[Sequence[Row]], judge: Test) -> list[int]:
    return [sum(bool(judge(row)) for row in rows) for rows in files]


@examples(150)
@given(st.data(), st.integers(0, 3))
def test_counts_and_files_are_those_of_the_rows(
    indexed: list[tuple[sx.Table, Counts]], data: st.DataObject, number: int
) -> None:
    table, count = indexed[number]
    text, judge = draw_tree(data)
    counts = count(judge)
    kinds = ["exact", "run_length", "bitmap", *["minmax"] * data.draw(st.booleans())]
    plan = table.plan(text, kinds=kinds)
    assert set(plan.paths) == {f"{i}.parquet" for i, n in enumerate(counts) if n}
    assert plan.count_bounds == (sum(counts), sum(counts))
    for task in plan.tasks:
        n = counts[int(task.path.removesuffix(".parquet"))]
        assert task.matching is None or task.matching == (n, n)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files whose every fourth row matches ``a < 4 AND b = 1``."""
    a, b = np.arange(64) % 16, np.arange(64) % 2
    return put_all(tmp_path, [{"a": a, "b": b}] * N_FILES)


def test_a_file_with_a_match_in_its_sample_is_counted_later(folder: Path) -> None:
    plan = build(folder, {"*": "exact"}).plan("a < 4 AND b = 1 OR a = 8")
    assert len(plan.paths) == N_FILES
    assert plan.evaluation.rows == {}
    assert plan.count() == 12 * N_FILES
    assert len(plan.evaluation.rows) == N_FILES


def test_a_sample_counts_as_the_codes_that_it_is_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the files with a match in it, and of others, which are probed again."""
    a = np.arange(64) % 16
    put(folder / "other.parquet", {"a": a, "b": (a == 8).astype(int)})
    table = build(folder, {"*": "exact"})
    reads = []
    for tried in (1 << 20, row_marks._TRIED):  # of too few files no sample is taken
        monkeypatch.setattr(row_marks, "_TRIED", tried)
        with CacheSession(1 << 20) as session:
            plans = [table.plan("a = 8 AND b < 1", session=session) for _ in range(2)]
        assert N_FILES in plans[1].evaluation.rows
        assert len(plans[1].paths) == N_FILES
        reads.append(plans[1].stages[-1].read)
    assert reads[1].cached_bytes == reads[1].n_bytes > 0
    assert reads[1] == reads[0]


def test_a_file_that_is_said_to_have_a_billion_rows_takes_no_memory_for_them(
    folder: Path,
) -> None:
    """The log says how many rows there are, and may be wrong."""
    table = build(put_all(folder, [{"a": [1, 2], "b": [1, 1]}] * 9), {"a": "exact"})

    def claimed(base: Snapshot) -> tuple[Manifest, TableProperties]:
        files = base.manifest.files
        at = files.schema.get_field_index("n_rows")
        n_rows = pa.array([1 << 30] * len(files), files["n_rows"].type)
        files = files.set_column(at, files.schema.field(at), n_rows)
        at = files.schema.get_field_index("groups")
        nothing = pa.nulls(len(files), files.schema.field(at).type)
        files = files.set_column(at, files.schema.field(at), nothing)
        return replace(base.manifest, files=files), base.properties

    commit(table.state.location, claimed, operation="test")
    table = sx.open_table(folder)
    tracemalloc.start()
    plan = table.plan("b = 1 AND a = 2")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert plan.paths == table.paths
    assert peak < 1 << 28


def test_threads_share_what_is_sampled(
    indexed: list[tuple[sx.Table, Counts]],
) -> None:
    table, count = indexed[0]
    for _ in range(10):
        with CacheSession(1 << 20) as session, ThreadPoolExecutor(len(LEAVES)) as pool:
            plan = partial(table.plan, session=session)
            plans = list(pool.map(plan, [text for text, _ in LEAVES]))
        for plan_, (_, judge) in zip(plans, LEAVES, strict=True):
            kept = {f"{i}.parquet" for i, n in enumerate(count(judge)) if n}
            assert set(plan_.paths) == kept


def test_a_file_whose_codes_are_damaged_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_self: RunLengthIndex) -> None:
        raise CorruptIndexError("damaged by the test")

    table = build(folder, {"*": "exact"})
    monkeypatch.setattr(RunLengthIndex, "codes", damaged)
    monkeypatch.setattr(RunLengthIndex, "_codes", damaged)
    for condition in ("a = 8 AND b < 1", "a = 8 AND b = 1"):
        plan = table.plan(condition)
        assert plan.paths == table.paths
        assert "damaged by the test" in " ".join(plan.notes)


def test_a_file_without_a_sample_has_not_that_of_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = np.arange(64) % 16
    put(folder / "0.parquet", {"a": a, "b": (a == 8).astype(int)})
    sampled = coded_files.CodedFiles.add_sample

    def damaged(files: coded_files.CodedFiles, slot: int) -> None:
        if files.indexes[slot].codes().sum() == 4:
            raise CorruptIndexError("damaged by the test")
        sampled(files, slot)

    monkeypatch.setattr(coded_files.CodedFiles, "add_sample", damaged)
    monkeypatch.setattr(row_marks, "_MARKS_AT_ONCE", 1 << 20)
    plan = build(folder, {"*": "exact"}).plan("a = 8 AND b < 1")
    assert [task.path for task in plan.skipped] == ["0.parquet"]


def test_indexes_with_codes_need_no_bitmaps(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: RowEvaluator, file: int) -> RowVerdict:
        raise AssertionError(f"file {file} is looked at alone")

    monkeypatch.setattr(RowEvaluator, "verdict", fail)
    table = build(folder, {"*": "exact"})
    assert table.plan("a = 4 AND b = 1").paths == []
    assert table.plan("a = 5 AND b = 1 OR b IN (7, 8)").count() == 4 * N_FILES


def test_files_without_codes_are_looked_at_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_marks, "_ROWS_AT_ONCE", 1 << 20)
    build(folder, {"a": "exact", "b": "exact"})
    for i in range(3):
        put(folder / f"{N_FILES + i}.parquet", {"a": [5, 6], "b": [1, i]})
    plan = sx.open_table(folder).plan("a = 5 AND b = 0")
    assert {s.path for s in plan.skipped} == {f"{i}.parquet" for i in range(N_FILES)}
    table = build(folder, {"b": "bitmap"})
    new = [f"{N_FILES + i}.parquet" for i in range(3)]
    assert table.plan("a = 5 AND b = 0", kinds=["bitmap", "exact"]).paths == new[:1]


def test_a_condition_that_rules_out_a_file_alone_is_named(folder: Path) -> None:
    table = build(folder, {"*": "exact"})
    leaves = table.plan("a IN (16, 20) AND b = 0", kinds=["exact"]).evaluation.leaves
    removed = {leaf.column: record.removed_by for leaf, record in leaves.items()}
    assert removed["a"][ROWS].all()
    assert ROWS not in removed["b"]
