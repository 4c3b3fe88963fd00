"""OPTIMIZE and VACUUM as SQL: the same calls, and errors that say where."""

from __future__ import annotations

from datetime import timedelta

import pytest

from skipindex.errors import PredicateError
from skipindex.rewrite.optimize import OptimizeOptions
from skipindex.rewrite.sql_statements import Optimize, Vacuum, parse_statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OPTIMIZE '/t'", Optimize("/t", OptimizeOptions(), None)),
        (
            (
                "OPTIMIZE '/path' WHERE day = 25 AND city = 'New York' "
                "ZORDER BY (col1, col2)"
            ),
            Optimize(
                "/path",
                OptimizeOptions(
                    ["col1", "col2"], "zorder", "day = 25 AND city = 'New York'"
                ),
                None,
            ),
        ),
        (
            "optimize `/t x` full cluster by a, `b c`, `d``e` in place ;",
            Optimize(
                "/t x",
                OptimizeOptions(
                    ["a", "b c", "d`e"], "hilbert", mode="full", in_place=True
                ),
                None,
            ),
        ),
        (
            "OPTIMIZE \"s3://b/t\" /* all */ ZORDER BY (a) INTO '/new' -- a copy",
            Optimize("s3://b/t", OptimizeOptions(["a"], "zorder"), "/new"),
        ),
        (
            (
                "OPTIMIZE '/t' WHERE day IN (1, 2) AND (zorder > 3 OR `in place` = "
                "'into') IN PLACE"
            ),
            Optimize(
                "/t",
                OptimizeOptions(
                    where="day IN (1, 2) AND (zorder > 3 OR `in place` = 'into')",
                    in_place=True,
                ),
                None,
            ),
        ),
        ("VACUUM '/t'", Vacuum("/t", None, dry_run=False)),
        ("vacuum '/t' retain 0 hours", Vacuum("/t", timedelta(0), dry_run=False)),
        (
            "VACUUM '/t' RETAIN 1.5 HOURS DRY RUN",
            Vacuum("/t", timedelta(minutes=90), dry_run=True),
        ),
        ("VACUUM '/it''s' DRY RUN", Vacuum("/it's", None, dry_run=True)),
    ],
    ids=str,
)
def test_statements(text: str, expected: Optimize | Vacuum) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("", "expected OPTIMIZE or VACUUM, found the end", 1),
        ("SELECT 1", "expected OPTIMIZE or VACUUM, found 'SELECT'", 1),
        ("OPTIMIZE t", "expected the path of a table in quotes, found 't'", 10),
        ("OPTIMIZE '/t' WHERE ZORDER BY (a)", "expected a condition", 21),
        ("OPTIMIZE '/t' WHERE", "expected a condition", 20),
        ("OPTIMIZE '/t' ZORDER BY ()", "expected the name of a column, found ')'", 26),
        ("OPTIMIZE '/t' ZORDER BY (a b)", "expected a comma or ')', found 'b'", 28),
        (
            "OPTIMIZE '/t' ZORDER (a)",
            "expected WHERE, ZORDER BY, .* found 'ZORDER'",
            15,
        ),
        ("OPTIMIZE '/t' ZORDER BY (a", "'(' is not closed", 25),
        ("OPTIMIZE '/t' IN PLACE INTO '/n'", "found 'INTO'", 24),
        ("OPTIMIZE '/t' ZORDER BY a WHERE x = 1", "found 'WHERE'", 27),
        ("OPTIMIZE '/t", "a string", 10),
        ("VACUUM '/t' RETAIN many HOURS", "a number of hours, found 'many'", 20),
        ("VACUUM '/t' RETAIN 5", "expected HOURS, found the end", 21),
        ("VACUUM '/t' RETAIN 5 DAYS", "expected HOURS, found 'DAYS'", 22),
        ("VACUUM '/t' WHERE a = 1", "expected RETAIN n HOURS", 13),
    ],
)
def test_errors_say_where(text: str, problem: str, column: int) -> None:
    with pytest.raises(PredicateError) as error:
        parse_statement(text)
    message = str(error.value)
    if ".*" not in problem:
        assert problem in message
    assert f"line 1, column {column} " in message
    assert "\n" not in message
