"""Prefixes of texts, at every edge of UTF-8, against the truth byte by byte.

``left`` and ``substring`` are turned into ranges of the text, whose bounds are the
bytes after a prefix: no UTF-8 themselves where the prefix ends in the byte 0xBF.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.conditions.binding.binder import Binder
from skipindex.conditions.binding.scalar import judged
from skipindex.conditions.bound_predicate import BoundPredicate
from skipindex.conditions.functions.text import substring
from skipindex.conditions.sql.parser import parse
from skipindex.table.schema import columns_of

LAST = "\x7f\x80\xbf\xff\u07bf\u07ff\u0800\u0fff\u30bf\ud7ff\uffef\uffff"
LAST += "\U00010000\U0001f63f\U0010ffff"
"""They end in 0x7F, 0x80 and 0xBF, and at the last code points of each length."""
PREFIXES = [
    *LAST,
    *(a + b for a, b in itertools.product(("a", "\u30bf", "\U0010ffff"), LAST)),
    *("ab\u30bf", "\u30bf\u30bf\u30bf", "", "a", "ab"),
]
GARBAGE = (
    b"\0\0\0",
    b"\x80\x80\x80",
    b"\xbf\xbf\xbf",
    b"\xff\xff\xff",
    b"\x82\xbf\xbf",
)
"""What may follow in memory, where a text ends in a part of a character."""


def width(first: int) -> int:
    """Bytes of a character, by the first one, as Spark counts."""
    if 0xC2 <= first <= 0xDF:
        return 2
    if 0xE0 <= first <= 0xEF:
        return 3
    return 4 if 0xF0 <= first <= 0xF4 else 1


def head(text: bytes, n: int, garbage: bytes) -> bytes:
    """The first ``n`` characters; what is missing of the last one is garbage."""
    end = 0
    for _ in range(n):
        if end < len(text):
            end += width(text[end])
    return (text + garbage)[:end]


def values_near(prefix: str) -> Iterator[bytes]:
    """Texts and bytes on both sides of all that begin with ``prefix``."""
    own = prefix.encode()
    yield from (own, own + b"a", own + "\u30bf".encode(), own + b"\xff", own + b"\0")
    if not prefix:
        return
    stem, last = prefix[:-1].encode(), ord(prefix[-1])
    for code in (last - 1, last + 1):
        if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            yield stem + chr(code).encode()
            yield stem + chr(code).encode() + b"z"
    for i in range(len(own)):  # a text cut off, or gone on otherwise
        yield own[:i]
        yield own[:i] + b"\xff"
        yield own[:i] + bytes([min(own[i] + 1, 255)])
        yield own[:i] + bytes([max(own[i] - 1, 0)]) + b"\xbf\xbf"


@cache
def bound(text: str) -> BoundPredicate:
    columns = columns_of(pa.schema({"s": pa.string()}), {}, [], {})
    return Binder(columns.__getitem__).bind(parse(text))


def check(text: str, value: bytes, truth: Callable[[bytes], bool], n: int) -> None:
    """What is certain is true, what is ruled out is not, and texts are decided."""
    found = judged(bound(text), value)
    possible = {truth(head(value, n, garbage)) for garbage in GARBAGE}
    assert found is None or possible == {found}, (text, value, possible)
    try:
        value.decode()
    except UnicodeDecodeError:
        return
    is_pattern = "LIKE" in text or "startswith" in text
    if not (is_pattern and max(text) > "\uffff"):  # trap C-56
        assert found is not None, (text, value)


def questions(term: str, prefix: str) -> Iterator[tuple[str, Callable[[bytes], bool]]]:
    """Conditions on ``term``, and their truth of its value."""
    own, quoted = prefix.encode(), f"'{prefix}'"
    yield f"{term} LIKE '{prefix}%'", lambda v: v.startswith(own)
    yield f"{term} NOT LIKE '{prefix}%'", lambda v: not v.startswith(own)
    yield f"startswith({term}, {quoted})", lambda v: v.startswith(own)
    yield f"NOT startswith({term}, {quoted})", lambda v: not v.startswith(own)
    yield f"{term} = {quoted}", lambda v: v == own
    yield f"{term} != {quoted}", lambda v: v != own
    yield f"{term} < {quoted}", lambda v: v < own
    yield f"{term} <= {quoted}", lambda v: v <= own
    yield f"{term} > {quoted}", lambda v: v > own
    yield f"{term} >= {quoted}", lambda v: v >= own
    yield f"{term} IN ({quoted}, 'b')", lambda v: v in {own, b"b"}
    yield f"{term} NOT IN ({quoted}, 'b')", lambda v: v not in {own, b"b"}
    yield f"{term} BETWEEN 'a' AND {quoted}", lambda v: b"a" <= v <= own
    yield f"{term} NOT BETWEEN 'a' AND {quoted}", lambda v: not b"a" <= v <= own
    yield f"{term} <=> {quoted}", lambda v: v == own
    yield f"{term} IS DISTINCT FROM {quoted}", lambda v: v != own


TERMS = {
    "s": 1 << 20,
    "left(s, 1)": 1,
    "left(s, 2)": 2,
    "substring(s, 1, 1)": 1,
    "substring(s, 0, 3)": 3,
    "left(substring(s, 1, 3), 2)": 2,
    "CAST(left(s, 2) AS STRING)": 2,
}


@pytest.mark.few(1)
@pytest.mark.parametrize("term", TERMS)
def test_every_edge_of_a_prefix(term: str) -> None:
    n = TERMS[term]
    for prefix in PREFIXES:
        for text, truth in questions(term, prefix):
            for value in values_near(prefix):
                if term == "s":
                    found = judged(bound(text), value)
                    assert found in {None, truth(value)}, (text, value)
                else:
                    check(text, value, truth, n)


def test_a_prefix_that_ends_in_the_byte_bf() -> None:
    """Its successor is no UTF-8: it once was cut in the middle of a character."""
    for text in ("left(s, 1) NOT LIKE '\u30bf%'", "left(s, 1) > '\u30bf'"):
        assert judged(bound(text), "\u30f3a".encode()) is True
    assert judged(bound("left(s, 1) LIKE '\u30bf%'"), "\u30f3a".encode()) is False
    emoji = "substring(s, 1, 1) NOT LIKE '\U0001f63f%' AND s > 'b'"
    assert judged(bound(emoji), "\U0001f680".encode()) is True


@given(st.text(max_size=4), st.text(max_size=5), st.integers(1, 4))
def test_any_prefix_of_any_text(prefix: str, text: str, n: int) -> None:
    sql = str.maketrans({"'": "\\'", "\\": "\\\\", "%": "x", "_": "x"})
    prefix = prefix.replace("\ufffd", "x").replace("${", "x").translate(sql)
    if "\\" in prefix:
        return
    own = text.encode()
    assert head(own, n, b"") == substring(text, 1, n).encode()
    for question, truth in questions(f"left(s, {n})", prefix):
        check(question, own, truth, n)


@given(st.text(max_size=3), st.binary(max_size=6), st.integers(1, 3))
def test_any_prefix_of_any_bytes(prefix: str, value: bytes, n: int) -> None:
    if set(prefix) & set("'\\%_\ufffd$"):
        return
    for question, truth in questions(f"left(s, {n})", prefix):
        check(question, value, truth, n)
