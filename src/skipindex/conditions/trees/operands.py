"""Operands of a comparison: a term, a literal or a condition.

A term without columns is a constant; binding gives it its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from skipindex.expressions import (
    Call,
    Case,
    Literal,
    Predicate,
    Reference,
    Term,
    is_large,
)
from skipindex.expressions.not_judged import NotJudgedError

EXPLICIT_TYPES: Final = {
    *("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"),
    *("FLOAT", "REAL", "TIMESTAMP_NTZ"),
}
"""The types of a literal that its value does not tell."""


@dataclass(frozen=True, slots=True)
class LiteralOperand:
    """A literal, as opposed to a column, of the type that its value tells."""

    value: Literal


@dataclass(frozen=True, slots=True)
class BooleanOperand:
    """A condition that is a value."""

    tree: Predicate


Operand: TypeAlias = Term | LiteralOperand | BooleanOperand
_MAX_REPEATED: Final = 300
"""Nodes of a condition that repeats a part of what was written."""
_Tree = TypeVar("_Tree", bound=Term | Predicate)


def typed(value: Literal, type_name: str) -> Call | Literal:
    """A literal of a type, as an argument; ``type_name`` may be empty."""
    if type_name not in EXPLICIT_TYPES:
        return value
    if isinstance(value, datetime):
        return Call("timestamp_ntz", (value,))
    return Call("cast", (value, type_name))


def operand_of(argument: Term | Literal) -> Operand:
    """The operand that an argument of a function is."""
    if isinstance(argument, Reference | Call | Case):
        return argument
    return LiteralOperand(argument)


def require_small(tree: _Tree, *, repeats: bool = False) -> _Tree:
    """``tree``, which is one that can be judged in bounded time.

    One that ``repeats`` a part of the text must not grow from level to level.
    """
    if is_large(tree, _MAX_REPEATED) if repeats else is_large(tree):
        raise NotJudgedError("the expression is too large")
    return tree


def argument(operand: Operand) -> Term | Literal:
    """``operand`` as an argument of a function."""
    match operand:
        case LiteralOperand(value):
            return value
        case BooleanOperand():
            raise NotJudgedError("a condition as a value")
        case _:
            return operand


def constant(operand: Operand) -> Any:
    """``operand`` as what a column is compared with: a literal, or a ``Call``."""
    if isinstance(operand, LiteralOperand):
        return operand.value
    if isinstance(operand, Call) and is_constant(operand):
        return operand
    raise NotJudgedError("a column in a list")


def is_constant(operand: Operand | Literal) -> bool:
    """Whether no column is in it."""
    match operand:
        case Call(_, arguments):
            return all(map(is_constant, arguments))
        case _:
            return not isinstance(operand, Reference | Case | BooleanOperand)
