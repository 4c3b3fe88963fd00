"""Bounds compared by keys and in blocks, beside plain comparisons of the values.

``before`` compares each bound by Arrow and Python, as the statistics once did.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import Atom, NoneOf, OneOf, Range, Value
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.log.narrow import narrow_column
from skipindex.table.statistics import FileStats, ends
from skipindex.table.summaries import Summary, summaries_to_arrow

INT, TEXT = Domain("int", bits=64), Domain("string")
EDGE = 1 << 63

_HEADS = st.sampled_from([b"", b"CITY ", b"https://a.example/", b"\xff\xff", b"\0"])
_TAILS = st.lists(
    st.sampled_from([b"\0", b"a", b"b", b"\xff", b"12345678", b"\xed\xa0\x80"]),
    max_size=4,
).map(b"".join)


@st.composite
def texts(draw: st.DrawFn) -> st.SearchStrategy[bytes]:
    """Strings of which many share a prefix, a key, or all but NULs at the end."""
    head = draw(_HEADS)
    alike = _TAILS.map(lambda tail: head + tail)
    return draw(st.sampled_from([alike, st.one_of(alike, alike, _TAILS)]))


@st.composite
def numbers(draw: st.DrawFn) -> st.SearchStrategy[int]:
    at = draw(st.sampled_from([0, 124, -132, -EDGE, EDGE - 9, 1 << 40]))
    near = st.integers(at, at + 8)
    edges = st.sampled_from([-EDGE, EDGE - 1, 0])
    return draw(st.sampled_from([near, st.one_of(near, near, edges)]))


@st.composite
def questions(draw: st.DrawFn, kind: Any) -> tuple[list[Summary | None], list[Atom]]:
    """Statistics of files, inverted and unknown bounds among them, and atoms."""
    value = draw(kind)
    flag = st.booleans()
    known = st.builds(
        lambda a, b, *exact: Summary(0, None, min(a, b), max(a, b), *exact),
        *(value, value, flag, flag),
    )
    single = st.builds(
        lambda a, *exact: Summary(0, None, a, a, *exact), value, flag, flag
    )
    other = st.one_of(
        st.builds(Summary, st.sampled_from([None, 0, 1, 3]), st.none(), value, value),
        st.just(Summary(3, None, None, None)),
        st.none(),
    )
    files = draw(
        st.lists(st.one_of(known, known, single, other), min_size=1, max_size=12)
    )
    bounds = [v for f in files if f for v in (f.low, f.high) if v is not None]
    asked = st.one_of(value, st.sampled_from(bounds)) if bounds else value
    listed = st.sets(asked, min_size=1, max_size=6).map(lambda s: tuple(sorted(s)))
    end = st.one_of(st.none(), asked)
    atom = st.one_of(
        st.builds(Range, st.just("c"), end, end),
        st.builds(OneOf, st.just("c"), listed),
        st.builds(NoneOf, st.just("c"), listed),
    )
    return files, draw(st.lists(atom, min_size=1, max_size=6))


def stats_of(files: Sequence[Summary | None], domain: Domain) -> FileStats:
    n_rows = pa.array([3] * len(files), pa.int64())
    return FileStats.from_arrow(summaries_to_arrow(files, domain), n_rows)


def before(stats: FileStats, atom: Atom) -> Bounds[Mask]:
    """What ``FileStats.probe`` said when it compared every bound by its value."""
    low, high = stats.low, stats.high
    if isinstance(low, np.ndarray):
        low, high = pa.array(low), pa.array(high)
    single = np.asarray(pc.equal(low, high).fill_null(False)) & stats.exact
    match atom:
        case Range(_, start, stop):
            inside = _at_least(low, start) & _below(high, stop)
            touched = _at_least(high, start) & _below(low, stop)
        case OneOf(_, values) | NoneOf(_, values):
            nothing = 0 if low.type == pa.int64() else b""
            lows = [nothing if v is None else v for v in low.to_pylist()]
            highs = [nothing if v is None else v for v in high.to_pylist()]
            first = np.array([bisect_left(values, v) for v in lows])
            stops = np.array([bisect_right(values, v) for v in highs])
            touched = stops > first
            inside = touched & single
            if isinstance(low[0].as_py(), int):
                dense = [
                    tuple(values[i:j]) == tuple(range(a, b + 1))
                    if b - a < 99
                    else False
                    for i, j, a, b in zip(first, stops, lows, highs, strict=True)
                ]
                inside = touched & np.array(dense)
            if isinstance(atom, NoneOf):
                inside, touched = ~touched, ~inside
        case _:
            raise AssertionError(atom)
    touched = (touched | ~stats.bounded) & stats.can_value
    return Bounds(inside & stats.bounded & ~stats.can_null, touched)


def _at_least(end: pa.Array, value: Value | None) -> Mask:
    if value is None:
        return np.ones(len(end), bool)
    scalar = pa.scalar(value, end.type)
    return np.asarray(pc.greater_equal(end, scalar).fill_null(False))


def _below(end: pa.Array, value: Value | None) -> Mask:
    if value is None:
        return np.ones(len(end), bool)
    return ~_at_least(end, value)


def check_as_before(
    files: list[Summary | None], atoms: list[Atom], domain: Domain, block: int
) -> None:
    stats = stats_of(files, domain)
    wide = summaries_to_arrow(files, domain)
    n_rows = pa.array([3] * len(files), pa.int64())
    narrow = FileStats.from_arrow(narrow_column(wide), n_rows)
    with mock.patch.object(ends, "_BLOCK", block):
        for atom in atoms:
            expected = before(stats, atom)
            for found in (stats.probe(atom), narrow.probe(atom)):
                assert found.upper.tolist() == expected.upper.tolist(), atom
                assert found.lower.tolist() == expected.lower.tolist(), atom
            assert narrow.holds(atom).tolist() == stats.holds(atom).tolist(), atom


@given(questions(texts()), st.sampled_from([1, 2, 3, 99]))
@example(([Summary(0, None, b"a", b"a")], [OneOf("c", (b"a\0",))]), 99)
@example(([Summary(0, None, b"a\0", b"a\0")], [OneOf("c", (b"a",))]), 99)
def test_byte_strings_are_judged_as_by_their_values(
    drawn: tuple[list[Summary | None], list[Atom]], block: int
) -> None:
    check_as_before(*drawn, TEXT, block)


@given(questions(numbers()), st.sampled_from([1, 2, 3, 99]))
def test_integers_are_judged_as_by_their_values(
    drawn: tuple[list[Summary | None], list[Atom]], block: int
) -> None:
    check_as_before(*drawn, INT, block)


def test_bounds_that_differ_in_bits_left_out_of_short_keys_are_compared() -> None:
    """The first byte of all differs, and what lies between them is below 2 ** 40."""
    at, step = int.from_bytes(b"b".ljust(16, b"\0"), "big"), 1 << 34
    values = [at + step * i for i in range(-30, 30)] + [at + 3, at + 7]
    ordered = [value.to_bytes(16, "big") for value in sorted(values)]
    files: list[Summary | None] = [Summary(0, None, v, v) for v in ordered]
    assert isinstance(found := stats_of(files, TEXT).ends, ends.TextEnds)
    assert found.keys[0].dtype == np.uint32
    atoms: list[Atom] = [Range("c", v, w) for v in ordered for w in (None, v + b"\0")]
    atoms += [OneOf("c", (v,)) for v in ordered]
    check_as_before(files, atoms, TEXT, 99)


LONG = b"CUSTOMER#00000"


@pytest.mark.parametrize("block", [2, 99])
@pytest.mark.parametrize(
    ("value", "files"),
    [
        (LONG + b"1", [0, 1]),
        (LONG + b"1\0", [1]),
        (LONG + b"1234567890", [1, 3]),
        (LONG + b"12345678901", [1]),
        (LONG, []),
        (LONG[:-1], []),
        (b"", []),
        (b"D", []),
        (LONG + b"9", [2]),
        (LONG + b"\xff", []),
    ],
    ids=repr,
)
def test_a_point_meets_the_files_whose_bounds_enclose_it(
    value: bytes, files: list[int], block: int
) -> None:
    pairs = [(b"1", b"1"), (b"1", b"2"), (b"5", b"9"), (b"1234567890", b"1234567890")]
    stats = stats_of([Summary(0, None, LONG + a, LONG + b) for a, b in pairs], TEXT)
    with mock.patch.object(ends, "_BLOCK", block):
        one_of = stats.probe(OneOf("c", (value,))).upper
        ranged = stats.probe(Range("c", value, value + b"\0")).upper
    assert np.flatnonzero(one_of).tolist() == files
    assert np.flatnonzero(ranged).tolist() == files


def test_bounds_that_are_not_in_order_leave_the_prefix_to_all() -> None:
    """Two folders may contradict each other; what they say of a file is no value."""
    stats = FileStats.between([b"aa", b"zz", None], [b"ab", b"aab", None], TEXT)
    for value in (b"aa", b"b", b"zz", b"aab", b"", b"~"):
        atom = OneOf("c", (value,))
        expected = [b"aa" <= value <= b"ab", False, True]
        assert stats.probe(atom).upper.tolist() == expected, value
        assert not stats.probe(NoneOf("c", (value,))).lower.any()


def test_a_clustered_column_is_compared_where_the_value_is() -> None:
    """The other blocks are told by their ends."""
    values: list[Value | None] = [b"%06d" % i for i in range(1000)]
    stats = FileStats.of_values(values, TEXT)
    with mock.patch.object(ends, "_BLOCK", 10):
        stats.probe(Range("c", b"0", b"1"))  # the keys are made
        blocks = []
        compare = ends.TextEnds._at_least

        def compared(
            own: ends.TextEnds, side: int, block: slice, cut: ends.Cut
        ) -> Mask:
            blocks.append(block)
            return compare(own, side, block, cut)

        with mock.patch.object(ends.TextEnds, "_at_least", compared):
            found = stats.probe(Range("c", b"000500", b"000501"))
    assert np.flatnonzero(found.upper).tolist() == [500]
    assert set(map(str, blocks)) == {str(slice(500, 510))}
