"""Functions over columns without Spark.

``tests/conditions/catalogue`` asks for the rows that Spark finds.  Here the inverse of
a function is judged by the function itself.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.conditions.binding.binder import Binder
from skipindex.conditions.binding.compiler import Compiler
from skipindex.conditions.binding.scalar import answer, judged
from skipindex.conditions.binding.terms import Asked, BoundColumn
from skipindex.conditions.bound_predicate import Computed, Leaf, leaves, unknowns
from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.functions import FUNCTIONS, TABLES, calendar
from skipindex.conditions.functions.registry import UnsureError, from_plain
from skipindex.conditions.functions.zones import no_offsets
from skipindex.conditions.simplify import simplify
from skipindex.conditions.sql.parser import parse
from skipindex.expressions import Call, Comparison, In, Operator, Reference
from skipindex.expressions.atoms import NoneOf, OneOf, Range, successor
from skipindex.expressions.domain import domain_of
from skipindex.planner.plan import plan_files
from skipindex.table import ColumnInfo
from tests.conditions.catalogue.tables import table_of
from tests.quick_run import examples
from tests.strategies import elements
from tests.tables import build, kept, put_all

INVERTED: dict[pa.DataType, list[str]] = {
    pa.int8(): [
        "c + 1",
        "1 - c",
        "-c",
        "c * 3",
        "c DIV 7",
        "c / 3",
        "CAST(c AS BIGINT)",
    ],
    pa.int32(): [
        *("c + 2147483647", "-5 - c", "c * -2", "c DIV -3", "(c + 1) * 2", "c - 1L"),
        *("CAST(c AS TINYINT)", "double(c)", "CAST(c AS DECIMAL(12,2))", "c / -7"),
    ],
    pa.int64(): ["c + 1", "-c", "CAST(c AS INT)", "c DIV 1000", "c / 3", "c * 9"],
    pa.float64(): [
        "c + 0.5D",
        "1 - c",
        "c * -2",
        "-c",
        "floor(c)",
        "ceil(c)",
        "int(c)",
    ],
    pa.decimal128(10, 2): ["-c", "floor(c)", "ceil(c)", "bigint(c)", "double(c)"],
    pa.date32(): [
        *("year(c)", "trunc(c, 'MM')", "trunc(c, 'week')", "trunc(c, 'QUARTER')"),
        *("last_day(c)", "date_add(c, 40)", "date_sub(c, 1)", "add_months(c, -1)"),
        *("datediff(c, DATE '2000-01-01')", "datediff(DATE '2000-01-01', c)"),
        *("date_format(c, 'yyyyMM')", "CAST(c AS STRING)", "CAST(c AS TIMESTAMP)"),
    ],
    pa.timestamp("us", "UTC"): [
        *("year(c)", "CAST(c AS DATE)", "date_trunc('HOUR', c)", "bigint(c)"),
        *("date_trunc('MONTH', c)", "date_format(c, 'yyyy-MM-dd')", "left(c, 13)"),
    ],
    pa.string(): [
        "substring(c, 1, 2)",
        "left(c, 1)",
        "substring(c, 0, 3)",
        "string(c)",
    ],
}
PAIRS = [(dtype, text) for dtype, texts in INVERTED.items() for text in texts]


def binder(dtype: pa.DataType, zone: str | None = "UTC") -> Binder:
    return Binder(lambda name: ColumnInfo("c", domain_of(dtype)), zone)


@pytest.mark.parametrize(("dtype", "text"), PAIRS, ids=str)
@examples(40, whole=140)
@given(st.data())
def test_an_inverse_holds_where_the_function_says_so(
    dtype: pa.DataType, text: str, data: st.DataObject
) -> None:
    """For values of the type, and thresholds at and around the function's values."""
    domain = domain_of(dtype)
    tree = parse(f"({text}) = 0")
    assert isinstance(tree, Comparison)
    column = BoundColumn("c", domain, "c")
    budget = PlanBudget(1000)
    compiler = Compiler(
        lambda _: column, lambda _: pytest.fail("no condition"), budget, "UTC"
    )
    image = compiler.compile(tree.column)
    assert image.domain is not None
    values = data.draw(st.lists(elements(dtype), min_size=2, max_size=6))
    keys = domain.encode(pa.array(values, dtype)).to_pylist()
    found = {}
    for key in keys:
        try:
            plain = image.value(key)
        except UnsureError:
            plain = None
        found[key] = plain
    sure = [plain for plain in found.values() if plain is not None]
    if not sure:
        return
    at = from_plain(image.domain, data.draw(st.sampled_from(sure)))
    some = tuple(sorted({from_plain(image.domain, one) for one in sure}))
    for question in (
        Range("", at, None),
        Range("", None, at),
        Range("", at, successor(at)),
        OneOf("", (at,)),
        OneOf("", some),
        NoneOf("", (at,)),
    ):
        pulled = image.preimage(question, Asked(text, budget))
        assert not any(isinstance(leaf, Computed) for leaf in leaves(pulled)), text
        for key, plain in found.items():
            if (
                plain is None or plain != plain
            ):  # an overflow, or NaN: the row is kept, and never certain
                assert judged(pulled, key) is not True
                assert plain is not None or judged(pulled, key) is None
            else:
                expected = answer(question, image.domain, plain)
                assert judged(pulled, key) is expected, (text, question, key, pulled)


def test_the_calendar_is_pythons() -> None:
    for number in range(-719_162, 2_932_896, 97):
        day = date(1970, 1, 1) + timedelta(days=number)
        assert calendar.civil(number) == (day.year, day.month, day.day)
        assert calendar.day_number(day.year, day.month, day.day) == number
        assert calendar.weekday(number) == day.weekday()
        assert calendar.iso_week(number) == day.isocalendar().week
        assert calendar.iso_date(number) == str(day)
    assert calendar.civil(calendar.day_number(-5877641, 6, 23)) == (-5877641, 6, 23)
    assert calendar.iso_date(calendar.day_number(10000, 1, 1)) is None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("year(d) = 1993", "d BETWEEN DATE '1993-01-01' AND DATE '1993-12-31'"),
        ("1993 > year(d)", "d < DATE '1993-01-01'"),
        ("year(d) IN (1993, 1995)", None),
        ("i + 1 IN (5, 7)", "i IN (4, 6)"),
        ("-i = 4", "i = -4"),
        ("substring(s, 1, 2) = 'ab'", "s LIKE 'ab%'"),
        ("left(s, 2) >= 'abc'", "s >= 'ac'"),
        ("bigint(i) = 4", "i = 4"),
    ],
)
def test_monotone_functions_are_ranges_of_the_column(
    condition: str, expected: str | None
) -> None:
    """So every index kind answers them; nothing is left to compute."""
    types = {"d": pa.date32(), "i": pa.int32(), "s": pa.string()}
    bind = Binder(lambda name: ColumnInfo(name, domain_of(types[name])), "UTC").bind

    def atoms(text: str) -> list[Any]:
        found = list(leaves(simplify(bind(parse(text)))))
        assert all(isinstance(leaf, Leaf) for leaf in found)
        return [leaf.atom for leaf in found if isinstance(leaf, Leaf)]

    if expected is not None:
        mine = [a for a in atoms(condition) if a.column]
        wanted = atoms(expected)
        assert mine[: len(wanted)] == wanted


def test_a_zone_without_rules_to_rely_on_is_only_trusted_to_a_day(
    tmp_path: Path,
) -> None:
    days = [date(2020, 3, 28) + timedelta(days=n) for n in range(5)]
    moment = pa.timestamp("us", "UTC")
    put_all(
        tmp_path, [{"t": pa.array([day], pa.date32()).cast(moment)} for day in days]
    )
    table = build(tmp_path, {"t": "bitmap"})
    text = "CAST(t AS DATE) = DATE '2020-03-30'"
    assert kept(table, text, timezone="+02:00") == ["2.parquet"]
    assert kept(table, text, timezone="Europe/Berlin") == ["2.parquet"]
    wider = {"1.parquet", "2.parquet", "3.parquet"}
    unknown = plan_files(text, table=table.state, timezone="Not/Known/Here")
    nearly = plan_files(
        text, table=table.state, timezone="Europe/Berlin", offsets=no_offsets
    )
    for plan in (unknown, nearly, table.plan(text)):
        assert wider <= set(plan.paths)
        assert len(plan.paths) < 5
        assert any(unknowns(plan.evaluation.tree))


@pytest.mark.parametrize(
    "condition",
    [
        "upper(nope) = 'X'",
        "CASE WHEN nope THEN 1 END = 1",
        "x + nope = 1",
        "sha2(upper(s), nope) = 1 AND nope = 1",
    ],
)
def test_unknown_columns_are_named(condition: str) -> None:
    with pytest.raises(sx.PredicateError, match="no column 'nope'"):
        table_of("groups").plan(condition)


def test_types_that_need_a_cast_are_left_to_spark() -> None:
    for condition in (
        "year(s) = 1",
        "upper(x) = 'A'",
        "s + 1 = 2",
        "coalesce(x, 'a') = 'a'",
        "CASE WHEN x > 1 THEN 1.5 ELSE x END = 1",
        "x + 1 < 99999999999999999999",
        "x * 1.5 = 3",
        "d + 1.5D = 1",
        "date_format(d, 'EEE') = 'Mon'",
        "trunc(d, s) = d",
    ):
        assert len(kept(table_of("groups"), condition)) == 6, condition
    for condition in ("n = CAST(TRUE AS DATE)", "CASE WHEN n = 5 5 END = 1"):
        assert table_of("numbers").plan(condition).count_bounds == (0, 6), condition


@pytest.mark.parametrize(
    "text",
    [
        "i + CASE WHEN true THEN NULL ELSE 1 END = 3",
        "i - nullif(1, 1) IS NULL",
        "c + CASE WHEN true THEN NULL ELSE 1 END > 3",
        "c * nullif(2, 2) > 3",
        "concat(s, CASE WHEN true THEN NULL ELSE 'x' END) = 'x'",
        "substring(s, nullif(1, 1)) = 'x'",
        "CAST(s AS BIGINT) = 5",
        f"CAST(i AS DECIMAL({'1' * 5000})) = 1",
    ],
)
def test_what_no_function_takes_fails_no_plan(tmp_path: Path, text: str) -> None:
    """Constants that are NULL and have a type, and texts of thousands of digits."""
    column = pa.array([Decimal("1.50")], pa.decimal128(10, 2))
    row = {"i": [1], "c": column, "s": ["9" * 5000]}
    table = build(put_all(tmp_path, [row]), {"*": "bitmap"})
    assert table.plan(text).count_bounds == (0, 1)


def test_a_long_list_of_a_function_is_bounded_and_computed() -> None:
    bind = binder(pa.int32()).bind
    call = Call("+", (Reference(("c",)), 1))
    tree = bind(In(call, tuple(range(10_000, 20_000))))
    assert judged(tree, 9_999) is True
    assert judged(tree, 9_998) is False
    assert judged(bind(Comparison(call, Operator.NULL_SAFE_EQ, None)), None) is True


def test_every_function_is_in_one_table() -> None:
    assert len(FUNCTIONS) == sum(map(len, TABLES))
