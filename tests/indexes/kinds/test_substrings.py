"""LIKE in the middle of a text: filters of pieces and of words, and dictionaries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.errors import UnknownIndexError, UnsupportedTypeError
from skipindex.expressions.atoms import Matches, NoneOf, OneOf, Pattern, Range, Wildcard
from skipindex.expressions.patterns import (
    Fragment,
    parse_pattern,
    select,
    shared_prefix,
)
from skipindex.indexes import IndexSpec
from skipindex.indexes.kinds.ngram_bloom import NGramBloom
from skipindex.indexes.kinds.token_bloom import TokenBloom
from tests.indexes.columns import column_of, encoded
from tests.indexes.memory_parts import opened
from tests.tables import build, put_all

LOG = [
    "2024-05-01 error: disk full on node-7",
    "2024-05-01 warning: fan slow",
    "ünïcødé straße",
    None,
    "",
]


def like(pattern: str, *, negated: bool = False) -> Matches:
    parsed = parse_pattern(pattern, "\\")
    assert parsed is not None
    return Matches("c", parsed, negated)


def rules_out(spec: IndexSpec, question: object, values: list[str | None]) -> bool:
    """Whether the index says that no row is TRUE; None of these kinds says more."""
    index, _ = opened(spec, encoded(list(values), pa.string()))
    bounds = index.probe(question)  # type: ignore[arg-type]
    assert bounds is None or not bounds.upper
    return bounds is not None


EXACT = NGramBloom(error_rate=1e-9)
WORDS = TokenBloom(error_rate=1e-9)


@pytest.mark.parametrize(
    ("pattern", "n_gram", "token"),
    [
        ("%disk full%", False, False),
        ("%disk empty%", True, False),  # empty may be emptying
        ("% disc %", True, True),
        ("%error% node-8", True, True),
        ("%error% node-7", False, False),
        ("% Error: %", True, True),  # a capital is another letter
        ("%node_7%", False, False),
        ("%nod__8x", False, False),
        ("%straße", False, False),
        ("%strasse", True, False),  # another word may end so
        ("% strasse", True, True),
        ("2025%x", True, False),
        ("2025-%x", True, True),
        ("%zz%", False, False),  # too short for three bytes
        ("%ß", False, False),
        ("%", False, False),
        ("_", False, False),
    ],
)
def test_patterns_are_ruled_out(pattern: str, n_gram: bool, token: bool) -> None:
    assert rules_out(EXACT, like(pattern), LOG) == n_gram
    assert rules_out(WORDS, like(pattern), LOG) == token
    for spec in (EXACT, WORDS):
        assert not rules_out(spec, like(pattern, negated=True), LOG), "no opinion"


def test_trap_c13_a_needle_shorter_than_a_piece_is_not_answered() -> None:
    """apache/doris 11579: such a question cannot be put to the filter."""
    for n in range(2, 9):
        spec = NGramBloom(n=n, error_rate=1e-9)
        assert not rules_out(spec, like("%" + "z" * (n - 1) + "%"), LOG)
        assert rules_out(spec, like("%" + "z" * n + "%"), LOG)


def test_trap_c13_equality_is_put_as_what_it_requires() -> None:
    """A whole value is not among the pieces, but its pieces must be."""
    for spec, absent in ((EXACT, b"disk fool"), (WORDS, b"disk empty")):
        assert not rules_out(spec, OneOf("c", (b"2024-05-01 warning: fan slow",)), LOG)
        assert not rules_out(spec, OneOf("c", (b"", absent)), LOG), "'' has none"
        assert rules_out(spec, OneOf("c", (absent,)), LOG)
        assert not rules_out(spec, NoneOf("c", (absent,)), LOG)


def test_a_prefix_is_a_range_and_is_ruled_out() -> None:
    assert shared_prefix(b"2025-", b"2025.") == b"2025-"
    assert shared_prefix(b"abc", b"abz") == b"ab"
    assert shared_prefix(b"a\xff", b"b") == b"a\xff"
    assert shared_prefix(b"a", b"b\0") == b""
    assert rules_out(EXACT, Range("c", b"2025-", b"2025."), LOG)
    assert rules_out(WORDS, Range("c", b"2025-", b"2025."), LOG)
    assert not rules_out(WORDS, Range("c", b"202", b"203"), LOG)
    assert not rules_out(EXACT, Range("c", b"2024-", b"2024."), LOG)
    assert not rules_out(EXACT, Range("c", None, b"2"), LOG)


def test_pieces_and_words_end_with_their_value() -> None:
    """What only stands across two values is in neither."""
    for spec in (EXACT, WORDS):
        assert rules_out(spec, like("% lowhi %"), ["a low", "high b"])
        assert rules_out(spec, like("% slowfast %"), ["a slow", "fast b"])
    assert rules_out(EXACT, like("%abc%"), ["a", "b", "c", "ab", "bc"])
    assert not rules_out(EXACT, like("%abc%"), ["a", "", "zabc"])


def test_words_are_of_the_same_bytes_when_built_and_when_asked_for() -> None:
    for byte in range(256):
        fragment = Fragment(bytes([byte]), begins=True, ends=True)
        asked = bool(TokenBloom.keys_by(b"")(fragment))
        built = len(TokenBloom().pieces(pa.array([fragment.text], pa.large_binary())))
        assert asked == bool(built), byte


@pytest.mark.parametrize(
    "spec", [WORDS, TokenBloom(error_rate=1e-9, hashing="pybloom")], ids=repr
)
def test_words_of_every_place_are_found(spec: IndexSpec) -> None:
    """First, last and alone in a value; beside empty values, NULL and nothing."""
    values = ["", "a b", "", "c", None, "d-e", "f", "", "g h i", " j ", "k", ""]
    for cut in range(len(values)):
        rest = values[cut:]
        for word in "abcdefghijk":
            there = any(value and word in value for value in rest)
            assert rules_out(spec, like(f"% {word} %"), rest) == (not there), word


def test_bytes_that_are_no_text_do_no_harm() -> None:
    raw = pa.array([b"ab\xff\xfe cde", b"\xe2\x82 x"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    for spec in (EXACT, WORDS, sx.Bitmap(), sx.BitSliced(), sx.RangeBitmap()):
        index, _ = opened(spec, column_of(text))
        for pattern in ("%cde", "ab%", "%ab%cde", "% x"):
            bounds = index.probe(like(pattern))
            assert bounds is None or bounds.upper
            assert bounds is None or not bounds.lower
            bounds = index.probe(like(pattern, negated=True))
            assert bounds is None or len(bounds.upper) == 2


def test_filters_are_sized_by_their_distinct_pieces() -> None:
    rows = [f"Customer#{i % 100:09d}" for i in range(20_000)]
    column = encoded(list(rows), pa.string())
    pieces = {row[i : i + 3] for row in rows for i in range(len(row) - 2)}
    assert sum(map(len, NGramBloom().build(column))) < 300 + 1.3 * len(pieces)
    assert sum(map(len, TokenBloom().build(column))) < 300 + 1.3 * 101
    assert NGramBloom().build(column) == NGramBloom().build(
        encoded(sorted(set(rows)) * 200, pa.string())
    )


@pytest.mark.parametrize("dtype", [pa.int64(), pa.binary(), pa.date32()], ids=str)
def test_only_text_has_pieces(dtype: pa.DataType) -> None:
    for spec in (NGramBloom(), TokenBloom()):
        with pytest.raises(UnsupportedTypeError, match="accepted: string"):
            spec.build(encoded([None], dtype))


@pytest.mark.parametrize("n", [1, 9, 0, -3])
def test_a_length_that_no_piece_has(n: int) -> None:
    with pytest.raises(UnknownIndexError, match="accepted: 2 to 8"):
        NGramBloom(n=n)


def test_an_error_rate_that_is_none() -> None:
    for spec in (NGramBloom, TokenBloom):
        with pytest.raises(UnknownIndexError, match="accepted: between 0 and 1"):
            spec(error_rate=1.5)


@pytest.mark.parametrize(
    "spec", [sx.Bitmap(), sx.BitSliced(), sx.RangeBitmap()], ids=str
)
def test_a_dictionary_answers_exactly(spec: IndexSpec) -> None:
    """Also where it has many chunks, and is searched before it is matched."""
    rows = [None, *(f"Customer#{i * 7919:012d}" for i in range(4000))]
    index, count = opened(spec, encoded(list(rows), pa.string()))
    for pattern, wanted in [
        ("%99%", lambda r: "99" in r),
        ("Cust%_77", lambda r: len(r) > 7 and r.endswith("77")),
        ("%nobody%", lambda r: False),
    ]:
        truth = [i for i, r in enumerate(rows) if r is not None and wanted(r)]
        bounds = index.probe(like(pattern))
        assert bounds is not None
        assert set(bounds.upper) >= set(truth)
        no = index.probe(like(pattern, negated=True))
        assert no is not None
        rest = set(range(1, len(rows))) - set(truth)
        assert set(no.upper) >= rest
        if spec.kind != "range_bitmap":  # of more values than bitmaps
            assert list(bounds.lower) == list(bounds.upper) == truth
            assert set(no.lower) == set(no.upper) == rest
    assert count.n_bytes > 0


def test_a_pattern_that_a_naive_matcher_never_ends_on() -> None:
    values = pa.array([b"a" * 5000, b"a" * 5000 + b"b"], pa.large_binary())
    pattern: Pattern = (*(Wildcard.ANY_TEXT, b"a") * 20, Wildcard.ANY_TEXT, b"b")
    certain, possible = select(pattern, values)
    assert certain.tolist() == possible.tolist() == [False, True]


def test_plans_use_the_substring_kinds(tmp_path: Path) -> None:
    nodes = [[f"node-{i} up", f"node-{i} disk full"] for i in range(10, 14)]
    put_all(tmp_path, [{"m": own} for own in nodes])
    for spec in (EXACT, WORDS, sx.Bitmap()):
        kind = spec.kind
        table = build(tmp_path, {"m": spec})
        for text in (
            "m LIKE '%-12 %' AND m LIKE '%disk%'",
            "contains(m, 'e-12 disk')",
            "endswith(m, '-12 up')",
            "m LIKE '%-12 _p'",
            "NOT (m NOT LIKE 'node-12 %k_full')",
        ):
            assert table.plan(text, kinds=[kind]).paths == ["2.parquet"], text
        none = table.plan("m NOT LIKE '%node%'", kinds=[kind])
        assert len(none.paths) == (0 if kind == "bitmap" else 4)
