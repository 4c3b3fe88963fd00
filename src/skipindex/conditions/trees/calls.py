"""Calls of Spark's functions and operators as trees, by their names in SQL.

The parser of SQL and the translator of Catalyst's expressions both make trees by
``call``, ``cast_to`` and ``conditions``: one condition is one tree, whatever it is
written in.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from skipindex.conditions.functions import FUNCTIONS
from skipindex.conditions.trees.comparisons import (
    OPERATORS,
    choice,
    compare,
    is_known,
    is_null,
    truth,
)
from skipindex.conditions.trees.conditions import between, ilike, is_in, like
from skipindex.conditions.trees.operands import (
    EXPLICIT_TYPES,
    BooleanOperand,
    LiteralOperand,
    Operand,
    argument,
    constant,
    is_constant,
    require_small,
)
from skipindex.conditions.trees.times import INTERVAL_FUNCTIONS, made_interval
from skipindex.expressions import (
    And,
    Call,
    Column,
    Comparison,
    Constant,
    Not,
    Operator,
    Predicate,
    Reference,
    Unsupported,
    conjunction,
    disjunction,
)
from skipindex.expressions.not_judged import REASONS, NotJudgedError

MOMENTS: Final = {
    **dict.fromkeys(("now", "current_timestamp"), "instant"),
    **dict.fromkeys(("curdate", "current_date"), "day"),
    "localtimestamp": "local time",
    "unix_timestamp": "seconds",
    "current_timezone": "zone",
}
"""Functions of the moment, which take no argument, and what they tell."""
_CHOICES: Final = {"if", "iff", "coalesce", "nvl", "ifnull", "nvl2", "nullif"}
_TEXT_TESTS: Final = {
    "startswith": Column.startswith,
    "endswith": Column.endswith,
    "contains": Column.contains,
}
_TESTS: Final = {*_TEXT_TESTS, "isnull", "isnotnull", "isnan"}
_READ: Final = {
    "to_date": "DATE",
    "to_timestamp": "TIMESTAMP",
    "to_timestamp_ntz": "TIMESTAMP_NTZ",
}
"""Functions that are casts if they have one argument, and else have a pattern."""
_EXTRACTED: Final = {"year", "quarter", "month", "day", "hour", "minute"}
_CASTS: Final = {
    *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    *("string", "binary", "boolean", "date", "timestamp"),
}
"""Types that are names of functions too."""
_CAST_TARGETS: Final = {
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT"),
    *("LONG", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
    *("TIMESTAMP_NTZ", "DECIMAL", "DEC", "NUMERIC"),
}
_WITH_UNIT: Final = {"dateadd", "date_add", "datediff", "date_diff"}
"""Their first argument of three is the name of a unit, and no column."""
NAMED: Final = {
    *(*_CHOICES, *_TESTS, *_CASTS, "greatest", "least", *INTERVAL_FUNCTIONS),
    *FUNCTIONS,
}
"""The functions that are read; others are operators, or words of conditions."""


def call(name: str, operands: Sequence[Operand]) -> Operand:
    """The function, operator or condition of that name, in lower case."""
    if len(operands) == 2 and name in OPERATORS:
        return _condition(compare(operands[0], OPERATORS[name], operands[1]))
    match name, operands:
        case "and", [*_]:
            return _condition(conjunction([truth(one) for one in operands]))
        case "or", [*_]:
            return _condition(disjunction([truth(one) for one in operands]))
        case "not" | "!", [one]:
            return _condition(Not(truth(one)))
        case "in", [one]:
            # FALSE, and of NULL it is FALSE or UNKNOWN, as the session has it.
            unsure = Unsupported("opaque()", REASONS["OPAQUE"])
            return _condition(And((is_null(one), Constant(None), unsure)))
        case "in", [one, *some]:
            return _condition(is_in(one, tuple(map(constant, some))))
        case "like", [one, pattern]:
            return _condition(like(one, pattern))
        case "ilike", [one, pattern]:
            return _condition(ilike(one, pattern))
        case "between", [one, low, high]:
            return _condition(between(one, low, high))
        case "extract", [LiteralOperand(str(unit)), one] if unit.lower() in _EXTRACTED:
            return function(unit.lower(), [one])
    if name in MOMENTS and not operands:
        return Call(name, ())
    if name not in NAMED:
        raise NotJudgedError(REASONS.get(name.upper(), f"the function {name}"))
    if name in _TESTS:
        return _condition(_test(name, operands))
    if name in _CHOICES:
        return _chosen(name, operands)
    if name in _CASTS and len(operands) == 1:
        return cast_to(operands[0], name.upper(), [])
    if name in INTERVAL_FUNCTIONS:
        return made_interval(name, [_whole_number(operand) for operand in operands])
    if name in _READ and len(operands) == 1:
        return cast_to(operands[0], _READ[name], [])
    if name in _WITH_UNIT and len(operands) == 3:
        raise NotJudgedError(f"the function {name}")
    return function(name, operands)


def _condition(tree: Predicate) -> BooleanOperand:
    return BooleanOperand(require_small(tree))


def function(name: str, operands: Sequence[Operand]) -> Operand:
    """The function ``name`` of the operands."""
    match name, operands:
        case "negative", [Call("interval", (int(number), unit))]:
            return Call("interval", (-number, unit))
    return require_small(Call(name, tuple(map(argument, operands))))


def cast_to(operand: Operand, type_name: str, parameters: Sequence[int]) -> Operand:
    """``CAST(operand AS type_name(parameters))``, the name in capitals."""
    if type_name not in _CAST_TARGETS and not is_constant(operand):
        raise NotJudgedError("a cast of the column")
    if type_name in {"DECIMAL", "DEC", "NUMERIC"}:
        parameters = parameters or [10, 0]
    elif parameters:
        raise NotJudgedError("a cast of the column")
    if parameters:
        type_name += f"({','.join(map(str, parameters))})"
    return require_small(Call("cast", (argument(operand), type_name)))


def _whole_number(operand: Operand) -> int:
    match operand:
        case LiteralOperand(int() | Decimal() as number) if number == int(number):
            return int(number)
        case Call("cast", (int(number), type_name)) if type_name in EXPLICIT_TYPES:
            return number
    raise NotJudgedError("an interval")


def _chosen(name: str, operands: Sequence[Operand]) -> Operand:
    """``IF``, ``COALESCE`` and their like, as the CASE that they stand for."""
    match name, operands:
        case "if" | "iff", [test, value, otherwise]:
            return choice([(truth(test), value)], otherwise)
        case "nvl2", [test, value, otherwise]:
            return choice([(is_known(test), value)], otherwise)
        case "nvl" | "ifnull" | "coalesce", [*_, last] if (
            name == "coalesce" or len(operands) == 2
        ):
            if any(isinstance(operand, BooleanOperand) for operand in operands):
                return choice([(is_known(o), o) for o in operands[:-1]], last)
            return function("coalesce", operands)
        case "nullif", [value, other] if is_constant(other):
            equal = compare(value, Operator.EQ, other)
            return choice([(equal, LiteralOperand(None))], value, repeats=True)
        case _:
            raise NotJudgedError(f"the function {name}")


def _test(name: str, operands: Sequence[Operand]) -> Predicate:
    """``startswith(column, 'p')`` and the other functions that are conditions."""
    match name, operands:
        case test, [Reference() | Call() as column, LiteralOperand(str(text))] if (
            test in _TEXT_TESTS
        ):
            return _TEXT_TESTS[test](Column(column), text)
        case "isnull", [one]:
            return is_null(one)
        case "isnotnull", [one]:
            return is_known(one)
        case "isnan", [Reference() | Call() as column]:
            return Comparison(column, Operator.NULL_SAFE_EQ, float("nan"))
        case _:
            raise NotJudgedError(f"the function {name}")
