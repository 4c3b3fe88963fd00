"""Bitmaps of stored bytes: the same rows, in containers that are fast to combine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError
from skipindex.storage.parts import bitmap_of, memory_of
from tests.quick_run import examples


def stored(n_runs: int, longest: int, first: int, seed: int) -> bytes:
    """A bitmap of runs, as an index has it."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, 2 * n_runs)
    is_in = np.repeat(np.arange(2 * n_runs) % 2 == 1, lengths)
    rows = BitMap((first + np.flatnonzero(is_in)).tolist())
    rows.run_optimize()
    return bytes(rows.serialize())


@examples(200)
@given(
    st.integers(0, 9_000),
    st.integers(1, 90),
    st.sampled_from([0, 1, 65_535, 65_536, 200_000, 1 << 24]),
    st.integers(0, 1 << 30),
)
def test_the_rows_are_those_that_were_stored(
    n_runs: int, longest: int, first: int, seed: int
) -> None:
    raw = stored(n_runs, longest, first, seed)
    found = bitmap_of(memoryview(raw))
    assert isinstance(found, FrozenBitMap)
    assert found == BitMap.deserialize(raw)
    assert memory_of(raw) >= len(raw)


def test_many_runs_are_bits_and_few_stay_runs() -> None:
    for n_runs, longest, n_bits in ((1_500, 60, 2), (100, 600, 0)):
        raw = stored(n_runs, longest, 0, 1)
        assert BitMap.deserialize(raw).get_statistics()["n_run_containers"]
        found = bitmap_of(raw).get_statistics()
        assert found["n_bitset_containers"] == n_bits
        assert bool(found["n_run_containers"]) == (not n_bits)
        assert memory_of(raw) == (8192 * n_bits or len(raw))


def test_bytes_of_no_bitmap_are_refused() -> None:
    raw = stored(1_500, 60, 0, 1)
    for damaged in (raw[:-1], raw[:1_030], b"?" * 5_000):
        with pytest.raises(CorruptIndexError, match="no roaring bitmap"):
            bitmap_of(damaged)
