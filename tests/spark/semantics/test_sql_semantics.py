"""Our parser of SQL against Spark's own: what it takes, and what it refuses.

What conditions mean is in ``tests/conditions/catalogue``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from skipindex.conditions.sql.parser import parse
from skipindex.errors import PredicateError
from skipindex.expressions import (
    And,
    Comparison,
    Operator,
    Reference,
    to_sql,
)
from tests.conditions.sql.test_parser import cases
from tests.oracle import evaluate
from tests.spark.versions import SPARK, frame_of
from tests.strategies import integers_of, predicates, tables, to_arrow

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session of its own, whose settings may change."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


def _truths(frame: DataFrame, texts: Iterable[str]) -> dict[str, list[bool | None]]:
    """What Spark says of every text, row by row."""
    unique = list(dict.fromkeys(texts))
    names = [f"c{n}" for n in range(len(unique))]
    named = list(zip(unique, names, strict=True))
    rows = frame.selectExpr(
        *(f"({text}\n) AS {name}" for text, name in named)
    ).collect()
    return {text: [row[name] for row in rows] for text, name in named}


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


TAKEN = {"NOT", "a = ``", "SELECT * FROM t WHERE a"}
"""A name, a name of no letters, and a subquery: Spark's parser takes them."""


def test_spark_refuses_what_is_a_mistake(session: SparkSession) -> None:
    """Our parser is asked in ``tests/conditions/sql``."""
    parser = session._jsparkSession.sessionState().sqlParser()
    mistakes = {text for text, _ in cases("mistakes.txt")}
    assert mistakes > TAKEN
    for text in sorted(mistakes - TAKEN):
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
