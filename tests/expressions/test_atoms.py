"""Long lists of values: what is a view, what is bisected, what is made once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.conditions.binding.scalar import holds
from skipindex.expressions import atoms
from skipindex.expressions.atoms import (
    MANY,
    IntegerSet,
    NoneOf,
    OneOf,
    TextSet,
    Value,
    is_among,
    places_in,
    values_between,
    values_of,
)

NUMBERS = st.integers(-5, 5) | st.sampled_from([-(1 << 63), (1 << 63) - 1])
BEYOND = NUMBERS | st.sampled_from([-(1 << 80), 1 << 63, 1 << 80])
TEXTS = st.binary(max_size=2)
LISTS = st.sets(NUMBERS, min_size=1) | st.sets(TEXTS, min_size=1)


def forms(values: list[Value]) -> list[atoms.Values]:
    """The same values in every form that a list may have."""
    if isinstance(values[0], int):
        return [tuple(values), IntegerSet(np.array(values, np.int64))]
    return [tuple(values), TextSet(values)]  # type: ignore[arg-type]


@given(LISTS, st.data())
@example({(1 << 63) - 1}, None)
def test_every_form_of_a_list_answers_alike(
    values: set[Value], data: st.DataObject | None
) -> None:
    ordered = sorted(values)  # type: ignore[type-var]
    is_text = isinstance(ordered[0], bytes)
    some = st.lists(TEXTS if is_text else BEYOND, min_size=1, max_size=3)
    asked = [*ordered, *(data.draw(some) if data else [1 << 63])]
    for form in forms(ordered):
        assert list(form) == ordered
        for value in asked:
            assert is_among(value, form) == (value in values)
            assert holds(OneOf("c", form), value) == (value in values)
            assert holds(NoneOf("c", form), value) == (value not in values)
            assert (value in form) == (value in values)
        below = [sum(v < bound for v in ordered) for bound in asked]
        assert places_in(form, asked) == below
        for low in (None, *asked):
            for high in (None, *asked):
                between = [
                    v
                    for v in ordered
                    if (low is None or v >= low) and (high is None or v < high)
                ]
                assert list(values_between(form, low, high)) == between
        assert pickle.loads(pickle.dumps(form)) == form
        assert hash(pickle.loads(pickle.dumps(form))) == hash(form)


@given(st.sets(NUMBERS), st.slices(12))
@example({1, 2, 3}, slice(None, None, -1))
def test_slices_of_integers(values: set[int], part: slice) -> None:
    ordered = sorted(values)
    found = IntegerSet(np.array(ordered, np.int64))[part]
    assert list(found) == sorted(ordered[part])


def test_a_slice_is_a_view() -> None:
    keys = IntegerSet(np.arange(1000) * 3)
    found = values_between(keys, 10, 2000)
    assert isinstance(found, IntegerSet)
    assert np.shares_memory(found.array, keys.array)


@pytest.mark.parametrize("first", [-(1 << 63), -3, (1 << 63) - 200])
@given(st.sets(st.integers(0, 199), min_size=4), st.sets(st.integers(0, 199)))
def test_numbers_are_looked_up_among_many(
    first: int, members: set[int], others: set[int]
) -> None:
    keys = IntegerSet(np.array(sorted(members)) + np.int64(first))
    beyond = {-(1 << 63), (1 << 63) - 1}
    asked = sorted({*(n + first for n in members | others), *beyond})
    marks = keys.among(np.array(asked, np.int64))
    assert marks is not None
    assert marks.tolist() == [n - first in members for n in asked]


def test_a_sparse_set_has_no_marks() -> None:
    some = np.array([0, 1 << 40])
    assert IntegerSet(some).among(some) is None
    assert IntegerSet(some[:0]).among(some) is None


def test_many_values_have_a_form_of_their_own() -> None:
    assert type(values_of(range(MANY - 1))) is tuple
    assert type(values_of(range(MANY))) is IntegerSet
    texts = values_of([b"%d" % i for i in range(MANY)])
    assert isinstance(texts, TextSet)
    assert texts.array.to_pylist() == sorted(texts) == list(texts)
    assert texts.array is texts.array
    assert texts == tuple(texts)
    assert hash(texts) == hash(tuple(texts))


class Counted(int):
    """An integer that counts comparisons."""

    n = 0

    def __lt__(self, other: int) -> bool:
        Counted.n += 1
        return int(self) < other

    def __eq__(self, other: object) -> bool:
        Counted.n += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_a_value_is_looked_up_in_few_steps() -> None:
    values = tuple(map(Counted, range(0, 20_000, 2)))
    for value, is_there in (
        (9_998, True),
        (9_999, False),
        (-1, False),
        (50_000, False),
    ):
        Counted.n = 0
        assert holds(OneOf("c", values), value) == is_there
        assert Counted.n < 20
