"""Sets of rows: marks and bitmaps give the same rows, together and alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import AbstractBitMap, BitMap

from skipindex.planner.stages.row_sets import (
    MarkedRows,
    RowSet,
    bitmap_of,
    both,
    either,
    n_in_both,
)
from tests.quick_run import examples

N_ROWS = 1_000


def rows_of(share: float, seed: int) -> BitMap:
    chosen = np.random.default_rng(seed).random(N_ROWS) < share
    return BitMap(np.flatnonzero(chosen).tolist())


def marked(rows: AbstractBitMap) -> MarkedRows:
    mask = np.zeros(N_ROWS, np.bool_)
    mask[list(rows)] = True
    return MarkedRows(mask)


SHARES = st.sampled_from([0, 0.002, 0.01, 0.1, 0.6, 1])


@examples(200)
@given(SHARES, SHARES, st.integers(0, 1 << 30), st.booleans(), st.booleans())
def test_marks_and_bitmaps_mean_the_same(
    share: float, other: float, seed: int, is_marked: bool, other_is_marked: bool
) -> None:
    a, b = rows_of(share, seed), rows_of(other, seed + 1)
    left: RowSet = marked(a) if is_marked else a
    right: RowSet = marked(b) if other_is_marked else b
    assert len(left) == len(a)
    assert bool(left) == bool(a)
    assert bitmap_of(left) == a
    assert bitmap_of(both(left, right)) == a & b
    assert bitmap_of(either(left, right)) == a | b
    assert n_in_both(left, right) == len(a & b)
    assert both(None, right) is right
    assert (bitmap_of(left), bitmap_of(right)) == (a, b)  # neither has changed
