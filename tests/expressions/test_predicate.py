from __future__ import annotations

import doctest
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex import expressions as ex
from skipindex.errors import PredicateError
from skipindex.expressions import col
from tests.oracle import Row, evaluate
from tests.quick_run import examples
from tests.strategies import integers_of, predicates, tables, values_of

A, B, C = col("a") == 1, col("b") == 2, col("c") == 3
OPAQUE = ex.Unsupported("f(x)", "the function f")


def nodes(tree: ex.Predicate) -> Iterator[ex.Predicate]:
    """``tree`` and all below it."""
    yield tree
    match tree:
        case ex.And(children) | ex.Or(children):
            for child in children:
                yield from nodes(child)
        case ex.Not(child):
            yield from nodes(child)


def judge(text: str, row: Row) -> bool | None:
    """An opaque condition whose answer changes from row to row."""
    if text.startswith("NOT ("):
        inner = judge(text[5:-1], row)
        return None if inner is None else not inner
    return {"p": True, "q": False}.get(text) if len(repr(row)) % 2 else None


# -- push_not -------------------------------------------------------------------


@examples(300)
@given(st.data())
def test_push_not_keeps_every_truth_value_and_leaves_no_not(
    data: st.DataObject,
) -> None:
    table = data.draw(tables(max_rows=6))
    tree = data.draw(predicates(table, unsupported=["p", "q"], two_columns=True))
    pushed, negated = ex.push_not(tree), ex.push_not(tree, negate=True)
    assert not any(isinstance(node, ex.Not) for node in nodes(pushed))
    assert not any(isinstance(node, ex.Not) for node in nodes(negated))
    columns = values_of(table)
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))

        def truth(node: ex.Predicate, row: Row = row) -> bool | None:
            return evaluate(node, row, unsupported=judge, integers=integers_of(table))

        assert truth(pushed) is truth(tree)
        assert truth(negated) is truth(ex.Not(tree))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (~(A & B), "a != 1 OR b != 2"),
        (~(A | B), "a != 1 AND b != 2"),
        (~~A, "a = 1"),
        (~(col("a") < 1), "a >= 1"),
        (~(col("a") >= 1), "a < 1"),
        (~col("a").eq_null_safe(1), "a IS DISTINCT FROM 1"),
        (~col("a").eq_null_safe(None), "a IS NOT NULL"),
        (~col("a").isin(1, None), "a NOT IN (1, NULL)"),
        (~col("a").is_null(), "a IS NOT NULL"),
        (~col("a").like("x%"), "a NOT LIKE 'x%'"),
        (~ex.Constant(None), "NULL"),
        (~ex.Constant(value=True), "FALSE"),
        (~OPAQUE, "(NOT (f(x)))"),
        (~(A & ~(B | OPAQUE)), "a != 1 OR b = 2 OR (f(x))"),
    ],
)
def test_push_not_of_each_node(tree: ex.Predicate, expected: str) -> None:
    assert ex.to_sql(ex.push_not(tree)) == expected


# -- builders -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (col("a") == 1, "a = 1"),
        (col("a") != 1, "a != 1"),
        (col("a") < 1, "a < 1"),
        (col("a") <= 1, "a <= 1"),
        (col("a") > 1, "a > 1"),
        (col("a") >= 1, "a >= 1"),
        (col("a").eq_null_safe(None), "a <=> NULL"),
        (col("a").between(1, 2), "a >= 1 AND a <= 2"),
        (col("a").isin(1, "x", None), "a IN (1, 'x', NULL)"),
        (col("a").is_null(), "a IS NULL"),
        (col("a").is_not_null(), "a IS NOT NULL"),
        (col("a").like("x%"), "a LIKE 'x%'"),
        (col("a").like("x/%", escape="/"), "a LIKE 'x/%' ESCAPE '/'"),
        (col("a").startswith("1%_\\"), r"a LIKE '1\\%\\_\\\\%'"),
        (col("a").endswith("%"), r"a LIKE '%\\%'"),
        (col("a").contains(""), "a LIKE '%%'"),
        (A & B & C, "a = 1 AND b = 2 AND c = 3"),
        (A | B | C, "a = 1 OR b = 2 OR c = 3"),
        (A & B | C, "a = 1 AND b = 2 OR c = 3"),
        (A & (B | C), "a = 1 AND (b = 2 OR c = 3)"),
        (~(A | B) & C, "NOT (a = 1 OR b = 2) AND c = 3"),
        (~~A, "NOT (NOT (a = 1))"),
        (~A, "NOT (a = 1)"),
        (OPAQUE | A, "(f(x)) OR a = 1"),
    ],
)
def test_a_tree_reads_as_the_sql_that_it_means(
    tree: ex.Predicate, expected: str
) -> None:
    assert str(tree) == expected


def test_startswith_endswith_and_contains_take_no_patterns() -> None:
    for text in ("", "a", "%", "_", "\\", "a%b", "x\\_"):
        row = {"a": "<" + text + ">"}
        assert evaluate(col("a").contains(text), row) is True
        assert evaluate(col("a").startswith("<" + text), row) is True
        assert evaluate(col("a").endswith(text + ">"), row) is True
    assert evaluate(col("a").contains("%"), {"a": "abc"}) is False
    assert evaluate(col("a").startswith("_"), {"a": "abc"}) is False


def test_and_and_or_are_flat() -> None:
    assert A & (B & C) == ex.And((A, B, C)) == (A & B) & C
    assert A | (B | C) == ex.Or((A, B, C)) == (A | B) | C
    assert ex.conjunction([A]) == A == ex.disjunction([A])


def test_empty_and_or_and_in_are_constants_in_sql() -> None:
    assert ex.to_sql(ex.And(())) == "TRUE"
    assert ex.to_sql(ex.Or(())) == "FALSE"
    assert ex.to_sql(col("a").isin()) == "FALSE"
    assert ex.to_sql(ex.Not(col("a").isin())) == "TRUE"
    assert ex.to_sql(A | ex.And((B, ex.Or(())))) == "a = 1 OR b = 2 AND (FALSE)"


def test_a_predicate_has_no_truth_value() -> None:
    for use in (lambda: A and B, lambda: not A, lambda: 1 < col("a") < 3):
        with pytest.raises(PredicateError, match=r"combine with & \| ~"):
            use()


def test_only_predicates_are_combined() -> None:
    with pytest.raises(PredicateError, match=r"\(a boolean column is col\("):
        A & col("flag")  # type: ignore[operator]
    with pytest.raises(PredicateError, match="not a predicate: True"):
        A | True  # type: ignore[operator]


def test_a_column_is_no_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        {col("a")}


# -- names ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`", ("a.b",)),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b``c`", ("a", "b`c")),
        ("`a b`", ("a b",)),
        ("größe", ("größe",)),
        ("a b", ("a b",)),
    ],
)
def test_trap_c41_names_with_dots_and_backticks(
    name: str, parts: tuple[str, ...]
) -> None:
    assert col(name).reference == ex.Reference(parts)
    assert col(str(ex.Reference(parts))).reference == ex.Reference(parts)


@pytest.mark.parametrize(
    "name", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "`a`b", "``"]
)
def test_no_column_name(name: str) -> None:
    with pytest.raises(PredicateError, match=r"^not a column name: "):
        col(name)


@pytest.mark.parametrize(
    ("part", "sql"),
    [
        ("a", "a"),
        ("A_1", "A_1"),
        ("a.b", "`a.b`"),
        ("a`b", "`a``b`"),
        ("1a", "`1a`"),
        ("größe", "`größe`"),
        ("true", "`true`"),
        ("Null", "`Null`"),
        ("not", "`not`"),
        ("current_date", "`current_date`"),
        ("date", "date"),
    ],
)
def test_a_name_is_quoted_where_it_would_be_read_otherwise(part: str, sql: str) -> None:
    assert str(ex.Reference((part,))) == sql


# -- literals -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (False, "FALSE"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (2**63, "9223372036854775808"),
        (1.0, "1.0D"),
        (-0.0, "-0.0D"),
        (1e300, "1e+300D"),
        (5e-324, "5e-324D"),
        (math.nan, "CAST('nan' AS DOUBLE)"),
        (-math.inf, "CAST('-inf' AS DOUBLE)"),
        (Decimal("1.50"), "1.50BD"),
        (Decimal("1E+3"), "1000BD"),
        (Decimal("-1E-7"), "-0.0000001BD"),
        ("", "''"),
        ("it's", r"'it\'s'"),
        ('"', "'\"'"),
        ("a\\b", r"'a\\b'"),
        ("\n\r\t", r"'\n\r" + "\t'"),
        ("\x0012", r"'\u000012'"),  # \012 is a line feed
        ("${x}", r"'$\{x}'"),  # Spark replaces variables also in texts
        ("$\\{x}", r"'$\\{x}'"),
        ("\U0001f33c", "'\U0001f33c'"),
        (b"", "X''"),
        (b"\x00\xff", "X'00FF'"),
        (date(1, 2, 3), "DATE '0001-02-03'"),
        (datetime(2020, 1, 2, 3, 4, 5), "TIMESTAMP '2020-01-02 03:04:05'"),
        (
            datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
            "TIMESTAMP '2020-01-02 03:04:05.000006+00:00'",
        ),
        (
            datetime(2020, 1, 2, tzinfo=timezone(-timedelta(hours=8))),
            "TIMESTAMP '2020-01-02 00:00:00-08:00'",
        ),
    ],
)
def test_a_literal_is_written_with_its_type(value: Any, sql: str) -> None:
    assert ex.literal_sql(value) == sql


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int8(5), 5),
        (np.float32(0.1), 0.10000000149011612),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.datetime64("2020-01-01"), date(2020, 1, 1)),
        (np.datetime64("2020-01-01T01:02:03"), datetime(2020, 1, 1, 1, 2, 3)),
        (np.datetime64("2020-01-01", "ns"), datetime(2020, 1, 1)),
        (pd.Timestamp("2020-01-01"), datetime(2020, 1, 1)),
    ],
)
def test_numpy_scalars_are_the_python_values_that_they_hold(
    value: Any, expected: Any
) -> None:
    tree = col("a") == value
    assert isinstance(tree, ex.Comparison)
    assert tree.value == expected
    assert type(tree.value) is type(expected) or isinstance(value, pd.Timestamp)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        [1],
        (1, 2),
        np.array([1, 2]),
        np.array([1]),
        timedelta(1),
        1j,
        Decimal("NaN"),
        Decimal("Infinity"),
        pd.NaT,
        pd.Timestamp("2020-01-01 00:00:00.000000001"),
        np.datetime64("NaT", "us"),
        np.datetime64("2020-01-01T00:00:00.000000001"),
        np.timedelta64(1, "s"),
    ],
)
def test_anything_else_is_no_literal(value: Any) -> None:
    with pytest.raises(PredicateError, match=r"^not a literal: .*accepted: bool, int"):
        col("a") == value  # noqa: B015
    with pytest.raises(PredicateError, match=r"^not a literal: "):
        col("a").isin(1, value)


@pytest.mark.parametrize("escape", ["", "//"])
def test_an_escape_is_one_character(escape: str) -> None:
    with pytest.raises(PredicateError, match="expected one character"):
        col("a").like("x", escape=escape)


def test_an_operator_mirrored_twice_is_itself() -> None:
    for operator in ex.Operator:
        once = ex.MIRRORED.get(operator, operator)
        assert ex.MIRRORED.get(once, once) is operator
    for operator, negated in ex.NEGATED.items():
        assert ex.NEGATED[negated] is operator


def test_nodes_are_values() -> None:
    assert ex.In(ex.Reference(("a",)), (1,)) == col("a").isin(1)
    assert hash(ex.IsNull(ex.Reference(("a",)))) == hash(col("a").is_null())
    assert ex.Like(ex.Reference(("a",)), "x") != col("a").like("y")


def test_the_examples_in_the_docstring_run() -> None:
    result = doctest.testmod(ex)
    assert result.attempted > 0
    assert result.failed == 0
