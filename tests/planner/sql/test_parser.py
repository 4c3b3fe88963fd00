from __future__ import annotations

import doctest
import logging
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipindex.errors import PredicateError
from skipindex.expressions import (
    And,
    Comparison,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    Reference,
    Unsupported,
    col,
    to_sql,
)
from skipindex.planner.sql import parser as module
from skipindex.planner.sql.parser import parse
from tests.oracle import Row, evaluate
from tests.strategies import integers_of, predicates, tables, values_of


def value_of(literal: str) -> Any:
    """The value of a literal beside a column."""
    tree = parse(f"a = {literal}")
    assert isinstance(tree, Comparison), tree
    assert tree.column == Reference(("a",))
    return tree.value


# -- shape ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", "a = 1"),
        ("a == 1", "a = 1"),
        ("1 = a", "a = 1"),
        ("1 < a", "a > 1"),
        ("1 >= a", "a <= 1"),
        ("1 <> a", "a != 1"),
        ("1 <=> a", "a <=> 1"),
        ("a !> 1", "a <= 1"),
        ("a !< 1", "a >= 1"),
        ("a>-1", "a > -1"),
        ("a BETWEEN 1 AND 2", "a >= 1 AND a <= 2"),
        ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
        ("1 BETWEEN a AND b", "a <= 1 AND b >= 1"),
        ("a BETWEEN 1 AND 2 AND b", "a >= 1 AND a <= 2 AND b = TRUE"),
        ("a BETWEEN b AND 2", "(a >= b) AND a <= 2"),
        ("a BETWEEN b AND c", "(a BETWEEN b AND c)"),
        ("a IN (1, NULL, 'x')", "a IN (1, NULL, 'x')"),
        ("a NOT IN (1)", "a NOT IN (1)"),
        ("a IS NULL", "a IS NULL"),
        ("a IS NOT NULL", "a IS NOT NULL"),
        ("a IS TRUE", "a <=> TRUE"),
        ("a IS NOT TRUE", "a IS DISTINCT FROM TRUE"),
        ("a IS FALSE", "a <=> FALSE"),
        ("a IS UNKNOWN", "a IS NULL"),
        ("a IS DISTINCT FROM 1", "a IS DISTINCT FROM 1"),
        ("a IS NOT DISTINCT FROM 1", "a <=> 1"),
        ("a IS DISTINCT FROM NULL", "a IS NOT NULL"),
        ("a LIKE 'x%'", "a LIKE 'x%'"),
        ("a NOT LIKE 'x/%' ESCAPE '/'", "a NOT LIKE 'x/%' ESCAPE '/'"),
        ("startswith(a, '5%')", r"a LIKE '5\\%%'"),
        ("EndsWith(a, 'x')", "a LIKE '%x'"),
        ("contains(a, 'x')", "a LIKE '%x%'"),
        ("isnull(a)", "a IS NULL"),
        ("isnotnull(a)", "a IS NOT NULL"),
        ("isnan(a)", "a <=> CAST('nan' AS DOUBLE)"),
        ("flag", "flag = TRUE"),
        ("NOT flag", "NOT (flag = TRUE)"),
        ("! flag", "NOT (flag = TRUE)"),
        ("TRUE", "TRUE"),
        ("a = 1 OR NULL", "a = 1 OR NULL"),
        ("NOT a = 1 AND b = 2", "NOT (a = 1) AND b = 2"),
        ("NOT a IN (1)", "a NOT IN (1)"),
        ("a = 1 OR b = 2 AND c = 3", "a = 1 OR b = 2 AND c = 3"),
        ("(a = 1 OR b = 2) AND c = 3", "(a = 1 OR b = 2) AND c = 3"),
        ("NOT (a = 1 AND b = 2)", "NOT (a = 1 AND b = 2)"),
        ("((a)) = (1)", "a = 1"),
        ("((a = 1))", "a = 1"),
        ("t.a = 1", "t.a = 1"),
        ("`a b`.`c``d` = 1", "`a b`.`c``d` = 1"),
        ("t.select = 1", "t.`select` = 1"),
        ("date = 1 AND timestamp = 2", "date = 1 AND timestamp = 2"),
        ("order = 1 AND x = 2 AND from = 3", "order = 1 AND x = 2 AND `from` = 3"),
        ("a /* b = 2 OR */ = 1 -- OR c", "a = 1"),
        ("a = 1 -- \\\n OR b = 2", "a = 1"),
        ("1 = 1 AND NULL <=> NULL", "TRUE AND TRUE"),
        ("1 > 2 OR NULL = 1", "FALSE OR NULL"),
        ("NULL IS NOT NULL", "FALSE"),
        ("1 BETWEEN 0 AND 2.5", "TRUE AND TRUE"),
        ("upper(a) = 'X'", "upper(a) = 'X'"),
        ("UPPER( a )='X'", "upper(a) = 'X'"),
        ("a + 1 * b = 2", "(a + (1 * b)) = 2"),
        ("(a + 1) * 2 = 2", "((a + 1) * 2) = 2"),
        ("a - 1 - 2 < 2", "((a - 1) - 2) < 2"),
        ("2 > -a", "negative(a) < 2"),
        ("a -1 = 2", "(a - 1) = 2"),
        ("a DIV 2 % 3 = 1", "((a DIV 2) % 3) = 1"),
        ("a || 'x' = 'yx'", "(a || 'x') = 'yx'"),
        ("a = 1 + 2 * 3 - -4", "a = 11"),
        ("a = 7 DIV 2 OR a = -7 % 3", "a = 3 OR a = -1"),
        ("a = 3 / 2", "a = 1.5D"),
        ("-1::int = a", "a = -1"),
        ("a = date_add(DATE '2020-02-28', 1)", "a = DATE '2020-02-29'"),
        ("a < DATE '2020-01-31' + INTERVAL 1 MONTH", "a < DATE '2020-02-29'"),
        ("a < DATE '2020-02-29' - INTERVAL '1' YEAR", "a < DATE '2019-02-28'"),
        ("a = to_date('2020-01-02')", "a = DATE '2020-01-02'"),
        ("a = make_date(2020, 2, 29)", "a = DATE '2020-02-29'"),
        (
            "a > TIMESTAMP '2020-01-31 12:00:00' + INTERVAL 36 HOURS",
            "a > TIMESTAMP '2020-02-02 00:00:00'",
        ),
        ("a = upper('b') || 'c'", "a = 'Bc'"),
        ("CAST(a AS INT) = 1", "CAST(a AS INT) = 1"),
        ("a::decimal(10, 2) = 1", "CAST(a AS DECIMAL(10,2)) = 1"),
        ("date(a) = DATE '2020-01-01'", "CAST(a AS DATE) = DATE '2020-01-01'"),
        ("to_date(a) = DATE '2020-01-01'", "CAST(a AS DATE) = DATE '2020-01-01'"),
        ("EXTRACT(YEAR FROM a) = 2020", "year(a) = 2020"),
        ("substring(a FROM 2 FOR 3) = 'x'", "substring(a, 2, 3) = 'x'"),
        ("position('x' IN a) = 1", "position('x', a) = 1"),
        ("a + 1L = 2", "(a + CAST(1 AS BIGINT)) = 2"),
        ("a + INTERVAL 1 DAY = 2", "(a + INTERVAL '1' DAY) = 2"),
        ("a + INTERVAL 3 WEEKS 2 DAYS = 2", "(a + INTERVAL '23' DAY) = 2"),
        (
            "a - INTERVAL '1 02:03' DAY TO MINUTE = 2",
            "(a - INTERVAL '1563' MINUTE) = 2",
        ),
        ("a - INTERVAL '1 0' DAY TO HOUR = 2", "(a - INTERVAL '24' HOUR) = 2"),
        ("a - INTERVAL -'1-2' YEAR TO MONTH = 2", "(a - INTERVAL '-14' MONTH) = 2"),
        ("a - INTERVAL '-1-2' YEAR TO MONTH = 2", "(a - INTERVAL '-14' MONTH) = 2"),
        ("a + INTERVAL 1 YEAR 12 MONTHS = 2", "(a + INTERVAL '2' YEAR) = 2"),
        ("a + INTERVAL '7 days' = 2", "(a + INTERVAL '7' DAY) = 2"),
        ("a + INTERVAL '1 hour -2 minutes' = 2", "(a + INTERVAL '58' MINUTE) = 2"),
        ("a + INTERVAL 1.5 SECONDS = 2", "(a + INTERVAL '1500000' MICROSECOND) = 2"),
        (
            "a + INTERVAL 1 SECOND 1000 MILLISECONDS = 2",
            "(a + INTERVAL '2' SECOND) = 2",
        ),
        ("a + (- INTERVAL 1 DAY) = 2", "(a + INTERVAL '-1' DAY) = 2"),
        ("a - INTERVAL 1 DAY - 2 < 2", "((a - INTERVAL '1' DAY) - 2) < 2"),
        ("INTERVAL 90 MINUTES + a = 2", "(INTERVAL '90' MINUTE + a) = 2"),
        ("a + make_interval(0, 0, 1, 2) = 2", "(a + INTERVAL '9' DAY) = 2"),
        ("a + make_dt_interval(1) = 2", "(a + INTERVAL '86400' SECOND) = 2"),
        ("a + make_ym_interval(1, 1) = 2", "(a + INTERVAL '13' MONTH) = 2"),
        ("a ILIKE 'X%'", "lower(a) LIKE 'x%'"),
        ("a = 1 = TRUE", "a = 1"),
        ("a = 1 <> TRUE", "a != 1"),
        ("(a = 1 OR b) = FALSE", "a != 1 AND b != TRUE"),
        ("(a = 1) IS TRUE", "a = 1 AND a IS NOT NULL"),
        ("(a = 1) IS NOT TRUE", "a != 1 OR a IS NULL"),
        ("a = 1 IS NULL", "(a != 1 OR a IS NULL) AND (a = 1 OR a IS NULL)"),
        ("if(a > 1, 2, b) = 2", "CASE WHEN a > 1 THEN 2 ELSE b END = 2"),
        ("nvl(a, 0) = 1", "coalesce(a, 0) = 1"),
        ("nullif(a, 0) = 1", "CASE WHEN a = 0 THEN NULL ELSE a END = 1"),
        (
            "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END = 'x'",
            "CASE WHEN a = 1 THEN 'x' WHEN a = 2 THEN 'y' ELSE NULL END = 'x'",
        ),
        (
            "CASE WHEN a > 1 THEN b < 2 ELSE c IS NULL END",
            "a > 1 AND a IS NOT NULL AND b < 2 OR (a <= 1 OR a IS NULL) AND c IS NULL",
        ),
        (
            "(a, b) IN ((1, 'x'), (2, 'y'))",
            "a <=> 1 AND b <=> 'x' OR a <=> 2 AND b <=> 'y'",
        ),
    ],
)
def test_what_an_index_can_judge(text: str, expected: str) -> None:
    assert to_sql(parse(text)) == expected
    assert to_sql(parse(expected)) == to_sql(parse(text))


@pytest.mark.parametrize(
    ("text", "unsupported", "reason"),
    [
        ("a = b", "a = b", "two columns are compared"),
        ("sha2(a, 256) = 'X'", "sha2(a, 256) = 'X'", "the function sha2"),
        ("SHA( a )='X'", "SHA( a )='X'", "the function SHA"),
        ("a & 1 = 2", "a & 1 = 2", "arithmetic"),
        ("a = 2147483647 + 1", "a = 2147483647 + 1", "arithmetic"),
        ("a = 1 / 0", "a = 1 / 0", "arithmetic"),
        ("a = 1F + 1", "a = 1F + 1", "arithmetic with a FLOAT"),
        ("a = -b", "a = -b", "two columns are compared"),
        ("TRY_CAST(a AS INT) = 1", None, "a cast of the column"),
        ("CAST(a AS ARRAY<INT>) = 1", None, "a cast of the column"),
        ("date_add(DAY, 1, a) = b", None, "the function date_add"),
        ("if(sha(a) = 'x', 1, 2) = 1", None, "the function sha"),
        ("(a = 1) = (b = 2)", None, "two conditions are compared"),
        ("(a = 1) < TRUE", None, "conditions are ordered"),
        ("(a = 1) = 1", None, "two conditions are compared"),
        ("a BETWEEN 1 AND 2 = TRUE", "a BETWEEN 1 AND 2 = TRUE", None),
        ("a IN (1, b)", "a IN (1, b)", "a column in a list"),
        ("a IN (SELECT 1)", "a IN (SELECT 1)", "a subquery"),
        ("EXISTS (SELECT 1 FROM t WHERE x AND y)", None, "EXISTS"),
        ("(SELECT max(x) FROM t WHERE x AND y)", None, "a subquery"),
        ("exists(arr, x -> x > 1 AND x < 3)", None, "EXISTS"),
        ("a RLIKE 'x'", "a RLIKE 'x'", "a regular expression"),
        ("a ILIKE 'é'", "a ILIKE 'é'", "ILIKE, which ignores case"),
        ("a LIKE ANY ('x', 'y')", None, "LIKE with several patterns"),
        ("a LIKE b", "a LIKE b", "LIKE of anything but a column and a string"),
        ("a = 'x' COLLATE UTF8_LCASE", None, "a collation"),
        ("a COLLATE UTF8_LCASE = 'x'", None, "a collation"),
        ("a[0] = 1", "a[0] = 1", "an element of an array or a map"),
        ("a = ?", "a = ?", "a parameter"),
        ("a = :name", "a = :name", "a parameter"),
        ("a < current_date", "a < current_date", "a value of the session"),
        ("a < now()", "a < now()", "the function now"),
        ("a = INTERVAL '1 2' DAY TO HOUR", None, "an interval"),
        ("a + INTERVAL '1 24' DAY TO HOUR = 2", None, "an interval"),
        ("a + INTERVAL '1-12' YEAR TO MONTH = 2", None, "an interval"),
        ("a + INTERVAL '1 2' HOUR TO DAY = 2", None, "an interval"),
        ("a + INTERVAL 1.5 DAYS = 2", None, "an interval"),
        ("a + INTERVAL 1 MONTH 2 DAYS = 2", None, "an interval"),
        # with old settings, days and hours count apart
        ("a + INTERVAL 1 DAY -2 HOURS = 2", None, "an interval"),
        ("a + INTERVAL '1 day-2 hours' = 2", None, "an interval"),
        ("a + make_interval(0, 0, 0, 1, 2) = 2", None, "the function make_interval"),
        ("a + make_dt_interval(b) = 2", None, "an interval"),
        ("a = TIME '12:00:00'", "a = TIME '12:00:00'", "a literal of type TIME"),
        ("a = DATE 'today'", "a = DATE 'today'", "the date 'today'"),
        ("a = TIMESTAMP '2020-01-01 00:00:00 No/Region'", None, None),
        ("a = TIMESTAMP_NTZ '2020-01-01 00:00:00Z'", None, None),
        ("a = 16777216F", None, "a FLOAT literal that an integer column may round to"),
        ("a = CAST(300 AS TINYINT)", None, "the cast of 300 to tinyint"),
        ("a = CAST(5 AS DECIMAL(19, 0))", None, "the cast of 5 to decimal"),
        ("a = CAST('1.5' AS INT)", None, "the cast of '1.5' to int"),
        ("a = '\\uD800'", None, "a lone surrogate is no character"),
        ("'a' = 1", "'a' = 1", None),
        ("1", "1", "a literal that is no condition"),
        ("(a, b) = (1, 2)", "(a, b) = (1, 2)", None),
        ("startswith(a, b)", "startswith(a, b)", "the function startswith"),
    ],
)
def test_what_no_index_can_judge_stays_as_written(
    text: str, unsupported: str | None, reason: str | None
) -> None:
    """And the conditions around it are read as ever."""
    leaf = parse(text)
    assert isinstance(leaf, Unsupported)
    assert leaf.text == (unsupported or text)
    assert leaf.reason
    assert reason is None or leaf.reason == reason
    b, c = col("b") == 2, col("c") > 3
    assert parse(f"b = 2 AND {text} AND c > 3") == And((b, leaf, c))
    assert parse(f"b = 2 OR NOT {text} AND c > 3") == Or((b, And((Not(leaf), c))))
    assert parse(f"b = 2 OR ({text}\n) OR c > 3") == Or((b, leaf, c))


def test_unsupported_text_is_the_users_own() -> None:
    tree = parse("a = 1 AND\n  f( d , 1 )  >= /* why */ DATE'2020-01-01' OR b")
    assert isinstance(tree, Or)
    assert tree.children[0] == And(
        (
            col("a") == 1,
            Unsupported(
                "f( d , 1 )  >= /* why */ DATE'2020-01-01'",
                "the function f",
            ),
        )
    )


def test_nothing_is_read_where_spark_replaces_variables() -> None:
    text = "a = '${name}' AND b = 1"
    tree = parse(text)
    assert isinstance(tree, Unsupported)
    assert tree.text == text


@pytest.mark.parametrize(
    ("text", "spark_4", "spark_3"),
    [
        ("a = 'it''s'", col("a") == "it's", col("a") == "its"),
        ('a = "x""y"', col("a") == 'x"y', col("a") == "xy"),
        ("a <> ''''", col("a") != "'", col("a") != ""),
        (
            "a IN ('b', 'c''d\\'e')",
            col("a").isin("b", "c'd'e"),
            col("a").isin("b", "cd'e"),
        ),
        ("a LIKE 'x''%'", col("a").like("x'%"), col("a").like("x%")),
        ("'\\'''' = a", col("a") == "''", col("a") == "'"),
    ],
)
def test_a_doubled_quote_is_judged_as_spark_3_and_as_spark_4_read_it(
    text: str, spark_4: Predicate, spark_3: Predicate
) -> None:
    tree = parse(text)
    assert isinstance(tree, And)
    assert tree.children[0] == Or((spark_4, spark_3))
    assert isinstance(tree.children[1], Unsupported)
    assert tree.children[1].text == text


@pytest.mark.parametrize("text", ["a = ''", "a = '' ''", "a = r'' 'x'", 'a = "it\'s"'])
def test_a_quote_that_is_not_doubled_is_read_once(text: str) -> None:
    assert isinstance(parse(text), Comparison)


# -- literals -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("- 1", -1),
        ("+1", 1),
        ("007", 7),
        ("1L", 1),
        ("-128Y", -128),
        ("32767S", 32767),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", Decimal(2**63)),
        ("-9223372036854775809", Decimal(-(2**63) - 1)),
        ("1.5", Decimal("1.5")),
        ("1.50", Decimal("1.50")),
        ("1.", Decimal(1)),
        (".5", Decimal("0.5")),
        ("1.50BD", Decimal("1.50")),
        ("-1bd", Decimal(-1)),
        ("1e2BD", Decimal(100)),
        ("1e2", 100.0),
        ("1.E-2", 0.01),
        ("1.5D", 1.5),
        ("1d", 1.0),
        ("-0.0D", -0.0),
        ("1e-400", 0.0),
        ("1.5F", 1.5),
        ("1.1f", 1.100000023841858),
        # The double nearest to it lies between two floats; in one step it goes up.
        ("1.00000005960464477539063F", 1.0000001192092896),
        ("1e-60F", 0.0),
        ("1e-999999999F", 0.0),
        ("TRUE", True),
        ("false", False),
        ("NULL", None),
        ("''", ""),
        ("'a' \"b\" r'\\n'", "ab\\n"),
        (r"'\0\b\n\r\t\Z\a\'\"\\'", "\0\b\n\r\t\x1aa'\"\\"),
        (r"'\%\_'", r"\%\_"),
        (r"'\101\1\12\400\u0041\u41\U0001F33C'", "A112400Au41\U0001f33c"),
        (r"'\uD83C\uDF3C'", "\U0001f33c"),
        ("'a\\\nb'", "a\nb"),
        ("r'\\'", "\\"),
        ("X'1f'", b"\x1f"),
        ('x "1"', b"\x01"),
        ("X''", b""),
        ("DATE '2020-1-2'", date(2020, 1, 2)),
        ("DATE'2020'", date(2020, 1, 1)),
        ('date "2020-03"', date(2020, 3, 1)),
        ("DATE '0001-01-01'", date(1, 1, 1)),
        ("TIMESTAMP '2020-01-02'", datetime(2020, 1, 2)),
        ("TIMESTAMP '2020-01-02 3:4'", datetime(2020, 1, 2, 3, 4)),
        ("TIMESTAMP '2020-01-02T03:04:05.6'", datetime(2020, 1, 2, 3, 4, 5, 600000)),
        ("TIMESTAMP_NTZ '2020-01-02 03:04:05'", datetime(2020, 1, 2, 3, 4, 5)),
        ("TIMESTAMP_LTZ '2020-01-02 03:04:05Z'", datetime(2020, 1, 2, 3, 4, 5, 0, UTC)),
        (
            "TIMESTAMP '2020-01-02 03:04:05 -8:30'",
            datetime(2020, 1, 2, 3, 4, 5, 0, timezone(-timedelta(hours=8, minutes=30))),
        ),
        ("CAST('Infinity' AS DOUBLE)", math.inf),
        ("CAST(' -1e3 ' AS DOUBLE)", -1000.0),
        ("double(1)", 1.0),
        ("CAST(1.5 AS DOUBLE)", 1.5),
        ("float('1.1')", 1.100000023841858),
        ("CAST('-inf' AS FLOAT)", -math.inf),
        ("CAST(0.5 AS REAL)", 0.5),
        ("CAST(' 5 ' AS BIGINT)", 5),
        ("int(5)", 5),
        ("'5'::int::tinyint", 5),
        ("TRY_CAST('5' AS INT)", 5),
        ("CAST('1.50' AS DECIMAL(5, 3))", Decimal("1.500")),
        ("decimal(7)", Decimal(7)),
        ("CAST(7 AS DECIMAL(20, 2))", Decimal("7.00")),
        ("CAST(5 AS STRING)", "5"),
        ("CAST('é' AS BINARY)", "é".encode()),
        ("date('2020-01-01')", date(2020, 1, 1)),
        ("CAST(DATE '2020-01-01' AS TIMESTAMP)", datetime(2020, 1, 1)),
        ("boolean(TRUE)", True),
    ],
)
def test_a_literal_has_the_value_and_the_type_that_spark_gives_it(
    literal: str, value: Any
) -> None:
    found = value_of(literal)
    assert type(found) is type(value)
    assert found == value
    assert repr(found) == repr(value)  # also the scale and the sign of zero


@pytest.mark.parametrize(
    "text",
    [
        *(
            "s <=> CAST(NULL AS INT)",
            "s <=> int(NULL)",
            "s <=> NULL::int",
            "s <=> -NULL",
        ),
        *("s <=> TRY_CAST(NULL AS INT)", "s IS DISTINCT FROM cast(NULL AS DATE)"),
        *("coalesce(i, CAST(NULL AS STRING)) < '10'", "nvl(s, NULL::int) IS NULL"),
        *("s <=> (NULL + 1)", "s <=> year(NULL)", "s <=> nullif(1, 1)"),
    ],
)
def test_a_null_of_a_type_is_left_to_spark(text: str) -> None:
    """Without ANSI mode a text column becomes a number, or NULL, next to it."""
    assert isinstance(parse(text), Unsupported)


@pytest.mark.parametrize(
    "text", ["CAST('NaN' AS DOUBLE)", "double('nan')", "float('NaN')"]
)
def test_nan_is_a_literal(text: str) -> None:
    assert math.isnan(value_of(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = = 1", "expected a value, found '=' at line 1, column 5 of 'a = = 1'"),
        ("a =", "expected a value, found the end at line 1, column 4 of 'a ='"),
        ("a = 1 AND", "expected a condition, found the end at line 1, column 10"),
        ("AND a", "expected a condition, found 'AND' at line 1, column 1"),
        ("NOT", "expected a condition, found the end at line 1, column 4"),
        ("()", "expected a condition, found '\\)' at line 1, column 2"),
        ("", "expected a condition, found none in ''"),
        ("-- no", "expected a condition, found none in '-- no'"),
        ("(a = 1", "'\\(' is not closed at line 1, column 1"),
        ("a = 1)", "unexpected '\\)' at line 1, column 6"),
        ("f(a] = 1", "unexpected '\\]' at line 1, column 4"),
        ("a = 'x", 'a string is not closed at line 1, column 5 of "a = \'x"'),
        ("a = `x", "a quoted name is not closed at line 1, column 5"),
        ("a /* = 1", "a comment is not closed at line 1, column 3"),
        ("a = ``", "expected a name between the backticks at line 1, column 5"),
        (
            "a = 1; drop table x",
            "expected one condition, found ';' at line 1, column 6",
        ),
        (
            "SELECT * FROM t WHERE a",
            "expected the condition alone, without 'SELECT' at",
        ),
        ("DROP TABLE t", "expected the condition alone, without 'DROP' at line 1"),
        ("WHERE a = 1", "expected the condition alone, without 'WHERE' at line 1"),
        ("a = 1\n  AND b c", "near 'c' at line 2, column 9 of 'a = 1\\\\n  AND b c'"),
        ("a = 1 ORDER BY b", "cannot read this condition near '(ORDER|BY)' at line 1"),
        ("upper(a b) = 1", "cannot read this condition near 'b' at line 1, column 9"),
        ("(a = 1, b)", "cannot read this condition near ',' at line 1, column 7"),
        ("a @ 1", "cannot read this condition near '@' at line 1, column 3"),
        ("a IN ()", "expected a value, found '\\)' at line 1, column 7"),
        ("a IN 1", "expected '\\(', found '1' at line 1, column 6"),
        ("a NOT 1", "expected BETWEEN, IN or LIKE, found '1' at line 1, column 7"),
        ("a IS 1", "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM, found '1'"),
        ("a = 200Y", "'200Y' is outside of the range of tinyint at line 1, column 5"),
        ("a = 1e999", "'1e999' is outside of the range of double at line 1, column 5"),
        (
            "a = 1e999999999999999999999BD",
            "has more than 38 digits at line 1, column 5",
        ),
        ("a = X'1G'", "no hexadecimal digits: '1G' at line 1, column 5"),
        ("a = DATE '2020-02-30'", "no date: '2020-02-30' at line 1, column 5"),
        ("a = TIMESTAMP '2020-01-01 24:00:00'", "no timestamp: '2020-01-01 24:00:00'"),
        ("a ::", "expected a type, found the end at line 1, column 5"),
        ("a = INTERVAL -", "cannot read this condition near '-' at line 1, column 14"),
        ("a LIKE 'x' ESCAPE 'yy'", "no escape for LIKE: 'yy' .* at line 1, column 8"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(text: str, message: str) -> None:
    with pytest.raises(PredicateError, match=message) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["INTERVAL", "a = INTERVAL", "mod() = 1", "pmod() = 1", "map('a') = b"]
)
def test_a_form_without_its_end_is_left_to_spark(text: str) -> None:
    """They raised errors of Python."""
    assert isinstance(parse(text), Unsupported)


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
    assert tree == In(Reference(("a",)), values)
    chain = parse(" OR ".join(f"a = {n}" for n in values))
    assert isinstance(chain, Or)
    assert len(chain.children) == len(values)


@pytest.mark.parametrize("depth", [50, 5_000])
def test_deep_texts_are_read_or_left_to_spark(depth: int) -> None:
    for text in (
        "(" * depth + "a = 1" + ")" * depth,
        "(" * depth + "a" + ")" * depth + " = 1",
        "NOT " * depth + "a = 1",
        "f(" * depth + "a" + ")" * depth + " = 1",
    ):
        tree = parse(f"b = 2 AND {text}")
        assert isinstance(tree, And)
        assert tree.children[0] == (col("b") == 2)


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
        "newer_than_sqlglot(a, b, c, d, e, f => 1) = 1",
        "cast(a as struct<b: int>).b = 1",
        "sum(a) FILTER (WHERE b AND c) OVER (PARTITION BY d ORDER BY e) > 1",
        "a >>> 1 = 2",
        "bit_count(X '1F') = 5",
        "f(r'\\', \"it's\", 'x\ny', '\\'') = 1",
        "!(a = 1) = TRUE",
        "a = (! b)",
    ],
)
def test_valid_conditions_that_other_grammars_stumble_over(text: str) -> None:
    tree = parse(f"{text} AND z = 1")
    assert isinstance(tree, And)
    assert tree.children[-1] == (col("z") == 1)


# -- round trip -----------------------------------------------------------------


@settings(max_examples=300)
@given(st.data())
def test_a_tree_written_and_read_again_means_the_same(data: st.DataObject) -> None:
    table = data.draw(tables(max_rows=6))
    tree = data.draw(predicates(table, unsupported=["f(x) = 1", "x + 1 > y"]))
    again = parse(to_sql(tree))
    columns = values_of(table)

    def judge(text: str, row: Row) -> bool | None:
        return {"f(x) = 1": True, "x + 1 > y": None}[text]

    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        ours, theirs = (
            evaluate(node, row, unsupported=judge, integers=integers_of(table))
            for node in (tree, again)
        )
        assert ours is theirs, to_sql(tree)


@given(st.text(), st.text(min_size=1), st.booleans())
def test_any_text_and_any_name_survive(text: str, name: str, negated: bool) -> None:
    reference = Reference((name, "b"))
    for tree in (
        Comparison(reference, Operator.EQ, text),
        In(reference, (text,), negated),
        Like(reference, text, negated=negated),
        IsNull(reference, negated),
    ):
        assert parse(to_sql(tree)) == tree


@settings(max_examples=300)
@given(st.text("ab1.'\"`\\()-/*,=<>!; \n$", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except PredicateError:
        return
    assert to_sql(parse(to_sql(tree))) == to_sql(tree)


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
    assert "Unsupported" in repr(parse(text))


@pytest.mark.parametrize("text", ["a WHEN (1)", "a (IN) (1)", "rand() = IN 1", "a in"])
def test_a_keyword_in_a_wrong_place_is_a_mistake(text: str) -> None:
    with pytest.raises(PredicateError, match="line 1"):
        parse(text)
