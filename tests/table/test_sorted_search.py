"""Keys looked up in a sorted list, beside a binary search for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.table.statistics.sorted_search import SortedSearch

EDGE = 1 << 63
ENDS = st.sampled_from([0, 1, EDGE - 1, EDGE - 2])
FAR = st.integers(0, EDGE - 1)
LISTS = st.one_of(
    st.lists(st.one_of(st.integers(0, 60), ENDS), min_size=1, max_size=40),
    st.lists(st.one_of(FAR, ENDS), min_size=1, max_size=40),
)


@given(
    listed=LISTS,
    asked=st.lists(st.one_of(st.integers(0, 70), FAR, ENDS)),
    is_signed=st.booleans(),
)
def test_places_are_those_of_a_binary_search(
    listed: Sequence[int], asked: Sequence[int], *, is_signed: bool
) -> None:
    """Over all of int64 and of uint64: the span may exceed int64."""
    dtype = np.int64 if is_signed else np.uint64
    shift = EDGE if is_signed else 0
    double = 2 if is_signed else 1
    ordered = np.array(sorted(double * n - shift for n in listed), dtype)
    keys = np.array([double * n - shift for n in (*asked, *listed)], dtype)
    found = SortedSearch(ordered).places(keys)
    assert found.tolist() == np.searchsorted(ordered, keys).tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("n", [1, 8, 9, 1000, 100_000])
def test_long_lists_too(n: int, dtype: type[np.int64 | np.uint64]) -> None:
    rng = np.random.default_rng(n)
    ordered = np.unique(rng.integers(0, 1 << 40, n).astype(dtype))
    keys = np.concatenate([ordered, ordered + dtype(1), ordered - dtype(1)])
    keys = np.concatenate([keys, np.array([0, (1 << 63) - 1], dtype)])
    found = SortedSearch(ordered).places(keys)
    assert np.array_equal(found, np.searchsorted(ordered, keys))
