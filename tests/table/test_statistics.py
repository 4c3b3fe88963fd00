"""Min/max: what the statistics of all files say of one atom, against brute force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.expressions.atoms import (
    Atom,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
    successor,
)
from skipindex.expressions.domain import Domain, domain_of, float_key
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.table.statistics import FileStats
from skipindex.table.summaries import (
    MAX_BYTES,
    MOST_BYTES,
    UNKNOWN,
    Summary,
    summaries_to_arrow,
    summarize,
)
from tests.tables import holds

INT, TEXT, FLOAT = Domain("int", bits=64), Domain("string"), Domain("float", bits=64)
EDGE = 1 << 63
Column = Sequence[Value | None]


def column_of(values: Column, domain: Domain) -> EncodedColumn:
    dtype = pa.large_binary() if domain.is_bytes else pa.int64()
    plain = Domain("binary") if domain.is_bytes else Domain("int", bits=64)
    return EncodedColumn("c", pa.array(values, dtype), plain)


def stats_of(files: Sequence[Column], domain: Domain) -> FileStats:
    rows: list[Summary | None] = [summarize(column_of(own, domain)) for own in files]
    n_rows = pa.array([len(own) for own in files], pa.int64())
    return FileStats.from_arrow(summaries_to_arrow(rows, domain), n_rows)


def probe(stats: FileStats, atom: Atom) -> list[tuple[bool, bool]]:
    """Lower and upper for every file."""
    found = stats.probe(atom)
    return list(zip(found.lower.tolist(), found.upper.tolist(), strict=True))


def one(values: Column, atom: Atom, domain: Domain = INT) -> tuple[bool, bool]:
    return probe(stats_of([values], domain), atom)[0]


def atoms(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Atom]:
    sets = st.sets(values, min_size=1, max_size=5).map(lambda s: tuple(sorted(s)))
    bound = st.one_of(st.none(), values)
    return st.one_of(
        st.builds(Range, st.just("c"), bound, bound).filter(_not_empty),
        st.builds(OneOf, st.just("c"), sets),
        st.builds(NoneOf, st.just("c"), sets),
        st.sampled_from([NullAtom("c"), NotNullAtom("c")]),
    )


def _not_empty(atom: Range) -> bool:
    """As the binder makes them."""
    return atom.low is None or atom.high is None or atom.low < atom.high  # type: ignore[operator]


def files_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Column]]:
    rows = st.lists(st.one_of(values, values, st.none()), max_size=6)
    return st.lists(rows, min_size=1, max_size=6)


SMALL = st.integers(-4, 4)
WIDE = st.one_of(
    SMALL,
    st.sampled_from([-EDGE, -EDGE + 1, EDGE - 1, EDGE - 2, 1 << 62, -(1 << 62)]),
    st.integers(-EDGE, EDGE - 1),
)
LONG = b"x" * MAX_BYTES
BYTES = st.one_of(
    st.binary(max_size=2),
    st.sampled_from(
        [
            LONG,
            LONG + b"\x00",
            LONG + b"y",
            LONG[:-1] + b"y",
            LONG[:-1] + b"\xff",
            LONG[:-1] + b"\xff\xff",
            b"\xff" * MAX_BYTES,
            LONG * 3,
            LONG * 3 + b"y",
            LONG * 40,
            b"\xff" * (MAX_BYTES + 5),
            "\U0010ffff".encode() * 20,
            "\ud7ff".encode() * 30,
        ]
    ),
)


def check_sound(files: Sequence[Column], atom: Atom, domain: Domain) -> None:
    for values, (lower, upper) in zip(
        files, probe(stats_of(files, domain), atom), strict=True
    ):
        truth = [holds(atom, value) for value in values]
        assert not lower or all(truth), f"{values}: not every row is TRUE"
        assert upper or not any(truth), f"{values}: some row is TRUE"


@given(files_of(WIDE), atoms(WIDE))
def test_integers_are_judged_soundly(files: list[Column], atom: Atom) -> None:
    check_sound(files, atom, INT)


@given(files_of(BYTES), atoms(BYTES))
def test_trap_c7_cut_strings_are_judged_soundly(
    files: list[Column], atom: Atom
) -> None:
    check_sound(files, atom, TEXT)


@given(files_of(SMALL), atoms(SMALL))
def test_integers_are_judged_as_tightly_as_two_bounds_can(
    files: list[Column], atom: Atom
) -> None:
    """Neither side could be better without more than bounds and a NULL count."""
    for values, (lower, upper) in zip(
        files, probe(stats_of(files, INT), atom), strict=True
    ):
        there = [v for v in values if v is not None]
        between: list[Value | None] = []
        if there:
            between += range(min(there), max(there) + 1)  # type: ignore[arg-type, operator]
        if len(there) < len(values):
            between.append(None)
        truth = [holds(atom, value) for value in between]
        assert upper == any(truth)
        if values and (there or isinstance(atom, NullAtom)):
            assert lower == all(truth)


@given(files_of(BYTES), BYTES, BYTES)
def test_short_strings_are_judged_tightly(
    files: list[Column], low: bytes, high: bytes
) -> None:
    files = [[v and v[:8] for v in own] for own in files]  # type: ignore[index]
    stats = stats_of(files, TEXT)
    wanted = (low,)
    for values, ranged, listed in zip(
        files,
        probe(stats, Range("c", low, high)),
        probe(stats, OneOf("c", wanted)),
        strict=True,
    ):
        there = [v for v in values if v is not None]
        spanned = bool(there) and max(there) >= low and min(there) < high  # type: ignore[operator]
        assert ranged[1] == spanned
        assert listed[1] == (bool(there) and min(there) <= low <= max(there))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("atom", "expected"),
    [
        (Range("c", None, None), (True, True)),
        (Range("c", -EDGE, None), (True, True)),
        (Range("c", None, EDGE - 1), (False, True)),
        (OneOf("c", (-EDGE, EDGE - 1)), (False, True)),
        (OneOf("c", (0,)), (False, True)),
        (NoneOf("c", (-EDGE, EDGE - 1)), (False, True)),
        (NoneOf("c", (0,)), (False, True)),
    ],
    ids=str,
)
def test_the_widest_file_does_not_overflow(
    atom: Atom, expected: tuple[bool, bool]
) -> None:
    """Trap C-22: the width of such a file is beyond int64."""
    assert one([-EDGE, EDGE - 1], atom) == expected


@pytest.mark.parametrize("value", [-EDGE, EDGE - 1, 0])
def test_one_value_at_an_edge_is_judged_exactly(value: int) -> None:
    assert one([value], OneOf("c", (value,))) == (True, True)
    assert one([value], NoneOf("c", (value,))) == (False, False)
    assert one([value], Range("c", value, None)) == (True, True)
    assert one([value], Range("c", None, value)) == (False, False)


def test_dense_integers_are_all_among_the_listed() -> None:
    assert one([3, 5, 4], OneOf("c", (3, 4, 5, 9))) == (True, True)
    assert one([3, 5], OneOf("c", (3, 5))) == (False, True), "4 may be there"
    assert one([3, 5], NoneOf("c", (3, 4, 5))) == (False, False)
    assert one([3, None], OneOf("c", (3,))) == (False, True)


def test_trap_c1_nan_is_the_greatest_value() -> None:
    nan, high = float_key(math.nan), float_key(100.0)
    values = pa.array([math.nan, 1.0])
    summary = summarize(EncodedColumn("c", values, FLOAT))
    assert (summary.nan_count, summary.high) == (1, nan)
    stats = FileStats.from_arrow(
        summaries_to_arrow([summary], FLOAT), pa.array([2], pa.int64())
    )
    for atom in (
        Range("c", successor(high), None),
        Range("c", float_key(2.0), None),
        OneOf("c", (nan,)),
        NoneOf("c", (float_key(1.0),)),
    ):
        assert probe(stats, atom) == [(False, True)], atom
    assert probe(stats, Range("c", None, float_key(1.0))) == [(False, False)]


def test_trap_c4_minus_zero_is_zero() -> None:
    for value in (-0.0, 0.0):
        summary = summarize(EncodedColumn("c", pa.array([value]), FLOAT))
        assert (summary.low, summary.high) == (0, 0)


@pytest.mark.parametrize(
    ("high", "stored", "exact"),
    [
        (LONG, LONG, True),
        (LONG + b"a", LONG[:-1] + b"y", False),
        (LONG[:-1] + b"\xff\xff", LONG[:-2] + b"y", False),
        (b"\xff" * 100, b"\xff" * 100, True),
        (
            "\U0010ffff".encode() * 20,
            "\U0010ffff".encode() * 15 + b"\xf4\x8f\xbf\xc0",
            False,
        ),
    ],
    ids=repr,
)
def test_trap_c7_the_high_bound_is_rounded_up(
    high: bytes, stored: bytes, *, exact: bool
) -> None:
    summary = summarize(column_of([b"", high], TEXT))
    assert (summary.high, summary.high_exact) == (stored, exact)
    assert stored >= high


@pytest.mark.parametrize("alike", [0, 1, 63, 64, 65, 1000, MOST_BYTES, 5000])
def test_bounds_tell_texts_apart_that_begin_alike(alike: int) -> None:
    """URLs and keys of one bucket do; what is stored of a text has an end."""
    start, rest = b"s" * alike, b"r" * 100
    low, high = start + b"a" + rest, start + b"c" + rest
    summary = summarize(column_of([low, high, start + b"b"], TEXT))
    assert isinstance(summary.low, bytes)
    assert isinstance(summary.high, bytes)
    assert summary.low <= low <= high <= summary.high
    n_bytes = min(alike + MAX_BYTES, MOST_BYTES)
    assert len(summary.low) == len(summary.high) == n_bytes
    tells = start + b"0" < summary.low and summary.high < start + b"d"
    assert tells == (alike < MOST_BYTES)
    one = summarize(column_of([low], TEXT))
    assert one.low_exact == one.high_exact == (len(low) <= MOST_BYTES)


def test_trap_c8_a_long_value_keeps_its_null_count() -> None:
    """parquet-mr leaves both bounds and the count out of such a footer."""
    long = "x" * 5_000
    values = pa.array([long, None])
    summary = summarize(EncodedColumn("c", values, TEXT))
    assert summary.null_count == 1
    stats = stats_of([[long.encode(), None]], TEXT)
    assert probe(stats, OneOf("c", (long.encode(),))) == [(False, True)]
    assert probe(stats, OneOf("c", (b"y",))) == [(False, False)]


def stats_from(rows: list[Summary | None], n_rows: list[int | None]) -> FileStats:
    column = summaries_to_arrow(rows, INT)
    return FileStats.from_arrow(column, pa.array(n_rows, pa.int64()))


EVERY: tuple[Atom, ...] = (
    Range("c", 5, 6),
    OneOf("c", (5,)),
    NoneOf("c", (5,)),
    NullAtom("c"),
    NotNullAtom("c"),
)


@pytest.mark.parametrize("atom", EVERY, ids=str)
@pytest.mark.parametrize(
    ("summary", "n_rows"),
    [
        (None, 10),
        (None, None),
        (UNKNOWN, 10),
        (UNKNOWN, None),
        (Summary(None, None, None, None), -1),
    ],
    ids=str,
)
def test_trap_c26_unknown_is_neither_none_nor_all(
    summary: Summary | None, n_rows: int | None, atom: Atom
) -> None:
    assert probe(stats_from([summary], [n_rows]), atom) == [(False, True)]
    assert probe(FileStats.unknown(1, INT), atom) == [(False, True)]
    assert probe(FileStats.unknown(1, TEXT), NullAtom("c")) == [(False, True)]


@pytest.mark.parametrize(
    "summary",
    [
        Summary(0, None, 9, 1),  # trap C-16
        Summary(11, None, 1, 9),  # more NULLs than rows
        Summary(10, None, 1, 9),  # trap C-8: only NULLs, and yet a value
        Summary(-1, None, 1, 9),
    ],
    ids=str,
)
def test_trap_c16_statistics_that_contradict_themselves_skip_nothing(
    summary: Summary,
) -> None:
    stats = stats_from([summary], [10])
    for atom in (OneOf("c", (5,)), NotNullAtom("c"), Range("c", 0, 10)):
        assert probe(stats, atom)[0][1], atom
    assert stats.nulls.or_else(-1).tolist() == [-1 if summary.null_count else 0]


def test_trap_c16_inverted_bounds_are_no_bounds() -> None:
    stats = stats_from([Summary(0, None, 9, 1)], [10])
    assert probe(stats, OneOf("c", (50,))) == [(False, True)]
    assert probe(stats, NullAtom("c")) == [(False, False)], "the count still holds"


def test_an_unknown_null_count_keeps_its_bounds() -> None:
    stats = stats_from([Summary(None, None, 1, 9)], [10])
    assert probe(stats, OneOf("c", (50,))) == [(False, False)]
    assert probe(stats, Range("c", 0, 10)) == [(False, True)], "a NULL may be there"
    assert probe(stats, NullAtom("c")) == [(False, True)]


def test_files_of_only_null_hold_no_value() -> None:
    for atom in EVERY:
        expected = (True, True) if isinstance(atom, NullAtom) else (False, False)
        assert one([None, None], atom) == expected, atom


def test_trap_c55_files_without_rows_hold_nothing() -> None:
    for atom in EVERY:
        assert not one([], atom)[1], atom


def test_partition_values_are_in_every_row() -> None:
    stats = FileStats.of_values([1, None, 3], INT)
    assert probe(stats, OneOf("c", (1,))) == [
        (True, True),
        (False, False),
        (False, False),
    ]
    assert probe(stats, NoneOf("c", (1,))) == [
        (False, False),
        (False, False),
        (True, True),
    ]
    assert probe(stats, NullAtom("c")) == [(False, False), (True, True), (False, False)]
    text = FileStats.of_values([b"a", None, b""], TEXT)
    assert probe(text, Range("c", None, b"a")) == [
        (False, False),
        (False, False),
        (True, True),
    ]


def test_no_files_no_answers() -> None:
    for domain in (INT, TEXT):
        stats = stats_of([], domain)
        for atom in (NullAtom("c"), NotNullAtom("c")):
            assert probe(stats, atom) == []


def test_summaries_survive_the_manifest() -> None:
    rows = [Summary(1, 2, 3, 4, low_exact=False), None, UNKNOWN]
    column = summaries_to_arrow(rows, INT)
    assert column.to_pylist()[0] == {
        "null_count": 1,
        "nan_count": 2,
        "low": 3,
        "high": 4,
        "low_exact": False,
        "high_exact": True,
    }
    assert column.is_valid().to_pylist() == [True, False, True]


@pytest.mark.parametrize("dtype", [pa.int8(), pa.date32(), pa.bool_(), pa.string()])
def test_columns_of_a_file_are_summarised_in_their_domain(dtype: pa.DataType) -> None:
    values = (
        pa.array([None, *np.array([0, 1]).tolist()], pa.int32())
        .cast(pa.int32() if dtype == pa.date32() else pa.int8())
        .cast(dtype)
    )
    domain = domain_of(dtype)
    summary = summarize(EncodedColumn("c", values, domain))
    assert summary.null_count == 1
    assert summary.nan_count is None
    low, high = (b"0", b"1") if domain.is_bytes else (0, 1)
    assert (summary.low, summary.high) == (low, high)


def test_trap_c7_equal_bounds_that_were_cut_are_no_single_value() -> None:
    """Ours never are; another writer may cut both ends to one text."""
    domain = Domain("string")
    cut = Summary(0, None, b"a", b"a", low_exact=True, high_exact=False)
    whole = Summary(0, None, b"a", b"a")
    column = summaries_to_arrow([cut, whole], domain)
    stats = FileStats.from_arrow(column, pa.array([2, 2], pa.int64()))
    assert stats.probe(OneOf("s", (b"a",))).lower.tolist() == [False, True]
    assert stats.probe(NoneOf("s", (b"a",))).upper.tolist() == [True, False]


@pytest.mark.parametrize("domain", [INT, TEXT], ids=["int", "string"])
@pytest.mark.parametrize("n_files", [1 << 15, (1 << 15) + 1, 70_000])
def test_every_block_of_files_is_judged(domain: Domain, n_files: int) -> None:
    """Files are compared some thousands at a time, the last ones as the first."""
    numbers = [i * 7919 % 1000 for i in range(n_files)]
    values: list[Value | None] = [*numbers]
    ends: tuple[Value, Value] = (200, 777)
    if domain.is_bytes:
        values = [b"%03d" % number for number in numbers]
        ends = (b"200", b"777")
    stats = FileStats.of_values(values, domain)
    for low, high in (ends, (None, ends[1]), (ends[0], None), (None, None)):
        found = stats.probe(Range("c", low, high))
        matching = [
            (low is None or value >= low) and (high is None or value < high)  # type: ignore[operator]
            for value in values
        ]
        assert found.lower.tolist() == matching
        assert found.upper.tolist() == matching


def test_blocks_that_a_range_does_not_touch_are_inside_of_nothing() -> None:
    stats = FileStats.of_values(list(range(70_000)), INT)
    found = stats.probe(Range("c", 40_000, 40_010))
    assert np.flatnonzero(found.upper).tolist() == list(range(40_000, 40_010))
    assert np.flatnonzero(found.lower).tolist() == list(range(40_000, 40_010))
