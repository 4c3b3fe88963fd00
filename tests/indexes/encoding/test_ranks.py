"""Ranks against Python's own sort, on every path and on what trips sorting up."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.indexes.encoding.ranks import distinct_ints, rank_bytes, rank_ints
from tests.quick_run import examples

I64_MIN, I64_MAX = -(2**63), 2**63 - 1
rng = np.random.default_rng(0)


def check_ints(values: np.ndarray) -> None:
    codes, distinct = rank_ints(values)
    expected = sorted(set(values.tolist()))
    assert distinct.dtype == np.int64
    assert codes.dtype == np.uint32
    assert distinct.tolist() == expected
    assert distinct[codes].tolist() == values.tolist()
    assert distinct_ints(values).tolist() == expected


def check_bytes(values: list[bytes]) -> None:
    codes, distinct = rank_bytes(pa.array(values, pa.large_binary()))
    expected = sorted(set(values))
    assert distinct.to_pylist() == expected
    assert [expected[code] for code in codes] == values


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.array([], np.int64), id="nothing"),
        pytest.param(np.array([7]), id="one row"),
        pytest.param(np.full(100, -3), id="one value"),
        pytest.param(np.arange(1000) // 3, id="sorted"),
        pytest.param(np.arange(1000)[::-1].copy(), id="descending"),
        pytest.param(rng.integers(-5, 5, 999), id="narrow"),
        pytest.param(rng.integers(0, 2**31, 999), id="span below 2**32"),
        pytest.param(np.array([5, I64_MIN, I64_MIN + 7]), id="narrow at the bottom"),
        pytest.param(np.array([I64_MAX, I64_MAX - 2**31]), id="wide at the top"),
        pytest.param(np.array([0, 2**32 - 1, 5, 0]), id="span of exactly 2**32"),
        pytest.param(np.array([0, 2**32, 5, 0]), id="span above 2**32"),
        pytest.param(rng.integers(-(2**62), 2**62, 9999), id="wide, all distinct"),
        pytest.param(
            rng.choice(rng.integers(-(2**62), 2**62, 9), 9999), id="wide, few distinct"
        ),
    ],
)
def test_ints(values: np.ndarray) -> None:
    check_ints(values)


def test_trap_c22_the_span_of_int64_does_not_overflow() -> None:
    check_ints(np.array([I64_MAX, I64_MIN, 0, -1, I64_MIN, I64_MAX]))
    check_ints(np.array([I64_MIN, I64_MAX] * 5000 + [0]))


@examples(200)
@given(
    st.lists(
        st.integers(-3, 3)
        | st.integers(I64_MIN, I64_MAX)
        | st.sampled_from([I64_MIN, I64_MAX, 2**32, -(2**32)])
    )
)
def test_any_ints(values: list[int]) -> None:
    check_ints(np.array(values, np.int64))


@examples(300)
@given(st.lists(st.binary(max_size=20) | st.text("ab\0", max_size=20).map(str.encode)))
@example([b"x", b"x\0", b"x\0\0", b"x\0\1", b"", b"\0"])
@example([b"\xff" * 8, b"\xff" * 8 + b"\0", b"\xff" * 9])
@example([b"\0" * 8, b"\0" * 16, b""])
@example([b"prefix"] * 5)
def test_any_bytes(values: list[bytes]) -> None:
    check_bytes(values)


@pytest.mark.parametrize("alphabet", [b"ab", b"\0\xff", bytes(range(256))])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 12, 13, 40, 90])
@pytest.mark.parametrize("prefix", [b"", b"Customer#", b"\xc3\xa9" * 30])
def test_bytes_of_many_lengths(alphabet: bytes, length: int, prefix: bytes) -> None:
    chooser = random.Random(length)
    values = [
        prefix + bytes(chooser.choices(alphabet, k=chooser.randint(0, length)))
        for _ in range(300)
    ]
    check_bytes(values)


def test_distinct_texts_that_differ_only_far_behind() -> None:
    """Beyond the passes by words the rest is sorted by Python."""
    chooser = random.Random(5)
    stem = bytes(chooser.choices(b"abc", k=200))
    values = [stem[: chooser.randrange(200)] + b"\0" * (i % 3) for i in range(800)]
    values += [stem + b"%d" % (i % 150) for i in range(600)] + [b"z"]
    chooser.shuffle(values)
    check_bytes(values)


def test_few_distinct_bytes_among_many_rows() -> None:
    values = [b"\xffEUROPE", b"ASIA", b"", b"ASIA\0"] * 3000
    check_bytes(values)


def test_a_slice_of_an_array_is_ranked_by_its_own_rows() -> None:
    texts = [b"z" * 50, b"b", b"a", b"c" * 9, b"a", b"zz"]
    array = pa.array(texts, pa.large_binary())
    codes, distinct = rank_bytes(array.slice(1, 4))
    assert distinct.to_pylist() == [b"a", b"b", b"c" * 9]
    assert codes.tolist() == [1, 0, 2, 0]
