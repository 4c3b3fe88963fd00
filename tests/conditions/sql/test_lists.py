"""Lists of literals that are read at once mean what they mean token by token."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.conditions.sql import cursor as cursor_module
from skipindex.conditions.sql.parser import parse
from skipindex.conditions.sql.tokens import Kind, Token, tokenize
from skipindex.conditions.trees.times import timestamp_of
from skipindex.errors import PredicateError
from skipindex.expressions import And, In, Not, Or, Predicate, Unsupported
from skipindex.expressions.literals import Literal, literal_sql, literals_sql
from skipindex.expressions.not_judged import NotJudgedError

DAY = date(2024, 1, 2)

NUMBERS = st.sampled_from(
    [
        *("0", "7", "007", "2147483648", "999999999999999999", "1000000000000000000"),
        *("9223372036854775807", "9223372036854775808", "-1", "- 1", "1L", "1.0"),
        *("1e2", "1BD", "٣", "1S", "+2", "1_000", ""),
    ]
)
STRINGS = st.sampled_from(
    [
        *("'a'", "''", "'a, b'", "'(1, 2)'", "'a''b'", "'a' 'b'", "r'a'", "'a\\n'"),
        *('"a"', "'ü'", "N'a'", "'a' + 'b'", "'IN (1, 2)'", "'--'", "'/*'", "'\n'"),
    ]
)
OTHERS = st.sampled_from(["NULL", "b", "DATE '2024-01-01'", "(1)", "SELECT 1", "X'00'"])
TIMES = st.sampled_from(
    [
        *("DATE '2024-01-01'", "DATE '2024-13-01'", "date '2024-01-01'", "DATE'2024'"),
        *("TIMESTAMP '2024-01-01 10:00:00'", "TIMESTAMP '2024-01-01 10:00:00 UTC'"),
        *("TIMESTAMP_NTZ '2024-01-01 10:00:00.123456'", "TIMESTAMP_NTZ '2024-01-01Z'"),
        *("TIMESTAMP_NTZ '2024-01-01 24:00:00'", "TIMESTAMP_NTZ '0000-01-01 00:00:00'"),
    ]
)
SPACES = st.sampled_from(["", " ", "\n", "\t", " /* 1, 2 */ ", " -- 1\n", "\xa0"])
PLAIN = st.sampled_from(["1", "20", "'a'", "'b c'"])


@st.composite
def lists(draw: st.DrawFn) -> str:
    member = draw(
        st.sampled_from([NUMBERS, STRINGS, NUMBERS | STRINGS | OTHERS, PLAIN, TIMES])
    )
    members = draw(st.lists(member, min_size=1, max_size=4))
    inside = f"{draw(SPACES)},{draw(SPACES)}".join(members)
    closing = draw(st.sampled_from([")"] * 9 + ["", "))", "]"]))
    return f"({draw(SPACES)}{inside}{draw(SPACES)}{closing}"


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """Conditions with IN in every place that it can stand in, and in some others."""
    term = st.sampled_from(
        [
            *("a", "a NOT", "year(d)", "`a`", "1", "'IN'", "a + 1", "(a, b)", "x.in"),
            *("NOT a", "foo(a)", "CASE WHEN b", "(a IN (1, 2))", "a IS NULL AND b"),
            *("'" * 4, "in"),
        ]
    )
    one = st.builds(
        lambda term, gap, values, tail: f"{term} IN{gap}{values}{tail}",
        term,
        SPACES,
        lists(),
        st.sampled_from([""] * 6 + [" = TRUE", " + 1", "abc", " THEN TRUE END", ".x"]),
    )
    odd = st.builds(
        lambda values, form: form.format(values),
        lists(),
        st.sampled_from(
            ["in{}", "f(in{})", "a = in{}", "{} IN (1, 2)", "IN {}", "a.IN{}"]
        ),
    )
    parts = draw(st.lists(one | one | odd, min_size=1, max_size=3))
    return draw(st.sampled_from([" AND ", " OR "])).join(parts)


def outcome(text: str, *, at_once: bool) -> object:
    """The tree; ``None`` if it is refused or left to Spark as a whole."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            if not at_once:
                patch.setattr(cursor_module, "tokenize", _one_by_one)
            return _shape(parse(text))
    except PredicateError:
        return None


def _one_by_one(text: str, *, lists: bool) -> list[Token]:
    assert lists
    return tokenize(text)


def _shape(tree: Predicate) -> object:
    """The tree without reasons."""
    match tree:
        case And(children) | Or(children):
            return type(tree), list(map(_shape, children))
        case Not(child):
            return Not, _shape(child)
        case Unsupported(text):
            return Unsupported, text
        case _:
            return repr(tree)


@given(conditions())
@example("a IN (9223372036854775808)")
@example("a IN (1, 2) + 1 = 3 AND b IN ('x')")
@example("(a, b) IN (1, 2)")
@example("a = in (1, 2)")
def test_lists_read_at_once_give_the_same_tree_or_none(text: str) -> None:
    assert outcome(text, at_once=True) == outcome(text, at_once=False)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a IN (1, 2)", (1, 2)),
        ("a IN (-1, 2, -999999999999999999)", (-1, 2, -999999999999999999)),
        ("a IN(999999999999999999,\n0)", (999999999999999999, 0)),
        ("a IN ('x', '', 'y, z)')", ("x", "", "y, z)")),
        ("a not in ( '1' )", ("1",)),
        ("a IN (DATE '2024-01-02', DATE '2024-01-03')", (DAY, date(2024, 1, 3))),
        ("a IN (TIMESTAMP_NTZ '2024-01-02 00:00:00')", (datetime(2024, 1, 2),)),
    ],
)
def test_a_plain_list_is_read_at_once(text: str, values: object) -> None:
    kinds = [token.kind for token in tokenize(text, lists=True)]
    assert kinds.count(Kind.LIST) == 1
    tree = parse(text)
    assert isinstance(tree, In)
    assert tree.values == values


@pytest.mark.parametrize(
    "text",
    [
        "a IN (1, - 2)",
        "a IN (1, +2)",
        "a IN (DATE '2024-01-02', TIMESTAMP '2024-01-02')",
        "a IN (1, 'x')",
        "a IN ('it''s')",
        "f(1, 2)",
        "a IN ()",
    ],
)
def test_other_lists_are_read_token_by_token(text: str) -> None:
    assert Kind.LIST not in {token.kind for token in tokenize(text, lists=True)}


MEMBERS = st.sampled_from(["a", "it's", "\\", "$", "${x}", "\n", "", 1, -5, True, None])


@given(st.lists(MEMBERS))
def test_lists_are_written_as_their_members(values: list[Literal]) -> None:
    expected = ", ".join(map(literal_sql, values))
    assert literals_sql(values) == expected


@given(
    st.from_regex(
        r"[012]0[012]\d-[01]\d-[0123]\d [012]\d:[0-6]\d:[0-6]\d(\.(0|\d{6}))?",
        fullmatch=True,
    )
)
def test_times_in_the_most_common_form_are_those_of_the_general_one(text: str) -> None:
    """Spaces after a time say nothing, and are not of the common form."""

    def read(text: str) -> object:
        try:
            return timestamp_of(text)
        except (ValueError, NotJudgedError) as error:
            return type(error), str(error).replace(" ", "")

    assert read(text) == read(f"{text} ")
