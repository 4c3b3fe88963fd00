"""Columns and literals of a Spark SQL condition, read from left to right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, TypeAlias

from skipindex.errors import PredicateError
from skipindex.planner._calendar import add_months
from skipindex.planner._compile import fold
from skipindex.planner._functions import FUNCTIONS
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
from skipindex.predicate import (
    Call,
    Case,
    Literal,
    Operator,
    Predicate,
    Reference,
    Term,
)


@dataclass(frozen=True, slots=True)
class Known:
    """A literal, as opposed to a column.

    Args:
        value: as Python has it.
        kind: the type's name, where the value does not tell it.
    """

    value: Literal
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in the place of a value."""

    tree: Predicate


Operand: TypeAlias = Term | Known | Condition

OPERATORS: Final = {
    **{operator.value: operator for operator in Operator},
    "==": Operator.EQ,
    "<>": Operator.NE,
    "!>": Operator.LE,
    "!<": Operator.GE,
}
_SUFFIXES: Final = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "F": "FLOAT"}
_TOLD: Final = {
    *("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"),
    *("FLOAT", "REAL"),
}
"""The types of a number that its value does not tell."""
_CHOICES: Final = {"IF", "IFF", "COALESCE", "NVL", "IFNULL", "NVL2", "NULLIF"}
_WORDS: Final = {
    *(("SUBSTRING", "FROM"), ("SUBSTRING", "FOR"), ("SUBSTR", "FROM")),
    *(("SUBSTR", "FOR"), ("POSITION", "IN")),
}
"""Functions, and the words that may stand between their arguments."""
_EXTRACTED: Final = {
    *("year", "quarter", "month", "day", "hour", "minute"),
}
_IN_CONDITIONS: Final = {"AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE"}
_SAFE_DIGITS: Final = 10
"""Fewer digits are an int."""
_MAX_RETRIES: Final = 100
_CALL_DEPTH: Final = 4
"""So many parentheses count for as much of Python's stack as one function."""
MAX_DEPTH: Final = 60
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
_OPENING_WORDS: Final = {"NOT", "EXISTS", "SELECT", "ALL", "ANY", "SOME"}
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_SUMS: Final = {"+", "-", "||"}
_PRODUCTS: Final = {"*", "/", "%", "DIV"}
_CAST_TARGETS: Final = {
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT"),
    *("LONG", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
    *("TIMESTAMP_NTZ", "DECIMAL", "DEC", "NUMERIC"),
}
_UNITS: Final = {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"}
_WITH_UNIT: Final = {"DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF"}
"""Their first argument of three is the name of a unit, and no column."""
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


def argument(operand: Operand) -> Term | Literal:
    """``operand`` as an argument of a function.

    Raises:
        NotJudgedError: it is a condition, or a literal whose type is lost.
    """
    match operand:
        case Known(value, kind) if kind in _SUFFIXES.values() or kind in _TOLD:
            if kind in {"FLOAT", "REAL"}:
                raise NotJudgedError("arithmetic with a FLOAT")
            return Call("cast", (value, kind))
        case Known(value):
            return value
        case Condition():
            raise NotJudgedError("a condition as a value")
        case _:
            return operand


def _has_column(term: Term | Literal) -> bool:
    match term:
        case Call(_, arguments):
            return any(map(_has_column, arguments))
        case Reference() | Case():
            return True
        case _:
            return False


def _later(moment: datetime, number: int, unit: str) -> datetime | None:
    """A wall clock moved by an interval; None if a zone has a say in it."""
    if unit in {"MONTH", "YEAR"}:
        months = number * (12 if unit == "YEAR" else 1)
        day = moment.date().toordinal() - _EPOCH_ORDINAL
        moved = date.fromordinal(add_months(day, months) + _EPOCH_ORDINAL)
        later = datetime.combine(moved, moment.timetz())
    else:
        later = moment + timedelta(**{f"{unit.lower()}s": number})
    # Days of an instant are days of the session's wall clock.
    exact = moment.tzinfo is None or unit in {"HOUR", "MINUTE", "SECOND"}
    return later if exact else None


def folded(call: Call) -> Known:
    """The value of a function of literals.

    Raises:
        NotJudgedError: only Spark can tell it, or its type.
    """
    found: tuple[Literal, str] | None
    match call:
        case Call(
            "+" | "-", (datetime() as moment, Call("interval", (int(n), str(u))))
        ):
            try:
                later = _later(moment, n if call.name == "+" else -n, u)
            except (ValueError, OverflowError):  # beyond the year 9999
                later = None
            found = None if later is None else (later, "")
        case _:
            found = fold(call)
    if found is None:
        raise NotJudgedError(_REASONS.get(call.name, f"the function {call.name}"))
    return Known(*found)


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

    def error(self, token: Token, problem: str) -> PredicateError:
        """The error that says where ``token`` is."""
        return error_at(self.text, token.start, problem)

    def expected(self, what: str) -> PredicateError:
        """The error that ``what`` does not come next."""
        found = repr(self.next.text) if self.next.text else "the end"
        return self.error(self.next, f"expected {what}, found {found}")

    def operand(self, depth: int = 0) -> Operand:
        """The column, the literal or the function of them that comes next.

        Raises:
            NotJudgedError: it is something else, or a part of something larger.
            PredicateError: no value can begin like this.
        """
        left = self._product(depth)
        while self.next.key in _SUMS:
            sign = self._step()
            left = self.called(sign, [left, self._product(depth)])
        return left

    def _product(self, depth: int) -> Operand:
        left = self._factor(depth)
        while self.next.key in _PRODUCTS:
            sign = self._step().lower()
            left = self.called(sign, [left, self._factor(depth)])
        return left

    def _factor(self, depth: int) -> Operand:
        if self.next.key in {"-", "+"} and not self._is_signed_number():
            if depth >= MAX_DEPTH:
                raise NotJudgedError(reason_at(self.next))
            name = "negative" if self._step() == "-" else "positive"
            return self.called(name, [self._factor(depth + 1)])
        operand = self._primary(depth)
        while self.next.key == "::":
            self.at += 1
            operand = self._cast(operand)
        return operand

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

    def _is_signed_number(self) -> bool:
        """Whether a sign and a number are one literal; ``::`` binds more tightly."""
        behind = self.tokens[min(self.at + 2, len(self.tokens) - 1)]
        return self.after.kind is Kind.NUMBER and behind.key != "::"

    def _step(self) -> str:
        """The next token's key, which is stepped over."""
        self.at += 1
        return self.tokens[self.at - 1].key

    def _primary(self, depth: int) -> Operand:
        token = self.next
        match token.kind:
            case Kind.NUMBER:
                return self._number(negative=False)
            case Kind.STRING:
                return self._strings()
            case Kind.QUOTED:
                return self._column()
            case Kind.WORD:
                return self._after_word(token, depth)
            case Kind.SYMBOL if token.key == "(" and depth < MAX_DEPTH:
                return self._in_parentheses(depth)
            case Kind.SYMBOL if token.key in {"-", "+"}:
                self.at += 1
                return self._number(negative=token.key == "-")
            case Kind.SYMBOL if token.key in _BEFORE_VALUES:
                raise NotJudgedError(reason_at(token))
            case _:
                raise self.expected("a value")

    def called(self, name: str, operands: Sequence[Operand]) -> Operand:
        """The function ``name`` of the operands, or its value if all are literals.

        Raises:
            NotJudgedError: that value is for Spark alone.
        """
        call = Call(name, tuple(map(argument, operands)))
        return call if _has_column(call) else folded(call)

    def condition_inside(self) -> Predicate:
        """The condition that comes next, up to what ends it inside of a value."""
        raise NotImplementedError

    def _in_parentheses(self, depth: int) -> Operand:
        start, end = self.at, self.closing[self.at]
        self.at += 1
        if self._holds_condition(start, end):
            operand: Operand = Condition(self.condition_inside())
        else:
            operand = self.operand(depth + 1)
        if self.at != end:
            raise NotJudgedError(reason_at(self.next))
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

    def again(self, start: int) -> None:
        """Go back, to read a value as a condition; not without end.

        Raises:
            NotJudgedError: that was done too often.
        """
        self.retries += 1
        if self.retries > _MAX_RETRIES:
            raise NotJudgedError("a condition as a value")
        self.at = start

    def _after_word(self, token: Token, depth: int) -> Operand:
        before_operator = self.after.key in OPERATORS
        if token.key in _BETWEEN_VALUES and not (
            before_operator or self.after.key == "("
        ):
            raise self.expected("a value")
        if token.key in _SESSION or (
            token.key in _OPENING_WORDS and not before_operator
        ):
            raise NotJudgedError(reason_at(token))
        if token.key == "CASE" and not before_operator:
            return self._case()
        if token.key == "INTERVAL" and not before_operator:
            return self._interval()
        if self.after.kind is Kind.STRING:
            return self._typed(token)
        if self.after.key == "(":
            return self._function(token, depth)
        if token.key in _CONSTANTS:
            self.at += 1
            return Known(_CONSTANTS[token.key])
        return self._column()

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
        return Call("interval", (-int(text) if negative else int(text), unit))

    def _typed(self, token: Token) -> Known:
        if token.key not in _TYPED:
            raise NotJudgedError(f"a literal of type {token.text}")
        text = self._string(self.after)
        self.at += 2
        return self._value(token, lambda: typed(token.key, text))

    def _function(self, token: Token, depth: int) -> Operand:
        end = self.closing[self.at + 1]
        name = token.key
        if name in {"CAST", "TRY_CAST"}:
            self.at += 2
            operand = self.operand(depth + _CALL_DEPTH)
            if not self.take("AS"):
                raise NotJudgedError("a cast")
            if name == "TRY_CAST" and not isinstance(operand, Known):
                raise NotJudgedError("a cast of the column")
            found = self._cast(operand)
        elif name in _CAST_FUNCTIONS:
            self.at += 2
            found = self._cast(self.operand(depth + _CALL_DEPTH), name)
        else:
            found = self._other_function(token, end, depth)
        if self.at != end:
            raise NotJudgedError(f"the function {token.text}")
        self.at += 1
        return found

    def _other_function(self, token: Token, end: int, depth: int) -> Operand:
        """Any but a cast, up to its closing parenthesis."""
        name = token.key
        if depth >= MAX_DEPTH:
            raise NotJudgedError(f"the function {token.text}")
        if name == "EXTRACT":
            self.at += 2
            unit = self._step().lower()
            if not self.take("FROM") or unit not in _EXTRACTED:
                raise NotJudgedError(f"the function {token.text}")
            return self.called(unit, [self.operand(depth + _CALL_DEPTH)])
        if name not in _CHOICES | {"TO_DATE"} and name.lower() not in FUNCTIONS:
            raise NotJudgedError(f"the function {token.text}")
        self.at += 2
        try:
            operands = self._operands(name, end, depth + _CALL_DEPTH)
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

    def _operands(self, name: str, end: int, depth: int) -> list[Operand]:
        """The arguments of a function, up to the closing parenthesis."""
        operands: list[Operand] = []
        while self.at < end:
            start = self.at
            operand = self.operand(depth)
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
                    raise NotJudgedError(reason_at(self.next))
            elif self.next.key != ",":
                raise NotJudgedError(reason_at(self.next))
            self.at += 1
        return operands

    def chosen(self, name: str, operands: list[Operand]) -> Operand:
        """``IF``, ``COALESCE`` and their like."""
        raise NotImplementedError

    def _case(self) -> Operand:
        """``CASE WHEN …``."""
        raise NotImplementedError

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
            return Known(known, type_name if type_name in _TOLD else "")
        if type_name not in _CAST_TARGETS or isinstance(operand, Condition):
            raise NotJudgedError("a cast of the column")
        if type_name in {"DECIMAL", "DEC", "NUMERIC"}:
            parameters = parameters or [10, 0]
        elif parameters:
            raise NotJudgedError("a cast of the column")
        if parameters:
            type_name += f"({','.join(map(str, parameters))})"
        return Call("cast", (operand, type_name))

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
        return Known(known.value, _SUFFIXES.get(token.text[-1].upper(), ""))

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
