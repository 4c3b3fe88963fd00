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
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Ints, Mask
from skipindex.expressions.atoms import (
    Atom,
    Matches,
    OneOf,
    Pattern,
    Range,
    Wildcard,
    after_prefix,
)

_CHARACTER: Final = rb"[^\x80-\xbf][\x80-\xbf]*+"
"""A character of UTF-8: its first byte, and all that follow it."""
_BULK_FROM_VALUES: Final = 256
"""Number of values at which the longest piece is searched first."""
_MOST_IN_RE2: Final = 1000
"""Patterns of more characters are not compiled by RE2."""
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
    certain, possible = np.zeros(n, bool), np.zeros(n, bool)
    candidates = _candidates(pattern, values)
    left = values.take(pa.array(candidates))
    if (
        len(left) >= _BULK_FROM_VALUES
        and (result := _in_bulk(pattern, left)) is not None
    ):
        certain[candidates] = possible[candidates] = result
        return certain, possible
    expression = _compiled(pattern)
    for i, value in zip(candidates.tolist(), left.to_pylist(), strict=True):
        if not _is_text(value):
            possible[i] = True
        elif expression.fullmatch(value):
            certain[i] = possible[i] = True
    return certain, possible


def _candidates(pattern: Pattern, values: pa.LargeBinaryArray) -> Ints:
    """The places of the values that have the longest piece; of few values, of all."""
    if len(values) < _BULK_FROM_VALUES or len(pattern) > _MOST_IN_RE2:
        return np.arange(len(values))
    pieces = [piece for piece in pattern if isinstance(piece, bytes)]
    if not pieces:
        return np.arange(len(values))
    return np.flatnonzero(pc.match_substring(values, max(pieces, key=len)))


def _in_bulk(pattern: Pattern, values: pa.LargeBinaryArray) -> Mask | None:
    """Which values match, by Arrow; None if one is no UTF-8 or the pattern is long."""
    try:
        texts = values.cast(pa.large_string())
        lengths = pc.binary_length(texts)
        # Every second piece at least needs a byte: a walk of the pieces takes longer.
        if len(pattern) // 2 > pc.max(lengths).as_py():
            return np.zeros(len(values), bool)
        n_needed = sum(1 if isinstance(p, Wildcard) else len(p) for p in pattern)
        n_needed -= pattern.count(Wildcard.ANY_TEXT)
        long_enough = np.asarray(pc.greater_equal(lengths, n_needed))
        result = np.zeros(len(values), bool)
        places = np.flatnonzero(long_enough)
        if len(places) and n_needed > _MOST_IN_RE2:
            return None
        if len(places):
            # RE2 takes no more steps than a value has bytes; ``re`` is 10 times slower.
            hits = pc.match_substring_regex(texts.take(pa.array(places)), _re2(pattern))
            result[places] = hits
    except pa.ArrowInvalid:
        return None
    return result


def arrow_pattern(pattern: Pattern) -> str | None:
    """The pattern for Arrow's ``match_substring_regex``; None if it is too long."""
    n_needed = sum(1 if isinstance(p, Wildcard) else len(p) for p in pattern)
    return _re2(pattern) if n_needed <= _MOST_IN_RE2 else None


def _re2(pattern: Pattern) -> str:
    """The pattern over characters, in the syntax of RE2."""
    pieces: list[str] = []
    for piece, run in groupby(pattern):
        match piece:
            case Wildcard.ANY_TEXT:
                pieces.append(".*")
            case Wildcard.ANY_CHARACTER:
                pieces.append("." * len(list(run)))
            case _:
                pieces.append("".join(map(_escaped, piece.decode())))
    return rf"\A(?s:{''.join(pieces)})\z"


def _escaped(character: str) -> str:
    is_plain = character.isalnum() or not character.isascii()
    return character if is_plain else f"\\x{ord(character):02x}"


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
    """The pattern over the bytes of UTF-8 text."""
    segments: list[bytes] = []
    mine: list[bytes] = []
    for piece, run in groupby(pattern):
        match piece:
            case Wildcard.ANY_TEXT:
                segments.append(b"".join(mine))
                mine = []
            case Wildcard.ANY_CHARACTER:
                n = len(list(run))
                mine.append(b"(?:%b){%d}" % (_CHARACTER, n) if n > 1 else _CHARACTER)
            case _:
                mine.append(re.escape(piece))
    segments.append(b"".join(mine))
    if len(segments) == 1:
        return re.compile(segments[0], re.DOTALL)
    first, *middle, last = segments
    # Between two ``%`` the leftmost place is as good as any, so each piece is searched
    # in an atomic group and no place is tried twice.
    inner = b"".join(b"(?>.*?" + segment + b")" for segment in middle if segment)
    return re.compile(first + inner + b".*" + last, re.DOTALL)
