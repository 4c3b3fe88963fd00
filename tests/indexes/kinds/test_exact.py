"""The smallest encoding, and columns that are functions of others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.atoms import NoneOf, NotNullAtom, NullAtom, OneOf, Range
from skipindex.indexes import index_type
from skipindex.indexes.kinds import exact
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.indexes.kinds.bitmap import Bitmap
from skipindex.indexes.kinds.exact import Exact
from skipindex.indexes.kinds.run_length import RunLength, RunLengthIndex
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import atoms, column_of, true_rows, values_of
from tests.quick_run import examples

RUNS, BITMAPS, MAPPING = 0, 2, 3
N_ROWS = 8_000
MOST_PAIRS = 10
"""Ends of ranges that a column is asked: the truth is found row by row."""


def encoding(parts: Sequence[bytes]) -> int:
    return parts[0][-1]


def built(*arrays: pa.Array) -> list[list[bytes]]:
    return Exact().build_together([column_of(array) for array in arrays])


def drawn(n_values: int, seed: int = 1, n_rows: int = N_ROWS) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n_values, n_rows)


def check(array: pa.Array, parts: list[bytes]) -> None:
    """Every atom on some values has the rows that it is TRUE for."""
    column = column_of(array)
    index = index_type("exact").open(MemoryParts(parts), column.domain, len(array))
    values = values_of(array)
    known = sorted({value for value in values if value is not None})
    some = tuple(known[:: max(1, len(known) // 3)])
    asked = [NullAtom("c"), NotNullAtom("c"), OneOf("c", some), NoneOf("c", some)]
    pairs = list(zip(known[::7], known[3::5], strict=False))
    for low, high in pairs[:: -(-len(pairs) // MOST_PAIRS) or 1]:
        asked += [Range("c", low, high), OneOf("c", (low,))]
    for atom in asked:
        bounds = index.probe(atom)
        assert bounds is not None
        assert bounds.lower == bounds.upper == true_rows(atom, values), atom
        if isinstance(index, RunLengthIndex):
            wanted = index.code_set(atom)
            assert wanted is not None
            marks = wanted.among(index.codes())
            assert len(marks) == len(array)
            assert BitMap(np.flatnonzero(marks).tolist()) == bounds.upper, atom


@pytest.mark.parametrize(
    ("array", "expected", "faster"),
    [
        (pa.array(drawn(5000)), {RUNS}, BitSliced()),
        (pa.array(drawn(200, n_rows=1 << 16)), {RUNS}, BitSliced()),
        (pa.array(np.sort(drawn(3, n_rows=60_000))), {RUNS, BITMAPS}, Bitmap()),
        (pa.array(np.sort(drawn(4))).cast(pa.string()), {RUNS, BITMAPS}, Bitmap()),
        (pa.array(drawn(3000) * (drawn(100) == 7)), {RUNS, BITMAPS}, Bitmap()),
    ],
    ids=["many", "dense", "sorted", "texts", "mostly alike"],
)
def test_the_smallest_encoding_is_chosen(
    array: pa.Array, expected: set[int], faster: RunLength | BitSliced | Bitmap
) -> None:
    (parts,) = built(array)
    check(array, parts)
    size = sum(map(len, parts))
    runs, other = (
        sum(map(len, spec.build(column_of(array)))) for spec in (RunLength(), faster)
    )
    assert size <= 1.15 * min(runs, other) + 200
    assert encoding(parts) in expected


CITIES = drawn(250)
DAYS = drawn(2400, 2)
ORIGIN = date(1992, 1, 1)
PAIRS = {
    "a hierarchy": (pa.array(CITIES), pa.array(CITIES // 10)),
    "a copy": (pa.array(CITIES), pa.array(CITIES)),
    "capitals": (
        pa.array([f"city {i}" for i in CITIES.tolist()]),
        pa.array([f"CITY {i}" for i in CITIES.tolist()]),
    ),
    "a year": (
        pa.array([ORIGIN + timedelta(days=i) for i in DAYS.tolist()]),
        pa.array([(ORIGIN + timedelta(days=i)).year for i in DAYS.tolist()]),
    ),
    "with gaps": (pa.array(DAYS * 7), pa.array(DAYS % 9)),
    "NULL of NULL": (
        pa.array(CITIES, mask=CITIES == 3),
        pa.array(CITIES // 10, mask=CITIES == 3),
    ),
    "NULL is a value": (
        pa.array(CITIES, mask=CITIES == 3),
        pa.array(CITIES % 20),
    ),
    "a value is NULL": (
        pa.array(CITIES),
        pa.array(CITIES // 10, mask=CITIES % 10 == 3),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_function_of_another_column_costs_a_mapping(
    name: str, is_first: bool
) -> None:
    key, function = PAIRS[name]
    arrays = [key, function] if is_first else [function, key]
    payloads = built(*arrays)
    for array, parts in zip(arrays, payloads, strict=True):
        check(array, parts)
    own, mapped = (
        payloads if is_first or name in ("a copy", "capitals") else payloads[::-1]
    )
    assert [encoding(own), encoding(mapped)] == [RUNS, MAPPING]
    alone = sum(map(len, built(function)[0]))
    assert sum(len(part) for part in mapped if part not in own) < max(0.4 * alone, 4000)


def test_mappings_lead_over_other_columns() -> None:
    keys = drawn(3000)
    city, nation, region = (pa.array(keys // n) for n in (12, 120, 600))
    payloads = built(region, nation, pa.array(keys), city)
    for array, parts in zip(
        [region, nation, pa.array(keys), city], payloads, strict=True
    ):
        check(array, parts)
    assert [encoding(parts) for parts in payloads] == [MAPPING, MAPPING, RUNS, MAPPING]
    assert payloads[0][-1] is payloads[2][-1] is payloads[3][-1]
    once = {id(part): len(part) for parts in payloads for part in parts}
    assert sum(once.values()) < 1.3 * sum(map(len, payloads[2]))


def test_equal_bits_are_other_mappings_where_other_codes_lead_to_them() -> None:
    bits = []
    for n in (2, 3, 2):
        keys = drawn(n)
        function = pa.array(np.minimum(keys, 1))
        _, parts = built(pa.array(keys), function)
        assert encoding(parts) == MAPPING
        check(function, parts)
        _, _, mapping, _ = parts
        bits.append(mapping)
    assert len({*bits}) == 1


def test_large_mappings_are_not_kept_for_the_next_file() -> None:
    exact._mapping.cache_clear()
    for n, n_kept in ((6000, 0), (60, 1)):
        keys = drawn(n, n_rows=40_000)
        function = pa.array(keys // 2)
        _, parts = built(pa.array(keys), function)
        assert encoding(parts) == MAPPING
        check(function, parts)
        assert exact._mapping.cache_info().currsize == n_kept


@pytest.mark.parametrize("row", [0, 999, 1000, N_ROWS - 1])
def test_one_row_that_differs_is_enough(row: int) -> None:
    other = CITIES // 10
    other[row] = (other[row] + 1) % 25
    for function in (
        pa.array(other),
        pa.array(CITIES // 10, mask=np.arange(N_ROWS) == row),
    ):
        payloads = built(pa.array(CITIES), function)
        check(function, payloads[1])
        assert encoding(payloads[1]) != MAPPING


@st.composite
def related(draw: st.DrawFn) -> list[pa.Array]:
    """Columns of which some are functions of others, but for a row or so."""
    n_rows = draw(st.sampled_from([300, 2000]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    found: list[np.ndarray] = []
    for _ in range(draw(st.integers(2, 5))):
        values = rng.integers(0, draw(st.sampled_from([2, 30, 400])), n_rows)
        if draw(st.booleans()):
            values = np.sort(values)
        if found and draw(st.booleans()):
            source = draw(st.sampled_from(found))
            values = rng.permutation(500)[source] // draw(st.sampled_from([1, 7, 100]))
            if draw(st.booleans()):
                values[rng.integers(0, n_rows)] += 1
        found.append(values)
    arrays = []
    for values in found:
        mask = np.isin(values, rng.integers(0, 500, draw(st.sampled_from([0, 1, 40]))))
        dtype = draw(st.sampled_from([pa.int64(), pa.string()]))
        arrays.append(pa.array(values, mask=mask).cast(dtype))
    return arrays


@examples(60)
@given(st.data())
def test_columns_that_are_built_together_are_as_exact_as_alone(
    data: st.DataObject,
) -> None:
    arrays = data.draw(related())
    for array, parts in zip(arrays, built(*arrays), strict=True):
        column = column_of(array)
        index = index_type("exact").open(MemoryParts(parts), column.domain, len(array))
        values = values_of(array)
        for atom in data.draw(st.lists(atoms(array), min_size=3, max_size=6)):
            bounds = index.probe(atom)
            assert bounds is not None
            assert bounds.lower <= true_rows(atom, values) <= bounds.upper, atom


def test_damage_that_a_crc_does_not_see_is_told() -> None:
    key, function = PAIRS["NULL of NULL"]
    _, parts = built(key, function)
    column = column_of(function)

    def probed(parts: list[bytes]) -> None:
        index = index_type("exact").open(MemoryParts(parts), column.domain, N_ROWS)
        index.probe(Range("c", 3, 9))

    probed(parts)
    header, _, mapping, _ = parts
    where = 2
    for damaged in (
        [header[:-1] + b"\x07", *parts[1:]],
        [header[:-1] + b"\x00", *parts[1:]],
        [header[:-1], *parts[1:]],
        [*parts[:where], mapping[:-1], *parts[where + 1 :]],
        [*parts[:where], bytes(len(mapping)), *parts[where + 1 :]],
        parts[:-1],
        [*parts, b""],
    ):
        with pytest.raises(CorruptIndexError):
            probed(damaged)
    for i in range(len(header) - 30, len(header)):
        one = bytes([header[i] ^ 0x55])
        damaged = [header[:i] + one + header[i + 1 :], *parts[1:]]
        try:
            probed(damaged)
        except CorruptIndexError:
            continue


@pytest.mark.parametrize(
    ("n_values", "repeat"),
    [(50, 1), (50, 5), (3, 900)],
    ids=["all rows", "runs as bits", "few runs"],
)
def test_codes_decide_every_atom_but_patterns(n_values: int, repeat: int) -> None:
    values = np.repeat(drawn(n_values), repeat)[: N_ROWS - 3]
    array = pa.array(values, mask=values == 1)
    column = column_of(array)
    parts = MemoryParts(RunLength().build(column))
    index = index_type("run_length").open(parts, column.domain, len(values))
    assert isinstance(index, RunLengthIndex)
    for atom in (
        *(Range("c", 0, 2), Range("c", None, 1), OneOf("c", (0, 2)), OneOf("c", ())),
        *(NullAtom("c"), NotNullAtom("c"), NoneOf("c", (0,)), NoneOf("c", (2,))),
        NoneOf("c", tuple(range(n_values))),
    ):
        wanted = index.code_set(atom)
        assert wanted is not None
        marks = wanted.among(index.codes())
        rows = true_rows(atom, values_of(array))
        assert BitMap(np.flatnonzero(marks).tolist()) == rows, atom


def test_few_runs_of_many_rows_have_no_codes() -> None:
    n_rows = (1 << 17) + 1
    column = column_of(pa.array(np.repeat([1, 2], [5, n_rows - 5])))
    parts = MemoryParts(RunLength().build(column))
    index = index_type("run_length").open(parts, column.domain, n_rows)
    assert isinstance(index, RunLengthIndex)
    assert index.code_key is None
    bounds = index.probe(OneOf("c", (1,)))
    assert bounds.upper == BitMap(range(5))


def test_codes_of_damaged_parts_are_refused() -> None:
    column = column_of(pa.array(drawn(50)))
    header, *others, slices = RunLength().build(column)
    parts = MemoryParts([header, *others, slices[:-1]])
    index = index_type("run_length").open(parts, column.domain, N_ROWS)
    assert isinstance(index, RunLengthIndex)
    with pytest.raises(CorruptIndexError, match="are not 6 slices"):
        index.codes()


def test_codes_beyond_the_greatest_are_refused() -> None:
    """A list of many values is looked up in a table of codes, which has no such one."""
    column = column_of(pa.array(drawn(50)))
    header, *others, slices = RunLength().build(column)
    parts = MemoryParts([header, *others, bytes(len(slices))])  # all codes are 63
    index = index_type("run_length").open(parts, column.domain, N_ROWS)
    assert isinstance(index, RunLengthIndex)
    with pytest.raises(CorruptIndexError, match="code 63"):
        index.codes()
    with pytest.raises(CorruptIndexError, match="code 63"):
        index.probe(OneOf("c", (3,)))


def test_equal_dictionaries_have_equal_keys() -> None:
    """Of values, of integers with gaps, and of texts."""
    for array in (
        pa.array(drawn(50)),
        pa.array(drawn(50) * 1_000_003),
        pa.array(drawn(50)).cast(pa.string()),
    ):
        column = column_of(array)
        parts = MemoryParts(RunLength().build(column))
        keys = set()
        for _ in range(2):
            index = index_type("run_length").open(parts, column.domain, len(array))
            assert isinstance(index, RunLengthIndex)
            keys.add(index.code_key)
        assert len(keys) == 1
        greatest = pc.min_max(array)["max"]
        other = column_of(array.filter(pc.not_equal(array, greatest)))
        index = index_type("run_length").open(
            MemoryParts(RunLength().build(other)), other.domain, other.n_rows
        )
        assert isinstance(index, RunLengthIndex)
        assert index.code_key not in keys


def test_bit_slices_of_version_1_are_read() -> None:
    """Their number is given to no other encoding, which would misread them."""
    array = pa.array(drawn(200, n_rows=1 << 16))
    first, *others = BitSliced().build(column_of(array))
    check(array, [bytes([1]) + first[1:] + bytes([1]), *others])
