"""The conditions of Spark SQL that an index can judge, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from skipindex import expressions as ex
from skipindex.errors import PredicateError
from skipindex.expressions.not_judged import NotJudgedError, reason_of
from skipindex.expressions.truth import is_unknown
from skipindex.planner.functions.decimals import within_38_digits
from skipindex.planner.sql.comparisons import (
    OPERATORS,
    compare,
    compare_or_keep,
    listed,
    truth,
)
from skipindex.planner.sql.cursor import Cursor
from skipindex.planner.sql.operands import (
    BooleanOperand,
    LiteralOperand,
    Operand,
    argument,
    require_small,
)
from skipindex.planner.sql.tokens import Kind

T = TypeVar("T")


def condition(cursor: Cursor) -> ex.Predicate:
    """The condition that begins here, as far as it can be judged.

    Raises:
        NotJudgedError: only Spark can judge it.
    """
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
        match left:
            case LiteralOperand(value):
                return ex.Constant((value is None) != negated)
            case BooleanOperand(tree):
                return ex.push_not(is_unknown(tree), negate=negated)
            case _:
                return ex.IsNull(left, negated)
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
    high = cursor.operand()
    lower = compare_or_keep(value, ex.Operator.GE, low)
    upper = compare_or_keep(value, ex.Operator.LE, high)
    if isinstance(lower, ex.Unsupported) and isinstance(upper, ex.Unsupported):
        raise NotJudgedError(upper.reason)
    return ex.conjunction([lower, upper])


def _in(cursor: Cursor, left: Operand) -> ex.Predicate:
    values = cursor.plain_list() or tuple(_listed(cursor, _literal))
    if isinstance(left, LiteralOperand):
        return ex.Constant(listed(left.value, values))
    if isinstance(left, BooleanOperand):
        raise NotJudgedError("no column is compared with a literal")
    return ex.In(left, values)


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
    rows = list(_listed(cursor, _literal_row))
    if any(len(row) != len(terms) for row in rows):
        raise NotJudgedError("a list of other than rows of literals")
    # The list has one type, so values of several types would be cast, and decimals
    # of several types rounded.
    for column in zip(*rows, strict=True):
        types = {type(value) for value in column} - {type(None)}
        if len(types) > 1 or not within_38_digits(column):
            raise NotJudgedError("the list makes Spark cast")
    columns = [t for t in terms if not isinstance(t, LiteralOperand | BooleanOperand)]
    if len(columns) < len(terms):
        raise NotJudgedError("no column is compared with a literal")
    alternatives = [
        ex.conjunction([_same(c, v) for c, v in zip(columns, row, strict=True)])
        for row in rows
    ]
    return ex.push_not(ex.disjunction(alternatives), negate=negated)


def _same(column: ex.Term, value: ex.Literal) -> ex.Predicate:
    """``column <=> value`` of two rows, which Spark casts to one type."""
    if isinstance(value, str):
        # A text is cast to the column's type by ``=``, and by a list perhaps the
        # column to text.
        return ex.conjunction(
            [ex.In(column, (value,)), ex.IsNull(column, negated=True)]
        )
    return ex.Comparison(column, ex.Operator.NULL_SAFE_EQ, value)


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


def _literal(cursor: Cursor) -> ex.Literal:
    """A literal of a list.  Lists are long, and most of their members one token."""
    operand = cursor.plain_literal() or cursor.operand()
    if not isinstance(operand, LiteralOperand):
        raise NotJudgedError("a column in a list")
    return operand.value


def _literal_row(cursor: Cursor) -> list[ex.Literal]:
    if cursor.next.key != "(":
        raise NotJudgedError("a list of other than rows")
    operands = _listed(cursor, Cursor.operand)
    return [one.value for one in operands if isinstance(one, LiteralOperand)]


def _like(cursor: Cursor, left: Operand) -> ex.Predicate:
    token = cursor.next
    pattern, escape = cursor.operand(), LiteralOperand("\\")
    if cursor.take("ESCAPE"):
        given = cursor.operand()
        if not isinstance(given, LiteralOperand):
            raise cursor.error(token, "expected a string after ESCAPE")
        escape = given
    match left, pattern, escape.value:
        case ex.Reference() | ex.Call() | ex.Case(), LiteralOperand(str(text)), str(
            character
        ):
            try:
                return ex.Like(left, text, character)
            except PredicateError as problem:
                raise cursor.error(token, str(problem)) from None
    raise NotJudgedError("LIKE of anything but a column and a string")


def _ilike(cursor: Cursor, left: Operand) -> ex.Predicate:
    """Spark's own rewrite: LIKE, with both sides in lower case."""
    match cursor.operand():
        case LiteralOperand(str(text)) if (
            text.isascii() and cursor.next.key != "ESCAPE"
        ):
            return ex.Like(ex.Call("lower", (argument(left),)), text.lower())
    raise NotJudgedError("ILIKE, which ignores case")
