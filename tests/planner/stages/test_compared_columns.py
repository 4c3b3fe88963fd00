"""Two columns are compared by min and max of every file."""

from __future__ import annotations

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
from tests.quick_run import examples
from tests.strategies import TYPES, tables, to_arrow, values_of
from tests.tables import build, put_all

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


def has_two(drawn: dict[str, Any]) -> bool:
    return len(drawn) == 2


def is_short(dtype: pa.DataType) -> bool:
    """Whether bounds of such values are never cut."""
    return not (pa.types.is_string(dtype) or pa.types.is_binary(dtype))


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
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
    return build(put_all(tmp_path, files), {"*": "bitmap"})


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("a > b", "34"),
        ("b < a", "34"),
        ("NOT (a <= b)", "34"),
        ("a > b AND s = 'k'", "34"),
        ("a > b OR s = 'm'", "34"),
        ("NOT (a > b OR s = 'm')", "0123"),
        ("(a > b) IS NULL", "01234"),
        ("(a > b) <=> TRUE", "34"),
        ("CASE WHEN a > b THEN 1 ELSE 0 END = 1", "34"),
        ("a BETWEEN b AND 100", "234"),
        ("s < t", ""),
        ("s > t", "01234"),
        ("CAST(b AS BIGINT) < a", "34"),  # as Spark casts, and no value changes
        ("CAST(f AS DOUBLE) > d", "234"),
        ("f > d", "234"),
        ("CAST(a AS INT) > b", "01234"),  # which may overflow
        ("a > d", "01234"),  # of other types: Spark casts
        ("a + 1 > b", "01234"),
    ],
)
def test_conditions_with_two_columns(
    table: sx.Table, condition: str, kept: str
) -> None:
    assert [path[0] for path in table.plan(condition).paths] == list(kept)


def test_builder_and_text_say_the_same(table: sx.Table) -> None:
    plan = table.plan((sx.col("a") > sx.col("b")) & ~(sx.col("a") == sx.col("b")))
    assert plan.where == "a > b AND NOT (a = b)"
    assert plan.paths == table.plan(plan.where).paths == ["3.parquet", "4.parquet"]


def test_a_plan_says_what_ruled_a_file_out(table: sx.Table) -> None:
    plan = table.plan("a > b")
    assert "a > b: minmax ruled out 3 files" in plan.explain()
    assert plan.skipped[0].reason == (
        "a > b: minmax: a values in 0 .. 5; b values in 25 .. 31, no NULL"
    )
    assert "a != b: ruled out no file alone" in table.plan("a <> b").explain()


def test_a_column_that_is_not_there_is_refused(table: sx.Table) -> None:
    with pytest.raises(sx.PredicateError, match="no column 'missing'"):
        table.plan("a < missing")
