"""Functions asked of statistics: of distinct bounds once, as of every file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.conditions.bound_predicate import Computed
from skipindex.expressions.atoms import OneOf, Value
from skipindex.expressions.domain import Domain
from skipindex.planner.stages.computed import MAX_RANGE, probe_stats
from skipindex.table import FileStats

INT, TEXT = Domain("int", bits=64), Domain("string")
EDGE = 1 << 63
Pairs = Sequence[tuple[Value, Value]]


def asked(value: Value | None) -> bool | None:
    """Some function: unknown, TRUE or FALSE by the value alone."""
    if value is None:
        return None
    number = value if isinstance(value, int) else sum(value)
    return (None, True, False, True)[number % 4]


LEAF = Computed("c", "f(c)", OneOf("", (1,)), "f(c) = 1", asked)


def check(pairs: Pairs, domain: Domain, between: Sequence[Sequence[Value]]) -> None:
    lows, highs = zip(*pairs, strict=True)
    found = probe_stats(FileStats.of_values(lows, domain, highs=highs), LEAF)
    for i, values in enumerate(between):
        truth = [asked(value) for value in values]
        is_walked = bool(values)
        assert found.upper[i] == (not is_walked or any(t is not False for t in truth))
        assert found.lower[i] == (is_walked and all(t is True for t in truth))


@given(
    st.lists(
        st.tuples(
            st.one_of(
                st.integers(-3, 3),
                st.sampled_from([-EDGE, EDGE - 2 * MAX_RANGE, 1 << 60]),
            ),
            st.one_of(st.integers(0, 3), st.integers(MAX_RANGE - 2, MAX_RANGE + 2)),
        ),
        min_size=1,
        max_size=8,
    )
)
@example([(0, MAX_RANGE - 1), (1, 0), (0, 0)])
@example([(-EDGE, 1), (-EDGE, 0), (5, MAX_RANGE - 1)])
def test_integers_between_narrow_bounds_are_tested(
    spans: list[tuple[int, int]],
) -> None:
    pairs = [(low, low + width) for low, width in spans]
    between = [
        range(low, high + 1) if high - low < MAX_RANGE else () for low, high in pairs
    ]
    check(pairs, INT, between)


@given(
    st.lists(st.tuples(st.binary(max_size=2), st.booleans()), min_size=1, max_size=8)
)
def test_a_text_is_tested_where_it_is_the_only_one(
    files: list[tuple[bytes, bool]],
) -> None:
    pairs = [(low, low if is_single else low + b"\0") for low, is_single in files]
    check(pairs, TEXT, [[low] if low == high else [] for low, high in pairs])


def test_many_files_of_few_bounds_are_tested_once_each() -> None:
    tested: list[Value | None] = []

    def test(value: Value | None) -> bool:
        tested.append(value)
        return True

    leaf = Computed("c", "f(c)", OneOf("", (1,)), "f(c) = 1", test)
    values: list[Value | None] = np.repeat(np.arange(3), 1000).tolist()
    assert probe_stats(FileStats.of_values(values, INT), leaf).lower.all()
    assert sorted(v for v in tested if isinstance(v, int)) == [0, 1, 2]
