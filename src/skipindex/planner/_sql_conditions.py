"""The conditions of Spark SQL that an index can judge, one at a time."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from skipindex.errors import PredicateError
from skipindex.planner._cuts import within_38_digits
from skipindex.planner._sql_literals import NotJudgedError
from skipindex.planner._sql_operands import (
    OPERATORS,
    Known,
    Operand,
    OperandReader,
    reason_at,
)
from skipindex.predicate import (
    MIRRORED,
    Column,
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
    literal_sql,
    push_not,
)

_NAMED: Final = {
    *("STARTSWITH", "ENDSWITH", "CONTAINS"),
    *("ISNULL", "ISNOTNULL", "ISNAN"),
}


class ConditionReader(OperandReader):
    """Reads ``a = 1``, ``a BETWEEN 1 AND 2`` and the other leaves of the tree."""

    def condition(self) -> Predicate:
        """The condition that begins here, as far as it can be judged.

        Raises:
            NotJudgedError: it is one for Spark alone.
            PredicateError: it is none.
        """
        if self.next.key in _NAMED and self.after.key == "(":
            return self._named()
        left = self.operand()
        if self.next.key in OPERATORS:
            operator = OPERATORS[self.next.key]
            self.at += 1
            return _compare(left, operator, self.operand())
        if self.take("IS"):
            return self._is(left)
        negated = self.take("NOT")
        if self.take("BETWEEN"):
            tree = self._between(left)
        elif self.take("IN"):
            tree = self._in(left)
        elif self.take("LIKE"):
            tree = self._like(left)
        elif self.next.key in {"RLIKE", "REGEXP", "ILIKE"}:
            raise NotJudgedError(reason_at(self.next))
        elif negated:
            raise self.expected("BETWEEN, IN or LIKE")
        else:
            return _truth(left)
        return push_not(tree, negate=negated)

    def _is(self, left: Operand) -> Predicate:
        negated = self.take("NOT")
        word = self.next.key
        if word not in {"NULL", "UNKNOWN", "TRUE", "FALSE", "DISTINCT"}:
            raise self.expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        self.at += 1
        if word in {"NULL", "UNKNOWN"}:
            if isinstance(left, Known):
                return Constant((left.value is None) != negated)
            return IsNull(left, negated)
        if word in {"TRUE", "FALSE"}:
            tree = _compare(left, Operator.NULL_SAFE_EQ, Known(word == "TRUE"))
            return push_not(tree, negate=negated)
        if not self.take("FROM"):
            raise self.expected("FROM")
        tree = _compare(left, Operator.NULL_SAFE_EQ, self.operand())
        return push_not(tree, negate=not negated)

    def _between(self, value: Operand) -> Predicate:
        low = self.operand()
        if not self.take("AND"):
            raise NotJudgedError(reason_at(self.next))
        high = self.operand()
        lower = _compare_or_keep(value, Operator.GE, low)
        upper = _compare_or_keep(value, Operator.LE, high)
        if isinstance(lower, Unsupported) and isinstance(upper, Unsupported):
            raise NotJudgedError(upper.reason)
        return conjunction([lower, upper])

    def _in(self, left: Operand) -> Predicate:
        if self.next.key != "(":
            raise self.expected("'('")
        end = self.closing[self.at]
        values: list[Literal] = []
        while self.at < end:
            self.at += 1
            operand = self.operand()
            if not isinstance(operand, Known):
                raise NotJudgedError("a column in a list")
            if self.next.key != "," and self.at != end:
                raise NotJudgedError(reason_at(self.next))
            values.append(operand.value)
        self.at = end + 1
        if not isinstance(left, Reference):
            raise NotJudgedError("no column is compared with a literal")
        return In(left, tuple(values))

    def _like(self, left: Operand) -> Predicate:
        token = self.next
        pattern, escape = self.operand(), Known("\\")
        if self.take("ESCAPE"):
            given = self.operand()
            if not isinstance(given, Known):
                raise self.error(token, "expected a string after ESCAPE")
            escape = given
        match left, pattern, escape.value:
            case Reference(), Known(str(text)), str(character):
                try:
                    return Like(left, text, character)
                except PredicateError as problem:
                    raise self.error(token, str(problem)) from None
        raise NotJudgedError("LIKE of anything but a column and a string")

    def _named(self) -> Predicate:
        """``startswith(column, 'p')`` and the other functions that say a leaf."""
        name, end = self.next, self.closing[self.at + 1]
        self.at += 2
        operands = [self.operand()]
        while self.take(","):
            operands.append(self.operand())
        if self.at != end:
            raise NotJudgedError(reason_at(self.next))
        self.at += 1
        match name.key, operands:
            case "STARTSWITH", [Reference() as column, Known(str(text))]:
                return Column(column).startswith(text)
            case "ENDSWITH", [Reference() as column, Known(str(text))]:
                return Column(column).endswith(text)
            case "CONTAINS", [Reference() as column, Known(str(text))]:
                return Column(column).contains(text)
            case "ISNULL", [Reference() as column]:
                return IsNull(column)
            case "ISNOTNULL", [Reference() as column]:
                return IsNull(column, negated=True)
            case "ISNAN", [Reference() as column]:
                return Comparison(column, Operator.NULL_SAFE_EQ, float("nan"))
            case _:
                raise NotJudgedError(f"the function {name.text}")


def _compare(left: Operand, operator: Operator, right: Operand) -> Predicate:
    match left, right:
        case Reference(), Known(value):
            return Comparison(left, operator, value)
        case Known(value), Reference():
            return Comparison(right, MIRRORED.get(operator, operator), value)
        case Known(), Known():
            return Constant(_fold(left.value, operator, right.value))
        case _:
            raise NotJudgedError("two columns are compared")


def _compare_or_keep(left: Operand, operator: Operator, right: Operand) -> Predicate:
    """One side of a BETWEEN, whose other side may still be judged."""
    try:
        return _compare(left, operator, right)
    except NotJudgedError as not_judged:
        text = f"{_sql(left)} {operator.value} {_sql(right)}"
        return Unsupported(text, str(not_judged))


def _sql(operand: Operand) -> str:
    match operand:
        case Known(value):
            return literal_sql(value)
        case _:
            return str(operand)


def _fold(left: Literal, operator: Operator, right: Literal) -> bool | None:
    """The comparison of two literals, of types that no setting of Spark touches."""
    if left is None or right is None:
        if operator is Operator.NULL_SAFE_EQ:
            return left is right
        return None
    match left, right:
        case (bool(), bool()) | (int() | Decimal(), int() | Decimal()) if isinstance(
            left, bool
        ) == isinstance(right, bool) and within_38_digits([left, right]):
            less, equal = left < right, left == right
        case _:
            raise NotJudgedError("no column is compared with a literal")
    match operator:
        case Operator.EQ | Operator.NULL_SAFE_EQ:
            return equal
        case Operator.NE:
            return not equal
        case Operator.LT:
            return less
        case Operator.LE:
            return less or equal
        case Operator.GT:
            return not (less or equal)
        case Operator.GE:
            return not less


def _truth(operand: Operand) -> Predicate:
    match operand:
        case Known(bool() | None as value):
            return Constant(value)
        case Known():
            raise NotJudgedError("a literal that is no condition")
        case _:
            return Comparison(operand, Operator.EQ, value=True)
