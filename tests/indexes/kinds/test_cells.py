"""Cells: what they cost beside other kinds, what they rule out, and damage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.atoms import (
    IntegerSet,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
)
from skipindex.indexes import index_type
from skipindex.indexes.interface import IndexSpec
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.cells import Cells, CellsIndex
from skipindex.indexes.kinds.key_set import KeySet
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import (
    arrays,
    atoms,
    column_of,
    encoded,
    fits,
    true_rows,
    values_of,
)
from tests.indexes.memory_parts import opened
from tests.quick_run import examples

N_ROWS = 60_000


@pytest.fixture(scope="module")
def totals() -> pa.Array:
    """A nearly unique column, as the totals of orders are."""
    rng = np.random.default_rng(5)
    return pa.array(rng.integers(0, 50_000_000, N_ROWS))


def size_of(spec: IndexSpec, array: pa.Array) -> int:
    return sum(map(len, spec.build(column_of(array))))


def test_cells_are_smaller_than_other_kinds_that_know_values(totals: pa.Array) -> None:
    cells = size_of(Cells(), totals)
    assert cells < 0.85 * size_of(Bloom(), totals)
    assert cells < 0.5 * size_of(KeySet(), totals)


def test_each_slice_costs_a_bit_a_row(totals: pa.Array) -> None:
    sizes = [size_of(Cells(max_slices=k), totals) for k in (4, 8, 12)]
    assert np.diff(sizes).tolist() == [4 * N_ROWS // 8] * 2


@pytest.mark.few(1)
@pytest.mark.parametrize("per_value", [8, 64])
def test_absent_values_and_narrow_ranges_are_ruled_out(
    totals: pa.Array, per_value: int
) -> None:
    """But for one time in ``per_value``, or twice as often at most."""
    index, _ = opened(Cells(per_value=per_value), column_of(totals))
    present = set(totals.to_pylist())
    absent = [v for v in range(1000, 49_000_000, 24_000) if v not in present]
    possible = sum(bool(index.probe(OneOf("c", (v,))).upper) for v in absent)
    assert 0 < possible < 2 * len(absent) / per_value
    narrow = sum(bool(index.probe(Range("c", v, v + 10)).upper) for v in absent)
    assert narrow < 2 * len(absent) / per_value + 0.03 * len(absent)


def test_slices_leave_the_rows_of_a_bin(totals: pa.Array) -> None:
    values = np.asarray(totals)
    index, _ = opened(Cells(max_slices=8), column_of(totals))
    wanted = int(values[77])
    bounds = index.probe(OneOf("c", (wanted,)))
    assert 77 in bounds.upper
    assert not bounds.lower
    assert len(bounds.upper) < 2 * N_ROWS / 256
    bounds = index.probe(Range("c", 10_000_000, 20_000_000))
    inside = (values >= 10_000_000) & (values < 20_000_000)
    true = set(np.flatnonzero(inside).tolist())
    assert set(bounds.lower) <= true <= set(bounds.upper)
    assert len(bounds.lower) > 0.9 * inside.sum()
    assert len(bounds.upper) < 1.1 * inside.sum()


def test_few_cells_cost_their_slices_alone(totals: pa.Array) -> None:
    size = size_of(Cells(per_value=1 / 64, max_slices=8), totals)
    assert size == pytest.approx(N_ROWS, rel=0.05)


def test_many_keys_at_once_are_brought_to_their_cells(totals: pa.Array) -> None:
    index, _ = opened(Cells(max_slices=None), column_of(totals))
    values = np.asarray(totals)
    keys = IntegerSet(values[:500])
    rows = index.probe(OneOf("c", keys)).upper
    assert set(range(500)) <= set(rows)
    assert len(rows) < 2000
    others = index.probe(NoneOf("c", keys))
    assert set(others.lower) == set(range(N_ROWS)) - set(rows)
    assert len(others.upper) == N_ROWS


@pytest.mark.parametrize("max_slices", [0, 3, None])
def test_null_is_in_no_cell(max_slices: int | None) -> None:
    values = [None if i % 3 == 0 else 1000 * i for i in range(300)]
    spec = Cells(per_value=4, max_slices=max_slices)
    index, _ = opened(spec, encoded(list(values), pa.int64()))
    null = {row for row, value in enumerate(values) if value is None}
    assert set(index.probe(NullAtom("c")).upper) == null
    assert set(index.probe(NotNullAtom("c")).lower) == set(range(300)) - null
    assert not null & set(index.probe(Range("c", None, 10**9)).upper)
    assert not null & set(index.probe(NoneOf("c", (1000,))).upper)


def test_values_are_listed_only_where_all_are_stored() -> None:
    """Else functions of the column would be computed of cells."""
    values = [5, 1000, 3000, 3001]
    column = encoded(list(values), pa.int64())
    index, _ = opened(Cells(per_value=4), column)
    assert index.head.parameter > 0
    assert index.distinct(10) is None
    index, _ = opened(Cells(per_value=None), column)
    assert index.distinct(10) == values


def test_a_range_of_all_64_bits_is_cut_into_cells() -> None:
    low, high = -(2**63), 2**63 - 1
    index, _ = opened(
        Cells(per_value=1, max_slices=None), encoded([low, 0, high], pa.int64())
    )
    assert list(index.probe(OneOf("c", (low,))).upper) == [0]
    assert 2 in index.probe(Range("c", 1, None)).upper
    assert list(index.probe(Range("c", None, 2**64)).lower) == [0, 1, 2]


PARAMETERS = st.builds(
    Cells,
    per_value=st.sampled_from([1e-9, 0.02, 0.1, 0.5, 1, 3, 64, None]),
    max_slices=st.sampled_from([0, 1, 2, 3, 5, None]),
)


@examples(300)
@given(spec=PARAMETERS, array=arrays(), data=st.data())
def test_answers_enclose_the_true_rows_for_any_parameters(
    spec: Cells, array: pa.Array, data: st.DataObject
) -> None:
    assert fits(spec, array.type)
    index, _ = opened(spec, column_of(array))
    for _ in range(4):
        atom = data.draw(atoms(array))
        bounds = index.probe(atom)
        assert bounds.lower <= true_rows(atom, values_of(array)) <= bounds.upper


@examples(200)
@given(
    values=st.lists(st.none() | st.integers(-600, 600), min_size=2, max_size=80),
    per_value=st.sampled_from([0.02, 0.1, 0.5, 2]),
    max_slices=st.sampled_from([0, 1, 3, None]),
    data=st.data(),
)
def test_ranges_of_whole_cells_are_exact_where_all_slices_are(
    values: list[int | None],
    per_value: float,
    max_slices: int | None,
    data: st.DataObject,
) -> None:
    """And the ends of any range are enclosed: at the edge of a cell, and beside it."""
    spec = Cells(per_value=per_value, max_slices=max_slices)
    index, _ = opened(spec, encoded(list(values), pa.int64()))
    assert isinstance(index, CellsIndex)
    shift = index.head.parameter
    edge = st.integers(-700 >> shift, 700 >> shift)
    first, last = sorted(data.draw(st.tuples(edge, edge)))
    for below, beyond in [(0, 0), (0, 1), (1, 0), (1, 1), (-1, -1)]:
        atom = Range("c", (first << shift) - below, (last << shift) + beyond)
        bounds, truth = index.probe(atom), true_rows(atom, values)
        assert bounds.lower <= truth <= bounds.upper
        if max_slices is None and not below and not beyond:
            assert bounds.lower == bounds.upper


@pytest.mark.parametrize("per_value", [5e-324, 1e-300, 1e308])
def test_any_number_of_cells_for_a_value_is_built(per_value: float) -> None:
    values = [-(2**63), -5, 7, 2**63 - 1]
    spec = Cells(per_value=per_value, max_slices=None)
    index, _ = opened(spec, encoded(list(values), pa.int64()))
    for row, value in enumerate(values):
        assert row in index.probe(OneOf("c", (value,))).upper
        assert row not in index.probe(NoneOf("c", (value,))).lower
    assert 3 not in index.probe(Range("c", None, -5)).lower


@pytest.mark.parametrize("damage", ["dropped", "shift", "form", "rows", "parts"])
def test_a_payload_that_contradicts_itself_is_refused(damage: str) -> None:
    column = encoded([1000 * i for i in range(400)], pa.int64())
    parts = Cells(per_value=4, max_slices=3).build(column)
    other = Cells(per_value=4, max_slices=4).build(column)
    damaged = {
        "dropped": [parts[0][:-2] + b"\x40" + parts[0][-1:], *parts[1:]],
        "shift": [parts[0][:3] + b"\x40" + parts[0][4:], *parts[1:]],
        "form": [parts[0][:1] + b"\x01" + parts[0][2:], *parts[1:]],
        "rows": [*parts[:2], *other[2:]],
        "parts": parts[:-1],
    }[damage]
    with pytest.raises(CorruptIndexError):
        index_type("cells").open(MemoryParts(damaged), column.domain, 400).probe(
            Range("c", 3000, 40_000)
        )


@pytest.mark.parametrize("options", [{"per_value": 0}, {"max_slices": -1}])
def test_parameters_are_checked(options: dict[str, int]) -> None:
    with pytest.raises(UnknownIndexError, match="accepted"):
        Cells(**options)
