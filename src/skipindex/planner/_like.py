"""LIKE: the pattern as written becomes pieces of bytes and wildcards.

Spark has two ways to match.  A pattern of one or two literals and ``%`` may become
``startswith``, ``endswith`` and ``contains``, on bytes; all others are regular
expressions over decoded text, in which U+FFFD stands for whatever is no UTF-8.  Apart
from that character both are the same.
"""

from __future__ import annotations

from typing import Final

from skipindex.atoms import Pattern, Wildcard

_WILDCARDS: Final = {"%": Wildcard.ANY_TEXT, "_": Wildcard.ANY_CHARACTER}
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
"""It matches bytes that are not its own."""


def parse_pattern(pattern: str, escape: str) -> Pattern | None:
    """The pieces of a LIKE pattern; None for one that Spark refuses.

    Raises:
        UnicodeEncodeError: the pattern is no valid text.
    """
    pieces: list[bytes | Wildcard] = []
    literal = ""

    def close() -> None:
        nonlocal literal
        if literal:
            pieces.append(literal.encode())
            literal = ""

    characters = iter(pattern)
    for c in characters:
        if c == escape:
            following = next(characters, "")
            if not following or following not in {"%", "_", escape}:
                return None
            literal += following
        elif c in _WILDCARDS:
            close()
            if c == "_" or pieces[-1:] != [Wildcard.ANY_TEXT]:
                pieces.append(_WILDCARDS[c])
        else:
            literal += c
    close()
    return tuple(pieces)
