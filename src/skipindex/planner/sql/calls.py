"""Calls of functions and casts in a condition, with operands as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from skipindex.errors import PredicateError
from skipindex.expressions import (
    Call,
    Case,
    Column,
    Comparison,
    IsNull,
    Literal,
    Operator,
    Predicate,
    Reference,
    Term,
)
from skipindex.expressions.not_judged import REASONS, NotJudgedError, reason_of
from skipindex.planner.functions import FUNCTIONS
from skipindex.planner.sql.casts import cast
from skipindex.planner.sql.comparisons import choice, compare, is_known, truth
from skipindex.planner.sql.cursor import Cursor
from skipindex.planner.sql.operands import (
    EXPLICIT_TYPES,
    BooleanOperand,
    LiteralOperand,
    Operand,
    argument,
    folded,
    require_small,
)
from skipindex.planner.sql.times import INTERVAL_FUNCTIONS, made_interval
from skipindex.planner.sql.tokens import Kind, Token

_CHOICES: Final = {"IF", "IFF", "COALESCE", "NVL", "IFNULL", "NVL2", "NULLIF"}
_WORDS: Final = {
    *(("SUBSTRING", "FROM"), ("SUBSTRING", "FOR"), ("SUBSTR", "FROM")),
    *(("SUBSTR", "FOR"), ("POSITION", "IN")),
}
"""Functions, and the words that may stand between their arguments."""
_MADE: Final = {"GREATEST", "LEAST"}
_READ: Final = {
    "TO_DATE": "DATE",
    "TO_TIMESTAMP": "TIMESTAMP",
    "TO_TIMESTAMP_NTZ": "TIMESTAMP_NTZ",
}
"""Functions that are casts if they have one argument, and else have a pattern."""
_TEXT_TESTS: Final = {
    "STARTSWITH": Column.startswith,
    "ENDSWITH": Column.endswith,
    "CONTAINS": Column.contains,
}
_TRIMS: Final = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_EXTRACTED: Final = {"year", "quarter", "month", "day", "hour", "minute"}
_CAST_FUNCTIONS: Final = {
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP"),
}
_CAST_TARGETS: Final = {
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT"),
    *("LONG", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
    *("TIMESTAMP_NTZ", "DECIMAL", "DEC", "NUMERIC"),
}
_MAX_PARAMETER: Final = 9
"""Characters of a parameter of a type; no type of Spark has so many digits."""
_WITH_UNIT: Final = {"DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF"}
"""Their first argument of three is the name of a unit, and no column."""


def call_of(name: str, operands: Sequence[Operand]) -> Operand:
    """The function ``name`` of the operands, or its value if all are literals.

    Raises:
        NotJudgedError: that value is for Spark alone.
    """
    match name, operands:
        case "negative", [Call("interval", (int(number), unit))]:
            return Call("interval", (-number, unit))
    call = Call(name, tuple(map(argument, operands)))
    return require_small(call) if _has_column(call) else folded(call)


def function(cursor: Cursor, token: Token) -> Operand:
    """``year(d)``, ``CAST(a AS INT)`` and their like, where ``token`` is the name.

    Raises:
        NotJudgedError: the function is not known, or not with these arguments.
    """
    end = cursor.closing[cursor.at + 1]
    name = token.key
    if name in {"CAST", "TRY_CAST"}:
        cursor.at += 2
        operand = cursor.operand()
        if not cursor.take("AS"):
            raise NotJudgedError("a cast")
        if name == "TRY_CAST" and not isinstance(operand, LiteralOperand):
            raise NotJudgedError("a cast of the column")
        result = cast_operand(cursor, operand)
    elif name in _CAST_FUNCTIONS:
        cursor.at += 2
        result = cast_operand(cursor, cursor.operand(), name)
    else:
        result = _other_function(cursor, token, end)
    if cursor.at != end:
        raise NotJudgedError(f"the function {token.text}")
    cursor.at += 1
    return result


def _other_function(cursor: Cursor, token: Token, end: int) -> Operand:
    """Any but a cast, up to its closing parenthesis."""
    name = token.key
    if name == "EXTRACT":
        cursor.at += 2
        unit = cursor.step().lower()
        if not cursor.take("FROM") or unit not in _EXTRACTED:
            raise NotJudgedError(f"the function {token.text}")
        return call_of(unit, [cursor.operand()])
    if name == "TRIM" and cursor.tokens[cursor.at + 2].key in _TRIMS:
        return _trim(cursor)
    known = _CHOICES | _MADE | INTERVAL_FUNCTIONS
    if name not in known and name.lower() not in FUNCTIONS:
        raise NotJudgedError(REASONS.get(name, f"the function {token.text}"))
    cursor.at += 2
    try:
        operands = _operands(cursor, name, end)
    except PredicateError:  # a form that only this function has
        raise NotJudgedError(f"the function {token.text}") from None
    if name in _WITH_UNIT and len(operands) == 3:
        raise NotJudgedError(f"the function {token.text}")
    if name in _CHOICES:
        return _chosen(name, operands)
    if name in INTERVAL_FUNCTIONS:
        return made_interval(name, [_whole_number(operand) for operand in operands])
    if name in _READ and len(operands) == 1:
        return _cast_to(operands[0], _READ[name], [])
    return call_of(name.lower(), operands)


def _whole_number(operand: Operand) -> int:
    match operand:
        case LiteralOperand(int() | Decimal() as number) if number == int(number):
            return int(number)
    raise NotJudgedError("an interval")


def _trim(cursor: Cursor) -> Operand:
    """``trim(BOTH 'x' FROM s)``, up to its closing parenthesis."""
    cursor.at += 2
    name = _TRIMS[cursor.step()]
    removed: Operand = LiteralOperand(" ")
    if not cursor.take("FROM"):
        removed = cursor.operand()
        if not cursor.take("FROM"):
            raise NotJudgedError("the function trim")
    return call_of(name, [removed, cursor.operand()])


def _operands(cursor: Cursor, name: str, end: int) -> list[Operand]:
    """The arguments of a function, up to the closing parenthesis."""
    operands: list[Operand] = []
    while cursor.at < end:
        start = cursor.at
        operand = cursor.operand()
        if cursor.next.key != "," and not (
            cursor.at == end or (name, cursor.next.key) in _WORDS
        ):
            cursor.again(start)
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
    return _cast_to(operand, type_name, parameters)


def _digits(token: Token) -> int:
    """The number of digits that a type names."""
    if len(token.text) > _MAX_PARAMETER:
        raise NotJudgedError("a type of too many digits")
    return int(token.text)


def _cast_to(operand: Operand, type_name: str, parameters: list[int]) -> Operand:
    if isinstance(operand, LiteralOperand):
        known = cast(operand.value, type_name, tuple(parameters))
        return LiteralOperand(known, type_name if type_name in EXPLICIT_TYPES else "")
    if type_name not in _CAST_TARGETS or isinstance(operand, BooleanOperand):
        raise NotJudgedError("a cast of the column")
    if type_name in {"DECIMAL", "DEC", "NUMERIC"}:
        parameters = parameters or [10, 0]
    elif parameters:
        raise NotJudgedError("a cast of the column")
    if parameters:
        type_name += f"({','.join(map(str, parameters))})"
    return require_small(Call("cast", (operand, type_name)))


def _chosen(name: str, operands: list[Operand]) -> Operand:
    """``IF``, ``COALESCE`` and their like, as the CASE that they stand for."""
    match name, operands:
        case "IF" | "IFF", [test, value, otherwise]:
            return choice([(truth(test), value)], otherwise)
        case "NVL2", [test, value, otherwise]:
            return choice([(is_known(test), value)], otherwise)
        case "NVL" | "IFNULL" | "COALESCE", [*_, last] if (
            name == "COALESCE" or len(operands) == 2
        ):
            if any(isinstance(operand, BooleanOperand) for operand in operands):
                return choice([(is_known(o), o) for o in operands[:-1]], last)
            return call_of("coalesce", operands)
        case "NULLIF", [value, LiteralOperand() as other]:
            equal = compare(value, Operator.EQ, other)
            return choice([(equal, LiteralOperand(None))], value, repeats=True)
        case _:
            raise NotJudgedError(f"the function {name}")


def condition_of_call(cursor: Cursor) -> Predicate:
    """``startswith(column, 'p')`` and the other functions that are conditions."""
    name, end = cursor.next, cursor.closing[cursor.at + 1]
    cursor.at += 2
    operands = [cursor.operand()]
    while cursor.take(","):
        operands.append(cursor.operand())
    if cursor.at != end:
        raise NotJudgedError(reason_of(cursor.next.key))
    cursor.at += 1
    match name.key, operands:
        case test, [Reference() | Call() as column, LiteralOperand(str(text))] if (
            test in _TEXT_TESTS
        ):
            return _TEXT_TESTS[test](Column(column), text)
        case "ISNULL", [Reference() | Call() as column]:
            return IsNull(column)
        case "ISNOTNULL", [Reference() | Call() as column]:
            return IsNull(column, negated=True)
        case "ISNAN", [Reference() | Call() as column]:
            return Comparison(column, Operator.NULL_SAFE_EQ, float("nan"))
        case _:
            raise NotJudgedError(f"the function {name.text}")


def _has_column(term: Term | Literal) -> bool:
    match term:
        case Call(_, arguments):
            return any(map(_has_column, arguments))
        case Reference() | Case():
            return True
        case _:
            return False
