"""Blocked Bloom filters: no key is lost, and the error rate is what was asked for."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.filters.blocked import Blocks, distinct_hashes
from skipindex.indexes.filters.filter_type import FilterIndex
from skipindex.indexes.filters.payload import capacity_for
from skipindex.indexes.filters.pybloom import Slices
from skipindex.indexes.filters.splitmix import Keys, hash_of, out
from skipindex.indexes.kinds.bloom import INDEX_TYPE, Bloom
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import arrays, column_of, encoded, values_of

SHAPES = [
    Blocks(7, 1, 3),
    Blocks(1, 1, 9),
    Blocks(7, 5, 9),
    Blocks(10, 1000, 9),
    Blocks(4, 3, 16),
    Blocks(40, 77, 12),
    Blocks(64, 2, 10),
]


def plainly(shape: Blocks, keys: list[Value]) -> bytes:
    """The filter as ``docs/format.md`` has it, bit by bit."""
    bits = bytearray(shape.n << shape.width - 3)
    for key in keys:
        seed = hash_of(key)
        block = (seed >> 32) * shape.n >> 32
        for j in range(shape.k):
            number = out(seed, 1 + j // 4) >> 16 * (j % 4)
            place = (block << shape.width) + number % (1 << shape.width)
            bits[place // 8] |= 1 << place % 8
    return bytes(bits)


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("n_keys", [0, 1, 3, 700])
def test_numpy_sets_the_bits_of_the_definition(shape: Blocks, n_keys: int) -> None:
    numbers = np.arange(n_keys, dtype=np.int64) ** 3
    assert shape.filled(distinct_hashes(numbers)) == plainly(shape, numbers.tolist())
    texts: list[Value] = [b"key %d" % number for number in numbers.tolist()]
    hashes = distinct_hashes(pa.array([*texts, *texts], pa.large_binary()))
    assert shape.filled(hashes) == plainly(shape, texts)


@pytest.mark.parametrize("n", [1, 3, 40_000])
def test_keys_of_several_batches_share_a_block(n: int) -> None:
    """The last block of a batch is the first of the next."""
    shape = Blocks(2, n, 9)
    keys = np.arange(70_000)
    assert shape.filled(distinct_hashes(keys)) == plainly(shape, keys.tolist())


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_places_are_those_of_the_definition(shape: Blocks) -> None:
    for key in (0, -1, 2**63 - 1, b"", b"\0", "Zürich".encode() * 9):
        raw = np.frombuffer(plainly(shape, [key]), np.uint8)
        bits = np.unpackbits(raw, bitorder="little")
        assert np.flatnonzero(bits).tolist() == sorted(set(shape.places(key)))
        assert len(shape.places(key)) == shape.k


def test_a_key_takes_one_block() -> None:
    shape = Blocks(7, 1000, 9)
    for key in range(500):
        assert len({place >> 9 for place in shape.places(key)}) == 1


def random_keys(n: int, seed: int) -> Ints:
    return np.random.default_rng(seed).integers(-(2**63), 2**63, n)


def clustered(n: int) -> Ints:
    """Runs of 50 neighbours, far apart."""
    return (np.arange(n) // 50 << 32) + np.arange(n) % 50


def texts(numbers: Ints) -> pa.LargeBinaryArray:
    keys = [b"Customer#%018d" % n for n in numbers.tolist()]
    return pa.array(keys, pa.large_binary())


N_KEYS = 14 << 11  # a capacity
PRESENT: dict[str, tuple[Keys, Keys]] = {
    "random": (random_keys(N_KEYS, 1), random_keys(40_000, 2)),
    "sequential": (np.arange(N_KEYS), np.arange(N_KEYS, N_KEYS + 40_000)),
    "even": (np.arange(N_KEYS) * 2, np.arange(40_000) * 2 + 1),
    "clustered": (clustered(N_KEYS), clustered(40_000) + 50),
    "multiples": (np.arange(N_KEYS) << 40, np.arange(1, 40_001) << 20 | 1),
    "texts": (texts(np.arange(N_KEYS)), texts(np.arange(40_000) + N_KEYS)),
    "long texts": (
        pa.array([b"%d" % i + b"-" * 90 for i in range(N_KEYS)], pa.large_binary()),
        pa.array([b"%d" % i + b"+" * 90 for i in range(40_000)], pa.large_binary()),
    ),
}


def held(shape: Blocks, bits: bytes, keys: Keys) -> int:
    """How many of some keys seem to be in a filter."""
    table = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    places = np.array([shape.places(key) for key in keys.tolist()])
    return int(table[places].all(axis=1).sum())


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PRESENT)
@pytest.mark.parametrize("error_rate", [0.1, 0.01])
def test_the_error_rate_is_what_was_asked_for(name: str, error_rate: float) -> None:
    present, absent = PRESENT[name]
    assert capacity_for(N_KEYS) == N_KEYS
    shape = Blocks.for_keys(N_KEYS, error_rate)
    bits = shape.filled(distinct_hashes(present))
    assert held(shape, bits, present[:500]) == 500
    assert held(shape, bits, absent) <= 1.3 * error_rate * len(absent)


@pytest.mark.few(5)
@pytest.mark.parametrize("n_keys", [1, 2, 5, 13, 30, 52, 60, 100, 416, 3584])
def test_small_filters_have_the_error_rate_too(n_keys: int) -> None:
    """On average: one filter of a key alone has many absent keys, or none."""
    wrong, n_filters, absent = 0, 40, 10**6 + np.arange(1000)
    for seed in range(n_filters):
        shape = Blocks.for_keys(capacity_for(n_keys), 0.02)
        bits = shape.filled(distinct_hashes(random_keys(n_keys, seed)))
        wrong += held(shape, bits, absent)
    assert wrong <= 1.3 * 0.02 * n_filters * len(absent)


def test_blocks_cost_few_bits() -> None:
    for error_rate, most in (
        (0.5, 1.7),
        (0.1, 5.4),
        (0.01, 10.8),
        (1e-3, 16),
        (1e-6, 32),
    ):
        shape = Blocks.for_keys(1 << 20, error_rate)
        assert shape.n_bits / (1 << 20) < most, shape
    for n_keys in range(1, 200):
        assert Blocks.for_keys(n_keys, 0.01).n_bits <= max(8, 32 * n_keys)


@pytest.mark.parametrize("error_rate", [0.99, 0.5, 0.3, 1e-4, 1e-9, 1e-15, 2.0**-63])
def test_every_error_rate_has_a_shape(error_rate: float) -> None:
    for n_keys in (1, 7, 1000, 1 << 24):
        shape = Blocks.for_keys(n_keys, error_rate)
        assert Blocks.parse(shape.text, shape.k, shape.n) == shape
        keys = random_keys(min(n_keys, 500), 1)
        bits = shape.filled(distinct_hashes(keys)) if shape.n_bits < 1 << 24 else b""
        assert not bits or held(shape, bits, keys) == len(keys)


def test_one_shape_serves_most_files_of_a_table() -> None:
    shapes = {Blocks.for_keys(capacity_for(n), 0.01) for n in range(58_000, 61_000)}
    assert len(shapes) == 1


@given(st.data())
def test_no_value_of_any_type_is_lost(data: st.DataObject) -> None:
    """Chunks, slices with an offset, dictionaries, NULL, NaN, both zeros."""
    spec = Bloom(error_rate=data.draw(st.sampled_from([0.5, 0.01, 1e-9])))
    array = data.draw(arrays(spec))
    start = data.draw(st.integers(0, len(array)))
    cut = data.draw(st.integers(start, len(array)))
    tail: pa.Array = array[start:]
    column = column_of(tail)
    chunks = pa.chunked_array([array[start:cut], array[cut:]], array.type)
    payload = spec.build(EncodedColumn("c", chunks, column.domain))
    assert payload == spec.build(column)
    index = INDEX_TYPE.open(MemoryParts(payload), column.domain, len(tail))
    assert isinstance(index, FilterIndex)
    check_all(index, values_of(tail))


def check_all(index: FilterIndex, values: list[Value | None]) -> None:
    shape, bits = index.head.shape, index.parts[1][40:]
    for value in values:
        if value is not None:
            assert all(bits[p >> 3] >> (p & 7) & 1 for p in shape.places(value))


@functools.cache
def huge() -> list[str | None]:
    return ["", "x" * 3_000_000, None, "x" * 3_000_001, "\0", "\0\0", "é" * 5000, ""]


@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string(), pa.string_view()])
def test_huge_and_empty_texts_are_found(dtype: pa.DataType) -> None:
    column = encoded(list(huge()), dtype)
    payload = Bloom().build(column)
    index = INDEX_TYPE.open(MemoryParts(payload), Domain("string"), len(huge()))
    assert isinstance(index, FilterIndex)
    check_all(index, values_of(pa.array(huge())))
    assert index.head.n_keys == 6


def test_a_dictionary_gives_the_same_filter() -> None:
    values = pa.array(["b", None, "a", "b", "", "long enough for two words"] * 50)
    plain = Bloom().build(column_of(values))
    assert Bloom().build(column_of(values.dictionary_encode())) == plain
    two = [values.dictionary_encode(), pa.array(["zz"]).dictionary_encode()]
    chunked = pa.chunked_array(two)
    column = EncodedColumn("c", chunked, Domain("string"))
    assert Bloom().build(column) == Bloom().build(
        column_of(pa.array([*values.to_pylist(), "zz"]))
    )


@pytest.mark.parametrize(
    ("text", "k", "n"),
    [
        (b"splitmix64/b9/k7", 8, 5),
        (b"splitmix64/b9/k7", 7, 0),
        (b"splitmix64/b9/k7", 7, 1 << 32),
        (b"splitmix64/b2/k7", 7, 5),
        (b"splitmix64/b17/k7", 7, 5),
        (b"splitmix64/b09/k7", 7, 5),
        (b"splitmix64/b9/k07", 7, 5),
        (b"splitmix64/b9/k0", 0, 5),
        (b"splitmix64/b9/k7 ", 7, 5),
        (b"XXH3_128/u2/k7/little", 7, 5),
    ],
)
def test_a_shape_that_no_filter_has(text: bytes, k: int, n: int) -> None:
    assert Blocks.parse(text, k, n) is None


def test_shapes_of_both_hashings_say_what_they_are() -> None:
    for shape in Blocks(7, 3, 9), Slices(7, 100):
        assert shape.n_bits > max(shape.places(b"key"))
        assert shape.text.count(b"/k7")
