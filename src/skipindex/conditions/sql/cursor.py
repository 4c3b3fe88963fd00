"""A position in the tokens of a condition, and what a few tokens there say.

The cursor itself reads columns, literals and intervals: none of them holds another
operand.  Every other form is a function of a cursor.  ``parser`` stands above all of
them, and gives the cursor the two forms that may stand inside any other one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.sql.literals import (
    SUFFIX_TYPES,
    has_doubled_quote,
    literal,
    number,
    string,
)
from skipindex.conditions.sql.tokens import (
    Kind,
    Token,
    error_at,
    listed,
    match_brackets,
    tokenize,
)
from skipindex.conditions.trees.operands import (
    LiteralOperand,
    Operand,
    operand_of,
    typed,
)
from skipindex.conditions.trees.times import (
    INTERVAL_UNITS,
    interval_between,
    interval_of,
    interval_of_text,
)
from skipindex.errors import PredicateError
from skipindex.expressions import Call, Literal, Predicate, Reference
from skipindex.expressions.not_judged import NotJudgedError

_TYPED: Final = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"}
_SAFE_DIGITS: Final = 10
"""Fewer digits are an int."""


class Cursor:
    """A position in the tokens of one text, which every reader moves on.

    Args:
        text: the whole condition.
        operand: reads the operand that comes next, inside another form.
        condition: the same of a condition, where a value may stand.

    Attributes:
        closing: the index of the closing token for that of each opening one.
        at: the index of the token that was not read yet.
        depth: how many operands are open, one inside the other.
        nested: how many conditions are open that stand as values.
        budget: of reading the operands of one condition, some of them again.
        spark_3: whether strings are read as Spark 3 reads them.
        saw_doubled_quote: whether Spark 3 and Spark 4 read a string differently.
    """

    def __init__(
        self,
        text: str,
        operand: Callable[[Cursor], Operand],
        condition: Callable[[Cursor], Predicate],
    ) -> None:
        self._operand, self._condition = operand, condition
        self.text = text
        self.tokens = tokenize(text, lists=True)
        self.closing = match_brackets(self.tokens, text)
        self.at = 0
        self.depth = 0
        self.nested = 0
        self.budget = PlanBudget(0)
        self.spark_3 = False
        self.saw_doubled_quote = False

    @property
    def next(self) -> Token:
        """The token that was not read yet."""
        return self.tokens[self.at]

    @property
    def after(self) -> Token:
        """The token after ``next``; past the end, the END token."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def take(self, key: str) -> bool:
        """Step over the next token if it is ``key``."""
        result = self.next.key == key
        self.at += result
        return result

    def step(self) -> str:
        """Step over the next token; its key."""
        self.at += 1
        return self.tokens[self.at - 1].key

    def written(self, start: int, end: int) -> str:
        """The text of the tokens ``start .. end - 1``."""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]

    def error(self, token: Token, problem: str) -> PredicateError:
        """The error that says where ``token`` is."""
        return error_at(self.text, token.start, problem)

    def expected(self, what: str) -> PredicateError:
        """The error that ``what`` does not come next."""
        result = repr(self.next.text) if self.next.text else "the end"
        return self.error(self.next, f"expected {what}, found {result}")

    def operand(self) -> Operand:
        """The operand that comes next."""
        return self._operand(self)

    def condition(self) -> Predicate:
        """The condition that comes next, up to what ends it as a value."""
        return self._condition(self)

    def plain_literal(self) -> Operand | None:
        """A number or a string, if it alone is before a comma or parenthesis."""
        token, after = self.tokens[self.at : self.at + 2]
        if after.key not in {",", ")"}:
            return None
        if token.kind is Kind.NUMBER:
            if _is_int(token.text):
                self.at += 1
                return LiteralOperand(int(token.text))
            return self.number(negative=False)
        return self.strings() if token.kind is Kind.STRING else None

    def list_token(self) -> tuple[Literal, ...] | None:
        """The literals of a list that is one token; None, if the next one is none."""
        token = self.next
        if token.kind is not Kind.LIST:
            return None
        self.at += 1
        values = listed(token)
        if not token.key:
            return values
        try:
            return tuple(literal(token.key, str(text)) for text in values)
        except ValueError as problem:
            raise self.error(token, str(problem)) from None

    def column(self) -> Reference:
        """A column's name, with the fields of a struct after dots."""
        parts = [self._name()]
        while self.next.key == "." and self.after.kind in {Kind.WORD, Kind.QUOTED}:
            self.at += 1
            parts.append(self._name())
        return Reference(tuple(parts))

    def _name(self) -> str:
        token = self.next
        self.at += 1
        if token.kind is Kind.WORD:
            return token.text
        if token.text == "``":
            raise self.error(token, "expected a name between the backticks")
        return token.text[1:-1].replace("``", "`")

    def number(self, *, negative: bool) -> Operand:
        """A number; ``negative`` if its sign was read before."""
        token = self.next
        self.at += 1
        kind = SUFFIX_TYPES.get(token.text[-1].upper(), "")
        return self._literal(token, lambda: number(token.text, negative=negative), kind)

    def typed_literal(self, token: Token) -> Operand:
        """``DATE '2024-01-01'`` and the like, where ``token`` is the type."""
        if token.key not in _TYPED:
            raise NotJudgedError(f"a literal of type {token.text}")
        text = self._string(self.after)
        self.at += 2
        return self._literal(token, lambda: literal(token.key, text), token.key)

    def _literal(
        self, token: Token, read: Callable[[], Literal], type_name: str
    ) -> Operand:
        try:
            return operand_of(typed(read(), type_name))
        except ValueError as problem:
            raise self.error(token, str(problem)) from None

    def strings(self) -> LiteralOperand:
        """Strings in a row are one."""
        pieces: list[str] = []
        while self.next.kind is Kind.STRING:
            pieces.append(self._string(self.next))
            self.at += 1
        return LiteralOperand("".join(pieces))

    def _string(self, token: Token) -> str:
        self.saw_doubled_quote |= has_doubled_quote(token.text)
        return string(token.text, doubled=not self.spark_3)

    def interval(self) -> Call:
        """``INTERVAL`` in each of its forms, with units of one kind."""
        self.at += 1
        parts: list[tuple[str, str]] = []
        while self.next.kind is not Kind.END:
            start = self.at
            sign = self.step() if self.next.key in {"-", "+"} else ""
            text = self.next.text
            if self.next.kind is Kind.STRING:
                text = self._string(self.next).strip()
            elif self.next.kind is not Kind.NUMBER:
                self.at = start
                break
            unit = self.after.key.removesuffix("S")
            if unit not in INTERVAL_UNITS:
                if parts or sign:
                    self.at = start
                    break
                self.at += 1
                return self._ended(interval_of_text(text))
            self.at += 2
            if not parts and self.take("TO"):
                last, self.at = self.next.key, self.at + 1
                return self._ended(interval_between(text, unit, last, sign))
            if sign == "-":
                text = text[1:] if text[:1] == "-" else f"-{text}"
            parts.append((text, unit))
        return self._ended(interval_of(parts))

    def _ended(self, interval: Call) -> Call:
        if self.next.kind in {Kind.NUMBER, Kind.STRING} or self.next.key == "TO":
            raise NotJudgedError("an interval")
        return interval


def _is_int(text: str) -> bool:
    """Whether a number, as it is written, is certainly an int."""
    return text.isdecimal() and len(text) < _SAFE_DIGITS
