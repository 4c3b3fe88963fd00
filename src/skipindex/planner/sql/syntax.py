"""Whether a condition that stays as written is well-formed, by sqlglot's grammar.

sqlglot is asked about the shape alone.  Names, functions and texts are masked: it
then cannot stumble over a column that is called like one of its keywords, over a
function that is younger than it, or log what it thinks of a JSON path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from skipindex.planner.sql.tokens import Kind, Token


class SyntaxMistakeError(Exception):
    """The tokens are no expression; ``token`` is where the parser noticed."""

    def __init__(self, token: Token) -> None:
        super().__init__(token.text)
        self.token = token


_UNITS: Final = {
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
    *("MILLISECOND", "MICROSECOND", "YEARS", "QUARTERS", "MONTHS", "WEEKS", "DAYS"),
    *("HOURS", "MINUTES", "SECONDS", "MILLISECONDS", "MICROSECONDS"),
}
_GRAMMAR: Final = _UNITS | {
    *("AND", "OR", "NOT", "IS", "NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT", "FROM"),
    *("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "ESCAPE", "ANY", "ALL"),
    *("SOME", "EXISTS", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRY_CAST"),
    *("AS", "DIV", "COLLATE", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY"),
    *("PLACING", "POSITION", "BOTH", "LEADING", "TRAILING", "FOR", "OVER"),
    *("PARTITION", "ORDER", "BY", "ROWS", "RANGE", "UNBOUNDED", "PRECEDING"),
    *("FOLLOWING", "CURRENT", "ROW", "ASC", "DESC", "NULLS", "FIRST", "LAST"),
    *("FILTER", "WHERE", "WITHIN", "GROUP", "IGNORE", "RESPECT"),
    # the types
    *("BOOLEAN", "BYTE", "TINYINT", "SHORT", "SMALLINT", "INT", "INTEGER", "BIGINT"),
    *("LONG", "FLOAT", "REAL", "DOUBLE", "DECIMAL", "DEC", "NUMERIC", "DATE", "TIME"),
    *("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING", "CHAR", "CHARACTER"),
    *("VARCHAR", "BINARY", "VARIANT", "ARRAY", "MAP", "STRUCT"),
    *("INTERVAL", "TO"),
}
_FUNCTIONS_TOO: Final = {"IN", "WHEN", "BETWEEN"}
"""Keywords that are functions where an operand begins: ``in(1, 2) = x``."""
_BEFORE_OPERANDS: Final = {
    *("AND", "OR", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE", "DIV"),
}
_OPERATORS: Final = {">>>": ">> ", "!>": "<=", "!<": ">="}
_BEFORE: Final = "TRUE AND "
"""No word is at the beginning of a statement, where sqlglot looks for commands."""


def check_syntax(tokens: Sequence[Token]) -> None:
    """Do nothing if ``tokens`` are one expression.

    Raises:
        SyntaxMistakeError: they are not.
    """
    from sqlglot import exp, parse_one  # noqa: PLC0415 (most texts are judged)
    from sqlglot.errors import ParseError  # noqa: PLC0415

    if any(token.key == ":" for token in tokens):
        return  # the path of a variant, which sqlglot reads in few places
    origin = tokens[0].start
    masked = [" "] * (tokens[-1].end - origin)
    query = any(token.key == "SELECT" for token in tokens)
    for i, (token, after) in enumerate(
        zip(tokens, [*tokens[1:], tokens[-1]], strict=True)
    ):
        shape = token.text if query and token.kind is Kind.WORD else _shape(token)
        if after.key == "(" and _names_a_function(tokens, i):
            shape = "w" * len(token.text)
        if token.key == "X" and after.kind is Kind.STRING:
            shape = " "  # sqlglot knows X'1F', but not X '1F'
        masked[token.start - origin : token.end - origin] = shape
    for first, last in _intervals(tokens):
        size = last.end - first.start
        masked[first.start - origin : last.end - origin] = "w" * size
    try:
        parse_one(_BEFORE + "".join(masked), dialect="spark", into=exp.Condition)
    except ParseError as error:
        column = int(error.errors[0].get("col") or 0) - len(_BEFORE)
        noticed = (t for t in tokens if t.end - origin >= column)
        raise SyntaxMistakeError(next(noticed, tokens[-1])) from None
    except Exception:  # noqa: BLE001 (of map('a') its parser raises IndexError)
        return  # no mistake that sqlglot could name; Spark will say


def _intervals(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """The first and the last token of intervals, of which sqlglot knows few forms."""
    for i, token in enumerate(tokens):
        if token.key != "INTERVAL":
            continue
        last = at = i
        while at < len(tokens) - 1:
            at += 1 + (tokens[at + 1].key in {"+", "-"})
            if at >= len(tokens) or tokens[at].kind not in {Kind.NUMBER, Kind.STRING}:
                break
            unit = at + 1 < len(tokens) and tokens[at + 1].key in _UNITS
            if not unit and (last > i or tokens[at].kind is Kind.NUMBER):
                break
            at += unit
            last = at
        if [t.key for t in tokens[last + 1 : last + 2]] == ["TO"] and last > i:
            last = min(last + 2, len(tokens) - 1)
        if last > i:
            yield token, tokens[last]


def _names_a_function(tokens: Sequence[Token], i: int) -> bool:
    """Whether the keyword before a parenthesis is a function there."""
    key = tokens[i].key
    return key in _UNITS or (key in _FUNCTIONS_TOO and _begins_operand(tokens, i))


def _begins_operand(tokens: Sequence[Token], i: int) -> bool:
    """Whether an operand begins at a token, or an operator follows one there."""
    if i == 0:
        return True
    before = tokens[i - 1]
    if before.key == "NOT":  # of ``NOT in(x)``, or of ``x NOT IN (1)``
        return _begins_operand(tokens, i - 1)
    if before.kind is Kind.SYMBOL:
        return before.key not in {")", "]"}
    return before.key in _BEFORE_OPERANDS


def _shape(token: Token) -> str:
    """A placeholder of the same length that sqlglot always accepts."""
    size = len(token.text)
    match token.kind:
        case Kind.STRING if not token.text[1:-1].isalnum():
            return "'" + "0" * (size - 2) + "'"
        case Kind.QUOTED:
            return "q" * size
        case Kind.WORD if token.key not in _GRAMMAR:
            return "w" * size
        case Kind.SYMBOL:
            return _OPERATORS.get(token.key, token.text)
        case _:
            return token.text
