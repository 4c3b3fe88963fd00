"""Asked inside of some rows, an index says of them what it says of all."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.atoms import (
    Atom,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
)
from skipindex.expressions.domain import domain_of
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.storage.parts import MemoryParts
from tests.indexes.memory_parts import opened

SPECS = (
    BitSliced(),
    BitSliced(base=10),
    BitSliced(encoding="equality"),
    BitSliced(max_slices=1),
    BitSliced(max_slices=3),
    BitSliced(base=4, encoding="equality", max_slices=4),
)


def column(values: Any, mask: Any = None) -> EncodedColumn:
    array = pa.array(values, pa.int64(), mask=mask)
    return EncodedColumn("c", array, domain_of(pa.int64()))


def check(index: Any, atom: Atom, rows: BitMap) -> None:
    before, whole = rows.copy(), index.probe(atom)
    found = index.probe_within(atom, rows)
    assert found.upper == whole.upper & rows, atom
    assert found.lower == whole.lower & rows, atom
    counted = index.count_within(atom, rows)
    assert counted is None or whole.lower is whole.upper
    assert counted in (None, len(whole.upper & rows)), atom
    assert rows == before, "the rows that were asked about are not changed"


@pytest.mark.parametrize("spec", SPECS, ids=str)
@given(
    values=st.lists(st.none() | st.integers(-20, 70), min_size=1, max_size=40),
    rows=st.sets(st.integers(0, 39)),
    low=st.none() | st.integers(-25, 75),
    high=st.none() | st.integers(-25, 75),
    some=st.sets(st.integers(-20, 70), min_size=1, max_size=3),
)
def test_some_rows_are_judged_as_all_are(
    spec: Any, values: Any, rows: set[int], low: Any, high: Any, some: set[int]
) -> None:
    index, _ = opened(spec, column(values))
    within = BitMap(row for row in rows if row < len(values))
    listed = tuple(sorted(some))
    for atom in (
        Range("c", low, high),
        OneOf("c", listed),
        NoneOf("c", listed),
        NullAtom("c"),
        NotNullAtom("c"),
    ):
        check(index, atom, within)


@pytest.mark.parametrize("n_rows", [60_000, 150_000])
@pytest.mark.parametrize("null_share", [0.0, 0.1])
@pytest.mark.parametrize("max_slices", [None, 4])
def test_files_of_many_rows(
    n_rows: int, null_share: float, max_slices: int | None
) -> None:
    rng = np.random.default_rng(n_rows)
    mask = rng.random(n_rows) < null_share
    spec = BitSliced(max_slices=max_slices)
    index, _ = opened(spec, column(rng.integers(0, 1000, n_rows), mask))
    for n in (1, 60, 5_000):
        rows = BitMap(rng.choice(n_rows, n, replace=False).tolist())
        for low, high in ((300, 400), (0, 1), (999, 1000), (511, 513), (-5, 512)):
            check(index, Range("c", low, high), rows)


def test_one_interval_of_exact_codes_is_counted() -> None:
    index: Any = opened(BitSliced(), column([*range(100), None]))[0]
    rows = BitMap([3, 50, 99, 100])
    assert index.count_within(Range("c", 3, 51), rows) == 2
    assert index.count_within(OneOf("c", (99,)), rows) == 1
    assert index.count_within(OneOf("c", (1000,)), rows) == 0
    assert index.count_within(OneOf("c", (3, 99)), rows) is None
    assert index.count_within(Range("c", None, None), rows) is None


def test_few_rows_need_few_slices() -> None:
    """The cost follows the rows that are asked about, from the highest bit down."""
    rng = np.random.default_rng(1)
    values = rng.permutation(60_000)
    index, count = opened(BitSliced(), column(values))
    index.probe(Range("c", 12_345, 23_456))
    whole = count.bitmaps
    count.bitmaps = 0
    far = BitMap(np.flatnonzero(values >= 50_000)[:3].tolist())
    assert not index.probe_within(Range("c", 12_345, 23_456), far).upper
    assert whole == 16
    assert count.bitmaps <= 3


def test_a_damaged_slice_is_refused_inside_of_rows_too() -> None:
    parts = BitSliced().build(column(range(300)))
    parts[-2] = parts[-2][:-1]
    good, _ = opened(BitSliced(), column(range(300)))
    kind_parts = MemoryParts(parts)
    index = dataclasses.replace(good, parts=kind_parts)
    for ask in (index.probe_within, index.count_within):  # type: ignore[attr-defined]
        with pytest.raises(CorruptIndexError):
            ask(Range("c", 5, 130), BitMap(range(100)))
