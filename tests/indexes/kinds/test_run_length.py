"""Runs: where they pay, what a probe reads, and damage that a crc does not see."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.expressions.atoms import NotNullAtom, NullAtom, OneOf, Range
from skipindex.indexes import index_type
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.indexes.kinds.run_length import RunLength
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import atoms, column_of, encoded, true_rows, values_of
from tests.indexes.memory_parts import opened
from tests.quick_run import examples

N_ROWS = 60_000


def orders(n_values: int, rows: int) -> pa.Array:
    """A column that stays for about ``rows`` rows."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 2 * rows, N_ROWS)
    values = rng.integers(0, n_values, N_ROWS)
    return pa.array(np.repeat(values, lengths)[:N_ROWS])


@pytest.mark.parametrize(
    ("n_values", "rows", "share"), [(250, 4, 0.5), (2400, 40, 0.6)]
)
def test_runs_are_smaller_than_rows(n_values: int, rows: int, share: float) -> None:
    column = column_of(orders(n_values, rows))
    size = sum(map(len, RunLength().build(column)))
    assert size < share * sum(map(len, BitSliced().build(column)))


def test_a_probe_reads_the_slices_and_where_runs_begin_if_any_matches() -> None:
    index, count = opened(RunLength(), column_of(orders(256, 4)))
    bounds = index.probe(Range("c", 100, 110))
    assert bounds.lower == bounds.upper
    assert (count.parts, count.bitmaps) == (2, 8 + 1)
    count.parts = count.bitmaps = 0
    assert not index.probe(OneOf("c", (256,))).upper
    assert count.parts == 0, "a value beyond the greatest needs no slice"


def test_many_values_are_looked_up_at_once() -> None:
    array = orders(1000, 3)
    index, _ = opened(RunLength(), column_of(array))
    values = np.asarray(array)
    for step in (2, 60, 333):
        wanted = tuple(range(0, 1000, step))
        rows = np.flatnonzero(values % step == 0)
        assert list(index.probe(OneOf("c", wanted)).upper) == rows.tolist()


@pytest.mark.parametrize("null_every", [1, 2, 5])
def test_null_is_a_run_of_its_own(null_every: int) -> None:
    values = [None if i // 3 % null_every == 0 else i // 3 for i in range(300)]
    index, _ = opened(RunLength(), encoded(list(values), pa.int64()))
    null = {row for row, value in enumerate(values) if value is None}
    assert set(index.probe(NullAtom("c")).upper) == null
    assert set(index.probe(NotNullAtom("c")).lower) == set(range(300)) - null
    assert not null & set(index.probe(Range("c", None, 10**6)).upper)


def test_long_runs_are_kept_as_numbers() -> None:
    column = encoded([i // 1000 for i in range(5000)], pa.int64())
    payload = RunLength().build(column)
    assert payload[0][-1] == 1
    assert len(payload[-2]) == 5 * 4
    index, _ = opened(RunLength(), column)
    assert list(index.probe(OneOf("c", (2,))).lower) == list(range(2000, 3000))


@pytest.mark.parametrize("longest", [1, 4, 90, 400])
@examples(60)
@given(data=st.data())
def test_runs_of_any_length_are_exact_in_every_form(
    longest: int, data: st.DataObject
) -> None:
    """Also behind the last row, where the bits of a byte are of no run."""
    scale = data.draw(st.sampled_from([1, 3, 10**15]))
    value = st.none() | st.integers(-4, 40).map(lambda n: n * scale)
    length = st.integers(max(1, longest // 2), longest)
    runs = data.draw(st.lists(st.tuples(value, length), min_size=3, max_size=40))
    array = pa.array([v for v, n in runs for _ in range(n)], pa.int64())
    index, _ = opened(RunLength(), column_of(array))
    for _ in range(4):
        atom = data.draw(atoms(array))
        bounds = index.probe(atom)
        assert bounds.lower == bounds.upper == true_rows(atom, values_of(array))


def test_runs_that_make_no_sense_are_refused() -> None:
    column = encoded([i // 5 for i in range(400)], pa.int64())
    head, begins, slices = RunLength().build(column)
    kind = index_type("run_length")
    for damaged in (
        [head, bytes(len(begins)), slices],
        [head, b"\xff" * len(begins), slices],
        [head, begins, slices[:-1]],
        [head[:-2] + b"\x09" + head[-1:], begins, slices],
        [head[:-1] + b"\x02", begins, slices],
        [head, begins],
    ):
        with pytest.raises(CorruptIndexError):
            kind.open(MemoryParts(damaged), column.domain, 400).probe(Range("c", 3, 40))


def test_rows_without_equal_neighbours_cost_their_bits_alone() -> None:
    rng = np.random.default_rng(4)
    array = pa.array(rng.integers(0, 200, 999))
    head, slices = RunLength().build(column_of(array))
    assert len(slices) == 8 * -(-999 // 8)
    column = column_of(array)
    index, _ = opened(RunLength(), column)
    values = np.asarray(array)
    rows = np.flatnonzero(values >= 50).tolist()
    assert list(index.probe(Range("c", 50, None)).lower) == rows
    assert list(index.probe(OneOf("c", (7, 70))).upper) == (
        np.flatnonzero((values == 7) | (values == 70)).tolist()
    )
    kind = index_type("run_length")
    for damaged in (
        [b"\x02" + head[1:], slices],
        [head[:-1] + b"\x00", slices],
        [head[:-6] + b"\x01" + head[-5:], slices],
        [head, slices[:-1]],
    ):
        with pytest.raises((CorruptIndexError, IndexVersionError)):
            kind.open(MemoryParts(damaged), column.domain, 999).probe(Range("c", 3, 40))
