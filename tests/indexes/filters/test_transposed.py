"""Transposed filters: they answer as the filters do one by one, and read little."""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NullAtom,
    OneOf,
    Range,
    Wildcard,
)
from skipindex.expressions.domain import Domain
from skipindex.indexes import IndexSpec, index_type
from skipindex.indexes.encoding.bit_matrix import transpose
from skipindex.indexes.filters.payload import capacity_for
from skipindex.indexes.filters.pybloom import scheme_of
from skipindex.indexes.filters.transposed import TransposedFilters
from skipindex.indexes.interface import PackableType
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.ngram_bloom import NGramBloom
from skipindex.indexes.kinds.token_bloom import TokenBloom
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import encoded

STRING, INT = Domain("string"), Domain("int", bits=64)
PYBLOOM = Bloom(hashing="pybloom")
SPECS = [
    Bloom(),
    Bloom(error_rate=1e-6),
    NGramBloom(),
    NGramBloom(n=5),
    TokenBloom(),
    PYBLOOM,
    NGramBloom(hashing="pybloom"),
    TokenBloom(hashing="pybloom"),
]
each_hashing = pytest.mark.parametrize("hashing", [None, "pybloom"])
Payloads = list[list[bytes]]


def kind_of(spec: IndexSpec) -> PackableType:
    kind = index_type(spec.kind)
    assert isinstance(kind, PackableType)
    return kind


def texts_of(seed: int, n: int) -> list[str | None]:
    chooser = random.Random(seed)
    words = [f"{chooser.randrange(10**6):x}" for _ in range(n)]
    return [None, *(f"disk {word} full" for word in words)]


def filters_of(spec: IndexSpec, columns: list[list[str | None]]) -> Payloads:
    return [spec.build(encoded(column, pa.string())) for column in columns]


def patterns_of(text: str) -> list[Atom]:
    word = text.split()[1]
    like = Wildcard.ANY_TEXT
    return [
        OneOf("c", (text.encode(),)),
        OneOf("c", (b"absent", text.encode(), b"disk is full")),
        OneOf("c", ()),
        Matches("c", (like, word.encode(), like)),
        Matches("c", (like, f" {word} ".encode(), like)),
        Matches("c", (b"disk ", like, b"l")),
        Range("c", text.encode(), text.encode() + b"\0"),
        Range("c", b"a", b"z"),
        NoneOf("c", (text.encode(),)),
        NullAtom("c"),
    ]


@pytest.mark.few(8)
@pytest.mark.parametrize("spec", SPECS, ids=repr)
@pytest.mark.parametrize("n_files", [24, 61, 130])
def test_they_answer_as_each_filter_does(spec: IndexSpec, n_files: int) -> None:
    columns = [texts_of(i, 40 + i % 2) for i in range(n_files)]
    payloads = filters_of(spec, columns)
    payloads[3] = []
    kind = kind_of(spec)
    shared, slots = kind.pack_together(payloads, STRING)
    assert slots
    assert 3 not in slots
    transposed = kind.open_pack(MemoryParts(shared), STRING, n_files)
    assert set(np.flatnonzero(transposed.covered).tolist()) == slots
    indexes = {
        slot: kind.open(MemoryParts(payloads[slot]), STRING, len(columns[slot]))
        for slot in slots
    }
    ruled_out = 0
    for slot in list(slots)[:5]:
        for atom in patterns_of(str(columns[slot][7])):
            one_by_one = {s for s, index in indexes.items() if not index.probe(atom)}
            found = transposed.ask(atom)
            if found is None:
                assert one_by_one == slots, atom
                continue
            possible, sure = found
            assert not sure.any()
            assert set(np.flatnonzero(possible).tolist()) == one_by_one, atom
            ruled_out += len(slots) - len(one_by_one)
    assert ruled_out


@each_hashing
@given(data=st.data())
def test_no_value_is_lost(hashing: str | None, data: st.DataObject) -> None:
    columns = data.draw(
        st.lists(
            st.lists(st.integers(-5, 60), min_size=1, max_size=40),
            min_size=1,
            max_size=30,
        )
    )
    spec = Bloom(hashing=hashing)
    payloads = [spec.build(encoded(column, pa.int64())) for column in columns]
    shared, slots = kind_of(Bloom()).pack_together(payloads, INT)
    if not slots:
        return
    transposed = kind_of(Bloom()).open_pack(MemoryParts(shared), INT, len(columns))
    wanted = data.draw(st.lists(st.integers(-5, 60), min_size=1, unique=True))
    found = transposed.ask(OneOf("c", tuple(wanted)))
    assert found is not None
    for slot in slots:
        assert found[0][slot] or not set(columns[slot]) & set(wanted)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_taken_apart_they_are_as_before(spec: IndexSpec) -> None:
    columns = [texts_of(i, 3 + i % 4) for i in range(70)]
    payloads = filters_of(spec, columns)
    shared, slots = kind_of(spec).pack_together(payloads, STRING)
    found = kind_of(spec).unpack(MemoryParts(shared), STRING, len(payloads))
    assert found == {slot: payloads[slot] for slot in slots}


@pytest.mark.parametrize(
    ("n_files", "n_together"),
    [
        (1, 0),
        (7, 0),
        (8, 8),
        (9, 8),
        (27, 24),
        (31, 31),
        (56, 56),
        (57, 57),
        (120, 120),
    ],
)
def test_no_eighth_of_the_bits_is_wasted(n_files: int, n_together: int) -> None:
    payloads = filters_of(Bloom(), [texts_of(i, 2000) for i in range(n_files)])
    shared, slots = kind_of(Bloom()).pack_together(payloads, STRING)
    assert len(slots) == n_together
    assert slots == set(range(n_together)), "the last ones stay"
    alone = sum(len(parts[1]) for parts in payloads[:n_together])
    assert sum(map(len, shared)) <= alone * 9 / 8 + 40 * n_together


def test_few_sizes_are_together_and_a_lone_one_is_not() -> None:
    columns = [texts_of(i, 100 if i % 2 else 1000) for i in range(32)]
    columns[5] = texts_of(5, 3000)
    shared, slots = kind_of(Bloom()).pack_together(filters_of(Bloom(), columns), STRING)
    assert slots == set(range(32)) - {5}
    transposed = kind_of(Bloom()).open_pack(MemoryParts(shared), STRING, 32)
    for slot in slots:
        value = str(columns[slot][9]).encode()
        found = transposed.ask(OneOf("c", (value,)))
        assert found is not None
        assert found[0][slot]
        assert np.count_nonzero(found[0]) < 6


def test_a_key_takes_k_rows_of_any_number_of_files() -> None:
    columns = [texts_of(i, 20_000) for i in range(64)]
    payloads = filters_of(Bloom(), columns)
    shared, _ = kind_of(Bloom()).pack_together(payloads, STRING)
    parts = MemoryParts(shared)
    transposed = kind_of(Bloom()).open_pack(parts, STRING, 64)
    before = parts.count.parts, parts.count.n_bytes
    transposed.ask(OneOf("c", (b"no such value",)))
    assert parts.count.parts - before[0] <= 7
    assert parts.count.n_bytes - before[1] <= 7 * 8192
    assert sum(map(len, shared)) > 1_000_000
    before = parts.count.parts, parts.count.n_bytes
    transposed.ask(OneOf("c", tuple(b"%d" % i for i in range(500))))
    assert parts.count.parts - before[0] <= len(shared), "no part is read twice"


def test_so_many_values_that_some_will_seem_to_be_there_are_not_asked() -> None:
    columns = [texts_of(i, 10) for i in range(8)]
    shared, _ = kind_of(Bloom()).pack_together(filters_of(Bloom(), columns), STRING)
    transposed = kind_of(Bloom()).open_pack(MemoryParts(shared), STRING, 8)
    assert transposed.ask(OneOf("c", tuple(b"%d" % i for i in range(10_000)))) is None


def test_turning_is_the_transpose_of_eight_by_eight_bits() -> None:
    rng = np.random.default_rng(1)
    eight = rng.integers(0, 256, (50, 8), np.uint8)
    bits = np.unpackbits(eight, axis=1, bitorder="little").reshape(50, 8, 8)
    transposed = np.packbits(bits.transpose(0, 2, 1).reshape(50, 64), bitorder="little")
    assert np.array_equal(transpose(eight), transposed)


def test_capacities_have_room_and_few_sizes() -> None:
    for n in [*range(1, 5000), 59_999, 60_000, 10**6 + 1, 2**40 + 1]:
        assert n <= capacity_for(n) <= n * 9 / 8
    assert capacity_for(0) == 1
    assert len({capacity_for(n) for n in range(58_000, 62_000)}) <= 2


@pytest.mark.parametrize("spec", SPECS[-3:], ids=repr)
def test_a_foreign_scheme_is_no_index(spec: IndexSpec) -> None:
    payloads = filters_of(spec, [texts_of(i, 10) for i in range(16)])
    kind = kind_of(spec)
    shared, _ = kind.pack_together(payloads, STRING)
    k, m = struct.unpack_from("<IQ", shared[0], 8 + len(STRING.tag) + 4)
    ours = scheme_of(k, m).encode()
    assert shared[0].count(ours) == 1
    foreign = shared[0].replace(ours, b"MD5" + ours[3:])
    with pytest.raises(CorruptIndexError, match="the installed pybloom-live"):
        kind.open_pack(MemoryParts([foreign, *shared[1:]]), STRING, 16)
    # Such filters by themselves are left alone.
    payloads[4][0] = payloads[4][0].replace(ours, b"MD5" + ours[3:])
    _, slots = kind.pack_together(payloads, STRING)
    assert 4 not in slots


@pytest.mark.parametrize("spec", [Bloom(), NGramBloom(), PYBLOOM], ids=repr)
def test_a_header_that_makes_no_sense_is_no_index(spec: IndexSpec) -> None:
    payloads = filters_of(spec, [texts_of(i, 10) for i in range(16)])
    kind = kind_of(spec)
    shared, _ = kind.pack_together(payloads, STRING)
    whole = kind.open_pack(MemoryParts(shared), STRING, 16)
    atom = OneOf("c", (b"disk abc full",))
    expected = whole.ask(atom)
    assert expected is not None
    with pytest.raises(CorruptIndexError, match="are not of 17"):
        kind.open_pack(MemoryParts(shared), STRING, 17)
    with pytest.raises(CorruptIndexError, match="domain"):
        kind.open_pack(MemoryParts(shared), INT, 16)
    with pytest.raises(IndexVersionError, match="version 2"):
        kind.open_pack(MemoryParts([b"\2" + shared[0][1:], *shared[1:]]), STRING, 16)
    with pytest.raises(CorruptIndexError, match="parts"):
        kind.open_pack(MemoryParts(shared[:-1]), STRING, 16)
    chooser = random.Random(1)
    for _ in range(300):
        head = bytearray(shared[0])
        for _ in range(chooser.randrange(1, 4)):
            head[chooser.randrange(len(head))] = chooser.randrange(256)
        broken = MemoryParts([bytes(head[: chooser.randrange(1, 2 * len(head))])])
        with pytest.raises(CorruptIndexError):
            kind.open_pack(broken, STRING, 16)
        try:
            transposed = kind.open_pack(
                MemoryParts([bytes(head), *shared[1:]]), STRING, 16
            )
            transposed.ask(atom)
        except (CorruptIndexError, IndexVersionError):
            pass


def test_rows_of_a_wrong_length_are_no_index() -> None:
    payloads = filters_of(Bloom(), [texts_of(i, 10) for i in range(16)])
    kind = kind_of(Bloom())
    shared, _ = kind.pack_together(payloads, STRING)
    cut = [*shared[:2], *(part[:-1] for part in shared[2:])]
    transposed = kind.open_pack(MemoryParts(cut), STRING, 16)
    with pytest.raises(CorruptIndexError, match="cut off"):
        transposed.ask(OneOf("c", (b"x",)))
    with pytest.raises(CorruptIndexError, match="cut off"):
        kind.unpack(MemoryParts(cut), STRING, 16)


def test_two_hashings_are_never_in_one_block() -> None:
    """As in a pack that a later version of the library has merged."""
    columns = [texts_of(i, 200) for i in range(48)]
    specs = [Bloom() if i % 3 else PYBLOOM for i in range(48)]
    payloads = [
        spec.build(encoded(column, pa.string()))
        for spec, column in zip(specs, columns, strict=True)
    ]
    kind = kind_of(Bloom())
    shared, slots = kind.pack_together(payloads, STRING)
    assert slots == set(range(48))
    assert kind.unpack(MemoryParts(shared), STRING, 48) == dict(enumerate(payloads))
    transposed = kind.open_pack(MemoryParts(shared), STRING, 48)
    assert isinstance(transposed, TransposedFilters)
    assert len({block.size.scheme for block, _, _ in transposed.blocks}) == 2
    for block, _, _ in transposed.blocks:
        assert len({specs[slot] for slot in block.slots}) == 1
    for slot, column in enumerate(columns):
        found = transposed.ask(OneOf("c", (str(column[9]).encode(),)))
        assert found is not None
        assert found[0][slot]
        assert np.count_nonzero(found[0]) < 8
