"""Byte strings compared as words, beside Python's own comparison."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.expressions.domain import big_decimal_key
from skipindex.table.statistics.words import ByteStrings, WordKeys, compare

PIECES = st.sampled_from([b"", b"\0", b"a", b"\xff", b"abcdefgh", b"\xed\xa0\x80"])
STRINGS = st.one_of(
    st.lists(PIECES, max_size=5).map(b"".join),
    st.binary(max_size=20),
)
LISTS = st.lists(STRINGS, min_size=1, max_size=12)


@given(LISTS, LISTS)
@example([b"a"], [b"a\0"])
@example([b"a" * 8], [b"a" * 8 + b"\0"])
@example([b"a" * 16 + b"\0"], [b"a" * 16])
@example([b""], [b"\0" * 9])
def test_every_pair_is_compared_as_python_does(
    left: list[bytes], right: list[bytes]
) -> None:
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
    at, places = np.array(pairs, np.int64).T
    found = compare(ByteStrings.of(left), at, ByteStrings.of(right), places)
    expected = [(left[i] > right[j]) - (left[i] < right[j]) for i, j in pairs]
    assert found.tolist() == expected


@given(LISTS)
@example([b"\x7f" + b"\xff" * 15, b"\x80" + b"\0" * 14 + b"\x01"])
@example([b"a" + b"\xff" * 15, b"c"])
@example([b"ab", b"ab", b"ab\0"])
@example([b"", b"\xff" * 16])
@example([b"a" * 9 + b"\0" * 16, b"a" * 9 + b"\0" * 15 + b"\x01"])
def test_keys_have_the_order_of_the_strings(values: list[bytes]) -> None:
    ordered = sorted(values)
    word_keys = WordKeys(ordered[0], ordered[-1])
    keys = word_keys.keys(ByteStrings.of(ordered)).tolist()
    assert keys == sorted(keys)
    assert keys == [int(word_keys.key(value)) for value in ordered]
    n = word_keys.n_equal
    for (one, key), (other, next_key) in pairwise(zip(ordered, keys, strict=True)):
        is_equal = one[:n].ljust(n, b"\0") == other[:n].ljust(n, b"\0")
        assert key < next_key or is_equal


@given(st.lists(st.integers(-(1 << 63) + 1, (1 << 63) - 1), min_size=1, max_size=9))
def test_long_decimals_near_each_other_have_keys_of_their_own(
    numbers: list[int],
) -> None:
    """Around zero, where the first bytes of their domain values differ most."""
    values = [big_decimal_key(number) for number in numbers]
    keys = WordKeys(min(values), max(values)).keys(ByteStrings.of(values)).tolist()
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    rank = {number: i for i, number in enumerate(sorted(set(numbers)))}
    assert [place[key] for key in keys] == [rank[number] for number in numbers]


@given(LISTS, st.integers(0, 20))
def test_words_are_bytes_filled_up_with_zeros(values: list[bytes], at: int) -> None:
    found = ByteStrings.of(values).words(slice(None), at)
    expected = [
        int.from_bytes(value[at : at + 8].ljust(8, b"\0"), "big") for value in values
    ]
    assert found.tolist() == expected


def test_slices_and_nulls_are_read_at_their_places() -> None:
    values = pa.array([b"left out", None, b"abc", b"", b"abcdefghi"], pa.large_binary())
    strings = ByteStrings(values[1:])
    assert strings.lengths(slice(None)).tolist() == [0, 3, 0, 9]
    assert strings.words(np.array([3, 1]), 8).tolist() == [ord("i") << 56, 0]


def test_keys_are_made_in_blocks() -> None:
    values = [b"%09d" % number for number in range(70_000)]
    word_keys = WordKeys(values[0], values[-1])
    expected = [int(word_keys.key(value)) for value in values]
    assert word_keys.keys(ByteStrings.of(values)).tolist() == expected
    assert len(set(expected)) == 70_000
