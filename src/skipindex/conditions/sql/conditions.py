"""The conditions of Spark SQL that an index can judge, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from skipindex import expressions as ex
from skipindex.conditions.sql.cursor import Cursor
from skipindex.conditions.sql.tokens import Kind
from skipindex.conditions.trees.comparisons import OPERATORS, compare, is_null, truth
from skipindex.conditions.trees.conditions import (
    between,
    ilike,
    is_in,
    like,
    row_in,
)
from skipindex.conditions.trees.operands import (
    BooleanOperand,
    LiteralOperand,
    Operand,
    constant,
    require_small,
)
from skipindex.errors import PredicateError
from skipindex.expressions.not_judged import NotJudgedError, reason_of

T = TypeVar("T")


def condition(cursor: Cursor) -> ex.Predicate:
    """The condition that begins here, as far as it can be judged."""
    if _is_row(cursor):
        return _rows(cursor)
    left = cursor.operand()
    while cursor.next.key in OPERATORS:
        operator = OPERATORS[cursor.next.key]
        cursor.at += 1
        left = BooleanOperand(require_small(compare(left, operator, cursor.operand())))
    if cursor.take("IS"):
        return _is(cursor, left)
    negated = cursor.take("NOT")
    if cursor.take("BETWEEN"):
        tree = _between(cursor, left)
    elif cursor.take("IN"):
        tree = _in(cursor, left)
    elif cursor.take("LIKE"):
        tree = _like(cursor, left)
    elif cursor.take("ILIKE"):
        tree = _ilike(cursor, left)
    elif cursor.next.key in {"RLIKE", "REGEXP"}:
        raise NotJudgedError(reason_of(cursor.next.key))
    elif negated:
        raise cursor.expected("BETWEEN, IN or LIKE")
    else:
        return truth(left)
    return ex.push_not(tree, negate=negated)


def _is(cursor: Cursor, left: Operand) -> ex.Predicate:
    negated = cursor.take("NOT")
    word = cursor.next.key
    if word not in {"NULL", "UNKNOWN", "TRUE", "FALSE", "DISTINCT"}:
        raise cursor.expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
    cursor.at += 1
    if word in {"NULL", "UNKNOWN"}:
        return ex.push_not(is_null(left), negate=negated)
    if word in {"TRUE", "FALSE"}:
        tree = compare(left, ex.Operator.NULL_SAFE_EQ, LiteralOperand(word == "TRUE"))
        return ex.push_not(tree, negate=negated)
    if not cursor.take("FROM"):
        raise cursor.expected("FROM")
    tree = compare(left, ex.Operator.NULL_SAFE_EQ, cursor.operand())
    return ex.push_not(tree, negate=not negated)


def _between(cursor: Cursor, value: Operand) -> ex.Predicate:
    low = cursor.operand()
    if not cursor.take("AND"):
        if cursor.next.kind is Kind.END or cursor.next.key in {"OR", ")"}:
            raise cursor.expected("AND")
        raise NotJudgedError(reason_of(cursor.next.key))
    return between(value, low, cursor.operand())


def _in(cursor: Cursor, left: Operand) -> ex.Predicate:
    return is_in(left, cursor.list_token() or tuple(_listed(cursor, _member)))


def _is_row(cursor: Cursor) -> bool:
    """Whether ``(a, b) [NOT] IN`` comes next."""
    if cursor.next.key != "(":
        return False
    end = cursor.closing[cursor.at]
    i = cursor.at + 1
    while i < end and cursor.tokens[i].key != ",":
        i = cursor.closing.get(i, i) + 1
    behind = [token.key for token in cursor.tokens[end + 1 : end + 3]]
    return i < end and (behind[0] == "IN" or behind == ["NOT", "IN"])


def _rows(cursor: Cursor) -> ex.Predicate:
    """``(a, b) IN ((1, 'x'), …)``; NULL equals NULL inside rows."""
    terms = list(_listed(cursor, Cursor.operand))
    negated = cursor.take("NOT")
    cursor.at += 1
    rows = list(_listed(cursor, _row))
    return ex.push_not(row_in(terms, rows), negate=negated)


def _listed(cursor: Cursor, read: Callable[[Cursor], T]) -> Iterator[T]:
    """What is listed in parentheses, one after the other."""
    if cursor.next.kind is Kind.LIST:
        raise NotJudgedError("a list of other than rows")
    if cursor.next.key != "(":
        raise cursor.expected("'('")
    end = cursor.closing[cursor.at]
    while cursor.at < end:
        cursor.at += 1
        yield read(cursor)
        if cursor.next.key != "," and cursor.at != end:
            raise NotJudgedError(reason_of(cursor.next.key))
    cursor.at = end + 1


def _member(cursor: Cursor) -> Any:
    """A member of a list.  Lists are long, and most of their members one token."""
    return constant(cursor.plain_literal() or cursor.operand())


def _row(cursor: Cursor) -> list[Operand]:
    if cursor.next.key != "(":
        raise NotJudgedError("a list of other than rows")
    return list(_listed(cursor, Cursor.operand))


def _like(cursor: Cursor, left: Operand) -> ex.Predicate:
    token = cursor.next
    pattern, escape = cursor.operand(), LiteralOperand("\\")
    if cursor.take("ESCAPE"):
        given = cursor.operand()
        if not isinstance(given, LiteralOperand):
            raise cursor.error(token, "expected a string after ESCAPE")
        escape = given
    try:
        return like(left, pattern, escape)
    except PredicateError as problem:
        raise cursor.error(token, str(problem)) from None


def _ilike(cursor: Cursor, left: Operand) -> ex.Predicate:
    pattern = cursor.operand()
    if cursor.next.key == "ESCAPE":
        raise NotJudgedError(reason_of("ILIKE"))
    return ilike(left, pattern)
