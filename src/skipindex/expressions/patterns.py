"""Patterns of LIKE: parsing, matching, and the text that every match contains.

Spark has two ways to match.  A pattern of one or two literals and ``%`` may become
``startswith``, ``endswith`` and ``contains``, on bytes; all others are regular
expressions over decoded text, in which U+FFFD stands for bytes that are no UTF-8.
Apart from that character both are the same.

Values are bytes.  A value that is no UTF-8 is taken for a possible match and never
for a certain one, because Spark decodes it before it matches, if it decodes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import (
    Atom,
    Matches,
    OneOf,
    Pattern,
    Range,
    Wildcard,
    after_prefix,
)

_CHARACTER: Final = rb"(?:[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*)"
_BULK_FROM_VALUES: Final = 256
"""From so many values on, the longest piece is searched first, then matched."""
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


@dataclass(frozen=True, slots=True)
class Fragment:
    """Bytes in a value, and whether the value begins or ends with them."""

    text: bytes
    begins: bool
    ends: bool


def fragments_of(pattern: Pattern) -> list[Fragment]:
    """What every value that matches contains."""
    last = len(pattern) - 1
    return [
        Fragment(piece, i == 0, i == last)
        for i, piece in enumerate(pattern)
        if isinstance(piece, bytes)
    ]


def required(atom: Atom) -> Iterator[list[Fragment]]:
    """Alternatives: a value for which ``atom`` is TRUE has all fragments of one.

    An empty list of fragments is an alternative that any value may meet; atoms that
    require no text have it.
    """
    match atom:
        case Matches(pattern=pattern, negated=False):
            yield fragments_of(pattern)
        case OneOf(values=values):
            for value in values:
                assert isinstance(value, bytes)
                yield [Fragment(value, begins=True, ends=True)]
        case Range(low=bytes(low), high=bytes(high)):
            prefix = shared_prefix(low, high)
            yield [Fragment(prefix, begins=True, ends=False)] if prefix else []
        case _:
            yield []


def shared_prefix(low: bytes, high: bytes) -> bytes:
    """The longest known prefix of all values with ``low <= value < high``."""
    for n in range(len(low), 0, -1):
        stop = after_prefix(low[:n])
        if stop is None or stop >= high:
            return low[:n]
    return b""


def select(pattern: Pattern, values: pa.LargeBinaryArray) -> tuple[Mask, Mask]:
    """Which values certainly match, and which possibly; no value is NULL."""
    n = len(values)
    candidates = np.arange(n)
    pieces = [piece for piece in pattern if isinstance(piece, bytes)]
    if pieces and n >= _BULK_FROM_VALUES:
        longest = max(pieces, key=len)
        hits = pc.match_substring(values, longest)
        candidates = np.flatnonzero(np.asarray(hits))
    certain, possible = np.zeros(n, bool), np.zeros(n, bool)
    expression = _compiled(pattern)
    for i, value in zip(
        candidates.tolist(), values.take(pa.array(candidates)).to_pylist(), strict=True
    ):
        if not _is_text(value):
            possible[i] = True
        elif expression.fullmatch(value):
            certain[i] = possible[i] = True
    return certain, possible


def matches(pattern: Pattern, value: bytes, *, negated: bool = False) -> bool | None:
    """Whether one value matches, or does not if negated; None: only Spark knows."""
    if not _is_text(value):
        return None
    return (_compiled(pattern).fullmatch(value) is None) == negated


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@lru_cache(maxsize=64)
def _compiled(pattern: Pattern) -> re.Pattern[bytes]:
    """The pattern over the bytes of UTF-8 text.

    Between two ``%`` the leftmost place is as good as any, so each piece is looked for
    in an atomic group and no place is tried twice.
    """
    segments: list[bytes] = [b""]
    for piece in pattern:
        match piece:
            case Wildcard.ANY_TEXT:
                segments.append(b"")
            case Wildcard.ANY_CHARACTER:
                segments[-1] += _CHARACTER
            case _:
                segments[-1] += re.escape(piece)
    if len(segments) == 1:
        return re.compile(segments[0], re.DOTALL)
    first, *middle, last = segments
    inner = b"".join(b"(?>.*?" + segment + b")" for segment in middle if segment)
    return re.compile(first + inner + b".*" + last, re.DOTALL)
