"""SplitMix64: numpy and Python give every key the hash of the definition."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.expressions.arrays import Words
from skipindex.expressions.domain import domain_of
from skipindex.indexes.filters import splitmix
from skipindex.indexes.filters.splitmix import hash_of, hashes_of, out, outputs

MASK = (1 << 64) - 1


def texts(values: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def plainly(key: int | bytes) -> int:
    """The hash as ``docs/format.md`` has it, written once more."""

    def mixed(x: int) -> int:
        x &= MASK
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
        return x ^ (x >> 31)

    step = 0x9E3779B97F4A7C15
    if isinstance(key, int):
        return mixed(key % (1 << 64) + step)
    number = len(key)
    padded = key + bytes(-len(key) % 8)
    for i in range(len(padded) // 8):
        word = sum(padded[8 * i + j] << 8 * j for j in range(8))
        number += mixed(word + (i + 1) * step)
    return mixed(number + step)


def test_the_generator_is_that_of_others() -> None:
    """The first numbers of java.util.SplittableRandom and of Vigna's splitmix64.c."""
    numbers = [out(1234567, i) for i in range(1, 6)]
    assert numbers == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    seeds = np.array([1234567, 0], np.uint64)
    assert [int(outputs(seeds, i)[0]) for i in range(1, 6)] == numbers
    assert out(0, 1) == 0xE220A8397B1DCDAF


def test_hashes_that_never_change() -> None:
    """A filter on disk is lost if one of these changes."""
    keys: list[int | bytes] = [0, 1, -1, 2**63 - 1, -(2**63), b"", b"\0", b"skipindex"]
    assert [hash_of(key) for key in keys] == [plainly(key) for key in keys]
    assert hash_of(0) == hash_of(b"") == 0xE220A8397B1DCDAF
    assert hash_of(-1) == hash_of(MASK) == 0xE4D971771B652C20
    assert hash_of(b"skipindex") == 0x2FEE576542853963


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_integers(keys: list[int]) -> None:
    found = hashes_of(np.array(keys, np.int64)).tolist()
    assert found == [plainly(key) for key in keys] == [hash_of(key) for key in keys]
    unsigned = np.array([key % 2**64 for key in keys], np.uint64)
    assert hashes_of(unsigned).tolist() == found


@given(st.lists(st.binary(max_size=40), max_size=60), st.integers(0, 9))
def test_byte_strings(keys: list[bytes], skipped: int) -> None:
    array = texts([bytes(skipped), *keys])[1:]  # with an offset
    found = hashes_of(array).tolist()
    assert found == [plainly(key) for key in keys] == [hash_of(key) for key in keys]


def random_texts(lengths: list[int]) -> list[bytes]:
    chooser = random.Random(3)
    return [chooser.randbytes(n) for n in lengths]


@pytest.mark.parametrize(
    "lengths",
    [
        [8] * 300,
        [9] * 300,
        [0] * 300,
        [*range(40)] * 9,
        [3] * 300 + [4000],
        [5000] * 140 + [1, 0, 4096, 4097, 8 * 512 + 1],
        [16] * 200 + [17] * 100 + [24] * 10,
        [1 << 19, 1, 0],
        [7],
        [0],
        [0, 0, 8],
        [],
    ],
    ids=str,
)
def test_byte_strings_of_every_length(lengths: list[int]) -> None:
    """Few and many, short and long are hashed in different ways, and alike."""
    keys = random_texts(lengths)
    assert hashes_of(texts(keys)).tolist() == [plainly(key) for key in keys]


def test_more_byte_strings_than_a_batch() -> None:
    keys = [b"%d" % (i**3) for i in range(splitmix._BATCH * 2 + 5)]
    assert hashes_of(texts(keys)).tolist() == [plainly(key) for key in keys]


def test_the_end_of_the_data_is_the_end_of_the_last_string() -> None:
    """A word beyond it would read what is behind the buffer."""
    for n in range(1, 30):
        data = np.frombuffer(random_texts([n])[0], np.uint8)
        for start in range(n):
            offsets = pa.py_buffer(np.array([start, n], np.int64))
            buffers = [None, offsets, pa.py_buffer(data)]
            array = pa.Array.from_buffers(pa.large_binary(), 1, buffers)
            assert hashes_of(array).tolist() == [plainly(data[start:].tobytes())]


def unequal(hashes: Words) -> bool:
    return len(np.unique(hashes)) == len(hashes)


def test_keys_that_look_alike_have_different_hashes() -> None:
    numbers = np.arange(300_000)
    for factor in 1, 1 << 20, 0x9E3779B97F4A7C15 - (1 << 64), 3**30:
        assert unequal(hashes_of(numbers * np.int64(factor)))
    keys = [b"a" * n for n in range(300)] + [bytes(n) for n in range(1, 300)]
    keys += [b"%07d%c%07d%c" % (0, i, 0, j) for i in range(97, 123) for j in range(256)]
    keys += [b"%08d%08d" % (i % 500, i // 500) for i in range(100_000)]
    assert unequal(hashes_of(texts(keys)))


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ([3, -7, 100], [pa.int8(), pa.int16(), pa.int32(), pa.int64()]),
        ([3, 7, 100], [pa.uint8(), pa.uint16(), pa.uint32(), pa.int64()]),
        ([True, False], [pa.bool_()]),
        ([0.0, 1.5, float("nan")], [pa.float32(), pa.float64()]),
        (
            [Decimal("1.50"), Decimal("-2.25"), None],
            [pa.decimal128(5, 2), pa.decimal128(18, 2), pa.decimal256(9, 2)],
        ),
        (
            ["", "a", "Zürich", "x" * 70, None],
            [
                pa.string(),
                pa.large_string(),
                pa.string_view(),
                pa.dictionary(pa.int8(), pa.string()),
                pa.binary(),
                pa.large_binary(),
                pa.binary_view(),
            ],
        ),
    ],
    ids=str,
)
def test_equal_values_have_equal_hashes(
    values: list[object], types: list[pa.DataType]
) -> None:
    """Whatever Arrow type holds them: the domain has one form of each."""
    found = []
    for dtype in types:
        array = pa.array(values, pa.string() if pa.types.is_dictionary(dtype) else None)
        if pa.types.is_decimal(dtype):
            array = pa.array(values, dtype)
        encoded = domain_of(dtype).encode(array.cast(dtype)).drop_null()
        keys = encoded if pa.types.is_large_binary(encoded.type) else encoded.to_numpy()
        found.append(hashes_of(keys).tolist())
        assert found[-1] == [hash_of(key) for key in encoded.to_pylist()]
    assert all(one == found[0] for one in found)


def test_zeros_and_nans_are_one_key_each() -> None:
    array = pa.array([0.0, -0.0, float("nan"), -float("nan")])
    keys = domain_of(array.type).encode(array).to_numpy()
    zero, minus, nan, other = hashes_of(keys).tolist()
    assert zero == minus != nan == other
