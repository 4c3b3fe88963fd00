"""Statements in SQL, read without Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from skipindex.api.statements.reader import (
    CreateIndex,
    Describe,
    Distribute,
    DropIndex,
    Explain,
    Layout,
    NamedIndex,
    Optimize,
    RefreshIndexes,
    ShowIndexes,
    Statement,
    StatementError,
    Target,
    Vacuum,
    read_statement,
)
from skipindex.api.statements.run import Statements
from skipindex.errors import PredicateError
from skipindex.storage.file_system.location import Location

T = Target("t")
NAMED = Target("db.`my t`")
PATH = Target("/data/it's", is_path=True)
PLAIN = Layout()


class NoArguments:
    """What a text without arguments comes with."""

    java = None

    def literals(self) -> dict[str | int, str]:
        return {}


NONE: Any = NoArguments()


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("OPTIMIZE t", Optimize(T, "incremental", None, PLAIN)),
        ("optimize table t;", Optimize(T, "incremental", None, PLAIN)),
        ("OPTIMIZE db.`my t` FULL", Optimize(NAMED, "full", None, PLAIN)),
        (
            "OPTIMIZE TABLE t ZORDER BY first_name, last_name",
            Optimize(
                T,
                "incremental",
                None,
                Layout(("first_name", "last_name"), "zorder"),
            ),
        ),
        (
            "OPTIMIZE t WHERE day = 25 AND city IN ('New York', 'x') ZORDER BY (a, b)",
            Optimize(
                T,
                "incremental",
                "day = 25 AND city IN ('New York', 'x')",
                Layout(("a", "b"), "zorder"),
            ),
        ),
        (
            "OPTIMIZE r'/da\\ta' WHERE (zorder = 1) LOCALLY ORDERED BY (`a b`)",
            Optimize(
                Target("/da\\ta", is_path=True),
                "incremental",
                "(zorder = 1)",
                Layout(sort_within=("a b",)),
            ),
        ),
        (
            "OPTIMIZE t HILBERT BY (s.a, b) LOCALLY ORDERED BY b, s.a",
            Optimize(
                T,
                "incremental",
                None,
                Layout(("s.a", "b"), "hilbert", ("b", "s.a")),
            ),
        ),
        (
            "optimize t full where day = 1 zorder by a publish;",
            Optimize(T, "full", "day = 1", Layout(("a",), "zorder"), publish=True),
        ),
        (
            "OPTIMIZE t WHERE publish = 1 PUBLISH",
            Optimize(T, "incremental", "publish = 1", PLAIN, publish=True),
        ),
        (
            "OPTIMIZE t ZORDER BY `s.a`, `S`.`b c`.`d```",
            Optimize(
                T, "incremental", None, Layout(("`s.a`", "S.b c.`d```"), "zorder")
            ),
        ),
        ("CREATE INDEX ON t (`a.b`, a.b)", CreateIndex(T, ("`a.b`", "a.b"), None)),
        ("DROP INDEX ON t (`a.b`.c)", DropIndex(T, ("`a.b`.c",), None)),
        ("OPTIMIZE `table`", Optimize(Target("`table`"), "incremental", None, PLAIN)),
        ("CREATE INDEX ON t", CreateIndex(T, (), None)),
        (
            "CREATE INDEX ON t (a) USING bloom (error_rate = 0.001)",
            CreateIndex(T, ("a",), "bloom(error_rate = 0.001)"),
        ),
        ("CREATE INDEX IF NOT EXISTS ON t (a)", CreateIndex(T, ("a",), None)),
        ("DROP INDEXES IF EXISTS ON t (a)", DropIndex(T, ("a",), None)),
        ("create index on t (a, b) using Bitmap", CreateIndex(T, ("a", "b"), "Bitmap")),
        ("CREATE INDEXES ON TABLE t USING bloom", CreateIndex(T, (), "bloom")),
        ("DROP INDEX ON '/data/it\\'s' (a)", DropIndex(PATH, ("a",), None)),
        ("DROP INDEXES ON t USING bloom", DropIndex(T, (), "bloom")),
        ("CREATE INDEX i ON t (a)", NamedIndex(T, "i", "CREATE")),
        (
            "create index if not exists `i j` ON TABLE db.`my t` USING x (a) OPTIONS b",
            NamedIndex(NAMED, "`i j`", "CREATE"),
        ),
        ("DROP INDEX IF EXISTS i ON '/data/it\\'s'", NamedIndex(PATH, "i", "DROP")),
        ("SHOW INDEXES ON t", ShowIndexes(T)),
        ("SHOW INDEX FROM parquet.`/d/t`", ShowIndexes(Target("/d/t", is_path=True))),
        ("REFRESH INDEXES IN t", RefreshIndexes(T)),
        ("VACUUM t", Vacuum(T, None, dry_run=False)),
        ("VACUUM t DRY RUN", Vacuum(T, None, dry_run=True)),
        (
            "VACUUM t RETAIN 36 HOURS DRY RUN",
            Vacuum(T, timedelta(hours=36), dry_run=True),
        ),
        ("VACUUM t RETAIN 2 DAYS", Vacuum(T, timedelta(days=2), dry_run=False)),
        (
            "ALTER TABLE t DISTRIBUTED BY HASH (a)",
            Distribute(T, Layout(("a",), "hash", ())),
        ),
        (
            "ALTER TABLE t DISTRIBUTED BY RANGE (a) LOCALLY ORDERED BY (b, c)",
            Distribute(T, Layout(("a",), "linear", ("b", "c"))),
        ),
        ("DESCRIBE SKIPPING t", Describe(T)),
        ("DESC SKIPPING TABLE t", Describe(T)),
        (
            "/* why */ EXPLAIN -- which\nSKIPPING SELECT *\nFROM t -- all",
            Explain("SELECT *\nFROM t -- all"),
        ),
    ],
)
def test_statements(text: str, statement: Statement) -> None:
    assert read_statement(text) == statement


GIVEN: dict[str | int, str] = {
    "p": "'it''s'",
    "n": "36L",
    "t": "'/d'",
    0: "1",
    1: "'?'",
}


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("OPTIMIZE t WHERE a = :p", "OPTIMIZE t WHERE a = 'it''s'"),
        ("OPTIMIZE :t WHERE\n:p=a/*:x*/", "OPTIMIZE '/d' WHERE\n'it''s'=a/*:x*/"),
        ("OPTIMIZE t WHERE a IN (?, ?)", "OPTIMIZE t WHERE a IN (1, '?')"),
        ("OPTIMIZE t WHERE a = ':p?' AND b::INT > : n", None),
        ("VACUUM t RETAIN :n HOURS", "VACUUM t RETAIN 36 HOURS"),
        ("VACUUM '/a?:b' RETAIN ? HOURS", "VACUUM '/a?:b' RETAIN 1 HOURS"),
        (
            "EXPLAIN SKIPPING SELECT :p, :none, ?",
            "EXPLAIN SKIPPING SELECT :p, :none, ?",
        ),
    ],
)
def test_arguments_stand_for_literals(text: str, bound: str | None) -> None:
    """But in queries, whose markers Spark binds."""
    bound = bound or "OPTIMIZE t WHERE a = ':p?' AND b::INT > 36L"
    assert read_statement(text, GIVEN) == read_statement(bound)


@pytest.mark.parametrize(
    ("text", "near", "expected"),
    [
        ("OPTIMIZE t WHERE a = :none", "':none'", "an argument for it, or a literal"),
        ("OPTIMIZE t WHERE a IN (?, ?, ?)", "'?'", "an argument for it, or a literal"),
        ("VACUUM t RETAIN :p HOURS", "''it''s''", "a number of hours or days"),
        ("OPTIMIZE t ZORDER BY :p", "''it''s''", "the name of a column"),
        ("DESCRIBE SKIPPING :n", "'36L'", "the name or the path of a table"),
    ],
)
def test_markers_without_an_argument_and_arguments_that_are_no_literal_there(
    text: str, near: str, expected: str
) -> None:
    with pytest.raises(StatementError) as caught:
        read_statement(text, GIVEN)
    assert (caught.value.near, caught.value.expected) == (near, expected)


@pytest.mark.parametrize("log", ["", "_delta_log"])
def test_no_file_is_listed_to_read_a_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    """Of a large table that takes long, and the statement lists them when it runs."""
    monkeypatch.setattr(Location, "list", None)
    (tmp_path / (log or "data")).mkdir()
    (tmp_path / (log or "data") / "0.json").touch()
    session: Any = None
    for text in ("OPTIMIZE", "VACUUM"):
        answer = Statements().read(f"{text} '{tmp_path}'", NONE, session)
        assert answer["may_be_of_others"] == bool(log)
    answer = Statements().read(f"VACUUM '{tmp_path}/none'", NONE, session)
    assert answer["may_be_of_others"]


@pytest.mark.parametrize(
    ("text", "near", "expected", "line", "position"),
    [
        ("OPTIMIZE", "end of input", "the name or the path of a table", 1, 8),
        ("OPTIMIZE t\n ZORDER (a)", "'ZORDER'", "FULL, WHERE, ZORDER BY", 2, 1),
        ("OPTIMIZE t WHERE a = 1 FULL ZORDER BY (a", "", "", 0, 0),
        ("OPTIMIZE t ZORDER BY (a b)", "'b'", "a comma or ')'", 1, 24),
        ("OPTIMIZE t ZORDER BY ()", "')'", "the name of a column", 1, 22),
        ("OPTIMIZE t WHERE ZORDER BY a", "'ZORDER'", "a condition on partition", 1, 17),
        ("OPTIMIZE t ZORDER BY a FULL", "'FULL'", "ZORDER BY", 1, 23),
        ("OPTIMIZE 't' 'u'", "''u''", "FULL, WHERE", 1, 13),
        ("OPTIMIZE ''", "''''", "a path", 1, 9),
        ("CREATE INDEX i t (a)", "'i'", "ON", 1, 13),
        ("CREATE INDEX IF EXISTS ON t (a)", "'IF'", "ON", 1, 13),
        ("DROP INDEXES i ON t", "'i'", "ON", 1, 13),
        ("CREATE INDEX ON t (a) USING", "end of input", "a kind", 1, 27),
        ("CREATE INDEX ON t (a) USING b (c", "", "", 1, 32),
        ("DROP INDEX ON t (a) USING b (c = 1)", "'('", "the end", 1, 28),
        ("CREATE INDEX ON t a", "'a'", "the end of the statement", 1, 18),
        ("SHOW INDEXES t", "'t'", "ON, IN or FROM", 1, 13),
        ("REFRESH TABLE t", "'TABLE'", "INDEX or INDEXES", 1, 8),
        ("VACUUM t RETAIN x HOURS", "'x'", "a number of hours or days", 1, 16),
        ("VACUUM t RETAIN 99999999 DAYS", "'99999999'", "a number of hours", 1, 16),
        ("VACUUM t RETAIN 1 WEEKS", "'WEEKS'", "HOURS or DAYS", 1, 18),
        ("VACUUM t DRY", "'DRY'", "the end of the statement", 1, 9),
        ("ALTER TABLE t ADD COLUMN c INT", "'ADD'", "DISTRIBUTED BY", 1, 14),
        (
            "ALTER TABLE t DISTRIBUTED BY (a)",
            "'('",
            "ZORDER, HILBERT, RANGE or HASH",
            1,
            29,
        ),
        ("DESCRIBE SKIPPING", "end of input", "the name or the path", 1, 17),
        ("EXPLAIN SKIPPING", "end of input", "a query", 1, 16),
        ("SELECT 1", "'SELECT'", "a statement of skipindex", 1, 0),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    text: str, near: str, expected: str, line: int, position: int
) -> None:
    if not near:  # a bracket is not closed, which Spark tells
        with pytest.raises(PredicateError):
            read_statement(text)
        return
    with pytest.raises(StatementError) as caught:
        read_statement(text)
    found = caught.value
    assert (found.near, found.line, found.position) == (near, line, position)
    assert found.expected.startswith(expected)
