"""IS NULL, IN, LIKE and their like of operands, as predicates with Spark's meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skipindex.conditions.functions.decimals import within_38_digits
from skipindex.conditions.trees.comparisons import compare_or_keep, listed
from skipindex.conditions.trees.operands import (
    BooleanOperand,
    LiteralOperand,
    Operand,
    argument,
    constant,
    is_constant,
)
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
    Term,
    Unsupported,
    conjunction,
    disjunction,
)
from skipindex.expressions.atoms import IntegerSet
from skipindex.expressions.not_judged import NotJudgedError

_BACKSLASH = LiteralOperand("\\")


def between(value: Operand, low: Operand, high: Operand) -> Predicate:
    """``value BETWEEN low AND high``, of which one side may be judged alone."""
    lower = compare_or_keep(value, Operator.GE, low)
    upper = compare_or_keep(value, Operator.LE, high)
    if isinstance(lower, Unsupported) and isinstance(upper, Unsupported):
        raise NotJudgedError(upper.reason)
    return conjunction([lower, upper])


def is_in(left: Operand, values: tuple[Any, ...] | IntegerSet) -> Predicate:
    """``left IN (values)``."""
    if isinstance(left, LiteralOperand):
        return Constant(listed(left.value, values))
    if isinstance(left, BooleanOperand):
        raise NotJudgedError("no column is compared with a literal")
    return In(left, values)


def row_in(terms: Sequence[Operand], rows: Sequence[Sequence[Operand]]) -> Predicate:
    """``(a, b) IN ((1, 'x'), …)``; NULL equals NULL inside rows."""
    if any(len(row) != len(terms) for row in rows):
        raise NotJudgedError("a list of other than rows of literals")
    values = [[literal_of(one) for one in row] for row in rows]
    # The list has one type, so values of several types would be cast, and decimals
    # of several types rounded.
    for column in zip(*values, strict=True):
        types = {type(value) for value in column} - {type(None)}
        if len(types) > 1 or not within_38_digits(column):
            raise NotJudgedError("the list makes Spark cast")
    columns = [t for t in terms if not isinstance(t, LiteralOperand | BooleanOperand)]
    if len(columns) < len(terms):
        raise NotJudgedError("no column is compared with a literal")
    return disjunction(
        [
            conjunction([_same(c, v) for c, v in zip(columns, row, strict=True)])
            for row in values
        ]
    )


def literal_of(operand: Operand) -> Literal:
    """The value of a literal of any type."""
    match operand:
        case LiteralOperand(value) | Call("cast", ((int() | float()) as value, str())):
            return value
    raise NotJudgedError("a list of other than rows of literals")


def _same(column: Term, value: Literal) -> Predicate:
    """``column <=> value`` of two rows, which Spark casts to one type."""
    if isinstance(value, str):
        # A text is cast to the column's type by ``=``, and by a list perhaps the
        # column to text.
        return conjunction([In(column, (value,)), IsNull(column, negated=True)])
    return Comparison(column, Operator.NULL_SAFE_EQ, value)


def like(left: Operand, pattern: Operand, escape: Operand = _BACKSLASH) -> Predicate:
    """``left LIKE pattern ESCAPE escape``.

    Raises:
        PredicateError: the escape is no character.
    """
    match left, pattern, escape:
        case (
            Reference() | Call() | Case(),
            LiteralOperand(str()) | Call(),
            LiteralOperand(str(character)),
        ) if is_constant(pattern):
            return Like(left, constant(pattern), character)
    raise NotJudgedError("LIKE of anything but a column and a string")


def ilike(left: Operand, pattern: Operand) -> Predicate:
    """Spark's own rewrite: LIKE, with both sides in lower case."""
    match pattern:
        case LiteralOperand(str(text)) if text.isascii():
            return Like(Call("lower", (argument(left),)), text.lower())
    raise NotJudgedError("ILIKE, which ignores case")
