"""Sets of codes: all files of a pack at once, as each by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skipindex.indexes.encoding.code_set import CodeSet, among_rows
from tests.quick_run import examples


@examples(100)
@given(st.data(), st.sampled_from(["u1", "u2", "u4"]), st.booleans())
def test_rows_are_compared_with_their_own_sets(
    data: st.DataObject, dtype: str, equal: bool
) -> None:
    n_files, n_rows = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 20))
    edges = st.lists(st.integers(0, 257), max_size=12, unique=True)
    sets = []
    for _ in range(n_files):
        ends = sorted(data.draw(edges))
        intervals = list(zip(ends[::2], ends[1::2], strict=False)) or [(256, 257)]
        sets.append(CodeSet.of(intervals, 257, n_rows))
    if equal:
        sets = sets[:1] * n_files
    seed = data.draw(st.integers(0, 99))
    codes = np.random.default_rng(seed).integers(0, 256, (n_files, n_rows))
    marks = among_rows(codes.astype(dtype), sets)
    for row, wanted, mine in zip(codes, sets, marks, strict=True):
        expected = [any(a <= c < b for a, b in wanted.intervals) for c in row]
        assert mine.tolist() == expected


def test_the_code_of_null_is_not_the_first_of_a_byte() -> None:
    """256 values and no NULL: NULL would have the code 256."""
    codes = np.array([[0, 1, 255], [255, 0, 3], [255, 0, 3]], np.uint8)
    sets = [CodeSet([(1, 256)]), CodeSet([(256, 257)]), CodeSet([(255, 256)])]
    expected = [[False, True, True], [False] * 3, [True, False, False]]
    assert among_rows(codes, sets).tolist() == expected


def test_equal_sets_are_found_in_the_same_way() -> None:
    many = [(i, i + 1) for i in range(0, 20, 2)]
    first = CodeSet.of(many, 30, 100)
    assert first.table is not None
    assert first.equals(CodeSet.of(many, 30, 10))
    assert not first.equals(CodeSet.of(many, 31, 100))
    assert not first.equals(CodeSet(many))
    assert not first.equals(CodeSet.of(many[1:], 30, 100))
    assert not first.equals(None)
