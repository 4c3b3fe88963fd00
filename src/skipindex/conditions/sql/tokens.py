"""The words of a Spark SQL condition, split as Spark's own lexer splits them.

Follows ``SqlBaseLexer.g4`` of Apache Spark 4: the longest match wins, a name may
begin with a digit, comments nest, and a line comment goes on after a backslash.
The text of a token is left as written; ``literals`` gives it its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    LIST = auto()
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
_KINDS: Final[Mapping[str | None, Kind]] = {kind.name: kind for kind in Kind}
_NUMBERS: Final = r"-?[0-9]{1,18}+"
_STRINGS: Final = r"'[^'\\]*+'"
_TIMES: Final = (rf"(?P<type>DATE|TIMESTAMP|TIMESTAMP_NTZ) {_STRINGS}", "(?P=type) ")
_LIST: Final = re.compile(
    "|".join(
        rf"\([ \n]*+{first}(?:[ \n]*+,[ \n]*+{one})*+[ \n]*+\)"
        for first, one in (
            (_NUMBERS, _NUMBERS),
            (_STRINGS, _STRINGS),
            (_TIMES[0], _TIMES[1] + _STRINGS),
        )
    )
)
"""Integers of bigint, or strings that are what their quotes enclose;
or dates or times of one type, with one space after it as ``to_sql`` writes them."""
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_NO_CLOSING: Final = {"'": "a string", '"': "a string", "`": "a quoted name"}


def tokenize(text: str, *, lists: bool = False) -> list[Token]:
    """Every token of ``text`` without spaces and comments, and an END at the end.

    With ``lists``, a list of plain literals after IN is one token, of kind LIST.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        # The last alternative takes any character, so no match leaves one out.
        for match in _TOKEN.finditer(text, position):
            name = match.lastgroup
            if name == "SPACE":
                continue
            if name == "COMMENT":
                position = _comment_end(text, match.start())
                break
            word = key = match[0]
            if name == "WORD":
                key = word.upper()
            elif name != "SYMBOL":
                key = ""
            elif lists and word == "(" and tokens and tokens[-1].key == "IN":
                if listed := _LIST.match(text, match.start()):
                    key = listed["type"] or ""
                    tokens.append(Token(Kind.LIST, key, listed[0], *listed.span()))
                    position = listed.end()
                    break
            elif word in _NO_CLOSING:
                problem = f"{_NO_CLOSING[word]} is not closed"
                raise error_at(text, match.start(), problem)
            tokens.append(Token(_KINDS[name], key, word, *match.span()))
        else:
            break
    end = tokens[-1].end if tokens else 0
    return [*tokens, Token(Kind.END, "", "", end, end)]


def listed(token: Token) -> tuple[int, ...] | tuple[str, ...]:
    """The integers of a LIST, or its strings; its key is their type.

    >>> listed(tokenize("IN (1, 2)", lists=True)[1])
    (1, 2)
    """
    inside = token.text[1:-1]
    if "'" not in inside:
        return tuple(map(int, inside.split(",")))
    return tuple(inside.split("'")[1::2])


def match_brackets(tokens: list[Token], text: str) -> dict[int, int]:
    """The index of the closing token for the index of each opening one."""
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
