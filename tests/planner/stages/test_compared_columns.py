"""Two columns are compared by min and max of every file, and row by row."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from functools import cmp_to_key
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.expressions import ColumnComparison, Operator, Reference, to_sql
from tests import oracle
from tests.planner.test_soundness import EXACT, INEXACT, specs_for
from tests.quick_run import examples
from tests.strategies import TYPES, ColumnData, tables, to_arrow, values_of
from tests.tables import build, flip, forget_open_packs, packs, put, put_all

LEFT, RIGHT = Reference(("a",)), Reference(("b",))


order = cmp_to_key(oracle.compare)
"""The order that Spark gives values of one type."""


def may_hold(operator: Operator, left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether some value between the ends of each side makes the comparison TRUE."""
    if operator is Operator.NULL_SAFE_EQ and None in left and None in right:
        return True
    ends = [[v for v in side if v is not None] for side in (left, right)]
    if operator is Operator.NULL_SAFE_NE and any(None in s for s in (left, right)):
        return any(ends) or not (None in left and None in right)
    if not all(ends):
        return False
    (low, high), (least, most) = (
        (min(side, key=order), max(side, key=order)) for side in ends
    )
    match operator:
        case Operator.LT | Operator.LE:
            return said(operator, low, most)
        case Operator.GT | Operator.GE:
            return said(operator, high, least)
        case Operator.EQ | Operator.NULL_SAFE_EQ:
            return said(Operator.LE, low, most) and said(Operator.LE, least, high)
    return any(
        said(Operator.NE, low, one) or said(Operator.NE, high, one)
        for one in (least, most)
    )


def said(operator: Operator, left: Any, right: Any) -> bool:
    tree = ColumnComparison(LEFT, operator, RIGHT)
    return oracle.evaluate(tree, {"a": left, "b": right}) is True


@examples(60)
@given(st.data())
def test_files_are_kept_whose_ends_allow_a_match(data: st.DataObject) -> None:
    """Bounds of short values are values, so the files are just these."""
    dtype = data.draw(st.sampled_from([one for one in TYPES if is_short(one)]))
    drawn = data.draw(tables(dtypes=[dtype], max_columns=2).filter(has_two))
    values = values_of(drawn)
    n_rows = len(values["a"])
    cuts = sorted(data.draw(st.lists(st.integers(0, n_rows), min_size=2, max_size=2)))
    files = list(pairwise([0, *cuts, n_rows]))
    table = to_arrow(drawn)
    with tempfile.TemporaryDirectory() as folder:
        opened = build(
            put_all(Path(folder), [table.slice(a, b - a) for a, b in files]),
            {"a": [], "b": []},
        )
        for operator in Operator:
            tree = ColumnComparison(LEFT, operator, RIGHT)
            plan = opened.plan(tree, timezone="UTC")
            sides = [[values[name][a:b] for name in "ab"] for a, b in files]
            expected = [
                f"{i}.parquet"
                for i, side in enumerate(sides)
                if may_hold(operator, *side)
            ]
            assert plan.paths == expected, to_sql(tree)
            low, high = plan.count_bounds
            n = len(oracle.matching(tree, values))
            assert high is not None
            assert low <= n <= high, to_sql(tree)


def two_columns(
    data: st.DataObject, kinds: Sequence[Any]
) -> tuple[dict[str, ColumnData], dict[str, Any]]:
    """Two columns of one type, and an index of one of the kinds on each."""
    dtype = data.draw(st.sampled_from(TYPES))
    drawn = data.draw(tables(dtypes=[dtype], max_columns=2).filter(has_two))
    specs = {
        name: data.draw(st.sampled_from(specs_for(column, kinds)))
        for name, column in drawn.items()
    }
    return drawn, specs


@examples(60)
@given(st.data())
def test_files_are_kept_that_hold_a_match(data: st.DataObject) -> None:
    """Exact indexes on both columns, of any two kinds, know the very rows."""
    drawn, specs = two_columns(data, EXACT)
    values, table = values_of(drawn), to_arrow(drawn)
    n_rows = len(table)
    cut = data.draw(st.integers(0, n_rows))
    files = [(0, cut), (cut, n_rows)]
    with tempfile.TemporaryDirectory() as folder:
        opened = build(
            put_all(Path(folder), [table.slice(a, b - a) for a, b in files]), specs
        )
        kinds = ["minmax", *(spec.kind for spec in specs.values())]
        for operator in Operator:
            tree = ColumnComparison(LEFT, operator, RIGHT)
            plan = opened.plan(tree, timezone="UTC", kinds=kinds)
            rows = oracle.matching(tree, values)
            expected = [
                f"{i}.parquet"
                for i, (a, b) in enumerate(files)
                if any(a <= row < b for row in rows)
            ]
            assert plan.paths == expected, to_sql(tree)
            assert plan.count_bounds == (len(rows), len(rows)), to_sql(tree)


@examples(40)
@given(st.data())
def test_indexes_that_do_not_know_all_rows_lose_none(data: st.DataObject) -> None:
    drawn, specs = two_columns(data, EXACT + INEXACT)
    values = values_of(drawn)
    with tempfile.TemporaryDirectory() as folder:
        opened = build(put_all(Path(folder), [to_arrow(drawn)]), specs)
        kinds = ["minmax", *(spec.kind for spec in specs.values())]
        for operator in Operator:
            tree = ColumnComparison(LEFT, operator, RIGHT)
            plan = opened.plan(tree, timezone="UTC", kinds=kinds)
            n = len(oracle.matching(tree, values))
            low, high = plan.count_bounds
            assert high is not None
            assert low <= n <= high, to_sql(tree)
            assert bool(plan.paths) or not n


def has_two(drawn: dict[str, Any]) -> bool:
    return len(drawn) == 2


def is_short(dtype: pa.DataType) -> bool:
    """Whether bounds of such values are never cut."""
    return not (pa.types.is_string(dtype) or pa.types.is_binary(dtype))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    files = [
        {
            "a": [10 * i, 10 * i + 5, None],
            "b": pa.array([25, 30, 31], pa.int32()),
            "s": ["k", "l", None],
            "t": [f"{i}", None, f"{i}z"],
            "d": [1.5, 2.5, 3.5],
            "f": pa.array([i, i, i], pa.float32()),
        }
        for i in range(5)
    ]
    folder = tmp_path_factory.mktemp("compared")
    return build(put_all(folder, files), {"*": "bitmap"})


@pytest.mark.parametrize(
    ("condition", "by_bounds", "by_rows"),
    [
        ("a > b", "34", "34"),
        ("b < a", "34", "34"),
        ("NOT (a <= b)", "34", "34"),
        ("a > b AND s = 'k'", "34", "34"),
        ("a > b AND s = 'l'", "34", "34"),
        ("a < b AND s = 'l'", "0123", "012"),
        ("a = b AND s = 'l'", "23", ""),
        ("a > b OR s = 'm'", "34", "34"),
        ("NOT (a > b OR s = 'm')", "0123", "012"),
        ("(a > b) IS NULL", "01234", "01234"),
        ("(a > b) <=> TRUE", "34", "34"),
        ("CASE WHEN a > b THEN 1 ELSE 0 END = 1", "34", "34"),
        ("a BETWEEN b AND 100", "234", "34"),
        ("s < t", "", ""),
        ("s > t", "01234", "01234"),
        ("s > t AND a > 15", "234", "234"),
        ("CAST(b AS BIGINT) < a", "34", "34"),  # as Spark casts; no value changes
        ("CAST(f AS DOUBLE) > d", "234", "234"),
        ("f > d", "234", "234"),
        ("f = d", "23", ""),
        ("CAST(a AS INT) > b", "01234", "01234"),  # which may overflow
        ("a > d", "01234", "01234"),  # of other types: Spark casts
        ("a + 1 > b", "01234", "01234"),
    ],
)
def test_conditions_with_two_columns(
    table: sx.Table, condition: str, by_bounds: str, by_rows: str
) -> None:
    for kinds, kept in ((["minmax"], by_bounds), (None, by_rows)):
        plan = table.plan(condition, kinds=kinds)
        assert [path[0] for path in plan.paths] == list(kept), kinds


def test_a_column_is_compared_with_that_of_a_partition(tmp_path: Path) -> None:
    files: dict[str, list[int | None]] = {
        "0": [1, 3, None],
        "1": [2, 2],
        "2": [None],
        "3": [3],
    }
    days = {"1": 1, "2": 2, "3": 3, "__HIVE_DEFAULT_PARTITION__": None}
    rows: dict[str, list[dict[str, Any]]] = {}
    for folder, day in days.items():
        for name, values in files.items():
            path = f"day={folder}/{name}.parquet"
            put(tmp_path / path, {"x": pa.array(values, pa.int32())})
            rows[path] = [{"x": x, "day": day} for x in values]
    table = build(tmp_path, {"x": "bitmap"})
    x, day = Reference(("x",)), Reference(("day",))
    for operator, sides in itertools.product(Operator, [(x, day), (day, x)]):
        tree = ColumnComparison(sides[0], operator, sides[1])
        true = {
            path: n
            for path, of_file in rows.items()
            if (n := sum(oracle.evaluate(tree, row) is True for row in of_file))
        }
        plan = table.plan(tree, kinds=["minmax", "bitmap"])
        assert plan.paths == sorted(true), to_sql(tree)
        assert plan.count_bounds == (sum(true.values()),) * 2, to_sql(tree)


def test_damaged_indexes_rule_out_no_file(tmp_path: Path) -> None:
    """Whatever byte it is: of a dictionary, of rows, or of where they are."""
    file = {"x": [i % 7 for i in range(300)], "y": [i % 7 + i % 2 for i in range(300)]}
    table = build(put_all(tmp_path, [file]), {"x": "bitmap", "y": "bit_sliced"})
    asked = {"kinds": ["bitmap", "bit_sliced"]}
    assert table.plan("x > y", **asked).paths == []
    noted = 0
    for pack in packs(tmp_path):
        for place in range(0, pack.stat().st_size, 97):
            flip(pack, place)
            forget_open_packs()
            plan = sx.open_table(tmp_path).plan("x > y", **asked)
            assert plan.paths in ([], ["0.parquet"])
            noted += bool(plan.notes)
            assert plan.paths == [] or plan.notes
            assert sx.open_table(tmp_path).plan("x >= y", **asked).paths
            flip(pack, place)
    assert noted > 5


def test_values_are_not_compared_if_that_takes_longer_than_reading(
    tmp_path: Path,
) -> None:
    n = 700
    file = {"x": range(n), "y": [*range(1, n), 0]}
    table = build(put_all(tmp_path, [file]), {"*": "bit_sliced"})
    plan = table.plan("x = y")
    assert plan.count_bounds == (0, n)
    assert "the values of 1 files were not tested for x = y" in "".join(plan.notes)
    forced = table.plan("x = y", kinds=["bit_sliced"])
    assert (forced.paths, forced.notes) == ([], [])
    assert table.plan("x > y", kinds=["bit_sliced"]).count_bounds == (1, 1)


def test_a_column_of_very_many_values_is_not_compared_at_any_price(
    tmp_path: Path,
) -> None:
    n = 1025
    file = {"x": range(n), "y": [*range(1, n), 0], "z": [i % 5 for i in range(n)]}
    table = build(put_all(tmp_path, [file]), {"*": "bit_sliced"})
    assert table.plan("x = y", kinds=["bit_sliced"]).count_bounds == (0, n)
    assert table.plan("x = z", kinds=["bit_sliced"]).count_bounds == (5, 5)
    assert table.plan("z < x", kinds=["bit_sliced"]).count_bounds == (n - 5, n - 5)


def test_builder_and_text_say_the_same(table: sx.Table) -> None:
    plan = table.plan((sx.col("a") > sx.col("b")) & ~(sx.col("a") == sx.col("b")))
    assert plan.where == "a > b AND NOT (a = b)"
    assert plan.paths == table.plan(plan.where).paths == ["3.parquet", "4.parquet"]


def test_a_plan_says_what_ruled_a_file_out(table: sx.Table) -> None:
    plan = table.plan("a > b", kinds=["minmax"])
    assert "a > b: minmax ruled out 3 files" in plan.explain()
    assert plan.skipped[0].reason == (
        "a > b: minmax: a values in 0 .. 5; b values in 25 .. 31, no NULL"
    )
    assert "a != b: ruled out no file alone" in table.plan("a <> b").explain()
    told = table.plan("a = b").explain()
    assert "a = b: minmax ruled out 3 files, row indexes ruled out 2 files" in told
    assert "together" not in told
    told = table.plan("a = b AND s = 'l'").explain()
    assert "together, row by row: bitmap ruled out 2 more files" in told
    assert "no row of these files matches a = b AND s = 'l'" in told


def test_a_column_that_is_not_there_is_refused(table: sx.Table) -> None:
    with pytest.raises(sx.PredicateError, match="no column 'missing'"):
        table.plan("a < missing")
