"""The words of a Spark SQL condition, split as Spark's own lexer splits them.

Follows ``SqlBaseLexer.g4`` of Apache Spark 4: the longest match wins, a name may
begin with a digit, comments nest, and a line comment goes on after a backslash.
The text of a token is left as written; ``literals`` gives it its value.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from skipindex.errors import PredicateError


class Kind(Enum):
    """What a token is."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """``text[start:end]``, and the name by which the grammar asks for it.

    ``key`` is the upper-case word or the symbol itself, and empty for the rest.
    """

    kind: Kind
    key: str
    text: str
    start: int
    end: int


OPENING: Final = {"(": ")", "[": "]", "{": "}"}

_TOKEN: Final = re.compile(
    r"""
      (?P<SPACE> [ \t\n\f\r\v\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+
               | --(?:\\\n|[^\r\n])*+ )
    | (?P<COMMENT> /\*(?!\+) )
    | (?P<STRING> '[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'
                | "[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+"
                | [rR]'[^']*+' | [rR]"[^"]*+" )
    | (?P<NUMBER> (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[fFdD]|[bB][dD])?(?!\w)
                | \d+(?:(?:[eE][+-]?\d+)?(?:[fFdD]|[bB][dD])?|[lLsSyY])(?!\w) )
    | (?P<WORD> \w+ )
    | (?P<QUOTED> `[^`]*+(?:``[^`]*+)*+` )
    | (?P<SYMBOL> <=> | == | <> | != | <= | !> | >= | !< | << | >>>? | \|\| | ::
                | -> | => | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_NO_CLOSING: Final = {"'": "a string", '"': "a string", "`": "a quoted name"}


def tokenize(text: str) -> list[Token]:
    """Every token of ``text`` without spaces and comments, and an END at the end.

    Raises:
        PredicateError: a string, a quoted name or a comment is not closed.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None, "the last alternative takes any character"
        position, end = found.span()
        name = found.lastgroup
        if name == "COMMENT":
            end = _comment_end(text, position)
        elif name != "SPACE":
            kind = Kind[str(name)]
            word = found[0]
            if kind is Kind.SYMBOL and word in _NO_CLOSING:
                problem = f"{_NO_CLOSING[word]} is not closed"
                raise error_at(text, position, problem)
            key = word.upper() if kind is Kind.WORD else ""
            key = word if kind is Kind.SYMBOL else key
            tokens.append(Token(kind, key, word, position, end))
        position = end
    end = tokens[-1].end if tokens else 0
    return [*tokens, Token(Kind.END, "", "", end, end)]


def match_brackets(tokens: list[Token], text: str) -> dict[int, int]:
    """The index of the closing token for the index of each opening one.

    Raises:
        PredicateError: a bracket is not closed, or was never opened.
    """
    closing: dict[int, int] = {}
    open_ones: list[int] = []
    for i, token in enumerate(tokens):
        if token.key in OPENING:
            open_ones.append(i)
        elif token.key in {")", "]", "}"}:
            if not open_ones or OPENING[tokens[open_ones[-1]].key] != token.key:
                raise error_at(text, token.start, f"unexpected {token.text!r}")
            closing[open_ones.pop()] = i
    if open_ones:
        token = tokens[open_ones[-1]]
        raise error_at(text, token.start, f"{token.text!r} is not closed")
    return closing


def error_at(text: str, position: int, problem: str) -> PredicateError:
    """The error that says what is wrong, where, and in which text."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    low, high = max(0, position - 40), position + 40
    excerpt = "..." * (low > 0) + text[low:high] + "..." * (high < len(text))
    return PredicateError(f"{problem} at line {line}, column {column} of {excerpt!r}")


def _comment_end(text: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    raise error_at(text, start, "a comment is not closed")
