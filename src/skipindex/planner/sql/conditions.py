"""The conditions of Spark SQL that an index can judge, one at a time."""

from __future__ import annotations

from skipindex.errors import PredicateError
from skipindex.expressions import (
    Call,
    Case,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Operator,
    Predicate,
    Reference,
    Unsupported,
    conjunction,
    disjunction,
    push_not,
)
from skipindex.expressions.not_judged import NotJudgedError, reason_of
from skipindex.expressions.truth import is_unknown
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
    small,
)


def condition(cursor: Cursor) -> Predicate:
    """The condition that begins here, as far as it can be judged.

    Raises:
        NotJudgedError: it is one for Spark alone.
        PredicateError: it is none.
    """
    if _is_row(cursor):
        return _rows(cursor)
    left = cursor.operand()
    while cursor.next.key in OPERATORS:
        operator = OPERATORS[cursor.next.key]
        cursor.at += 1
        left = BooleanOperand(small(compare(left, operator, cursor.operand())))
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
    return push_not(tree, negate=negated)


def _is(cursor: Cursor, left: Operand) -> Predicate:
    negated = cursor.take("NOT")
    word = cursor.next.key
    if word not in {"NULL", "UNKNOWN", "TRUE", "FALSE", "DISTINCT"}:
        raise cursor.expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
    cursor.at += 1
    if word in {"NULL", "UNKNOWN"}:
        match left:
            case LiteralOperand(value):
                return Constant((value is None) != negated)
            case BooleanOperand(tree):
                return push_not(is_unknown(tree), negate=negated)
            case _:
                return IsNull(left, negated)
    if word in {"TRUE", "FALSE"}:
        tree = compare(left, Operator.NULL_SAFE_EQ, LiteralOperand(word == "TRUE"))
        return push_not(tree, negate=negated)
    if not cursor.take("FROM"):
        raise cursor.expected("FROM")
    tree = compare(left, Operator.NULL_SAFE_EQ, cursor.operand())
    return push_not(tree, negate=not negated)


def _between(cursor: Cursor, value: Operand) -> Predicate:
    low = cursor.operand()
    if not cursor.take("AND"):
        raise NotJudgedError(reason_of(cursor.next.key))
    high = cursor.operand()
    lower = compare_or_keep(value, Operator.GE, low)
    upper = compare_or_keep(value, Operator.LE, high)
    if isinstance(lower, Unsupported) and isinstance(upper, Unsupported):
        raise NotJudgedError(upper.reason)
    return conjunction([lower, upper])


def _in(cursor: Cursor, left: Operand) -> Predicate:
    if cursor.next.key != "(":
        raise cursor.expected("'('")
    end = cursor.closing[cursor.at]
    values: list[Literal] = []
    while cursor.at < end:
        cursor.at += 1
        # Lists are long: most of their members are one token.
        operand = cursor.plain_literal() or cursor.operand()
        if not isinstance(operand, LiteralOperand):
            raise NotJudgedError("a column in a list")
        if cursor.next.key != "," and cursor.at != end:
            raise NotJudgedError(reason_of(cursor.next.key))
        values.append(operand.value)
    cursor.at = end + 1
    if isinstance(left, LiteralOperand):
        return Constant(listed(left.value, values))
    if isinstance(left, BooleanOperand):
        raise NotJudgedError("no column is compared with a literal")
    return In(left, tuple(values))


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


def _rows(cursor: Cursor) -> Predicate:
    """``(a, b) IN ((1, 'x'), …)``; NULL equals NULL inside rows."""
    terms = _row(cursor)
    negated = cursor.take("NOT")
    cursor.at += 1
    if cursor.next.key != "(":
        raise cursor.expected("'('")
    end = cursor.closing[cursor.at]
    rows: list[list[Literal]] = []
    while cursor.at < end:
        cursor.at += 1
        if cursor.next.key != "(":
            raise NotJudgedError("a list of other than rows")
        row = [o.value for o in _row(cursor) if isinstance(o, LiteralOperand)]
        if len(row) != len(terms) or (cursor.next.key != "," and cursor.at != end):
            raise NotJudgedError("a list of other than rows of literals")
        rows.append(row)
    cursor.at = end + 1
    # The list has one type, so values of several types would be cast.
    for column in zip(*rows, strict=True):
        if len({type(value) for value in column} - {type(None)}) > 1:
            raise NotJudgedError("the list makes Spark cast")
    alternatives: list[Predicate] = []
    for row in rows:
        pairs: list[Predicate] = []
        for term, value in zip(terms, row, strict=True):
            if isinstance(term, LiteralOperand | BooleanOperand):
                raise NotJudgedError("no column is compared with a literal")
            pairs.append(Comparison(term, Operator.NULL_SAFE_EQ, value))
        alternatives.append(conjunction(pairs))
    return push_not(disjunction(alternatives), negate=negated)


def _row(cursor: Cursor) -> list[Operand]:
    """The operands in parentheses."""
    end = cursor.closing[cursor.at]
    operands: list[Operand] = []
    while cursor.at < end:
        cursor.at += 1
        operands.append(cursor.operand())
        if cursor.next.key != "," and cursor.at != end:
            raise NotJudgedError(reason_of(cursor.next.key))
    cursor.at = end + 1
    return operands


def _like(cursor: Cursor, left: Operand) -> Predicate:
    token = cursor.next
    pattern, escape = cursor.operand(), LiteralOperand("\\")
    if cursor.take("ESCAPE"):
        given = cursor.operand()
        if not isinstance(given, LiteralOperand):
            raise cursor.error(token, "expected a string after ESCAPE")
        escape = given
    match left, pattern, escape.value:
        case Reference() | Call() | Case(), LiteralOperand(str(text)), str(character):
            try:
                return Like(left, text, character)
            except PredicateError as problem:
                raise cursor.error(token, str(problem)) from None
    raise NotJudgedError("LIKE of anything but a column and a string")


def _ilike(cursor: Cursor, left: Operand) -> Predicate:
    """Spark's own rewrite: LIKE, with both sides in lower case."""
    match cursor.operand():
        case LiteralOperand(str(text)) if (
            text.isascii() and cursor.next.key != "ESCAPE"
        ):
            return Like(Call("lower", (argument(left),)), text.lower())
    raise NotJudgedError("ILIKE, which ignores case")
