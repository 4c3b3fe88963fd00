"""LIKE over the bytes of UTF-8, against regular expressions over its characters."""

from __future__ import annotations

import re
from unittest.mock import patch

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.expressions import patterns
from skipindex.expressions.atoms import Wildcard
from skipindex.expressions.patterns import matches, parse_pattern, select

CHARACTERS = "ab\né\u07ff\u0800タ\uffff\U00010000\U0001f33c"
PATTERNS = st.text("%_" * 4 + CHARACTERS, max_size=8)
TEXTS = st.text(CHARACTERS, max_size=6)


def plain(pattern: str) -> re.Pattern[str]:
    """The pattern, character by character."""
    wildcards = {"%": ".*", "_": "."}
    return re.compile(
        "".join(wildcards.get(c) or re.escape(c) for c in pattern), re.DOTALL
    )


@given(PATTERNS, st.lists(TEXTS, max_size=4))
def test_characters_and_bytes_match_alike(pattern: str, texts: list[str]) -> None:
    pieces = parse_pattern(pattern, "\\")
    assert pieces is not None
    wanted = [plain(pattern).fullmatch(text) is not None for text in texts]
    values = [text.encode() for text in texts]
    assert [matches(pieces, value) for value in values] == wanted
    certain, possible = select(pieces, pa.array(values, pa.large_binary()))
    assert certain.tolist() == possible.tolist() == wanted


@given(TEXTS, TEXTS)
def test_as_many_characters_as_there_are(text: str, more: str) -> None:
    pieces = (Wildcard.ANY_CHARACTER,) * len(text)
    assert matches(pieces, text.encode())
    assert bool(more) == (not matches(pieces, (text + more).encode()))


ODD = "a.%_*\\()[]{}^$|?+-#&~ \t\n\r\0\x7f'\"/éタ\U0001f33c"
PIECES = ["%", "_", *(c for c in ODD if c not in "%_")]


@given(
    st.lists(st.sampled_from(PIECES), max_size=6),
    st.lists(
        st.text(ODD, max_size=5).map(str.encode)
        | st.sampled_from([b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8"]),
        max_size=6,
    ),
)
@example(["a", "%"], [b"a", b"ab", b"", b"ba"])
@example(["%", "_", "%"], ["é".encode(), b"", b"ab"])
@example(["_", "%", "\n", "%"], [b"a\n", b"\n", b"a\nb"])
def test_many_values_are_matched_as_one_by_one(
    pattern: list[str], values: list[bytes]
) -> None:
    pieces = parse_pattern("".join(pattern), "\x01")
    assert pieces is not None
    wanted = [matches(pieces, value) for value in values]
    with patch.object(patterns, "_BULK_FROM_VALUES", 1):
        certain, possible = select(pieces, pa.array(values, pa.large_binary()))
    assert certain.tolist() == [one is True for one in wanted]
    longest = max((p for p in pieces if isinstance(p, bytes)), key=len, default=b"")
    assert possible.tolist() == [
        one is True or (one is None and longest in value)
        for one, value in zip(wanted, values, strict=True)
    ]


def test_many_values_take_no_expression_of_python() -> None:
    values = pa.array([b"Name %06d" % i for i in range(1000)], pa.large_binary())
    with patch.object(patterns, "_compiled") as compiled:
        for text, n in (("%a%1%", 271), ("_%_", 1000), ("_" * 50_000, 0)):
            pieces = parse_pattern(text, "\\")
            assert pieces is not None
            certain, possible = select(pieces, values)
            assert certain.sum() == possible.sum() == n
    compiled.assert_not_called()


def test_large_patterns_are_left_to_python() -> None:
    """RE2 compiles them in steps that no plan bounds."""
    text = b"ab" * 600
    values = pa.array([b"x" + text + b"c"] * 300, pa.large_binary())
    assert patterns._in_bulk((Wildcard.ANY_CHARACTER, text), values) is None
    assert select((Wildcard.ANY_CHARACTER, text, Wildcard.ANY_TEXT), values)[0].all()


def test_a_run_of_any_character_is_one_step() -> None:
    """Its regular expression has the run once, with a number."""
    compiled = patterns._compiled((Wildcard.ANY_CHARACTER,) * 100_000)
    assert len(compiled.pattern) < 100
    assert compiled.fullmatch(b"\xc3\xa9" * 100_000)
    assert not compiled.fullmatch(b"\xc3\xa9" * 99_999)
