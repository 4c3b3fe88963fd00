"""The laws that every index kind obeys, whatever it is made of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
    Wildcard,
)
from skipindex.expressions.domain import Domain, domain_of
from skipindex.indexes import IndexSpec, index_type, index_types
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.kinds.bitmap import Bitmap
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import (
    POSITIONAL,
    SPECS,
    arrays,
    atoms,
    column_of,
    encoded,
    fits,
    is_exact,
    spec_id,
    true_rows,
    values_of,
)
from tests.indexes.memory_parts import CheckedParts, opened
from tests.quick_run import examples

WITH_ALL_VALUES = [s for s in POSITIONAL if getattr(s, "max_slices", None) is None]
"""A kind whose digits were dropped knows of a value only which bin it would be in."""

each_spec = pytest.mark.parametrize("spec", SPECS, ids=spec_id)


def test_every_kind_is_under_the_contract() -> None:
    assert {spec.kind for spec in SPECS} == set(index_types())


@each_spec
@examples(60)
@given(data=st.data())
def test_answers_enclose_the_true_rows(spec: IndexSpec, data: st.DataObject) -> None:
    array = data.draw(arrays(spec))
    column, values = column_of(array), values_of(array)
    index, _ = opened(spec, column)
    for _ in range(4):
        check_answer(spec, column, index, data.draw(atoms(array)), values)


def check_answer(
    spec: IndexSpec,
    column: EncodedColumn,
    index: Any,
    atom: Atom,
    values: list[Value | None],
) -> None:
    bounds = index.probe(atom)
    if bounds is None:
        assert not index_type(spec.kind).positional, "a row is known or it is not"
        return
    truth = true_rows(atom, values)
    assert bounds.lower <= truth <= bounds.upper
    if is_exact(spec, column):
        assert bounds.lower == bounds.upper, "should be exact"


@each_spec
def test_trap_c24_a_null_matches_is_null_alone(spec: IndexSpec) -> None:
    arrays = [pa.array([5, None, 7, 5, 9]), pa.array(["a", None, "b", "a", "c"])]
    array = next(one for one in arrays if fits(spec, one.type))
    column, values = column_of(array), values_of(array)
    index, _ = opened(spec, column)
    a, _, b, *_ = values
    for atom in (
        *(OneOf("c", (a,)), NoneOf("c", (a,)), NoneOf("c", (a, b))),
        *(Range("c", None, b), Range("c", b, None), NullAtom("c"), NotNullAtom("c")),
    ):
        check_answer(spec, column, index, atom, values)


@pytest.mark.parametrize("spec", WITH_ALL_VALUES, ids=spec_id)
@examples(30)
@given(data=st.data())
def test_a_value_that_is_not_in_the_file_is_known_not_to_be(
    spec: IndexSpec, data: st.DataObject
) -> None:
    array = data.draw(arrays(spec))
    index, _ = opened(spec, column_of(array))
    atom = data.draw(atoms(array))
    if isinstance(atom, OneOf) and not true_rows(atom, values_of(array)):
        bounds = index.probe(atom)
        assert bounds is not None
        assert not bounds.upper


@pytest.mark.parametrize("spec", POSITIONAL, ids=spec_id)
@examples(30)
@given(data=st.data())
def test_the_values_of_an_index_are_those_of_its_rows(
    spec: IndexSpec, data: st.DataObject
) -> None:
    array = data.draw(arrays(spec))
    index, _ = opened(spec, column_of(array))
    rows = {value for value in values_of(array) if value is not None}
    values = index.values_of_rows(len(rows))
    assert values is None or list(values) == sorted(rows)
    if rows:
        assert index.values_of_rows(len(rows) - 1) is None


@each_spec
@examples(15)
@given(data=st.data())
def test_bytes_are_the_same_on_every_run(spec: IndexSpec, data: st.DataObject) -> None:
    array = data.draw(arrays(spec))
    column = column_of(array)
    assert spec.build(column) == spec.build(column) == spec.build(column_of(array))


def big_columns() -> Iterator[tuple[str, pa.Array]]:
    """More rows than a container of a bitmap has, in every order and density."""
    rng = np.random.default_rng(7)
    n = 2 * 65536 + 321
    null = rng.random(n) < 0.1
    yield "few values", pa.array(rng.integers(0, 9, n))
    yield "few values and NULL", pa.array(rng.integers(0, 9, n), mask=null)
    yield "clustered", pa.array(np.repeat(rng.integers(0, 300, n // 40 + 1), 40)[:n])
    yield "clustered and NULL", pa.array(np.arange(n) // 7, mask=np.sort(null))
    yield "sorted and unique", pa.array(np.arange(n) * 3 - n)
    yield "random and unique", pa.array(rng.permutation(n))
    yield "wide", pa.array(rng.integers(-(2**62), 2**62, n), mask=null)
    yield "one value", pa.array(np.full(n, 5))
    yield "skewed", pa.array(np.minimum(rng.integers(0, 5000, n), 70) * 11)
    yield "strings", pa.array([f"Customer#{i:09d}" for i in rng.integers(0, 30_000, n)])


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "array"), [pytest.param(n, a, id=n) for n, a in big_columns()]
)
def test_trap_c52_bitmaps_with_high_keys_and_full_containers(
    name: str, array: pa.Array
) -> None:
    column, values = column_of(array), values_of(array)
    chooser = random.Random(name)
    present = [v for v in values if v is not None]
    sample = sorted(set(chooser.sample(present, 12)))
    questions: list[Atom] = [
        OneOf("c", (sample[0],)),
        OneOf("c", tuple(sample)),
        NoneOf("c", tuple(sample[:2])),
        Range("c", sample[0], sample[-1]),
        Range("c", None, sample[len(sample) // 2]),
        Range("c", max(present), None),
        NullAtom("c"),
        NotNullAtom("c"),
    ]
    truths = [true_rows(atom, values) for atom in questions]
    for spec in SPECS:
        if not fits(spec, array.type):
            continue
        index, _ = opened(spec, column)
        for atom, truth in zip(questions, truths, strict=True):
            bounds = index.probe(atom)
            if bounds is not None:
                assert bounds.lower <= truth <= bounds.upper, (spec, atom)
                if is_exact(spec, column):
                    assert bounds.lower == bounds.upper, (spec, atom)


def _sample(spec: IndexSpec) -> pa.Array:
    """Enough for several chunks and parts, and NULL: text, or else numbers."""
    rng = random.Random(3)
    numbers = [rng.randrange(3000) ** 3 for _ in range(6000)]
    rows = [None if rng.random() < 0.05 else number for number in numbers]
    if not fits(spec, pa.string()):
        return pa.array(rows, pa.int64())
    return pa.array([None if row is None else f"{row:012d}" for row in rows])


def _questions(spec: IndexSpec) -> list[Atom]:
    literals = [v for v in values_of(_sample(spec)) if v is not None][:6]
    matches: list[Atom] = []
    if isinstance(text := literals[3], bytes):
        matches = [
            Matches("c", (Wildcard.ANY_TEXT, text[4:])),
            Matches("c", (Wildcard.ANY_CHARACTER, text[1:], Wildcard.ANY_TEXT)),
        ]
    return [
        *matches,
        OneOf("c", (literals[0],)),
        OneOf("c", tuple(sorted(literals))),
        NoneOf("c", (literals[1],)),
        Range("c", min(literals), max(literals)),
        Range("c", None, literals[2]),
        NullAtom("c"),
        NotNullAtom("c"),
    ]


@pytest.mark.few(6)
@each_spec
def test_every_flipped_bit_is_refused_by_the_checksum(spec: IndexSpec) -> None:
    column = column_of(_sample(spec))
    parts = spec.build(column)
    crcs = [crc32c(part) for part in parts]
    kind, chooser = index_type(spec.kind), random.Random(1)
    sound = kind.open(CheckedParts(parts, crcs), column.domain, column.n_rows)
    answers = [_frozen(sound.probe(atom)) for atom in _questions(spec)]
    for _ in range(50):
        damaged = _flipped(parts, chooser)
        index_parts = CheckedParts(damaged, crcs)
        try:
            index = kind.open(index_parts, column.domain, column.n_rows)
            for atom, answer in zip(_questions(spec), answers, strict=True):
                assert _frozen(index.probe(atom)) == answer
        except CorruptIndexError:
            pass


def _frozen(bounds: object) -> object:
    lower, upper = getattr(bounds, "lower", None), getattr(bounds, "upper", None)
    return lower, upper


def _flipped(parts: list[bytes], chooser: random.Random) -> list[bytes]:
    """``parts`` with one bit changed, in the header half of the time."""
    i = 0 if chooser.random() < 0.5 else chooser.randrange(len(parts))
    part = bytearray(parts[i])
    bit = chooser.randrange(8 * len(part))
    part[bit >> 3] ^= 1 << (bit & 7)
    return [*parts[:i], bytes(part), *parts[i + 1 :]]


@pytest.mark.few(3)
@each_spec
def test_without_a_checksum_damage_is_no_other_error(spec: IndexSpec) -> None:
    column = column_of(_sample(spec))
    parts, chooser = spec.build(column), random.Random(2)
    damaged = [_flipped(parts, chooser) for _ in range(100)]
    cuts = {0, 1, 7, 19, 20, *range(0, len(parts[0]), 37)}
    damaged += [[parts[0][:cut], *parts[1:]] for cut in sorted(cuts)]
    for i in range(1, len(parts), max(1, len(parts) // 10)):
        damaged.append([*parts[:i], parts[i][: len(parts[i]) // 2], *parts[i + 1 :]])
        damaged.append([*parts[:i], b"", *parts[i + 1 :]])
        damaged.append([*parts[:i], *parts[i + 1 :]])
        damaged.append([*parts[:i], random.Random(i).randbytes(99), *parts[i + 1 :]])
    damaged += [[], parts[:1], [b"", *parts[1:]], [parts[0] + b"\0", *parts[1:]]]
    refused = 0
    for version in damaged:
        try:
            index = index_type(spec.kind).open(
                MemoryParts(version), column.domain, column.n_rows
            )
            for atom in _questions(spec):
                index.probe(atom)
        except CorruptIndexError:
            refused += 1
    assert refused > len(damaged) / 3


@each_spec
def test_a_newer_payload_is_refused_as_such(spec: IndexSpec) -> None:
    column = column_of(_sample(spec))
    head, *rest = spec.build(column)
    kind = index_type(spec.kind)
    newer = MemoryParts([bytes([kind.version + 1]) + head[1:], *rest])
    with pytest.raises(IndexVersionError, match="accepted: 1 to"):
        kind.open(newer, column.domain, column.n_rows)


@each_spec
@pytest.mark.parametrize("other", ["binary", "date", "float", "fewer rows"])
def test_an_index_of_another_column_or_file_is_refused(
    spec: IndexSpec, other: str
) -> None:
    column = column_of(_sample(spec))
    parts = MemoryParts(spec.build(column))
    domain, n_rows = Domain(other), 6000
    if other == "fewer rows":
        domain, n_rows = column.domain, 9
    with pytest.raises(CorruptIndexError):
        index_type(spec.kind).open(parts, domain, n_rows)


@pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if fits(spec, pa.string())], ids=spec_id
)
def test_trap_c14_an_index_on_text_is_not_asked_about_numbers(spec: IndexSpec) -> None:
    column = column_of(pa.array(["1", "2"]))
    parts = MemoryParts(spec.build(column))
    with pytest.raises(CorruptIndexError, match="holds values of domain b'string'"):
        index_type(spec.kind).open(parts, domain_of(pa.int64()), 2)


class Damaged(MemoryParts):
    """A payload of which no part but the header can be read."""

    def read(self, start: int, stop: int) -> list[memoryview]:
        if start:
            raise CorruptIndexError("part 1 fails its crc32c")
        return super().read(start, stop)


def test_what_says_that_bytes_are_damaged_is_not_its_own_cause() -> None:
    """Whoever goes from cause to cause would never come to an end."""
    column = encoded(["a", "b", "a"], pa.string())
    parts = Damaged(Bitmap().build(column))
    index = index_type("bitmap").open(parts, column.domain, 3)
    with pytest.raises(CorruptIndexError, match="crc32c") as found:
        index.probe(OneOf("c", (b"b",)))
    assert found.value.__cause__ is None
