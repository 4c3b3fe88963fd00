"""A place in the tokens of a condition, and what is read of a few tokens there.

Columns, literals and intervals: none of them holds another operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from skipindex.errors import PredicateError
from skipindex.expressions import Call, Literal, Reference
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.sql.literals import has_doubled_quote, number, string, typed
from skipindex.planner.sql.operands import SUFFIX_TYPES, TOLD_TYPES, Known
from skipindex.planner.sql.tokens import (
    Kind,
    Token,
    error_at,
    match_brackets,
    tokenize,
)

MAX_DEPTH: Final = 30
"""Of values in values that are read; Python's own stack has an end."""
_TYPED: Final = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"}
_UNITS: Final = {"YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}
_SAFE_DIGITS: Final = 10
"""Fewer digits are an int."""


class TokenReader:
    """A place in the tokens of one text, which ``take`` and the readers move.

    Args:
        text: the whole condition.

    Raises:
        PredicateError: a quote, a bracket or a comment is not closed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.closing = match_brackets(self.tokens, text)
        self.at = 0
        self.depth = 0
        self.nested = 0
        self.retries = 0
        self.spark_3 = False
        self.saw_doubled_quote = False

    @property
    def next(self) -> Token:
        """The token that was not read yet."""
        return self.tokens[self.at]

    @property
    def after(self) -> Token:
        """The one behind it; the end comes again and again."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def take(self, key: str) -> bool:
        """Step over the next token if it is ``key``."""
        found = self.next.key == key
        self.at += found
        return found

    def _step(self) -> str:
        """The next token's key, which is stepped over."""
        self.at += 1
        return self.tokens[self.at - 1].key

    def error(self, token: Token, problem: str) -> PredicateError:
        """The error that says where ``token`` is."""
        return error_at(self.text, token.start, problem)

    def expected(self, what: str) -> PredicateError:
        """The error that ``what`` does not come next."""
        found = repr(self.next.text) if self.next.text else "the end"
        return self.error(self.next, f"expected {what}, found {found}")

    def plain_literal(self) -> Known | None:
        """A number or a string, if it alone stands before a comma or parenthesis."""
        token, after = self.tokens[self.at : self.at + 2]
        if after.key not in {",", ")"}:
            return None
        if token.kind is Kind.NUMBER:
            if token.text.isdecimal() and len(token.text) < _SAFE_DIGITS:
                self.at += 1
                return Known(int(token.text))
            return self._number(negative=False)
        return self._strings() if token.kind is Kind.STRING else None

    def _column(self) -> Reference:
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

    def _number(self, *, negative: bool) -> Known:
        token = self.next
        self.at += 1
        known = self._value(token, lambda: number(token.text, negative=negative))
        return Known(known.value, SUFFIX_TYPES.get(token.text[-1].upper(), ""))

    def _typed(self, token: Token) -> Known:
        if token.key not in _TYPED:
            raise NotJudgedError(f"a literal of type {token.text}")
        text = self._string(self.after)
        self.at += 2
        known = self._value(token, lambda: typed(token.key, text))
        return Known(known.value, token.key if token.key in TOLD_TYPES else "")

    def _value(self, token: Token, read: Callable[[], Literal]) -> Known:
        try:
            return Known(read())
        except ValueError as problem:
            raise self.error(token, str(problem)) from None

    def _strings(self) -> Known:
        """Strings in a row are one."""
        pieces: list[str] = []
        while self.next.kind is Kind.STRING:
            pieces.append(self._string(self.next))
            self.at += 1
        return Known("".join(pieces))

    def _string(self, token: Token) -> str:
        self.saw_doubled_quote |= has_doubled_quote(token.text)
        return string(token.text, doubled=not self.spark_3)

    def _interval(self) -> Call:
        """``INTERVAL 1 DAY`` or ``INTERVAL '1' DAY``: one whole number, one unit."""
        self.at += 1
        negative = self.take("-")
        token = self.next
        self.at += 1
        quoted = token.kind is Kind.STRING
        text = self._string(token).strip() if quoted else token.text
        unit = self.next.key.removesuffix("S")
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", text) or unit not in _UNITS:
            raise NotJudgedError("an interval")
        self.at += 1
        if self.next.kind in {Kind.NUMBER, Kind.STRING, Kind.WORD} and (
            self.next.key == "TO" or self.next.kind is not Kind.WORD
        ):
            raise NotJudgedError("an interval")
        number = -int(text) if negative else int(text)
        if unit == "WEEK":
            number, unit = 7 * number, "DAY"
        return Call("interval", (number, unit))
