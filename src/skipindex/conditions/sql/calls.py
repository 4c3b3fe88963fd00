"""Calls of functions and casts in a condition, with operands as arguments."""

from __future__ import annotations

from typing import Final

from skipindex.conditions.sql.cursor import Cursor
from skipindex.conditions.sql.tokens import Kind, Token
from skipindex.conditions.trees.calls import NAMED, call, cast_to, function
from skipindex.conditions.trees.operands import (
    BooleanOperand,
    LiteralOperand,
    Operand,
    is_constant,
)
from skipindex.errors import PredicateError
from skipindex.expressions.not_judged import REASONS, NotJudgedError, reason_of

_WORDS: Final = {
    *(("SUBSTRING", "FROM"), ("SUBSTRING", "FOR"), ("SUBSTR", "FROM")),
    *(("SUBSTR", "FOR"), ("POSITION", "IN")),
}
"""Functions, and the words that may stand between their arguments."""
_TRIMS: Final = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_MAX_PARAMETER: Final = 9
"""Characters of a parameter of a type; no type of Spark has so many digits."""


def function_call(cursor: Cursor, token: Token) -> Operand:
    """``year(d)``, ``CAST(a AS INT)`` and their like, where ``token`` is the name."""
    end = cursor.closing[cursor.at + 1]
    name = token.key
    if name in {"CAST", "TRY_CAST"}:
        cursor.at += 2
        operand = cursor.operand()
        if not cursor.take("AS"):
            raise NotJudgedError("a cast")
        if name == "TRY_CAST" and not is_constant(operand):
            raise NotJudgedError("a cast of the column")
        result = cast_operand(cursor, operand)
    elif name == "EXTRACT":
        cursor.at += 2
        unit = LiteralOperand(cursor.step())
        if not cursor.take("FROM"):
            raise NotJudgedError(f"the function {token.text}")
        result = call("extract", [unit, cursor.operand()])
    elif name == "TRIM" and cursor.tokens[cursor.at + 2].key in _TRIMS:
        result = _trim(cursor)
    elif name.lower() in NAMED:
        cursor.at += 2
        try:
            operands = _operands(cursor, name, end)
        except PredicateError:  # a form that only this function has
            raise NotJudgedError(f"the function {token.text}") from None
        result = call(name.lower(), operands)
    else:
        raise NotJudgedError(REASONS.get(name, f"the function {token.text}"))
    if cursor.at != end:
        raise NotJudgedError(f"the function {token.text}")
    cursor.at += 1
    return result


def _trim(cursor: Cursor) -> Operand:
    """``trim(BOTH 'x' FROM s)``, up to its closing parenthesis."""
    cursor.at += 2
    name = _TRIMS[cursor.step()]
    removed: Operand = LiteralOperand(" ")
    if not cursor.take("FROM"):
        removed = cursor.operand()
        if not cursor.take("FROM"):
            raise NotJudgedError("the function trim")
    return function(name, [removed, cursor.operand()])


def _operands(cursor: Cursor, name: str, end: int) -> list[Operand]:
    """The arguments of a function, up to the closing parenthesis."""
    operands: list[Operand] = []
    while cursor.at < end:
        start = cursor.at
        operand = cursor.operand()
        if cursor.next.key != "," and not (
            cursor.at == end or (name, cursor.next.key) in _WORDS
        ):
            cursor.at = start
            operand = BooleanOperand(cursor.condition())
        operands.append(operand)
        if cursor.at == end:
            break
        if cursor.next.key in {"FROM", "FOR", "IN"}:
            # substring(s FROM 1 FOR 2), position('a' IN s)
            if (name, cursor.next.key) not in _WORDS:
                raise NotJudgedError(reason_of(cursor.next.key))
        elif cursor.next.key != ",":
            raise NotJudgedError(reason_of(cursor.next.key))
        cursor.at += 1
    return operands


def cast_operand(cursor: Cursor, operand: Operand, type_name: str = "") -> Operand:
    """``operand`` as the type that comes next, or as ``type_name``."""
    parameters: list[int] = []
    if not type_name:
        if cursor.next.kind is Kind.END:
            raise cursor.expected("a type")
        type_name = cursor.step()
        if cursor.next.key == "(":
            end = cursor.closing[cursor.at]
            inside = cursor.tokens[cursor.at + 1 : end]
            parameters = [_digits(t) for t in inside if t.text.isdecimal()]
            cursor.at = end + 1
    return cast_to(operand, type_name, parameters)


def _digits(token: Token) -> int:
    """The number of digits that a type names."""
    if len(token.text) > _MAX_PARAMETER:
        raise NotJudgedError("a type of too many digits")
    return int(token.text)
