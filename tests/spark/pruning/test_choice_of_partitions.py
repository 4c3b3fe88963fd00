"""The partitions that are left, as equalities and ranges of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skipindex.spark.pruning.partitions import Choice, Values, choice, nulls_first

FIRST = date(2021, 11, 28)
KINDS = st.sampled_from(["string", "int", "bigint", "date"])


@given(
    data=st.data(),
    kinds=st.lists(KINDS, min_size=1, max_size=3),
)
def test_a_choice_is_of_the_very_partitions(
    data: st.DataObject, kinds: list[str]
) -> None:
    texts = {
        "string": st.sampled_from(
            [*"abcdefghijklm", "10", "é", "\U0001f600", "\uffff"]
        ),
        "date": st.dates().map(str),
    }
    value = [
        st.none() | texts.get(kind, st.integers(-30, 30).map(str)) for kind in kinds
    ]
    rows = data.draw(
        st.dictionaries(st.tuples(*value), st.booleans(), min_size=1, max_size=60)
    )
    found = choice(
        sorted(((*row, is_left) for row, is_left in rows.items()), key=nulls_first),
        kinds,
    )
    for row, is_left in rows.items():
        assert (found is None or chosen(found, row, kinds)) == is_left


def chosen(found: Choice, row: Sequence[str | None], kinds: Sequence[str]) -> bool:
    """Whether Spark finds a partition by a choice."""
    return any(
        has(values, row[0], kinds[0])
        and (not below or chosen(below, row[1:], kinds[1:]))
        for values, below in found
    )


def has(values: Values, value: str | None, kind: str) -> bool:
    if isinstance(values, list):
        return value in values
    order: Callable[[str], Any] = str.encode if kind == "string" else str
    order = int if kind in {"int", "bigint"} else order
    return value is not None and (
        order(values["first"]) <= order(value) <= order(values["last"])
    )


def test_many_days_are_a_range() -> None:
    days = [str(FIRST + timedelta(i)) for i in range(400)]
    rows = [(day, "2022-01-01" <= day < "2022-11-11") for day in days]
    assert choice(rows, ["date"]) == [
        ({"first": "2022-01-01", "last": "2022-11-10"}, [])
    ]
    numbers = [(None, True), *((f"{i}", i > -12) for i in range(-30, 31))]
    assert choice(numbers, ["int"]) == [
        ({"first": "-11", "last": "30"}, []),
        ([None], []),
    ]
    ((listed, _),) = choice([*numbers, ("1_0", True)], ["int"]) or []
    assert isinstance(listed, list), "a text that is no number"
