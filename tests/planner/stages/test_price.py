"""What a plan does is bounded by what reading the files takes: counted, not timed.

``python -m benchmarks.price`` has the times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.conditions.binding.terms import Remembered
from skipindex.conditions.bound_predicate import Computed, Leaf, leaves
from skipindex.expressions import In, Reference
from skipindex.expressions.atoms import IntegerSet, OneOf, Value
from skipindex.expressions.domain import Domain, domain_of
from skipindex.indexes import EncodedColumn
from skipindex.indexes.encoding import dictionary
from skipindex.indexes.file_map import FileMap
from skipindex.indexes.positional import PositionalIndex
from skipindex.planner.stages import computed, cost
from skipindex.planner.stages.computed import (
    SECONDS_PER_TEST,
    SECONDS_PER_VALUE,
    ValueBudget,
    probe_index,
    probe_stats,
)
from skipindex.table import FileStats
from tests.indexes.memory_parts import opened
from tests.tables import build, put_all

N_FILES, N_ROWS, N_CITIES = 24, 3000, 400


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """Files whose texts ``s`` and ``t`` are many: of ``t`` the same in every file."""
    rng = np.random.default_rng(3)
    files = [
        {
            "s": [f"Name {v:012x}" for v in rng.integers(0, 1 << 48, N_ROWS)],
            "t": [f"City {v % N_CITIES:04}" for v in range(N_ROWS)],
            "a": rng.integers(0, 1 << 40, N_ROWS),
        }
        for _ in range(N_FILES)
    ]
    folder = put_all(tmp_path_factory.mktemp("price"), files)
    return build(folder, {"s": "bitmap", "t": "bitmap", "a": "bitmap"})


def n_tests(plan: sx.Plan) -> int:
    """How many values were tested."""
    return sum(
        leaf.test.n_tests
        for leaf in leaves(plan.tree)
        if isinstance(leaf, Computed) and isinstance(leaf.test, Remembered)
    )


def affordable(table: sx.Table) -> float:
    """How many tests the plan may make."""
    reading = float(cost.reading_seconds(table.state).sum())
    return ValueBudget.of(reading).left / SECONDS_PER_TEST


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "condition",
    [
        "lower(s) = 'name x'",
        "length(s) = 3",
        "a % 1000007 = 1000008",
        "CAST(a AS STRING) LIKE '%x%'",
        "lower(s) = 'x' OR length(s) = 3 OR a % 7 = 9 OR upper(s) = 'y'",
        "CASE WHEN lower(s) = 'x' THEN 1 WHEN upper(s) = 'Y' THEN 2 END = 2",
    ],
)
def test_functions_of_many_values_are_tested_for_a_part_of_reading(
    table: sx.Table, condition: str
) -> None:
    plan = table.plan(condition)
    assert n_tests(plan) <= affordable(table)
    assert 2 * affordable(table) < N_FILES * N_ROWS
    assert "reading the files takes no longer (kinds=" in "".join(plan.notes)
    assert plan.paths, "what was not tested is read"
    forced = table.plan(condition, kinds=["bitmap"])
    assert not forced.paths
    assert not any("tested" in note for note in forced.notes)


def test_values_of_all_files_are_tested_once(table: sx.Table) -> None:
    plan = table.plan("lower(t) = 'city x'")
    assert plan.paths == []
    assert n_tests(plan) <= N_CITIES + 1
    assert not any("tested" in note for note in plan.notes)


def test_a_function_is_not_asked_once_its_price_is_known() -> None:
    value_budget, test = ValueBudget(1.0), Remembered(lambda _: False)
    leaf = Computed("c", "f(c)", OneOf("", (1,)), "f(c) = 1", test)
    alone, both = SECONDS_PER_VALUE, SECONDS_PER_VALUE + SECONDS_PER_TEST
    for i in range(computed._LOOKS):
        assert value_budget.max_values(leaf, reading=1e-3) == int(
            value_budget.left / alone
        )
        before = value_budget.left
        values: list[Value] = list(range(1000 * i, 1000 * i + 1000))
        assert value_budget.can_afford(leaf, values, 1e-3), (
            "what it is worth is not known yet"
        )
        assert value_budget.left == pytest.approx(before - 1000 * both)
        assert [leaf.test(value) for value in values] == [False] * 1000
    assert value_budget.max_values(leaf, reading=1e-3) == int(1e-3 / both)
    assert not value_budget.can_afford(leaf, [*range(-1000, 0)], 1e-3)
    assert value_budget.refused == {leaf: 1}
    assert value_budget.can_afford(leaf, [*range(1000)], 1e-3), (
        "they were tested before"
    )
    assert value_budget.max_values(leaf, reading=1e-3) == int(1e-3 / alone)
    assert test.n_tests == 1000 * computed._LOOKS


def test_values_that_are_too_dear_to_test_say_nothing() -> None:
    """Each value costs to list and to test, and here is enough to list them."""
    names = pa.array([f"name {i % 1000}" for i in range(3000)])
    column = EncodedColumn("c", names, domain_of(names.type))
    index, _ = opened(sx.Bitmap(), column)
    leaf = Computed("c", "f(c)", OneOf("", (1,)), "f(c) = 1", Remembered(bool))
    value_budget = ValueBudget(1500 * SECONDS_PER_VALUE)
    assert value_budget.max_values(leaf, reading=1.0) >= 1000
    assert probe_index(index, leaf, value_budget, reading=1.0) is None
    assert value_budget.refused == {leaf: 1}
    every = probe_index(index, leaf, ValueBudget(1.0), reading=1.0)
    assert every is not None
    assert len(every.lower) == len(every.upper) == 3000


@contextmanager
def counting(owner: Any, name: str) -> Iterator[Counter[Any]]:
    """Counts the calls of a method, by its last argument."""
    calls: Counter[Any] = Counter()
    method = getattr(owner, name)

    def counted(*arguments: Any) -> Any:
        calls[arguments[-1]] += 1
        return method(*arguments)

    with patch.object(owner, name, counted):
        yield calls


@pytest.mark.parametrize("n", [100, 1000, 20_000])
def test_long_lists_take_no_step_for_each_value(table: sx.Table, n: int) -> None:
    texts = ", ".join(f"'Name {v:012x}x'" for v in range(0, n << 30, 1 << 30))
    numbers = ", ".join(str(v) for v in range(1 << 41, (1 << 41) + n))
    with counting(dictionary._Book, "find") as looked_up:
        for condition in (
            *(f"s IN ({texts})", f"s NOT IN ({texts})", f"a IN ({numbers}, 5, 6)"),
            *(f"lower(t) IN ({texts})", f"CAST(a AS BIGINT) NOT IN ({numbers})"),
        ):
            table.plan(condition, kinds=["bitmap"])
    assert sum(looked_up.values()) <= 4 * N_FILES


def test_bins_of_a_file_map_are_looked_up_in_the_list(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    files = [
        {"a": np.sort(rng.choice(10**6, 8000, replace=False)) * 7 + i * 7_000_000}
        for i in range(6)
    ]
    table = build(put_all(tmp_path, files), {"a": "bitmap"})
    keys = IntegerSet(np.arange(5_000, 7_000_000, 100))
    predicate = In(Reference(("a",)), keys)
    with counting(FileMap, "_bin") as looked_up:
        plan = table.plan(predicate, kinds=["file_map"])
    assert "0.parquet" in plan.paths
    assert "5.parquet" not in plan.paths
    assert not looked_up
    with counting(FileMap, "_bin") as looked_up:
        few = table.plan("a IN (5000, 5001)", kinds=["file_map"])
    assert "0.parquet" in few.paths
    assert "5.parquet" not in few.paths
    assert set(looked_up) == {5000, 5001}


@given(st.data())
def test_bins_are_found_from_both_sides(data: st.DataObject) -> None:
    least = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1, max_size=12)))
    values = sorted(data.draw(st.sets(st.integers(-3, 63), min_size=1, max_size=40)))

    class Book:
        n_codes = len(least)

        def values(self, start: int, stop: int) -> list[Value]:
            return list(least[start:stop])

        def locate(self, low: None, high: int) -> tuple[int, int]:
            return 0, sum(bound < high for bound in least)

    made = FileMap(np.ones(1, bool), False, True, Book(), [], None)  # type: ignore[arg-type]
    wanted = {sum(bound <= value for bound in least) - 1 for value in values} - {-1}
    for form in (tuple(values), IntegerSet(np.array(values, np.int64))):
        assert made._bins_of(form) == sorted(wanted)


def test_a_widened_column_is_asked_itself(table: sx.Table) -> None:
    numbers = ", ".join(str(v) for v in range(1000))
    plan = table.plan(f"CAST(a AS BIGINT) IN ({numbers}) OR bigint(a) > 5000000000000")
    assert all(isinstance(leaf, Leaf) for leaf in leaves(plan.tree))


def test_a_condition_that_is_repeated_is_asked_once_a_file(tmp_path: Path) -> None:
    files = [
        {"a": [i, *range(20), None] * 3, "b": list(range(i, i + 66))} for i in range(4)
    ]
    table = build(put_all(tmp_path, files), {"a": "bitmap", "b": "bitmap"})
    branches = range(1, 13)
    text = " ".join(f"WHEN a > {i + 5} OR b = {i} THEN {i % 3}" for i in branches)
    with counting(PositionalIndex, "probe") as asked:
        plan = table.plan(f"CASE {text} END = 2", kinds=["bitmap"])
    every = list(leaves(plan.tree))
    assert len(every) > 2 * len(set(every))
    assert max(asked.values()) == len(files)

    def matches(a: int | None, b: int) -> bool:
        taken = (i for i in branches if (a is not None and a > i + 5) or b == i)
        return next(taken, 0) % 3 == 2

    assert plan.row_counts.exact.all()
    assert plan.row_counts.lower.tolist() == [
        sum(map(matches, file["a"], file["b"])) for file in files
    ]


def test_integers_between_bounds_are_tested_once_and_few(tmp_path: Path) -> None:
    tested: list[Value | None] = []

    def test(value: Value | None) -> bool:
        tested.append(value)
        return value != 1000

    leaf = Computed("c", "f(c)", OneOf("", (1,)), "f(c) = 1", Remembered(test))
    n = 300
    lows: list[Value | None] = [*range(n), 5000]
    highs: list[Value | None] = [*range(300, n + 300), 5002]
    stats = FileStats.of_values(lows, Domain("int", bits=64), highs=highs)
    found = probe_stats(stats, leaf)
    assert Counter(tested).most_common(1)[0][1] == 1
    assert len(tested) == 600 + 3 + 1
    assert found.lower.all()
    tested.clear()
    leaf = Computed("c", "f(c)", OneOf("", (1,)), "f(c) = 1", Remembered(test))
    value_budget = ValueBudget(2 * 400 * SECONDS_PER_TEST)
    found = probe_stats(stats, leaf, value_budget)
    assert len(tested) <= 400
    assert found.lower.sum() == 2, "those of the closest bounds"
    assert found.upper.all()
    assert value_budget.left < 2 * 400 * SECONDS_PER_TEST
