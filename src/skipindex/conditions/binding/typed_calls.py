"""Choosing functions and literals by the types of the arguments.

A type that only Spark can resolve is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from skipindex.conditions.binding.inversion import BoundCall
from skipindex.conditions.binding.terms import BoundLiteral, BoundTerm, argument_of
from skipindex.conditions.functions import FUNCTIONS
from skipindex.conditions.functions.decimals import CAST_DIGITS, decimal_type, floor_of
from skipindex.conditions.functions.registry import Builtin, Function, integer
from skipindex.expressions import Literal, argument_sql
from skipindex.expressions.domain import EPOCH, INT64_MAX, INT64_MIN, Domain
from skipindex.expressions.not_judged import NotJudgedError

UNTYPED: Final = Domain("decimal")
"""The domain of a decimal literal: its type depends on the other operand."""


def constant(value: Literal) -> BoundLiteral:
    """A literal as an argument."""
    text = argument_sql(value)
    match value:
        case None:
            return BoundLiteral(None, None, text)
        case bool():
            return BoundLiteral(Domain("bool"), int(value), text)
        case int() if INT64_MIN <= value <= INT64_MAX:
            bits = 32 if -(1 << 31) <= value < 1 << 31 else 64
            return BoundLiteral(integer(bits), value, text)
        case float():
            return BoundLiteral(Domain("float", bits=64), value, text)
        case str():
            return BoundLiteral(Domain("string"), value, text)
        case bytes():
            return BoundLiteral(Domain("binary"), value, text)
        case date() if not isinstance(value, datetime):
            return BoundLiteral(Domain("date"), (value - EPOCH).days, text)
        case _:
            raise NotJudgedError(f"{text} as an argument")


def builtin(name: str) -> Builtin:
    """The function of that name, in lower case."""
    result = FUNCTIONS.get(name)
    if result is None:
        raise NotJudgedError(f"the function {name}")
    return result


def applied(name: str, operands: Sequence[BoundTerm], text: str) -> BoundTerm:
    """The function ``name``, resolved for the types of its operands."""
    result = builtin(name).resolve([argument_of(operand) for operand in operands])
    if result is None:
        raise NotJudgedError(f"{name} of these types")
    return BoundCall(replace(result, key=name), tuple(operands), text)


def through(function: Function, operand: BoundTerm, text: str) -> BoundTerm:
    """A function of one operand."""
    return BoundCall(function, (operand,), text)


def is_of(operand: BoundTerm, *names: str) -> bool:
    """Whether the domain of the operand's values has one of the names."""
    return operand.domain is not None and operand.domain.name in names


def _as_decimal(operand: BoundTerm) -> BoundLiteral:
    """A decimal literal; a cast may have made its type wider than its value tells."""
    value = Decimal(operand.expression)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    before = max(len(digits) + exponent, min(CAST_DIGITS, 38 - scale))
    unscaled = floor_of(value, scale)
    return BoundLiteral(
        decimal_type(before + scale, scale), unscaled, operand.expression
    )


def with_type(operands: Sequence[BoundTerm]) -> Sequence[BoundTerm]:
    """The operands; decimal literals become doubles or decimals as the others are."""
    if all(operand.domain is not UNTYPED for operand in operands):
        return operands
    double = Domain("float", bits=64)
    if any(
        is_of(operand, "decimal") and operand.domain != UNTYPED for operand in operands
    ):
        return [_as_decimal(i) if i.domain is UNTYPED else i for i in operands]
    if not any(operand.domain == double for operand in operands):
        raise NotJudgedError("arithmetic with decimals")
    return [
        BoundLiteral(double, operand.value(None), operand.expression)
        if operand.domain is UNTYPED
        else operand
        for operand in operands
    ]
