"""A lazy list is the list of its items, made where they are looked at."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.expressions.arrays import Ints
from skipindex.planner.stages.lazy_list import LazyList

FILES = st.sets(st.integers(0, 99), max_size=12).map(sorted)


def lazy(files: Sequence[int]) -> LazyList[str]:
    return LazyList(
        np.array(files, np.int64), lambda some: [f"{file}!" for file in some.tolist()]
    )


@given(FILES, st.slices(12))
def test_it_is_the_list_of_its_items(files: list[int], part: slice) -> None:
    found, expected = lazy(files), [f"{file}!" for file in files]
    assert found == expected
    assert expected == found
    assert found == lazy(files)
    assert found != [*expected, ""]
    assert found != tuple(expected)
    assert (len(found), list(found), bool(found)) == (
        len(expected),
        expected,
        bool(expected),
    )
    assert found[part] == expected[part]
    assert list(reversed(found)) == expected[::-1]
    assert repr(found) == repr(expected)
    assert [*found, "x"] == found + ["x"] == expected + ["x"]  # noqa: RUF005
    assert ["x"] + found == ["x", *expected]  # noqa: RUF005
    for i in range(-len(expected), len(expected)):
        assert found[i] == expected[i]
        assert found.index(expected[i]) == expected.index(expected[i])
        assert expected[i] in found
    for i in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            found[i]


@given(FILES)
def test_the_item_of_a_file_is_found_by_its_position(files: list[int]) -> None:
    found = lazy(files)
    for file in range(-1, 101):
        assert found.of_file(file) == (f"{file}!" if file in files else None)


def test_nothing_is_made_that_is_not_looked_at() -> None:
    made: list[int] = []

    def make(files: Ints) -> list[int]:
        made.extend(files.tolist())
        return made[-len(files) :]

    found = LazyList(np.arange(0, 100_000, 2), make)
    assert len(found) == 50_000
    assert made == []
    assert found[-1] == 99_998
    assert found[10:12] == [20, 22]
    assert made == [99_998, 20, 22]
    assert next(iter(found)) == 0
    assert len(made) < 5_000


def test_copies_are_lists_of_the_items_alone() -> None:
    found = lazy([3, 5])
    for copied in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert type(copied) is list
        assert copied == ["3!", "5!"]
