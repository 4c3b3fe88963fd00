"""Operands of a condition: columns, literals, and what arithmetic makes of them.

Read from left to right by the precedence of Spark's grammar.
"""

from __future__ import annotations

from typing import Final

from skipindex.expressions import Predicate
from skipindex.expressions.not_judged import SESSION_VALUES, NotJudgedError, reason_of
from skipindex.planner.sql.calls import CallReader
from skipindex.planner.sql.comparisons import OPERATORS
from skipindex.planner.sql.cursor import MAX_DEPTH
from skipindex.planner.sql.operands import Condition, Known, Operand
from skipindex.planner.sql.tokens import Kind, Token

_IN_CONDITIONS: Final = {"AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE"}
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_BETWEEN_VALUES: Final = {
    *("AND", "OR", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN"),
    *("ESCAPE", "THEN", "ELSE", "WHEN", "AS"),
}
_BEFORE_VALUES: Final = {"(", "-", "+", "~", "!", "*", "?", ":", "[", "{"}
_OPENING_WORDS: Final = {"NOT", "EXISTS", "SELECT", "ALL", "ANY", "SOME"}
_NAMED: Final = {
    *("STARTSWITH", "ENDSWITH", "CONTAINS"),
    *("ISNULL", "ISNOTNULL", "ISNAN"),
}
"""Functions that are conditions."""
_SUMS: Final = {"+", "-", "||"}
_PRODUCTS: Final = {"*", "/", "%", "DIV"}


class ExpressionReader(CallReader):
    """Reads the operand that comes next, however deep it is nested."""

    def operand(self) -> Operand:
        """The column, the literal or the function of them that comes next.

        Raises:
            NotJudgedError: it is something else, or a part of something larger.
            PredicateError: no value can begin like this.
        """
        if self.depth >= MAX_DEPTH:
            raise NotJudgedError("the expression is too deep")
        self.depth += 1
        try:
            left = self._product()
            while self.next.key in _SUMS:
                sign = self._step()
                left = self.called(sign, [left, self._product()])
        finally:
            self.depth -= 1
        return left

    def _product(self) -> Operand:
        left = self._factor()
        while self.next.key in _PRODUCTS:
            sign = self._step().lower()
            left = self.called(sign, [left, self._factor()])
        return left

    def _factor(self) -> Operand:
        signs = []
        while self.next.key in {"-", "+"} and not self._is_signed_number():
            signs.append("negative" if self._step() == "-" else "positive")
        operand = self._primary()
        while self.next.key == "::":
            self.at += 1
            operand = self._cast(operand)
        for name in reversed(signs):
            operand = self.called(name, [operand])
        return operand

    def _is_signed_number(self) -> bool:
        """Whether a sign and a number are one literal; ``::`` binds more tightly."""
        behind = self.tokens[min(self.at + 2, len(self.tokens) - 1)]
        return self.after.kind is Kind.NUMBER and behind.key != "::"

    def _primary(self) -> Operand:
        token = self.next
        match token.kind:
            case Kind.NUMBER:
                return self._number(negative=False)
            case Kind.STRING:
                return self._strings()
            case Kind.QUOTED:
                return self._column()
            case Kind.WORD:
                return self._after_word(token)
            case Kind.SYMBOL if token.key == "(":
                return self._in_parentheses()
            case Kind.SYMBOL if token.key in {"-", "+"}:
                self.at += 1
                return self._number(negative=token.key == "-")
            case Kind.SYMBOL if token.key in _BEFORE_VALUES:
                raise NotJudgedError(reason_of(token.key))
            case _:
                raise self.expected("a value")

    def _after_word(self, token: Token) -> Operand:
        before_operator = self.after.key in OPERATORS
        if token.key in _BETWEEN_VALUES and not (
            before_operator or self.after.key == "("
        ):
            raise self.expected("a value")
        if token.key in SESSION_VALUES or (
            token.key in _OPENING_WORDS and not before_operator
        ):
            raise NotJudgedError(reason_of(token.key))
        if token.key == "CASE" and not before_operator:
            return self._case()
        if token.key == "INTERVAL" and not before_operator:
            return self._interval()
        if self.after.kind is Kind.STRING:
            return self._typed(token)
        if self.after.key == "(":
            if token.key in _NAMED:
                return Condition(self._named())
            return self._function(token)
        if token.key in _CONSTANTS:
            self.at += 1
            return Known(_CONSTANTS[token.key])
        return self._column()

    def _in_parentheses(self) -> Operand:
        start, end = self.at, self.closing[self.at]
        self.at += 1
        if self._holds_condition(start, end):
            operand: Operand = Condition(self.condition_inside())
        else:
            operand = self.operand()
        if self.at != end:
            raise NotJudgedError(reason_of(self.next.key))
        self.at += 1
        return operand

    def _holds_condition(self, start: int, end: int) -> bool:
        """Whether these parentheses hold one condition, and no list or query."""
        i, found, cases = start + 1, False, 0
        while i < end:
            key = self.tokens[i].key
            if key in {",", "SELECT", "->"}:
                return False
            cases += (key == "CASE") - (key == "END")
            if not cases:
                found |= key in OPERATORS or key in _IN_CONDITIONS
            i = self.closing.get(i, i) + 1
        return found

    def _case(self) -> Operand:
        """``CASE WHEN …``."""
        raise NotImplementedError

    def _named(self) -> Predicate:
        """``startswith(column, 'p')`` and its like."""
        raise NotImplementedError
