"""Our reading of SQL against Spark's own, one truth value at a time.

Every condition is projected, not filtered by: that shows UNKNOWN apart from FALSE,
and no file skipping of Spark's own can hide a row (trap C-2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.sql.parser import parse
from skipindex.errors import PredicateError
from skipindex.expressions import (
    And,
    Call,
    Case,
    Comparison,
    Not,
    Operator,
    Or,
    Predicate,
    Reference,
    Unsupported,
    to_sql,
)
from tests.oracle import Row, evaluate
from tests.spark.versions import SPARK, frame_of
from tests.strategies import integers_of, predicates, tables, to_arrow

pytestmark = pytest.mark.spark

SCHEMA = """
    i int, l bigint, y tinyint, f float, d double, dec decimal(10,2),
    big decimal(38,10), s string, b boolean, bin binary, dt date, ts timestamp,
    st struct<x: int, y: struct<z: string>>, arr array<int>, m map<string, int>,
    ntz timestamp_ntz, `a b` int, `x.y` tinyint, `tick``s` int, date date, order int
"""
N = None
COLUMNS: dict[str, list[Any]] = {
    "i": [N, 0, 1, -1, 2, 3, 2**31 - 1, -(2**31), 5, 6, 7, 8, 9],
    "l": [N, 0, 1, -1, 2, 3, 2**63 - 1, -(2**63), 2**53 + 1, 2**24 + 1, 5, 6, 7],
    "y": [N, 0, 1, -1, 2, 3, 127, -128, 5, 6, 7, 8, 9],
    "f": [
        *(N, 0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**24, 0.10000000149011612),
        *(1.5, 1.100000023841858, 100.0, -1.5, 1e-45),
    ],
    "d": [
        *(N, 0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**53, 0.1),
        *(1.5, 1.1, 100.0, -1.5, 5e-324),
    ],
    "dec": [
        None if text is None else Decimal(text)
        for text in (
            *(N, "0.00", "0.01", "-0.01", "1.50", "99999999.99", "-99999999.99"),
            *("1.00", "1.49", "1.10", "1.51", "-1.50", "10.00"),
        )
    ],
    "big": [
        None if text is None else Decimal(text)
        for text in (
            *(N, "0", "1E-10", "-1", "1.5", "3", "9" * 28, "2", "1.25", "1.1", "100"),
            *("-1.5", "10"),
        )
    ],
    "s": [
        *(N, "", "a", "a%", "it's", "its", "a\\b", "line\nbreak", "\U0001f33c"),
        *("\uffff", "A", "${x}", "\x001"),
    ],
    "b": [N, False, True, N, True, False, True, False, True, N, False, True, False],
    "bin": [
        *(N, b"", b"\0", b"\xff", b"\x1f", b"a", b"ab", b"it's", b"\xf0\x9f"),
        *(b"", b"A", b"$", b"1"),
    ],
    "dt": [
        None if text is None else date.fromisoformat(text)
        for text in (
            *(N, "1970-01-01", "2020-02-29", "1969-12-31", "2020-01-01", "9999-12-31"),
            *("0001-01-01", "2020-12-31", "2020-01-02", "2020-01-03", "2020-03-01"),
            *("2019-12-31", "2021-01-01"),
        )
    ],
    "ts": [
        None if text is None else datetime.fromisoformat(text + "+00:00")
        for text in (
            *(N, "1970-01-01", "2020-02-29 12:30:01.000005", "2020-03-08 10:30:00"),
            *("2020-01-01", "9999-12-31 23:59:59", "0001-01-01"),
            *("1969-12-31 23:59:59.999999", "2020-01-01 01:02:03", "2020-01-02"),
            *("2020-01-01 00:02:03", "2019-12-31", "2021-01-01"),
        )
    ],
    "st": [
        *(N, {"x": N, "y": {"z": N}}, {"x": 1, "y": {"z": "q"}}, {"x": 2, "y": N}),
        *({"x": n, "y": {"z": "abc"[:n]}} for n in range(9)),
    ],
    "arr": [N, [], [1, 2], [N], N, [3], [4], [5], [6], [7], [8], [9], [10]],
    "m": [N, {}, {"k": 1}, {"k": N}, N, {}, {}, {"k": 2}, {}, {}, {}, {}, {}],
}
COLUMNS["ntz"] = [ts and ts.replace(tzinfo=None) for ts in COLUMNS["ts"]]
for _odd_name, _same_as in (("a b", "i"), ("x.y", "y"), ("tick`s", "i")):
    COLUMNS[_odd_name] = COLUMNS[_same_as]
COLUMNS["date"], COLUMNS["order"] = COLUMNS["dt"], COLUMNS["i"]

INTEGERS = {"i", "l", "y"}
ROWS: list[Row] = [
    dict(zip(COLUMNS, values, strict=True))
    for values in zip(*COLUMNS.values(), strict=True)
]


def _lines(name: str) -> list[str]:
    path = Path(__file__).with_name(name)
    return path.read_text(encoding="utf-8").splitlines()


JUDGED = [
    *_lines("sql_judged.txt"),
    "s = 'line\nbreak'",
    "s = 'line\\\nbreak'",
    "-- OR TRUE \\\n OR TRUE\n i = 1",
    "i -- OR TRUE\n = 1",
]
UNJUDGED = _lines("sql_unjudged.txt")
SPARK_4 = {
    *("i = '1'::int", "i = 1::bigint::int", "i::string = '1'"),
    *("s = 'a' COLLATE UTF8_LCASE", "s COLLATE UTF8_LCASE = 'a'"),
    *("(i, l) = (1, 1L)", "struct(i, l) = struct(1, 1L)", "i << 1 = 2", "i >>> 1 = 1"),
}
"""Those that Spark 3 does not know."""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session of its own, whose settings may change."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


@pytest.fixture(scope="module")
def frame(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("semantics") / "table")
    rows = list(zip(*COLUMNS.values(), strict=True))
    session.createDataFrame(rows, SCHEMA).coalesce(1).write.parquet(path)
    return session.read.parquet(path)


def _truths(frame: DataFrame, texts: Iterable[str]) -> dict[str, list[bool | None]]:
    """What Spark says of every text, row by row."""
    unique = list(dict.fromkeys(texts))
    names = [f"c{n}" for n in range(len(unique))]
    named = list(zip(unique, names, strict=True))
    rows = frame.selectExpr(
        *(f"({text}\n) AS {name}" for text, name in named)
    ).collect()
    return {text: [row[name] for row in rows] for text, name in named}


def _unsupported(tree: Predicate) -> Iterator[Unsupported]:
    for leaf in _leaves(tree):
        if isinstance(leaf, Unsupported):
            yield leaf


def _opaque(tree: Predicate) -> Iterator[str]:
    """The leaves that the oracle asks Spark for: functions are another test's."""
    for leaf in _leaves(tree):
        if isinstance(leaf, Unsupported):
            yield leaf.text
        elif isinstance(getattr(leaf, "column", None), Call | Case):
            yield to_sql(leaf)


def _leaves(tree: Predicate) -> Iterator[Predicate]:
    match tree:
        case And(children) | Or(children):
            for child in children:
                yield from _leaves(child)
        case Not(child):
            yield from _leaves(child)
        case _:
            yield tree


@pytest.mark.few(1)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_conditions_mean_what_they_mean_to_spark(
    session: SparkSession, frame: DataFrame, ansi: str
) -> None:
    unknown = set() if SPARK >= (4, 0) else SPARK_4
    texts = [text for text in [*JUDGED, *UNJUDGED] if text not in unknown]
    trees = {text: with_values(parse(text)) for text in texts}
    opaque = [text for tree in trees.values() for text in _opaque(tree)]
    again = {text: to_sql(tree) for text, tree in trees.items()}
    session.conf.set("spark.sql.ansi.enabled", ansi)
    said = _truths(frame, [*trees, *opaque, *again.values()])
    wrong = {}
    for text, tree in trees.items():

        def judge(leaf: str, row: Row) -> bool | None:
            return said[leaf][ROWS.index(row)]

        ours = [
            evaluate(tree, row, unsupported=judge, integers=INTEGERS) for row in ROWS
        ]
        if not (ours == said[text] == said[again[text]]):
            wrong[text] = (again[text], said[text], ours, said[again[text]])
    assert wrong == {}


def test_what_is_judged_is_judged() -> None:
    def is_judged(text: str) -> bool:
        return not list(_unsupported(with_values(parse(text))))

    assert [text for text in JUDGED if not is_judged(text)] == []
    assert [text for text in UNJUDGED if is_judged(text)] == []


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_trees_mean_what_they_mean_to_spark(
    session: SparkSession, data: st.DataObject
) -> None:
    table = data.draw(tables(min_rows=1, max_rows=12))
    trees = data.draw(
        st.lists(predicates(table, two_columns=True), min_size=40, max_size=40)
    )
    session.conf.set("spark.sql.ansi.enabled", "true")
    frame = frame_of(session, to_arrow(table))
    said = _truths(frame, map(to_sql, trees))
    rows = [
        {name: column.values[i] for name, column in table.items()}
        for i in range(len(table["a"].values))
    ]
    for tree in trees:
        ours = [evaluate(tree, row, integers=integers_of(table)) for row in rows]
        assert ours == said[to_sql(tree)], to_sql(tree)


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_every_keyword_of_spark_is_quoted_where_needed(
    session: SparkSession, every: int
) -> None:
    """Spark's parser learns each keyword anew, so a quick run asks it for a few."""
    assert session._jvm is not None
    # What sql_keywords() lists, which takes long to find out which are reserved.
    listed = session._jvm.org.apache.spark.sql.catalyst.util.SQLKeywordUtils.keywords()
    words = listed.mkString(" ").split(" ")
    assert len(words) > 300
    names = [str(Reference((word,))) for word in words]
    parser = session._jsparkSession.sessionState().sqlParser()
    read = parser.parseExpression(f"array({', '.join(names[::every])})").children()
    assert read.mkString(" ").split(" ") == [f"'{word}" for word in words[::every]]
    for word in words:
        tree = Comparison(Reference((word, word.lower())), Operator.EQ, 1)
        assert parse(to_sql(tree)) == tree


@pytest.mark.parametrize("text", _lines("sql_refused.txt"))
def test_what_spark_refuses_is_refused(session: SparkSession, text: str) -> None:
    parser = session._jsparkSession.sessionState().sqlParser()
    with pytest.raises(PredicateError):
        parse(text)
    with pytest.raises(Exception, match=r"."):
        parser.parsePlan(f"SELECT * FROM t WHERE ({text}\n)")


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_no_example_of_sparks_own_functions_is_refused(
    session: SparkSession, every: int
) -> None:
    """About a thousand expressions that Spark's documentation calls valid.

    In the quick run of every seventh function.
    """
    state = session._jsparkSession.sessionState()
    listed = state.functionRegistry().listFunction().mkString("\n").split("\n")
    assert session._jvm is not None
    identifier = session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    refused, n_tried = [], 0
    for name in sorted({line.rsplit(".", 1)[-1] for line in listed})[::every]:
        try:
            info = state.catalog().lookupFunctionInfo(identifier(name))
        except Exception:  # noqa: BLE001 (operators without a name)
            continue
        examples = re.findall(r"> SELECT (.*?);\s*\n", info.getExamples(), re.DOTALL)
        for example in examples:
            text = f"NOT ({example}) = 1 AND a = 1"
            try:
                state.sqlParser().parseExpression(text)
            except Exception:  # noqa: BLE001 (more than an expression)
                continue
            n_tried += 1
            try:
                tree = parse(text)
            except PredicateError as error:
                refused.append((text, str(error)))
            else:
                assert isinstance(tree, And)
    assert refused == []
    assert n_tried > (800 if SPARK >= (4, 0) else 700) // every
