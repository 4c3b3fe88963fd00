"""Bloom filters: never a lost value; on request, pybloom-live's very bits."""

from __future__ import annotations

import io
import math
import struct
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from pybloom_live import BloomFilter

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.atoms import NoneOf, NotNullAtom, NullAtom, OneOf, Range
from skipindex.expressions.domain import Domain, domain_of, float_key
from skipindex.indexes import spec_to_json
from skipindex.indexes.filters import payload as payload_module
from skipindex.indexes.filters import pybloom
from skipindex.indexes.filters.pybloom import bloom_key, fill, scheme_of
from skipindex.indexes.kinds.bloom import INDEX_TYPE, Bloom
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import encoded
from tests.indexes.memory_parts import opened

STRING = Domain("string")
PYBLOOM = Bloom(hashing="pybloom")
each_hashing = pytest.mark.parametrize("hashing", [None, "pybloom"])


def filter_of(payload: list[bytes]) -> BloomFilter:
    return BloomFilter.fromfile(io.BytesIO(payload[1]), len(payload[1]))


@pytest.mark.parametrize(
    ("capacity", "error_rate"),
    [
        (1, 0.01),
        (500, 0.5),
        (500, 0.01),
        (9000, 0.001),
        (23_000, 0.01),
        (24_500, 0.01),
        (30_000, 0.001),
        (30_000, 0.06),
        (2000, 1e-6),
        (300, 1e-12),
    ],
)
def test_bulk_gives_the_bits_of_add(capacity: int, error_rate: float) -> None:
    keys = [f"key {i} é\0".encode() for i in range(capacity // 2 + 1)]
    bulk, single = BloomFilter(capacity, error_rate), BloomFilter(capacity, error_rate)
    assert pybloom._agrees(bulk.num_slices, pybloom.word_bytes(bulk.bits_per_slice))
    fill(bulk, keys)
    for key in keys:
        single.add(key.decode(), skip_check=True)
    assert bulk.bitarray == single.bitarray
    one, other = io.BytesIO(), io.BytesIO()
    bulk.tofile(one)
    single.tofile(other)
    assert one.getvalue() == other.getvalue()


def test_a_library_with_other_bits_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check once a process finds out, and ``add`` builds what can be asked."""

    def wrong(k: int, width: int, keys: list[bytes]) -> object:
        return words(k, width, [key + b"!" for key in keys])

    words = pybloom._words
    monkeypatch.setattr(pybloom, "_words", wrong)
    pybloom._agrees.cache_clear()
    try:
        assert not pybloom._agrees(7, 2)
        index, _ = opened(PYBLOOM, encoded(["a", "b"], pa.string()))
        assert index.probe(OneOf("c", (b"a",))) is None
    finally:
        pybloom._agrees.cache_clear()


def test_pybloom_live_reads_the_second_part() -> None:
    payload = PYBLOOM.build(encoded(["ASIA", "é", None], pa.string()))
    theirs = filter_of(payload)
    assert "ASIA" in theirs
    assert "é" in theirs
    assert "EUROPE" not in theirs
    assert len(theirs) == theirs.capacity == 2


@each_hashing
def test_no_value_is_lost_and_most_absent_ones_are_known(hashing: str | None) -> None:
    rows = [f"Customer#{i:09d}" for i in range(0, 8_000, 2)]
    column = encoded(rows, pa.string())
    for error_rate in (0.1, 0.01, 0.001):
        index, _ = opened(Bloom(error_rate=error_rate, hashing=hashing), column)
        for text in rows:
            assert index.probe(OneOf("c", (text.encode(),))) is None
        wrong = sum(
            index.probe(OneOf("c", (f"Customer#{i:09d}".encode(),))) is None
            for i in range(1, 8_000, 2)
        )
        assert wrong < 2 * error_rate * 4_000 + 10


@each_hashing
def test_only_equality_is_answered(hashing: str | None) -> None:
    index, count = opened(Bloom(hashing=hashing), encoded([1, 5, None], pa.int64()))
    assert index.probe(Range("c", 2, 4)) is None
    assert index.probe(NoneOf("c", (2, 3))) is None
    assert index.probe(NullAtom("c")) is None
    assert index.probe(NotNullAtom("c")) is None
    assert count.parts == 0
    absent = index.probe(OneOf("c", (2, 3)))
    assert absent is not None
    assert not absent.lower
    assert not absent.upper
    assert index.probe(OneOf("c", (2, 3, 5))) is None


@each_hashing
def test_trap_c23_a_filter_is_never_complemented(hashing: str | None) -> None:
    index, _ = opened(Bloom(hashing=hashing), encoded([1, 2], pa.int64()))
    assert index.probe(NoneOf("c", (1,))) is None
    assert index.probe(NoneOf("c", (1, 2))) is None
    assert index.probe(NoneOf("c", (3,))) is None


def test_null_is_no_key() -> None:
    payload = PYBLOOM.build(encoded([None, None], pa.string()))
    assert len(filter_of(payload)) == 0
    for spec in Bloom(), PYBLOOM:
        index, _ = opened(spec, encoded([None], pa.string()))
        assert index.probe(OneOf("c", (b"None",))) is not None
        assert index.probe(OneOf("c", (b"",))) is not None


def test_trap_c4_zeros_and_numbers_of_one_value_have_one_key() -> None:
    """pybloom-live hashes str(key): '0.0' is not '-0.0', nor '1' '1.0'."""

    def text(value: object, dtype: pa.DataType) -> str:
        return bloom_key(domain_of(dtype).encode(pa.array([value], dtype))[0].as_py())

    for width in pa.float32(), pa.float64():
        assert text(-0.0, width) == text(0.0, pa.float64())
        assert text(math.nan, width) == text(-math.nan, pa.float64())
        assert text(0.1, width) == bloom_key(float_key(pa.scalar(0.1, width).as_py()))
    two_digits = pa.decimal128(9, 2)
    assert text(Decimal(1), two_digits) == text(Decimal("1.00"), two_digits)
    assert text(Decimal("1.0"), two_digits) == text(Decimal(1), pa.decimal128(18, 2))
    assert text(1, pa.int8()) == text(1, pa.int64()) == text(True, pa.bool_()) == "1"
    for spec in Bloom(), PYBLOOM:
        index, _ = opened(spec, encoded([-0.0, 1.5], pa.float64()))
        assert index.probe(OneOf("c", (float_key(0.0),))) is None


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@each_hashing
def test_trap_c14_narrow_and_negative_integers_are_found(
    hashing: str | None, bits: int
) -> None:
    dtype = getattr(pa, f"int{bits}")()
    values = [-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1]
    payload = Bloom(hashing=hashing).build(encoded(values, dtype))
    # A column that was widened since is asked with the same keys.
    wide = INDEX_TYPE.open(MemoryParts(payload), Domain("int", bits=64), len(values))
    for value in values:
        assert wide.probe(OneOf("c", (value,))) is None
    assert wide.probe(OneOf("c", (100,))) is not None


@each_hashing
def test_bytes_that_are_no_text_are_found(hashing: str | None) -> None:
    values = [b"\xff\xfe", b"\xe9", "é".encode(), b"", b"\0", b"plain"]
    index, _ = opened(Bloom(hashing=hashing), encoded(values, pa.binary()))
    for value in values:
        assert index.probe(OneOf("c", (value,))) is None
    assert index.probe(OneOf("c", (b"\xff",))) is not None


def test_trap_c51_filters_have_room_for_every_value() -> None:
    values = list(range(3000)) * 3
    theirs = filter_of(PYBLOOM.build(encoded(values, pa.int64())))
    assert theirs.count == 3000
    assert 3000 <= theirs.capacity <= 3000 * 9 / 8


@pytest.mark.parametrize(
    ("ours", "foreign"),
    [(b"XXH3_128", b"MD5_1288"), (b"/u2/", b"/u4/"), (b"/k7/", b"/k8/")],
)
def test_a_foreign_scheme_is_no_index(ours: bytes, foreign: bytes) -> None:
    """3.x hashed with md5 where 4.x takes xxh128, and found none of its own keys."""
    column = encoded(["a", "b"], pa.string())
    head, bits = PYBLOOM.build(column)
    assert head.endswith(scheme_of(7, 3).encode())
    assert head.count(ours) == 1
    with pytest.raises(CorruptIndexError, match="the installed pybloom-live"):
        INDEX_TYPE.open(MemoryParts([head.replace(ours, foreign), bits]), STRING, 2)


def test_a_filter_of_another_byte_order_is_no_index() -> None:
    head, bits = PYBLOOM.build(encoded(["a", "b"], pa.string()))
    order = sys.byteorder.encode()
    assert head.count(order) == 1
    foreign = head.replace(order, b"middle"[: len(order)])
    with pytest.raises(CorruptIndexError, match="built with scheme"):
        INDEX_TYPE.open(MemoryParts([foreign, bits]), STRING, 2)


def test_a_library_that_hashes_otherwise_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    column = encoded(["a", "b"], pa.string())
    payload = PYBLOOM.build(column)

    def changed(k: int, m: int) -> object:
        return (lambda key: range(k)), bloom_hash

    bloom_hash = pybloom.hashes(7, 3)[1]
    monkeypatch.setattr(pybloom, "hashes", changed)
    payload_module.witness_of.cache_clear()
    try:
        with pytest.raises(CorruptIndexError, match="built with scheme"):
            INDEX_TYPE.open(MemoryParts(payload), column.domain, 2)
    finally:
        payload_module.witness_of.cache_clear()


@pytest.mark.parametrize(
    ("at", "what"), [(8, "k"), (16, "m"), (24, "capacity"), (32, "count")]
)
@each_hashing
def test_a_filter_that_its_header_does_not_describe(
    hashing: str | None, at: int, what: str
) -> None:
    column = encoded(["a", "b", "c"], pa.string())
    head, bits = Bloom(hashing=hashing).build(column)
    other = bits[:at] + struct.pack("<Q", 2) + bits[at + 8 :]
    index = INDEX_TYPE.open(MemoryParts([head, other]), column.domain, 3)
    with pytest.raises(CorruptIndexError, match="is not the one"):
        index.probe(OneOf("c", (b"a",)))


@each_hashing
def test_filters_are_sized_by_their_distinct_values(hashing: str | None) -> None:
    payload = Bloom(hashing=hashing).build(encoded(list(range(10_000)) * 5, pa.int64()))
    assert sum(map(len, payload)) < 1.3 * 10_000


@pytest.mark.parametrize("error_rate", [0, 1, -0.5, 2, math.nan, 2.0**-65])
def test_an_error_rate_that_is_none(error_rate: float) -> None:
    with pytest.raises(UnknownIndexError, match="accepted: between 0 and 1"):
        Bloom(error_rate=error_rate)


@pytest.mark.parametrize("hashing", ["md5", "", "splitmix64", 1])
def test_a_hashing_that_is_none(hashing: str) -> None:
    with pytest.raises(UnknownIndexError, match="accepted: 'pybloom', or None"):
        Bloom(hashing=hashing)


def test_a_spec_of_an_older_table_is_the_default() -> None:
    """Tables that never heard of hashing have the same indexes as before."""
    assert spec_to_json(Bloom()) == {"kind": "bloom", "error_rate": 0.01}
    assert spec_to_json(PYBLOOM)["hashing"] == "pybloom"


@pytest.mark.parametrize(
    ("ours", "foreign"),
    [
        (b"splitmix64/", b"splitmix65/"),
        (b"/k7", b"/k8"),
        (b"/b5/", b"/b2/"),
        (b"/b5/", b"/b05/"),
        (b"/b5/", b"/b17/"),
    ],
)
def test_a_scheme_that_is_none(ours: bytes, foreign: bytes) -> None:
    head, bits = Bloom().build(encoded(["a", "b"], pa.string()))
    assert head.count(ours) == 1
    scheme = b"splitmix64/b5/k7"
    longer = len(foreign) - len(ours)
    wrong = head.replace(ours, foreign)
    wrong = wrong[:2] + bytes([len(scheme) + longer]) + wrong[3:]
    with pytest.raises(CorruptIndexError, match="scheme"):
        INDEX_TYPE.open(MemoryParts([wrong, bits]), STRING, 2)
