"""Rows of many files as marks: the same counts as row by row, in samples and in all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.planner.stages import row_marks
from skipindex.planner.stages.records import ROWS
from skipindex.planner.stages.rows import RowEvaluator, RowVerdict
from tests.quick_run import examples
from tests.tables import build, put, put_all

Row = dict[str, Any]
Test = Callable[[Row], bool | None]
Counts = Callable[[Test], list[int]]

N_FILES: Final = 20
LIMITS: Final = {
    "_SAMPLED_ROWS": 8,
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


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[sx.Table, Counts]]:
    """Tables, and how many rows of each of their files make a test TRUE."""
    schema = pa.schema({"a": "i8", "s": "str", "n": "i8", "r": "i4"})
    result = []
    for seed, others in enumerate([{}, {"n": "run_length"}, {"s": "bitmap"}]):
        files = files_of(seed)
        folder = tmp_path_factory.mktemp("marks")
        put_all(folder, [pa.Table.from_pylist(rows, schema) for rows in files])
        counts = partial(count_all, files)
        result.append((build(folder, {"*": "exact", **others}), counts))
    return result


def count_all(files: Sequence[Sequence[Row]], judge: Test) -> list[int]:
    return [sum(bool(judge(row)) for row in rows) for rows in files]


@examples(150)
@given(st.data(), st.integers(0, 2))
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


def test_a_file_with_a_match_in_its_sample_is_counted_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_marks, "_SAMPLED_ROWS", 30)
    plan = build(folder, {"*": "exact"}).plan("a < 4 AND b = 1")
    assert len(plan.paths) == N_FILES
    assert plan.evaluation.rows == {}
    assert plan.count() == 8 * N_FILES
    assert len(plan.evaluation.rows) == N_FILES


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
