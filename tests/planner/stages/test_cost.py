"""A stage that cannot pay for itself is not run, and says so; kinds can be forced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skipindex import Table
from skipindex.conditions.bound_predicate import leaves
from skipindex.conditions.sql.parser import parse
from skipindex.errors import UnknownIndexError
from skipindex.planner.stages.cost import in_order
from tests.tables import build, put, put_all

MANY = " OR ".join(f"a > {10 * n} AND a < {10 * n + 5}" for n in range(60))
"""More questions than a small file is worth."""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    files = [{"a": [9, 599], "b": [1, 2]}, {"a": [-5, 999], "b": [1, 3]}]
    return build(put_all(tmp_path, files), {"a": ["bitmap", "bloom"], "b": "bitmap"})


def notes(table: Table, condition: str, **options: object) -> dict[str, str]:
    stages = table.plan(condition, **options).stages
    return {stage.name: stage.note for stage in stages}


def test_bitmaps_are_not_asked_more_than_the_files_are_worth(table: Table) -> None:
    plan = table.plan(MANY, without="file_map")
    assert plan.paths == ["0.parquet", "1.parquet"]
    note = notes(table, MANY, without="file_map")["row indexes"]
    assert note.startswith(
        "not worth it: evaluating 60 conditions on 2 files takes about"
    )
    assert note in plan.explain()
    assert plan.conditions[0].unused["bitmap"] == note


def test_a_kind_that_is_named_is_asked_at_any_price(table: Table) -> None:
    plan = table.plan(MANY, kinds=["bitmap"])
    assert plan.paths == []
    assert notes(table, MANY, kinds="bitmap")["row indexes"] == ""


def test_few_conditions_are_always_worth_it(table: Table) -> None:
    assert notes(table, "a > 5 AND a < 500 AND b < 3")["row indexes"] == ""
    assert table.plan("a > 10 AND a < 500 AND b < 3").paths == []


def test_large_files_are_worth_many_questions(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"a": [9, 599], "x": [b"x" * 4_000_000, b"y"]}, **RAW)
    table = build(tmp_path, {"a": "bitmap"})
    assert notes(table, MANY, without="file_map")["row indexes"] == ""


RAW = {"compression": "NONE", "use_dictionary": False}


@pytest.mark.parametrize(
    "without", ["bitmap", ["bitmap", "file_map"], ("bitmap", "bloom", "file_map")]
)
def test_kinds_can_be_forbidden(table: Table, without: object) -> None:
    plan = table.plan("a = 10", without=without)
    assert ("bloom" in without) == (len(plan.paths) == 2)
    unused = plan.conditions[0].unused
    assert unused["bitmap"] == "not among the kinds to use"


def test_forbidding_is_stronger_than_naming(table: Table) -> None:
    plan = table.plan("a = 5", kinds=["bitmap", "bloom"], without="bloom")
    assert plan.kinds == {"bitmap"}
    assert table.plan("a = 5", without="minmax").kinds >= {"bitmap", "bloom"}
    with pytest.raises(UnknownIndexError, match="unknown index kind 'zones'"):
        table.plan("a = 5", without="zones")


@pytest.mark.parametrize(
    ("condition", "costs", "order"),
    [
        ("a < 3 AND b = 5", {"a": 1, "b": 1}, "ba"),
        ("b < 999 AND a < 3", {"a": 1, "b": 1}, "ab"),
        ("a < 3 AND b < 3", {"a": 16, "b": 1}, "ba"),
        ("a < 3 AND b < 999", {"a": 16, "b": 1}, "ab"),
        ("a < 3 AND b < 999", {"a": 0, "b": 16}, "ba"),
        ("a < 999 AND b < 900", {"a": 16, "b": 1}, "ba"),
        ("a < 3 AND c = 'x' AND b < 3", {"a": 16, "b": 8, "c": 1}, "cba"),
    ],
)
def test_the_condition_that_makes_all_cheapest_is_asked_first(
    tmp_path: Path, condition: str, costs: dict[str, float], order: str
) -> None:
    """Of integers from 0 to 999, others from 0 to 1,999, and of texts."""
    rows = {"a": [0, 999], "b": [0, 1999], "c": ["x", "y"]}
    table = build(put_all(tmp_path, [rows]), dict.fromkeys(rows, "bitmap"))
    found = table.plan(condition).evaluation
    ordered = in_order(
        found.tree,
        found.table,
        lambda leaf: found.leaves[leaf].column,
        np.arange(1),
        costs=costs,
    )
    assert "".join(leaf.column for leaf in leaves(ordered)) == order


def alternatives(n: int) -> str:
    return " OR ".join(f"(a = {1000 + i} AND b = {i})" for i in range(n))


def test_thousands_of_conditions_on_small_files_are_planned_by_statistics(
    table: Table,
) -> None:
    assert table.plan(alternatives(400)).paths == []
    within = " OR ".join(f"a > {10 * n} AND a < {10 * n + 5}" for n in range(400))
    plan = table.plan(within, without="file_map")
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert "not worth it" in plan.explain()
    assert plan.to_arrow().count_rows() == 0
    functions = " OR ".join(f"abs(a) = {5 + i}" for i in range(1000))
    for condition in (functions, parse(functions)):
        rows = table.plan(condition).to_arrow().to_table(columns=["a"])
        assert sorted(rows["a"].to_pylist()) == [-5, 9, 599, 999]
