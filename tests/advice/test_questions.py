"""Workloads as people write them: conditions and SELECTs between semicolons."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.advice.questions import (
    bind_workload,
    columns_of,
    conditions_of,
    sample_questions,
)
from skipindex.advice.sample import take_sample
from skipindex.conditions.bound_predicate import Leaf
from skipindex.errors import AdviceError, PredicateError
from tests.tables import put_all


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a = 1", ["a = 1"]),
        ("a = 1;\n b < 2 ;", ["a = 1", "b < 2"]),
        ("s = 'x;y' -- ; no end\n; t = \"q;\"", ["s = 'x;y'", 't = "q;"']),
        ("/* ; */ a = 1", ["a = 1"]),
        ("s = 'it''s; here'", ["s = 'it''s; here'"]),
        ("SELECT x FROM t WHERE a = 1 GROUP BY x", ["a = 1"]),
        ("select 1 from lineorder l where l.a = 1 and b < 2", ["a = 1 AND b < 2"]),
        ("SELECT * FROM db.t WHERE t.a = 1", ["a = 1"]),
        ("SELECT * FROM t WHERE part.a = 1", ["part.a = 1"]),
        ("WITH q AS (SELECT 1) SELECT * FROM t WHERE a IN (1, 2)", ["a IN (1, 2)"]),
        ("SELECT * FROM t", []),
        (";;", []),
    ],
)  # fmt: skip
def test_conditions_of_a_text(sql: str, expected: list[str]) -> None:
    assert conditions_of(sql) == expected


def test_a_select_that_cannot_be_read_is_told() -> None:
    with pytest.raises(PredicateError, match="cannot read 'SELECT FROM WHERE"):
        conditions_of("SELECT FROM WHERE (")


def test_a_select_without_sqlglot_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(AdviceError, match=r"pip install 'skipindex\[sql\]'"):
        conditions_of("a = 1; SELECT * FROM t WHERE a = 1")
    assert conditions_of("a = 1; b = 2") == ["a = 1", "b = 2"]


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    files = [
        {"a": [1, 2, None, 4] * 50, "s": ["x", "y", "y", None] * 50, "d": [i] * 200}
        for i in range(3)
    ]
    return sx.open_table(put_all(tmp_path, files))


def test_a_workload_is_bound_to_the_table(table: sx.Table) -> None:
    bound = bind_workload(
        table.state, ["A = 1; no = 2 OR D = 'a b'", "s LIKE 'x%'"], timezone=None
    )
    questions, notes = bound.questions, bound.notes
    assert [question.text for question in questions] == ["A = 1", "s LIKE 'x%'"]
    assert columns_of(questions) == {"a", "s"}
    assert len(notes) == 1
    assert "ignored: no column 'no'" in notes[0]
    assert bound.not_judged == {"d": "its query was ignored"}


def test_drawn_questions_are_of_values_that_are_there(table: sx.Table) -> None:
    sample = take_sample(
        table.state, [table.state.resolve(name) for name in ("a", "s", "d")]
    )
    questions = sample_questions(sample)
    assert questions == sample_questions(sample), "the same ones every time"
    assert {name for q in questions for name in columns_of([q])} == {"a", "s"}, (
        "a column of one value is not asked for"
    )
    indexed = sx.build_indexes(table, {"*": "bitmap"}, workers=1).table
    answered = [bool(indexed.plan(question.text).paths) for question in questions]
    alone = [isinstance(question.tree, Leaf) for question in questions]
    assert all(a for a, one in zip(answered, alone, strict=True) if one)
    assert 0.5 < sum(answered) / len(answered) < 1, "some are of two rows"


def test_texts_of_drawn_questions_can_be_asked_again(tmp_path: Path) -> None:
    put_all(tmp_path, [{"s": pa.array(["it's", "i't\\c"] * 9)}])
    table = sx.open_table(tmp_path)
    sample = take_sample(table.state, [table.state.resolve("s")])
    texts = [question.text for question in sample_questions(sample)]
    assert texts
    indexed = sx.build_indexes(table, {"s": "bitmap"}, workers=1).table
    for text in texts:
        assert indexed.plan(text).paths, "no quote and no backslash is lost"
