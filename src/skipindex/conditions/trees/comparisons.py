"""Comparisons and choices of operands, as predicates with Spark's meaning.

A comparison of two columns, and one for which Spark casts, is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from skipindex.conditions.functions.decimals import within_38_digits
from skipindex.conditions.trees.operands import (
    BooleanOperand,
    LiteralOperand,
    Operand,
    argument,
    constant,
    is_constant,
    require_small,
)
from skipindex.expressions import (
    MIRRORED,
    NULL_SAFE,
    Call,
    Case,
    ColumnComparison,
    Comparison,
    Constant,
    IsNull,
    Literal,
    Operator,
    Predicate,
    Reference,
    Unsupported,
    conjunction,
    disjunction,
    literal_sql,
    push_not,
)
from skipindex.expressions.domain import float_key
from skipindex.expressions.not_judged import TWO_COLUMNS, NotJudgedError
from skipindex.expressions.truth import is_false, is_not_true, is_true, is_unknown

OPERATORS: Final = {
    **{operator.value: operator for operator in Operator},
    "==": Operator.EQ,
    "<>": Operator.NE,
    "!>": Operator.LE,
    "!<": Operator.GE,
}

_FOLDED: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: eq,
    Operator.NULL_SAFE_EQ: eq,
    Operator.NE: ne,
    Operator.NULL_SAFE_NE: ne,
    Operator.LT: lt,
    Operator.LE: le,
    Operator.GT: gt,
    Operator.GE: ge,
}


def compare(left: Operand, operator: Operator, right: Operand) -> Predicate:
    """``left operator right``."""
    match left, right:
        case (Call("interval"), _) | (_, Call("interval")):
            raise NotJudgedError("an interval")
        case LiteralOperand(), LiteralOperand():
            return Constant(compared(left.value, operator, right.value))
        case BooleanOperand(tree), LiteralOperand(bool() | None as value):
            return _compare_truth(tree, operator, value)
        case LiteralOperand(bool() | None as value), BooleanOperand(tree):
            return _compare_truth(tree, MIRRORED.get(operator, operator), value)
        case (BooleanOperand(tree), BooleanOperand(Constant(value))) | (
            BooleanOperand(Constant(value)),
            BooleanOperand(tree),
        ) if operator in {Operator.EQ, Operator.NE, Operator.NULL_SAFE_EQ}:
            return _compare_truth(tree, operator, value)
        case (BooleanOperand(), _) | (_, BooleanOperand()):
            raise NotJudgedError("two conditions are compared")
        case Reference() | Call() | Case(), _ if is_constant(right):
            return Comparison(left, operator, constant(right))
        case _, Reference() | Call() | Case() if is_constant(left):
            mirrored = MIRRORED.get(operator, operator)
            return Comparison(right, mirrored, constant(left))
        case (
            Reference() | Call("cast", (Reference(), _)),
            Reference() | Call("cast", (Reference(), _)),
        ):
            return ColumnComparison(left, operator, right)
        case _:
            raise NotJudgedError(TWO_COLUMNS)


def _compare_truth(
    tree: Predicate,
    operator: Operator,
    value: bool | None,  # noqa: FBT001 (a literal of the user)
) -> Predicate:
    match operator, value:
        case Operator.NULL_SAFE_EQ, None:
            return is_unknown(tree)
        case Operator.NULL_SAFE_EQ, _:
            return is_true(tree) if value else is_false(tree)
        case _, None:
            return Constant(None)
        case Operator.EQ | Operator.NE, _:
            return push_not(tree, negate=value != (operator is Operator.EQ))
        case _:
            raise NotJudgedError("conditions are ordered")


def compare_or_keep(left: Operand, operator: Operator, right: Operand) -> Predicate:
    """``left operator right``, ``Unsupported`` if it is not judged.

    For one side of a BETWEEN, whose other side may still be judged.
    """
    try:
        return compare(left, operator, right)
    except NotJudgedError as not_judged:
        text = f"{operand_sql(left)} {operator.value} {operand_sql(right)}"
        return Unsupported(text, str(not_judged))


def operand_sql(operand: Operand) -> str:
    """The operand in SQL, for people."""
    match operand:
        case LiteralOperand(value):
            return literal_sql(value)
        case BooleanOperand(tree):
            return f"({tree})"
        case _:
            return str(operand)


def compared(left: Literal, operator: Operator, right: Literal) -> bool | None:
    """The comparison of two literals, of types that no setting of Spark touches."""
    if left is None or right is None:
        if operator in NULL_SAFE:
            return (left is right) == (operator is Operator.NULL_SAFE_EQ)
        return None
    match left, right:
        case (date(), date()) if not (
            isinstance(left, datetime) or isinstance(right, datetime)
        ):
            keys: tuple[Any, Any] = left, right
        case (bool(), bool()) | (bytes(), bytes()):
            keys = left, right
        case (str(), str()):
            keys = left.encode(), right.encode()
        case (bool(), _) | (_, bool()):
            raise NotJudgedError("no column is compared with a literal")
        case (int() | Decimal(), int() | Decimal()) if within_38_digits([left, right]):
            keys = left, right
        case (float(), float() | int() | Decimal()) | (int() | Decimal(), float()):
            keys = _key(left), _key(right)
        case _:
            raise NotJudgedError("no column is compared with a literal")
    result: bool = _FOLDED[operator](*keys)
    return result


def _key(value: Literal) -> int:
    """A number as Spark orders doubles."""
    assert isinstance(value, int | float | Decimal)
    return float_key(float(value))


def listed(value: Literal, values: Sequence[Literal]) -> bool | None:
    """``value IN (values)``, of literals."""
    if value is None:
        return None
    if len({type(one) for one in [value, *values]} - {type(None)}) > 1:
        raise NotJudgedError("the list makes Spark cast")
    result = {compared(value, Operator.EQ, one) for one in values}
    return True if True in result else None if None in result else False


def truth(operand: Operand) -> Predicate:
    """The operand, where a condition is expected."""
    match operand:
        case LiteralOperand(bool() | None as value):
            return Constant(value)
        case LiteralOperand():
            raise NotJudgedError("a literal that is no condition")
        case BooleanOperand(tree):
            return tree
        case _:
            return Comparison(operand, Operator.EQ, value=True)


def is_null(operand: Operand) -> Predicate:
    """The operand is NULL."""
    match operand:
        case LiteralOperand(value):
            return Constant(value is None)
        case BooleanOperand(tree):
            return is_unknown(tree)
        case _:
            return IsNull(operand)


def is_known(operand: Operand) -> Predicate:
    """The operand is not NULL."""
    return push_not(is_null(operand), negate=True)


def choice(
    branches: list[tuple[Predicate, Operand]],
    otherwise: Operand,
    *,
    repeats: bool = False,
) -> Operand:
    """A CASE: a condition if one of its values is a condition, otherwise a term.

    ``repeats`` says that the conditions repeat what was written once.
    """
    values = [value for _, value in branches] + [otherwise]
    if any(isinstance(value, BooleanOperand) for value in values):
        require_small(Case(tuple((tree, None) for tree, _ in branches)))
        return BooleanOperand(require_small(_condition_of(branches, otherwise)))
    pairs = tuple((tree, argument(value)) for tree, value in branches)
    return require_small(Case(pairs, argument(otherwise)), repeats=repeats)


def _condition_of(
    branches: list[tuple[Predicate, Operand]], otherwise: Operand
) -> Predicate:
    """The first branch that is taken says what is TRUE, FALSE or UNKNOWN."""
    if not branches:
        return truth(otherwise)
    # In halves, so that no condition is repeated once for every other branch.
    middle = len(branches) // 2
    if not middle:
        ((tree, value),) = branches
        mine = conjunction([is_true(tree), truth(value)])
        return disjunction([mine, conjunction([is_not_true(tree), truth(otherwise)])])
    before = [is_not_true(tree) for tree, _ in branches[:middle]]
    mine = _condition_of(branches[:middle], LiteralOperand(value=False))
    later = _condition_of(branches[middle:], otherwise)
    return disjunction([mine, conjunction([*before, later])])
