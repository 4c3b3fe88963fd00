"""SQL text to the predicate tree, with the meaning that Spark gives it.

    >>> from skipindex.conditions.sql.parser import parse
    >>> print(parse("5 < a AND upper(b) = 'X' AND c = d OR c IN (1, 2)"))
    a > 5 AND upper(b) = 'X' AND c = d OR c IN (1, 2)

AND, OR, NOT and the conditions that an index can judge, a column against another one or
a function of columns against a literal, are read by Spark's own grammar
(``SqlBaseParser.g4``): a rewrite on the way could skip a file.  Everything else stays
as written, one ``Unsupported`` for one condition; Spark says whether it is well-formed.

The settings of the session are taken to be Spark's defaults: backslash escapes in
strings, double quotes around strings, ``1e2`` a double.  A string with a doubled
quote, which Spark 3 and Spark 4 read differently, is judged for both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.sql.conditions import condition
from skipindex.conditions.sql.cursor import Cursor
from skipindex.conditions.sql.expressions import operand
from skipindex.conditions.sql.tokens import Kind, Token
from skipindex.conditions.trees.comparisons import OPERATORS
from skipindex.conditions.trees.operands import require_small
from skipindex.errors import PredicateError
from skipindex.expressions import (
    And,
    Not,
    Or,
    Predicate,
    Unsupported,
    conjunction,
    disjunction,
)
from skipindex.expressions.not_judged import NotJudgedError, reason_of
from skipindex.storage.deadline import check

QUERIES: Final = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"}
_STATEMENTS: Final = QUERIES | {
    *("WHERE", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP"),
    *("TRUNCATE", "EXPLAIN", "SHOW", "DESCRIBE", "USE", "SET"),
}


def parse(text: str) -> Predicate:
    """The tree of a WHERE condition in Spark SQL."""
    if "${" in text:
        # Spark replaces ${name} by a value of the session before it reads the text.
        return Unsupported(text, "Spark substitutes variables in ${...}")
    return parse_all(cursor_of(text))


def cursor_of(text: str) -> Cursor:
    """The begin of a condition."""
    return Cursor(text, operand, _condition_inside)


_ENDING_VALUES: Final = {",", "WHEN", "THEN", "ELSE", "END"}
"""The end of a condition that is a value."""
_AFTER_VALUES: Final = {
    *("AND", "OR", "IS", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"),
    *("DIV", "COLLATE", "AT", "OVER", "FILTER", "WITHIN", "IGNORE"),
    *("RESPECT", "AS"),
}
"""Words that go on with a value."""
_STEPS_PER_TOKEN: Final = 4
"""A value is read twice if it turns out to be a condition, and so are those in it."""
_NOWHERE: Final = {"=>", "@", "#", "$", "\\", "'", '"', "`"}
"""Symbols that no expression has."""


@dataclass
class _Level:
    """What was read between two parentheses so far.

    Args:
        alternatives: the conditions between the ORs.
        parts: those between the ANDs, since the last OR.
        negations: the NOTs before the next one.
    """

    alternatives: list[Predicate] = field(default_factory=list)
    parts: list[Predicate] = field(default_factory=list)
    negations: int = 0


def parse_all(cursor: Cursor) -> Predicate:
    """The whole text."""
    if cursor.next.kind is Kind.END:
        raise PredicateError(f"expected a condition, found none in {cursor.text!r}")
    for token in cursor.tokens:
        if token.key == ";":
            raise cursor.error(token, "expected one condition, found ';'")
    first, second, *rest = cursor.tokens
    is_star = second.key == "*" and rest[0].key == "FROM"
    if first.key in _STATEMENTS and (is_star or _is_mistake(second)):
        problem = f"expected the condition alone, without {first.text!r}"
        raise cursor.error(first, problem)
    return _tree(cursor)


def _tree(cursor: Cursor) -> Predicate:
    """What comes next, up to what ends it."""
    # Open parentheses are on a list, and not on Python's stack: any depth is read.
    levels = [_Level()]
    while True:
        if cursor.next.key in {"NOT", "!"} and cursor.after.key not in OPERATORS:
            cursor.at += 1
            levels[-1].negations += 1
        elif cursor.next.key == "(" and _encloses_condition(cursor):
            cursor.at += 1
            levels.append(_Level())
        else:
            tree = _leaf(cursor)
            while not _goes_on(cursor, levels[-1], tree):
                tree = disjunction(levels.pop().alternatives)
                if not levels:
                    return tree
                cursor.at += 1  # the parenthesis that closes


def _goes_on(cursor: Cursor, level: _Level, tree: Predicate) -> bool:
    """Add a part to what is open; whether AND or OR comes next."""
    for _ in range(level.negations):
        tree = Not(tree)
    level.negations = 0
    level.parts.append(tree)
    if cursor.take("AND"):
        return True
    level.alternatives.append(conjunction(level.parts))
    level.parts = []
    return cursor.take("OR")


def _encloses_condition(cursor: Cursor) -> bool:
    """Whether these parentheses hold a condition: no operand and no query."""
    if not _ends_condition(cursor, cursor.tokens[cursor.closing[cursor.at] + 1]):
        return False
    behind = cursor.tokens[cursor.at + 2].key
    return cursor.after.key not in QUERIES or behind in OPERATORS


def _ends_condition(cursor: Cursor, token: Token) -> bool:
    if token.key in {"AND", "OR", ")"} or token.kind is Kind.END:
        return True
    return cursor.nested > 0 and token.key in _ENDING_VALUES


def _condition_inside(cursor: Cursor) -> Predicate:
    """A condition that is a value; ``NotJudgedError`` unless all is judged."""
    cursor.nested += 1
    try:
        return require_small(_tree(cursor))
    except PredicateError as error:
        raise NotJudgedError("a condition as a value") from error
    finally:
        cursor.nested -= 1


def _leaf(cursor: Cursor) -> Predicate:
    check()
    start = cursor.at
    if _ends_condition(cursor, cursor.next):
        raise cursor.expected("a condition")
    if cursor.nested:
        tree = condition(cursor)
        if not _ends_condition(cursor, cursor.next):
            raise NotJudgedError(reason_of(cursor.next.key))
        return tree
    n_tokens = _end_of_condition(cursor, start) - start
    cursor.budget = PlanBudget(_STEPS_PER_TOKEN * n_tokens)
    cursor.saw_doubled_quote = False
    tree = _judged(cursor, start)
    if not cursor.saw_doubled_quote or isinstance(tree, Unsupported):
        return tree
    cursor.at, cursor.spark_3 = start, True
    cursor.budget = PlanBudget(_STEPS_PER_TOKEN * n_tokens)
    other = _judged(cursor, start)
    cursor.spark_3 = False
    text = cursor.written(start, cursor.at)
    reason = "Spark 3 and Spark 4 read a doubled quote differently"
    return And((Or((tree, other)), Unsupported(text, reason)))


def _judged(cursor: Cursor, start: int) -> Predicate:
    """The condition that begins here, ``Unsupported`` if it is one for Spark."""
    try:
        tree = require_small(condition(cursor))
        result = cursor.next
        if _ends_condition(cursor, result):
            return tree
        is_doubled = result.key in {"&", "."} and result.key == cursor.after.key
        if is_doubled or _is_mistake(result):
            problem = f"cannot read this condition near {result.text!r}"
            raise cursor.error(result, problem)
        reason = reason_of(result.key)
    except NotJudgedError as not_judged:
        reason = str(not_judged)
    cursor.at = _end_of_condition(cursor, start)
    return Unsupported(cursor.written(start, cursor.at), reason)


def _is_mistake(token: Token) -> bool:
    """Whether no expression of Spark has ``token`` after a value."""
    match token.kind:
        case Kind.WORD:
            return token.key not in _AFTER_VALUES
        case Kind.SYMBOL:
            return token.key in _NOWHERE
        case _:
            return token.kind is not Kind.END


def _end_of_condition(cursor: Cursor, start: int) -> int:
    """The index of the first AND, OR or ``)`` that is not inside the condition."""
    # The ANDs of BETWEEN, and all between CASE and END, are inside.
    i, cases, betweens = start, 0, 0
    while cursor.tokens[i].kind is not Kind.END and cursor.tokens[i].key != ")":
        match cursor.tokens[i].key:
            case "CASE":
                cases += 1
            case "END" if cases:
                cases -= 1
            case "BETWEEN" if not cases:
                betweens += 1
            case "AND" if betweens and not cases:
                betweens -= 1
            case "AND" | "OR" if not cases:
                break
        i = cursor.closing.get(i, i) + 1
    return i
