"""Functions of text.

Letters beyond ASCII change case by the Unicode version and the language of the JVM.
Most Latin and Cyrillic letters change alike in every one; of the others it is known
that they never become one of those, which is enough for most conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final
from unicodedata import category

from skipindex.conditions.functions.registry import (
    Argument,
    Coercion,
    Function,
    FunctionTable,
    Plain,
    UnsureError,
    in_bits,
    integer,
)
from skipindex.expressions.atoms import after_prefix
from skipindex.expressions.domain import Domain

FUNCTIONS: Final = FunctionTable()

STRING: Final = Domain("string")
_INT: Final = integer(32)
_TO_THE_END: Final = (1 << 31) - 1
_LONGEST: Final = 1 << 16
"""Characters; longer results are left to Spark."""


def ascii_only(text: str) -> str:
    """``text``, if every version of Java changes its case alike."""
    if not text.isascii():
        raise UnsureError
    return text


_PAIRED: Final = frozenset(
    letter
    for letter in map(chr, (*range(0xC0, 0x180), *range(0x400, 0x460)))
    if letter != letter.swapcase() and letter.swapcase().swapcase() == letter
)
"""Latin and Cyrillic letters of pairs that every Unicode version from Java 8 on has."""
STEADY: Final = _PAIRED | set(map(chr, range(128))) | {"ß"}
"""What no other character becomes if its case changes, whatever the JVM is."""
_OTHER: Final = "\N{REPLACEMENT CHARACTER}"
"""Stands for some text, at least one character long, that has none of ``STEADY``."""
_DOTLESS: Final = "\u0131"
_DOTTED: Final = {"\u0130": "i\u0307", "ß": "ß"}
_LOWER: Final = (
    _DOTTED,
    _DOTTED | {"\u0130": "i", "I": _DOTLESS},
    _DOTTED | dict(zip("ÌÍĨ", ("i̇̀", "i̇́", "i̇̃"), strict=True)),
)
_UPPER: Final = (
    {_DOTLESS: "I", "ß": "SS"},
    {_DOTLESS: "I", "ß": "SS", "i": "\u0130"},
)
"""In the languages that a JVM may have: most, Turkish, and Lithuanian if it differs."""


def _add_case(
    names: str, change: Callable[[str], str], languages: Sequence[Mapping[str, str]]
) -> None:
    """Register a function that changes the case of letters."""

    @lru_cache(1 << 10)
    def changed(letter: str) -> str:
        new = change(letter)
        if letter.isascii() or letter in _PAIRED:
            return new
        if category(letter) == "Cn" or letter == "\u0307" or STEADY.intersection(new):
            raise UnsureError
        return _OTHER

    def alike(text: str) -> set[str]:
        return {
            "".join(language.get(letter) or changed(letter) for letter in text)
            for language in languages
        }

    def apply(text: str) -> str:
        if text.isascii():
            return change(text)
        texts = alike(text)
        if len(texts) > 1 or _OTHER in "".join(texts):
            raise UnsureError
        return texts.pop()

    @FUNCTIONS.named(*names.split(), takes="string")
    def resolver(_: Argument) -> Function:
        return Function(STRING, apply, alike=alike, letters=STEADY)


def _add(
    names: str,
    takes: str,
    domain: Domain,
    apply: Callable[..., Plain],
    coercion: Coercion = Coercion.NONE,
) -> None:
    """Register a function of arguments of these types that is not inverted."""

    @FUNCTIONS.named(*names.split(), takes=takes, coercion=coercion)
    def resolver(*_: Argument) -> Function:
        return Function(domain, apply)


def _repeated(text: str, times: int) -> str:
    if len(text) * times > _LONGEST:
        raise UnsureError
    return text * times


def _padding(text: str, length: int, pad: str) -> str:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return ""
    if missing > _LONGEST:
        raise UnsureError
    return (pad * (missing // len(pad) + 1))[:missing]


_add_case("upper ucase", str.upper, _UPPER)
_add_case("lower lcase", str.lower, _LOWER)
_add("reverse", "string", STRING, lambda s: s[::-1])
_add("length char_length character_length len", "string", _INT, len)
_add("octet_length", "string", _INT, lambda s: len(s.encode()))
_add("bit_length", "string", _INT, lambda s: in_bits(8 * len(s.encode()), 32))
_add("ascii", "string", _INT, lambda s: ord(ascii_only(s)[0]) if s else 0)
_add("instr", "string string", _INT, lambda s, piece: s.find(piece) + 1)
_add("locate position charindex", "string string", _INT, lambda p, s: s.find(p) + 1)
_add(
    "right",
    "string int32",
    STRING,
    lambda s, n: s[max(len(s) - n, 0) :] if n > 0 else "",
    Coercion.TEXT,
)
_add("repeat", "string int32", STRING, _repeated)
_add(
    "replace",
    "string string string",
    STRING,
    lambda s, old, new: s.replace(old, new) if old else s,
)
_add(
    "lpad",
    "string|int int32 string",
    STRING,
    lambda s, n, pad: _padding(str(s), n, pad) + str(s)[: max(n, 0)],
)
_add(
    "rpad",
    "string|int int32 string",
    STRING,
    lambda s, n, pad: str(s)[: max(n, 0)] + _padding(str(s), n, pad),
)


def _trim(name: str, strip: Callable[[str, str], str]) -> None:
    """Register a function that drops spaces, or given characters, at the ends."""

    @FUNCTIONS.named(name, takes="string, string string")
    def resolver(*texts: Argument) -> Function:
        if len(texts) == 1:
            return Function(STRING, lambda s: strip(s, " "))
        if name == "btrim":
            return Function(STRING, strip)
        return Function(STRING, lambda characters, s: strip(s, characters))


_trim("trim", str.strip)
_trim("btrim", str.strip)
_trim("ltrim", str.lstrip)
_trim("rtrim", str.rstrip)


@FUNCTIONS.named("||", "concat")
def _concat(*pieces: Argument) -> Function | None:
    if not pieces or not all(piece.is_a("string", "int") for piece in pieces):
        return None
    return Function(STRING, lambda *texts: "".join(map(str, texts)))


@FUNCTIONS.named("left", takes="string int32", coercion=Coercion.TEXT)
def _left(text: Argument, length: Argument) -> Function:
    piece = _piece(text, _constant(1), length)
    return replace(piece, apply=lambda text, n: substring(text, 1, n))


@FUNCTIONS.named(
    "substring",
    "substr",
    takes="string int32, string int32 int32",
    coercion=Coercion.TEXT,
)
def _substring(
    text: Argument, position: Argument, length: Argument | None = None
) -> Function:
    if length is not None:
        return _piece(text, position, length)
    piece = _piece(text, position, _constant(_TO_THE_END))
    return replace(piece, apply=lambda s, at: substring(s, at, _TO_THE_END))


def _constant(value: int) -> Argument:
    return Argument(_INT, is_constant=True, value=value)


def substring(text: str, position: int, length: int) -> str:
    """Characters from ``position``, 1 the first and -1 the last; 0 is 1."""
    if position > 0:
        start = position - 1
    else:
        start = len(text) + position if position < 0 else 0
    stop = start + length  # a start before the text still uses up the length
    return text[max(start, 0) : max(stop, 0)]


def _piece(text: Argument, position: Argument, length: Argument) -> Function:
    """``substring``; a prefix of constant length rises with the text."""
    # A prefix of ``n`` characters is at least ``y`` exactly if the whole is, where
    # ``y`` has no more characters; else the prefix must be above those of ``y``.  But
    # of a text whose last character is cut off, Spark takes the bytes that follow in
    # memory: it is on no sure side of a ``y`` that it begins.
    n = length.value if length.is_constant else None
    first = position.is_constant and position.value in {0, 1}
    if text.is_constant or not (first and isinstance(n, int) and n > 0):
        return Function(STRING, substring)

    def least(value: bytes) -> bytes | None:
        end = _ends(value, n)[-1]
        return value if end >= len(value) else after_prefix(value[:end])

    def cut_off(value: bytes) -> set[bytes]:
        ends = _ends(value, n)
        inside = range(1, min(ends[-1], len(value)))
        return {value[:i] for i in set(inside).difference(ends)}

    return Function(STRING, substring, 1, least=least, unsure=cut_off)


def _ends(text: bytes, n: int) -> list[int]:
    """0, and where each of the first ``n`` characters ends, maybe beyond the text."""
    ends = [0]
    while ends[-1] < len(text) and len(ends) <= n:
        first = text[ends[-1]]
        width = 1 + sum(first >= least for least in _WIDER) if first <= 0xF4 else 1
        ends.append(ends[-1] + width)
    return ends


_WIDER: Final = (0xC2, 0xE0, 0xF0)
"""The least first bytes of characters of two, three and four bytes."""
