"""Sets of codes: all files of a pack at once, as each by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.indexes.encoding.code_set import CodeSet, among_rows
from tests.quick_run import examples


@examples(100)
@given(
    st.data(),
    st.sampled_from(["u1", "u2", "u4"]),
    *(st.booleans(), st.booleans(), st.booleans()),
)
def test_rows_are_compared_with_their_own_sets(
    data: st.DataObject, dtype: str, equal: bool, by_codes: bool, as_array: bool
) -> None:
    n_files, n_rows = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 20))
    edges = st.lists(st.integers(0, 257), max_size=12, unique=True)
    sets: list[CodeSet] = []
    expected: list[set[int]] = []
    for _ in range(n_files):
        ends = sorted(data.draw(edges))
        some = ends[: len(ends) // 2 * 2] or [256, 257]
        pairs = zip(some[::2], some[1::2], strict=True)
        members = {code for start, stop in pairs for code in range(start, stop)}
        made = CodeSet.of(some, 257, n_rows)
        if by_codes:
            listed = sorted(members)
            some_codes = np.array(listed) if as_array else listed
            made = CodeSet.of_codes(some_codes, 257, n_rows)
        sets.append(made)
        expected.append(members)
    if equal:
        sets, expected = sets[:1] * n_files, expected[:1] * n_files
    seed = data.draw(st.integers(0, 99))
    codes = np.random.default_rng(seed).integers(0, 256, (n_files, n_rows))
    marks = among_rows(codes.astype(dtype), sets)
    for row, members, mine in zip(codes, expected, marks, strict=True):
        assert mine.tolist() == [code in members for code in row.tolist()]


def test_the_code_of_null_is_not_the_first_of_a_byte() -> None:
    """256 values and no NULL: NULL would have the code 256."""
    codes = np.array([[0, 1, 255], [255, 0, 3], [255, 0, 3]], np.uint8)
    sets = [CodeSet((1, 256)), CodeSet((256, 257)), CodeSet((255, 256))]
    expected = [[False, True, True], [False] * 3, [True, False, False]]
    assert among_rows(codes, sets).tolist() == expected


@pytest.mark.parametrize("n_rows", [10, 1_000_000])
@pytest.mark.parametrize("gap", [3, 5, 8, None])
def test_codes_without_one_are_not_those_between(gap: int | None, n_rows: int) -> None:
    some = [code for code in range(2, 10) if code != gap]
    every = np.arange(12, dtype=np.uint32)
    for n_codes in (20, 1 << 25):
        made = CodeSet.of_codes(np.array(some), n_codes, n_rows)
        assert np.flatnonzero(made.among(every)).tolist() == some
        assert not made.is_empty
    assert CodeSet.of_codes(np.array([], np.int64), 20, n_rows).is_empty


def test_equal_sets_are_found_in_the_same_way() -> None:
    many = [*range(20)]
    first = CodeSet.of(many, 30, 100)
    assert first.table is not None
    assert first.equals(CodeSet.of(many, 30, 10))
    assert not first.equals(CodeSet.of(many, 31, 100))
    assert not first.equals(CodeSet(np.array(many)))
    assert not first.equals(CodeSet.of(many[2:], 30, 100))
    assert not first.equals(None)
