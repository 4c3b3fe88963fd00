"""Columns and literals of a Spark SQL condition, read from left to right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from skipindex.errors import PredicateError
from skipindex.planner._sql_literals import (
    NotJudgedError,
    cast,
    has_doubled_quote,
    number,
    string,
    typed,
)
from skipindex.planner._sql_tokens import (
    Kind,
    Token,
    error_at,
    match_brackets,
    tokenize,
)
from skipindex.predicate import Literal, Operator, Reference


@dataclass(frozen=True, slots=True)
class Known:
    """A literal, as opposed to a column."""

    value: Literal


Operand: TypeAlias = Reference | Known

OPERATORS: Final = {
    **{operator.value: operator for operator in Operator},
    "==": Operator.EQ,
    "<>": Operator.NE,
    "!>": Operator.LE,
    "!<": Operator.GE,
}
MAX_DEPTH: Final = 100
"""Of parentheses and NOTs that are looked into; Python's own stack has an end."""

_TYPED: Final = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"}
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_CAST_FUNCTIONS: Final = {
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP"),
}
_BETWEEN_VALUES: Final = {
    *("AND", "OR", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN"),
    *("ESCAPE", "THEN", "ELSE", "WHEN", "AS"),
}
_BEFORE_VALUES: Final = {"(", "-", "+", "~", "!", "*", "?", ":", "[", "{"}
_SESSION: Final = {
    *("CURRENT_DATE", "CURRENT_PATH", "CURRENT_TIME", "CURRENT_TIMESTAMP"),
    *("CURRENT_USER", "LOCALTIME", "SESSION_USER"),
}
"""Functions that need no parentheses.  USER is one too, but more often a column."""
_OPENING_WORDS: Final = {
    *("CASE", "NOT", "EXISTS", "INTERVAL", "SELECT", "ALL", "ANY", "SOME"),
}
_REASONS: Final = {
    **dict.fromkeys(_SESSION, "a value of the session"),
    **dict.fromkeys("+-*/%&|^~", "arithmetic"),
    **dict.fromkeys(("||", "<<", ">>", ">>>", "DIV"), "arithmetic"),
    **dict.fromkeys(("ALL", "ANY", "SOME"), "LIKE with several patterns"),
    **dict.fromkeys("?:", "a parameter"),
    **dict.fromkeys(("RLIKE", "REGEXP"), "a regular expression"),
    "ILIKE": "ILIKE, which ignores case",
    "[": "an element of an array or a map",
    "::": "a cast of the column",
    "COLLATE": "a collation",
    "CASE": "a CASE expression",
    "EXISTS": "EXISTS",
    "INTERVAL": "an interval",
    "SELECT": "a subquery",
}


def reason_at(token: Token) -> str:
    """Why a condition with ``token`` at this place is not judged."""
    return _REASONS.get(token.key, "no column is compared with a literal")


class OperandReader:
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

    def error(self, token: Token, problem: str) -> PredicateError:
        """The error that says where ``token`` is."""
        return error_at(self.text, token.start, problem)

    def expected(self, what: str) -> PredicateError:
        """The error that ``what`` does not come next."""
        found = repr(self.next.text) if self.next.text else "the end"
        return self.error(self.next, f"expected {what}, found {found}")

    def operand(self, depth: int = 0) -> Operand:
        """The column or the literal that comes next.

        Raises:
            NotJudgedError: it is something else, or a part of something larger.
            PredicateError: no value can begin like this.
        """
        operand = self._operand_before_cast(depth)
        while self.next.key == "::":
            self.at += 1
            operand = self._cast(operand)
        return operand

    def _operand_before_cast(self, depth: int) -> Operand:
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
            case Kind.SYMBOL if token.key == "(" and depth < MAX_DEPTH:
                return self._in_parentheses(depth)
            case Kind.SYMBOL if token.key in {"-", "+"}:
                return self._signed(token)
            case Kind.SYMBOL if token.key in _BEFORE_VALUES:
                raise NotJudgedError(reason_at(token))
            case _:
                raise self.expected("a value")

    def _in_parentheses(self, depth: int) -> Operand:
        end = self.closing[self.at]
        self.at += 1
        operand = self.operand(depth + 1)
        if self.at != end:
            raise NotJudgedError(reason_at(self.next))
        self.at += 1
        return operand

    def _signed(self, sign: Token) -> Known:
        self.at += 1
        if self.next.kind is not Kind.NUMBER or self.after.key == "::":
            raise NotJudgedError("arithmetic")  # :: binds more tightly than the sign
        return self._number(negative=sign.key == "-")

    def _after_word(self, token: Token) -> Operand:
        before_operator = self.after.key in OPERATORS
        if token.key in _BETWEEN_VALUES and not (
            before_operator or self.after.key == "("
        ):
            raise self.expected("a value")
        if token.key in _SESSION or (
            token.key in _OPENING_WORDS and not before_operator
        ):
            raise NotJudgedError(reason_at(token))
        if self.after.kind is Kind.STRING:
            return self._typed(token)
        if self.after.key == "(":
            return self._function(token)
        if token.key in _CONSTANTS:
            self.at += 1
            return Known(_CONSTANTS[token.key])
        return self._column()

    def _typed(self, token: Token) -> Known:
        if token.key not in _TYPED:
            raise NotJudgedError(f"a literal of type {token.text}")
        text = self._string(self.after)
        self.at += 2
        return self._value(token, lambda: typed(token.key, text))

    def _function(self, token: Token) -> Known:
        end = self.closing[self.at + 1]
        if token.key in {"CAST", "TRY_CAST"}:
            self.at += 2
            operand = self.operand()
            if not self.take("AS"):
                raise NotJudgedError("a cast")
            known = self._cast(operand)
        elif token.key in _CAST_FUNCTIONS:
            self.at += 2
            known = self._cast(self.operand(), token.key)
        else:
            raise NotJudgedError(f"the function {token.text}")
        if self.at != end:
            raise NotJudgedError("a cast")
        self.at += 1
        return known

    def _cast(self, operand: Operand, type_name: str = "") -> Known:
        """``operand`` as the type that comes next, or as ``type_name``."""
        parameters: list[int] = []
        if not type_name:
            type_name = self.next.key
            self.at += 1
            if self.next.key == "(":
                end = self.closing[self.at]
                inside = self.tokens[self.at + 1 : end]
                parameters = [int(t.text) for t in inside if t.text.isdecimal()]
                self.at = end + 1
        if not isinstance(operand, Known):
            raise NotJudgedError("a cast of the column")
        return Known(cast(operand.value, type_name, tuple(parameters)))

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
        return self._value(token, lambda: number(token.text, negative=negative))

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
