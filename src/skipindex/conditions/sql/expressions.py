"""Operands of a condition: columns, literals, and what arithmetic makes of them.

Read from left to right by the precedence of Spark's grammar.
"""

from __future__ import annotations

from typing import Final

from skipindex.conditions.sql.calls import cast_operand, function_call
from skipindex.conditions.sql.cursor import Cursor
from skipindex.conditions.sql.tokens import Kind, Token
from skipindex.conditions.trees.calls import function
from skipindex.conditions.trees.comparisons import OPERATORS, choice, compare
from skipindex.conditions.trees.operands import BooleanOperand, LiteralOperand, Operand
from skipindex.expressions import Call, Case, Operator, Predicate
from skipindex.expressions.extent import MAX_DEPTH
from skipindex.expressions.not_judged import SESSION_VALUES, NotJudgedError, reason_of

_IN_CONDITIONS: Final = {"AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE"}
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_BETWEEN_VALUES: Final = {
    *("AND", "OR", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN"),
    *("ESCAPE", "THEN", "ELSE", "WHEN", "AS"),
}
_BEFORE_VALUES: Final = {"(", "-", "+", "~", "!", "*", "?", ":", "[", "{"}
_OPENING_WORDS: Final = {"NOT", "EXISTS", "SELECT", "ALL", "ANY", "SOME"}
_SUMS: Final = {"+", "-", "||"}
_PRODUCTS: Final = {"*", "/", "%", "DIV"}


def operand(cursor: Cursor) -> Operand:
    """The column, the literal or the function of them that comes next."""
    if cursor.depth >= MAX_DEPTH:
        raise NotJudgedError("the expression is too deep")
    cursor.budget.spend()
    cursor.depth += 1
    try:
        left = _product(cursor)
        while cursor.next.key in _SUMS:
            sign = cursor.step()
            left = function(sign, [left, _product(cursor)])
    finally:
        cursor.depth -= 1
    return left


def _product(cursor: Cursor) -> Operand:
    left = _factor(cursor)
    while cursor.next.key in _PRODUCTS:
        sign = cursor.step().lower()
        left = function(sign, [left, _factor(cursor)])
    return left


def _factor(cursor: Cursor) -> Operand:
    signs = []
    while cursor.next.key in {"-", "+"} and not _is_signed_number(cursor):
        signs.append("negative" if cursor.step() == "-" else "positive")
    operand = _primary(cursor)
    while cursor.next.key == "::":
        cursor.at += 1
        operand = cast_operand(cursor, operand)
    for name in reversed(signs):
        operand = function(name, [operand])
    return operand


def _is_signed_number(cursor: Cursor) -> bool:
    """Whether a sign and a number are one literal; ``::`` binds more tightly."""
    behind = cursor.tokens[min(cursor.at + 2, len(cursor.tokens) - 1)]
    return cursor.after.kind is Kind.NUMBER and behind.key != "::"


def _primary(cursor: Cursor) -> Operand:
    token = cursor.next
    match token.kind:
        case Kind.NUMBER:
            return cursor.number(negative=False)
        case Kind.STRING:
            return cursor.strings()
        case Kind.QUOTED:
            return cursor.column()
        case Kind.WORD:
            return _after_word(cursor, token)
        case Kind.SYMBOL if token.key == "(":
            return _in_parentheses(cursor)
        case Kind.SYMBOL if token.key in {"-", "+"}:
            cursor.at += 1
            return cursor.number(negative=token.key == "-")
        case Kind.SYMBOL if token.key in _BEFORE_VALUES:
            raise NotJudgedError(reason_of(token.key))
        case _:
            raise cursor.expected("a value")


def _after_word(cursor: Cursor, token: Token) -> Operand:
    before_operator = cursor.after.key in OPERATORS
    if cursor.after.kind is Kind.LIST:
        raise NotJudgedError(f"the function {token.text}")
    if token.key in _BETWEEN_VALUES and not (
        before_operator or cursor.after.key == "("
    ):
        raise cursor.expected("a value")
    if token.key in SESSION_VALUES or (
        token.key in _OPENING_WORDS and not before_operator
    ):
        raise NotJudgedError(reason_of(token.key))
    if token.key == "CASE" and not before_operator:
        return _case(cursor)
    if token.key == "INTERVAL" and not before_operator:
        return cursor.interval()
    if cursor.after.kind is Kind.STRING:
        return cursor.typed_literal(token)
    if cursor.after.key == "(":
        return function_call(cursor, token)
    if token.key in _CONSTANTS:
        cursor.at += 1
        return LiteralOperand(_CONSTANTS[token.key])
    return cursor.column()


def _in_parentheses(cursor: Cursor) -> Operand:
    start, end = cursor.at, cursor.closing[cursor.at]
    cursor.at += 1
    if _holds_condition(cursor, start, end):
        operand: Operand = BooleanOperand(cursor.condition())
    else:
        operand = cursor.operand()
    if cursor.at != end:
        raise NotJudgedError(reason_of(cursor.next.key))
    cursor.at += 1
    return operand


def _holds_condition(cursor: Cursor, start: int, end: int) -> bool:
    """Whether these parentheses hold one condition, and no list or query."""
    i, result, cases = start + 1, False, 0
    while i < end:
        key = cursor.tokens[i].key
        if key in {",", "SELECT", "->"}:
            return False
        cases += (key == "CASE") - (key == "END")
        if not cases:
            result |= key in OPERATORS or key in _IN_CONDITIONS
        i = cursor.closing.get(i, i) + 1
    return result


def _case(cursor: Cursor) -> Operand:
    """``CASE WHEN …``."""
    cursor.at += 1
    subject = None if cursor.next.key == "WHEN" else cursor.operand()
    branches: list[tuple[Predicate, Operand]] = []
    while cursor.take("WHEN"):
        if subject is None:
            tree = cursor.condition()
        else:
            tree = compare(subject, Operator.EQ, cursor.operand())
        if not cursor.take("THEN"):
            raise NotJudgedError("a CASE expression")
        branches.append((tree, _value_inside(cursor)))
    otherwise: Operand = LiteralOperand(None)
    if cursor.take("ELSE"):
        otherwise = _value_inside(cursor)
    if not cursor.take("END") or not branches:
        raise NotJudgedError("a CASE expression")
    return choice(branches, otherwise, repeats=isinstance(subject, Call | Case))


def _value_inside(cursor: Cursor) -> Operand:
    """A value of a CASE, which may be a condition."""
    start = cursor.at
    operand = cursor.operand()
    if cursor.next.key in {"WHEN", "ELSE", "END"}:
        return operand
    cursor.at = start
    return BooleanOperand(cursor.condition())
