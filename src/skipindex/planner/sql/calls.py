"""Calls of functions and casts in a condition, with operands as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from skipindex.errors import PredicateError
from skipindex.expressions import Call, Case, Literal, Predicate, Reference, Term
from skipindex.expressions.not_judged import NotJudgedError, reason_of
from skipindex.planner.functions.registry import FUNCTIONS
from skipindex.planner.sql.casts import cast
from skipindex.planner.sql.cursor import TokenReader
from skipindex.planner.sql.operands import (
    TOLD_TYPES,
    Condition,
    Known,
    Operand,
    argument,
    folded,
    small,
)
from skipindex.planner.sql.tokens import Token

_CHOICES: Final = {"IF", "IFF", "COALESCE", "NVL", "IFNULL", "NVL2", "NULLIF"}
_WORDS: Final = {
    *(("SUBSTRING", "FROM"), ("SUBSTRING", "FOR"), ("SUBSTR", "FROM")),
    *(("SUBSTR", "FOR"), ("POSITION", "IN")),
}
"""Functions, and the words that may stand between their arguments."""
_MADE: Final = {"TO_DATE", "GREATEST", "LEAST"}
_TRIMS: Final = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_EXTRACTED: Final = {"year", "quarter", "month", "day", "hour", "minute"}
_MAX_RETRIES: Final = 100
_CAST_FUNCTIONS: Final = {
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP"),
}
_CAST_TARGETS: Final = {
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT"),
    *("LONG", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
    *("TIMESTAMP_NTZ", "DECIMAL", "DEC", "NUMERIC"),
}
_WITH_UNIT: Final = {"DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF"}
"""Their first argument of three is the name of a unit, and no column."""


class CallReader(TokenReader):
    """Reads ``year(d)``, ``CAST(a AS INT)`` and their like.

    A function that is not known, or not with these arguments, is not judged.
    """

    def operand(self) -> Operand:
        """The operand that comes next."""
        raise NotImplementedError

    def chosen(self, name: str, operands: list[Operand]) -> Operand:
        """``IF``, ``COALESCE`` and their like."""
        raise NotImplementedError

    def condition_inside(self) -> Predicate:
        """The condition that comes next, up to what ends it inside of a value."""
        raise NotImplementedError

    def called(self, name: str, operands: Sequence[Operand]) -> Operand:
        """The function ``name`` of the operands, or its value if all are literals.

        Raises:
            NotJudgedError: that value is for Spark alone.
        """
        call = Call(name, tuple(map(argument, operands)))
        return small(call) if _has_column(call) else folded(call)

    def _function(self, token: Token) -> Operand:
        end = self.closing[self.at + 1]
        name = token.key
        if name in {"CAST", "TRY_CAST"}:
            self.at += 2
            operand = self.operand()
            if not self.take("AS"):
                raise NotJudgedError("a cast")
            if name == "TRY_CAST" and not isinstance(operand, Known):
                raise NotJudgedError("a cast of the column")
            found = self._cast(operand)
        elif name in _CAST_FUNCTIONS:
            self.at += 2
            found = self._cast(self.operand(), name)
        else:
            found = self._other_function(token, end)
        if self.at != end:
            raise NotJudgedError(f"the function {token.text}")
        self.at += 1
        return found

    def _other_function(self, token: Token, end: int) -> Operand:
        """Any but a cast, up to its closing parenthesis."""
        name = token.key
        if name == "EXTRACT":
            self.at += 2
            unit = self._step().lower()
            if not self.take("FROM") or unit not in _EXTRACTED:
                raise NotJudgedError(f"the function {token.text}")
            return self.called(unit, [self.operand()])
        if name == "TRIM" and self.tokens[self.at + 2].key in _TRIMS:
            return self._trim()
        if name not in _CHOICES | _MADE and name.lower() not in FUNCTIONS:
            raise NotJudgedError(f"the function {token.text}")
        self.at += 2
        try:
            operands = self._operands(name, end)
        except PredicateError:  # a form that only this function has
            raise NotJudgedError(f"the function {token.text}") from None
        if name in _WITH_UNIT and len(operands) == 3:
            raise NotJudgedError(f"the function {token.text}")
        if name in _CHOICES:
            return self.chosen(name, operands)
        if name == "TO_DATE":  # with a pattern it is another function
            if len(operands) != 1:
                raise NotJudgedError(f"the function {token.text}")
            return self._cast_to(operands[0], "DATE", [])
        return self.called(name.lower(), operands)

    def _trim(self) -> Operand:
        """``trim(BOTH 'x' FROM s)``, up to its closing parenthesis."""
        self.at += 2
        name = _TRIMS[self._step()]
        removed: Operand = Known(" ")
        if not self.take("FROM"):
            removed = self.operand()
            if not self.take("FROM"):
                raise NotJudgedError("the function trim")
        return self.called(name, [removed, self.operand()])

    def _operands(self, name: str, end: int) -> list[Operand]:
        """The arguments of a function, up to the closing parenthesis."""
        operands: list[Operand] = []
        while self.at < end:
            start = self.at
            operand = self.operand()
            if self.next.key != "," and not (
                self.at == end or (name, self.next.key) in _WORDS
            ):
                self.again(start)
                operand = Condition(self.condition_inside())
            operands.append(operand)
            if self.at == end:
                break
            if self.next.key in {"FROM", "FOR", "IN"}:
                # substring(s FROM 1 FOR 2), position('a' IN s)
                if (name, self.next.key) not in _WORDS:
                    raise NotJudgedError(reason_of(self.next.key))
            elif self.next.key != ",":
                raise NotJudgedError(reason_of(self.next.key))
            self.at += 1
        return operands

    def again(self, start: int) -> None:
        """Go back, to read a value as a condition; not without end.

        Raises:
            NotJudgedError: that was done too often.
        """
        self.retries += 1
        if self.retries > _MAX_RETRIES:
            raise NotJudgedError("a condition as a value")
        self.at = start

    def _cast(self, operand: Operand, type_name: str = "") -> Operand:
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
        return self._cast_to(operand, type_name, parameters)

    def _cast_to(
        self, operand: Operand, type_name: str, parameters: list[int]
    ) -> Operand:
        if isinstance(operand, Known):
            known = cast(operand.value, type_name, tuple(parameters))
            return Known(known, type_name if type_name in TOLD_TYPES else "")
        if type_name not in _CAST_TARGETS or isinstance(operand, Condition):
            raise NotJudgedError("a cast of the column")
        if type_name in {"DECIMAL", "DEC", "NUMERIC"}:
            parameters = parameters or [10, 0]
        elif parameters:
            raise NotJudgedError("a cast of the column")
        if parameters:
            type_name += f"({','.join(map(str, parameters))})"
        return small(Call("cast", (operand, type_name)))


def _has_column(term: Term | Literal) -> bool:
    match term:
        case Call(_, arguments):
            return any(map(_has_column, arguments))
        case Reference() | Case():
            return True
        case _:
            return False
