from __future__ import annotations

import doctest
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex import expressions as ex
from skipindex.conditions.binding.binder import Binder
from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.sql import parser as module
from skipindex.conditions.sql.parser import parse
from skipindex.errors import PredicateError
from skipindex.expressions import col
from skipindex.expressions.domain import domain_of
from skipindex.table import ColumnInfo
from tests.oracle import Row, evaluate
from tests.quick_run import examples
from tests.strategies import integers_of, predicates, tables, values_of


def judged(text: str) -> ex.Predicate:
    """The condition, with values for its constants."""
    return with_values(parse(text))


def value_of(literal: str) -> Any:
    """The value of a literal beside a column."""
    tree = judged(f"a = {literal}")
    assert isinstance(tree, ex.Comparison), tree
    assert tree.column == ex.Reference(("a",))
    return tree.value


def cases(name: str) -> list[tuple[str, str]]:
    """The lines of a file beside this one: a text, then what is expected of it."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    parted = (line.rpartition(" =>") for line in lines if not line.startswith("# "))
    return [(text, expected.removeprefix(" ")) for text, _, expected in parted]


# -- shape ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.a = 1", "t.a = 1"),
        ("`a b`.`c``d` = 1", "`a b`.`c``d` = 1"),
        ("t.select = 1", "t.`select` = 1"),
        ("order = 1 AND x = 2 AND from = 3", "order = 1 AND x = 2 AND `from` = 3"),
        ("a = 1 -- \\\n OR b = 2", "a = 1"),
        ("UPPER( a )='X'", "upper(a) = 'X'"),
        ("a::decimal(10, 2) = 1", "CAST(a AS DECIMAL(10,2)) = 1"),
        ("a - INTERVAL -'1-2' YEAR TO MONTH = 2", "(a - INTERVAL '-14' MONTH) = 2"),
        ("a + make_dt_interval(1) = 2", "(a + INTERVAL '86400' SECOND) = 2"),
        ("(a, b) IN ((1, 'x'), (2, NULL))",
         "a <=> 1 AND b IN ('x') AND b IS NOT NULL OR a <=> 2 AND b <=> NULL"),
        ("CASE WHEN a > 1 THEN b < 2 ELSE c IS NULL END",
         "a > 1 AND a IS NOT NULL AND b < 2 OR (a <= 1 OR a IS NULL) AND c IS NULL"),
    ],
)  # fmt: skip
def test_names_and_what_is_written_for_several(text: str, expected: str) -> None:
    """What other conditions mean is in the catalogue."""
    assert ex.to_sql(judged(text)) == expected
    assert ex.to_sql(judged(expected)) == ex.to_sql(judged(text))


@pytest.mark.parametrize(("text", "reason"), cases("unjudged.txt"))
def test_what_no_index_can_judge_stays_as_written(text: str, reason: str) -> None:
    """And the conditions around it are read as ever."""
    leaf = judged(text)
    assert isinstance(leaf, ex.Unsupported)
    assert leaf.text in {text, ex.to_sql(parse(text))}
    assert leaf.reason
    assert reason in {"", leaf.reason}
    b, c = col("b") == 2, col("c") > 3
    assert judged(f"b = 2 AND {text} AND c > 3") == ex.And((b, leaf, c))
    assert judged(f"b = 2 OR NOT {text} AND c > 3") == ex.Or(
        (b, ex.And((ex.Not(leaf), c)))
    )
    assert judged(f"b = 2 OR ({text}\n) OR c > 3") == ex.Or((b, leaf, c))


def test_unsupported_text_is_the_users_own() -> None:
    tree = parse("a = 1 AND\n  f( d , 1 )  >= /* why */ DATE'2020-01-01' OR b")
    assert isinstance(tree, ex.Or)
    assert tree.children[0] == ex.And(
        (
            col("a") == 1,
            ex.Unsupported(
                "f( d , 1 )  >= /* why */ DATE'2020-01-01'", "the function f"
            ),
        )
    )


def test_nothing_is_read_where_spark_replaces_variables() -> None:
    text = "a = '${name}' AND b = 1"
    tree = parse(text)
    assert isinstance(tree, ex.Unsupported)
    assert tree.text == text


def test_a_doubled_quote_is_judged_as_spark_3_and_as_spark_4_read_it() -> None:
    """The rows of both are in the catalogue."""
    tree = parse("a = 'it''s'")
    assert isinstance(tree, ex.And)
    assert tree.children[0] == ex.Or((col("a") == "it's", col("a") == "its"))
    assert isinstance(tree.children[1], ex.Unsupported)
    assert tree.children[1].text == "a = 'it''s'"


@pytest.mark.parametrize("text", ["a = ''", "a = '' ''", "a = r'' 'x'", 'a = "it\'s"'])
def test_a_quote_that_is_not_doubled_is_read_once(text: str) -> None:
    assert isinstance(parse(text), ex.Comparison)


# -- literals -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("-9223372036854775809", "Decimal('-9223372036854775809')"),
        ("1.50", "Decimal('1.50')"),
        ("1e2BD", "Decimal('100')"),
        ("-0.0D", "-0.0"),
        ("1.1f", "1.100000023841858"),
        ("TIMESTAMP '2020-01-02'", "datetime.datetime(2020, 1, 2, 0, 0)"),
        ("decimal(7)", "Decimal('7')"),
        ("CAST(7 AS DECIMAL(20, 2))", "Decimal('7.00')"),
        ("CAST(5 AS STRING)", "'5'"),
        ("double('nan')", "nan"),
        ("'a\\\nb'", repr("a\nb")),
    ],
)
def test_a_literal_has_the_type_that_spark_gives_it(literal: str, value: str) -> None:
    """Python writes values of other types, scales and signs of zero differently."""
    assert repr(value_of(literal)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *cases("mistakes.txt"),
        ("a = 1\n  AND b c", "near 'c' at line 2, column 9 of 'a = 1\\\\n  AND b c'"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(text: str, message: str) -> None:
    with pytest.raises(PredicateError, match=message or r".") as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *("INTERVAL", "a = INTERVAL", "a = INTERVAL -", "mod() = 1", "pmod() = 1"),
        *(
            "map('a') = b",
            "upper(a b) = 1",
            "(a = 1, b)",
            "rand() = IN 1",
            "a (IN) (1)",
        ),
    ],
)
def test_a_form_without_its_end_is_left_to_spark(text: str) -> None:
    """Spark says what is wrong with it."""
    assert isinstance(judged(text), ex.Unsupported)


def test_a_long_text_is_quoted_around_the_mistake() -> None:
    text = " AND ".join(f"column_{n} = {n}" for n in range(1000)) + " AND x y OR z"
    with pytest.raises(
        PredicateError, match=r"near 'y' at line 1, column \d+ of '\.\.\."
    ):
        parse(text)


# -- size, depth, side effects --------------------------------------------------


def test_long_lists_and_chains_are_read() -> None:
    values = tuple(range(10_000))
    tree = parse(f"a IN ({', '.join(map(str, values))})")
    assert tree == ex.In(ex.Reference(("a",)), values)
    chain = parse(" OR ".join(f"a = {n}" for n in values[:2000]))
    assert isinstance(chain, ex.Or)
    assert len(chain.children) == 2000


@pytest.mark.parametrize("depth", [50, 5_000])
def test_deep_texts_are_read_or_left_to_spark(depth: int) -> None:
    for text in (
        "(" * depth + "a = 1" + ")" * depth,
        "(" * depth + "a" + ")" * depth + " = 1",
        "NOT " * depth + "a = 1",
        "f(" * depth + "a" + ")" * depth + " = 1",
    ):
        tree = parse(f"b = 2 AND {text}")
        assert isinstance(tree, ex.And)
        assert tree.children[0] == (col("b") == 2)


@pytest.mark.parametrize(
    "wrapped",
    [
        "CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 5 END",
        "nullif({}, 7)",
        "nvl2({0}, {0}, 1)",
        "if({} = 2, a, 1)",
        "coalesce({} = 1, false)",
        "CASE WHEN ({}) = 1 THEN a > 1 ELSE a < 5 END",
        "greatest({0}, 1, -{0})",
    ],
)
def test_text_in_text_takes_steps_by_its_length(
    wrapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that stands for several, or that is read again, does not multiply."""
    steps = 0
    spend = PlanBudget.spend

    def counted(budget: PlanBudget) -> None:
        nonlocal steps
        steps += 1
        spend(budget)

    monkeypatch.setattr(PlanBudget, "spend", counted)
    text = "a"
    for _ in range(7 if "{0}" in wrapped else 9):  # twice in it: the text doubles
        text = wrapped.format(text)
    column = ColumnInfo("a", domain_of(pa.int64()))
    Binder(lambda _: column, "UTC").bind(parse(f"{text} = 3"))
    assert steps <= 6 * len(text)


def test_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        parse("get_json_object(a, '$[') = 'x' AND json_tuple(a, 'no path!') = 1")
        parse("if + 1 = 2 OR show + 1 = 2 OR show = (SELECT 1) + 1")
    assert caplog.records == []


@pytest.mark.parametrize(
    "text",
    [
        "lower(order) = 'x' AND upper(`a b`) = 'y'",
        "NOT values + 1 = 2 AND NOT table + 1 = 2",
        "newer_function(a, b, c, d, e, f => 1) = 1",
        "cast(a as struct<b: int>).b = 1",
        "sum(a) FILTER (WHERE b AND c) OVER (PARTITION BY d ORDER BY e) > 1",
        "a >>> 1 = 2",
        "bit_count(X '1F') = 5",
        "f(r'\\', \"it's\", 'x\ny', '\\'') = 1",
        "!(a = 1) = TRUE",
        "a = (! b)",
        "from IS NULL",
        "table * 2 = 4",
        "a COLLATE UTF8_LCASE = 'x' AND show + 1 = 2",
        "a AT TIME ZONE 'UTC' > b",
        "ntile(4) OVER (ORDER BY a) = 1 AND a NOT RLIKE 'x'",
        "v:field.x::int = 3 AND arr[0] = 1 AND a | b ^ ~c & d << 1 = 2",
        "exists(arr, x -> x > 1) AND f(DISTINCT a, ALL b) > 2",
        "a LIKE ANY ('x', 'y') AND a LIKE SOME ('z')",
    ],
)
def test_valid_conditions_that_other_grammars_stumble_over(text: str) -> None:
    tree = parse(f"{text} AND z = 1")
    assert isinstance(tree, ex.And)
    assert tree.children[-1] == (col("z") == 1)


# -- round trip -----------------------------------------------------------------


UNJUDGED = ["f(x) = 1", "x + 1 > y"]


@examples(300)
@given(st.data())
def test_a_tree_written_and_read_again_means_the_same(data: st.DataObject) -> None:
    table = data.draw(tables(max_rows=6))
    tree = data.draw(predicates(table, unsupported=UNJUDGED, two_columns=True))
    again = judged(ex.to_sql(tree))
    columns = values_of(table)

    def judge(text: str, row: Row) -> bool | None:
        return {"f(x) = 1": True, "x + 1 > y": None}[text]

    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        ours, theirs = (
            evaluate(node, row, unsupported=judge, integers=integers_of(table))
            for node in (tree, again)
        )
        assert ours is theirs, ex.to_sql(tree)


NAMES = st.text(min_size=1).filter(lambda name: "${" not in name)
"""Spark substitutes variables in names too, where nothing can escape them."""


@given(st.text(), NAMES, st.booleans())
def test_any_text_and_any_name_survive(text: str, name: str, negated: bool) -> None:
    reference = ex.Reference((name, "b"))
    for tree in (
        ex.Comparison(reference, ex.Operator.EQ, text),
        ex.In(reference, (text,), negated),
        ex.Like(reference, text, negated=negated),
        ex.IsNull(reference, negated),
    ):
        assert parse(ex.to_sql(tree)) == tree


@examples(300)
@given(st.text("ab1.'\"`\\()-/*,=<>!; \n$", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except PredicateError:
        return
    assert ex.to_sql(parse(ex.to_sql(tree))) == ex.to_sql(tree)


def test_the_examples_in_the_docstring_run() -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    "text",
    [
        "in(a) = 0.5",
        "when(1) IS NOT NULL",
        "between(a, 1, 2)",
        "b > 0 AND in(a, 1)",
        "second('a', 1.5) = 'a'",
        "CASE WHEN in(a) THEN rand() > 0 END",
    ],
)
def test_a_keyword_can_be_the_name_of_a_function(text: str) -> None:
    """Spark takes such calls, so they are left to it and are no mistakes."""
    assert "Unsupported" in repr(judged(text))


@pytest.mark.parametrize("text", ["a WHEN (1)", "a in", "b = 1 AND a WHEN (1)"])
def test_a_keyword_in_a_wrong_place_is_a_mistake(text: str) -> None:
    with pytest.raises(PredicateError, match="line 1"):
        parse(text)


LISTED = st.one_of(
    st.integers(0, 999_999_999), st.integers(), st.text(max_size=4), st.none()
)


@given(
    st.one_of(
        st.lists(st.integers(0, 999_999_999), min_size=1, max_size=5),
        st.lists(st.text(max_size=4), min_size=1, max_size=5),
        st.lists(LISTED, min_size=1, max_size=5),
    ),
    st.sampled_from([", ", ",", " ,\n", ", /* , */ "]),
)
def test_a_list_is_read_as_its_members_are(values: list[Any], comma: str) -> None:
    """All at once, if they are ints or strings without escapes; else one by one."""
    text = comma.join(map(ex.literals.literal_sql, values))
    assert parse(f"a IN ({text})") == ex.In(ex.Reference(("a",)), tuple(values))
    one_by_one = parse(f"a IN ({text}, 0.5D)")
    assert isinstance(one_by_one, ex.In)
    assert one_by_one.values == (*values, 0.5)
