"""Bit slices: how many bitmaps, which rows are in them, and what a probe reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.atoms import NoneOf, NotNullAtom, NullAtom, OneOf, Range
from skipindex.indexes import index_type
from skipindex.indexes.bit_slices.digits import Shape, pack_slices
from skipindex.indexes.bit_slices.slices import Slices
from skipindex.indexes.encoding.column import NULL_CODE
from skipindex.indexes.encoding.roaring import load
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import encoded
from tests.indexes.memory_parts import opened
from tests.quick_run import examples

SHAPES = [(base, ranged) for base in (2, 3, 7, 10, 16) for ranged in (True, False)]


def slices_of(codes: list[int], base: int, *, ranged: bool) -> list[BitMap]:
    array = np.array(codes, np.uint32)
    n_codes = max((c for c in codes if c != NULL_CODE), default=-1) + 1
    shape = Shape.of(base, n_codes, ranged=ranged)
    return [load(raw) for raw in pack_slices(array, shape)]


@pytest.mark.parametrize("values", [range(256), range(0, 25_600, 100)])
@pytest.mark.parametrize(
    ("spec", "n_bitmaps"),
    [
        (BitSliced(base=10, encoding="equality"), 30),
        (BitSliced(base=10, encoding="range"), 28),
        (BitSliced(base=2, encoding="range"), 9),
        (BitSliced(base=2, encoding="equality"), 16),
        (BitSliced(base=16, encoding="equality"), 32),
    ],
)
def test_check_34_bitmaps_of_256_distinct_values(
    spec: BitSliced, n_bitmaps: int, values: range
) -> None:
    column = encoded(list(values) * 3, pa.int64())
    index, _ = opened(spec, column)
    assert index.n_bitmaps == n_bitmaps
    payload = spec.build(column)
    assert len(payload) - 1 - index.head.n_chunks == n_bitmaps


def test_check_34_not_all_of_30_bitmaps_have_a_row() -> None:
    slices = slices_of(list(range(256)), 10, ranged=False)
    assert len(slices) == 30
    assert sum(map(bool, slices)) == 23, "digits of 0 to 255: 10 + 10 + 3"


def test_check_33_values_18_and_188_share_digit_0() -> None:
    codes = [18, 188, 2, 70, 8]
    by_value = slices_of(codes, 10, ranged=False)
    assert list(by_value[8]) == [0, 1, 4]
    assert list(by_value[10 + 1]) == [0]
    assert list(by_value[10 + 8]) == [1]
    assert list(by_value[20 + 0]) == [0, 2, 3, 4]


@pytest.mark.parametrize(("base", "ranged"), SHAPES)
def test_slices_hold_the_digits(base: int, *, ranged: bool) -> None:
    chooser = np.random.default_rng(base)
    codes = [*chooser.integers(0, 777, 300).tolist(), 0, 776]
    codes[::10] = [NULL_CODE] * len(codes[::10])
    slices = slices_of(codes, base, ranged=ranged)
    per_digit = base - ranged
    for i, v in np.ndindex((len(slices) - ranged) // per_digit, per_digit):
        digits = {row: c // base**i % base for row, c in enumerate(codes)}
        expected = [
            row
            for row, digit in digits.items()
            if codes[row] != NULL_CODE and (digit <= v if ranged else digit == v)
        ]
        assert list(slices[i * per_digit + v]) == expected
    if ranged:
        assert list(slices[-1]) == [r for r, c in enumerate(codes) if c != NULL_CODE]


@examples(150)
@given(data=st.data())
def test_evaluation_over_any_shape(data: st.DataObject) -> None:
    base, ranged = data.draw(st.sampled_from(SHAPES))
    n_codes = data.draw(st.sampled_from([1, 2, 3, 9, 10, 11, 31, 32, 33, 100, 257]))
    code = st.integers(0, n_codes - 1)
    nullable = code | st.just(NULL_CODE) if data.draw(st.booleans()) else code
    codes = np.array(data.draw(st.lists(nullable, max_size=50)), np.uint32)
    shape = Shape.of(base, n_codes, ranged=ranged)
    parts = MemoryParts([b"", *pack_slices(codes, shape)])
    full = NULL_CODE not in codes
    start = data.draw(code)
    stop = data.draw(st.integers(start + 1, n_codes))
    cuts = sorted({*data.draw(st.lists(code, min_size=2, max_size=12)), n_codes})
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))

    def slices() -> Slices:
        return Slices(parts, 1, shape, len(codes), full)

    def rows(mask: np.ndarray) -> BitMap:
        return BitMap(np.flatnonzero(mask).tolist())

    assert slices().existence() == rows(codes != NULL_CODE)
    assert slices().between(start, stop) == rows((codes >= start) & (codes < stop))
    inside = np.zeros(len(codes), np.bool_)
    for low, high in pairs:
        inside |= (codes >= low) & (codes < high)
    assert slices().among(pairs) == rows(inside)


def test_trap_c22_bounds_with_more_bits_than_any_value() -> None:
    """Java's RangeBitmap answers 1024 to 2000 over values up to 1000 with all rows."""
    for spec in BitSliced(), BitSliced(base=10, encoding="equality"):
        index, count = opened(spec, encoded(list(range(1001)), pa.int64()))
        for low, high in ((1024, 2000), (-50, 0), (2**40, 2**41), (-(2**70), -1)):
            assert not index.probe(Range("c", low, high)).upper
        assert count.parts == 0, "should fold without reading"
        assert len(index.probe(Range("c", 512, 2000)).lower) == 1001 - 512
        assert len(index.probe(Range("c", -(2**70), 2**70)).lower) == 1001


def test_trap_c24_rows_of_null_are_in_no_slice_and_no_answer() -> None:
    rows = [5, None, 7, None, 5]
    for spec in BitSliced(), BitSliced(base=10, encoding="equality"):
        index, _ = opened(spec, encoded(rows, pa.int64()))
        assert list(index.probe(NoneOf("c", (5,))).upper) == [2]
        assert list(index.probe(NoneOf("c", (1, 2, 3))).upper) == [0, 2, 4]
        assert list(index.probe(Range("c", None, None)).upper) == [0, 2, 4]
        assert list(index.probe(Range("c", None, 6)).upper) == [0, 4]
        assert list(index.probe(NullAtom("c")).lower) == [1, 3]
        assert list(index.probe(NotNullAtom("c")).lower) == [0, 2, 4]


def test_one_bitmap_a_digit_is_read_where_it_decides() -> None:
    column = encoded(list(range(1024)) * 2, pa.int64())
    index, count = opened(BitSliced(), column)
    index.probe(Range("c", None, 512))
    assert count.bitmaps == 1, "x < 512 is one bit of ten"
    index.probe(Range("c", None, 1000))
    assert count.bitmaps == 1 + 7, "1000 - 1 ends in three ones"
    count.bitmaps = 0
    index.probe(OneOf("c", (77,)))
    assert count.bitmaps <= 10
    count.bitmaps = 0
    index.probe(NotNullAtom("c"))
    assert count.bitmaps == 0, "no row is NULL"


def test_an_equality_slice_a_digit_answers_equality() -> None:
    column = encoded(list(range(1000)), pa.int64())
    index, count = opened(BitSliced(base=10, encoding="equality"), column)
    assert list(index.probe(OneOf("c", (432,))).lower) == [432]
    assert count.bitmaps == 3


def test_a_long_list_shares_its_prefixes() -> None:
    column = encoded(list(range(2048)), pa.int64())
    index, count = opened(BitSliced(), column)
    odd = tuple(range(1, 2048, 2))
    assert list(index.probe(OneOf("c", odd)).lower) == list(odd)
    assert count.bitmaps == 11, "every slice once, not once a value"
    count.bitmaps = 0
    assert len(index.probe(OneOf("c", tuple(range(512, 1024)))).lower) == 512
    assert count.bitmaps <= 11


def test_values_are_codes_where_that_is_smaller_than_a_dictionary() -> None:
    rng = np.random.default_rng(0)
    prices = encoded(rng.integers(90_000, 10_494_950, 60_000), pa.int64())
    payload = BitSliced().build(prices)
    index, _ = opened(BitSliced(), prices)
    assert index.head.n_chunks == 0
    assert index.n_bitmaps == 25, "24 bits of value and existence"
    assert sum(map(len, payload)) < 3.5 * 60_000


def test_ranks_are_codes_where_values_are_far_apart() -> None:
    rng = np.random.default_rng(0)
    days = np.sort(rng.integers(0, 2500, 60_000)) * 86_400_000_000
    index, _ = opened(BitSliced(), encoded(days, pa.timestamp("us")))
    assert index.head.n_chunks == 2
    assert index.n_bitmaps == 13


def test_slices_of_clustered_rows_are_runs() -> None:
    rng = np.random.default_rng(0)
    clustered = np.repeat(rng.integers(0, 1000, 20_000), 50)
    size = sum(map(len, BitSliced().build(encoded(clustered, pa.int64()))))
    assert size < 0.25 * len(clustered)


@pytest.mark.parametrize("base", [1, 17, 0, -2, True])
def test_a_base_that_is_none(base: object) -> None:
    with pytest.raises(UnknownIndexError, match="accepted: 2 to 16"):
        BitSliced(base=base)


def test_an_encoding_that_is_none() -> None:
    with pytest.raises(UnknownIndexError, match="'range', 'equality'"):
        BitSliced(encoding="interval")


def bounds_of(
    spec: BitSliced, values: list[int], low: int, high: int
) -> list[list[int]]:
    index, _ = opened(spec, encoded(list(values), pa.int64()))
    bounds = index.probe(Range("c", low, high))
    assert bounds is not None
    return [
        sorted({values[row] for row in rows}) for rows in (bounds.lower, bounds.upper)
    ]


def test_top_slices_enclose_the_rows_of_a_range() -> None:
    """2,048 codes in 8 bins of 256: a range is known up to the bins at its ends."""
    values = list(range(2048))
    spec = BitSliced(max_slices=3)
    index, _ = opened(spec, encoded(list(values), pa.int64()))
    assert index.n_bitmaps == 3 + 1, "three slices, and existence"
    inside, touched = bounds_of(spec, values, 300, 1100)
    assert (inside, touched) == ([*range(512, 1024)], [*range(256, 1280)])
    assert bounds_of(spec, values, 256, 1280) == [[*range(256, 1280)]] * 2
    assert bounds_of(spec, values, 300, 400) == [[], [*range(256, 512)]]
    assert bounds_of(spec, values, 1800, 9999) == [
        [*range(1792 + 256, 2048)],
        [*range(1792, 2048)],
    ]


def test_the_last_bin_is_full_although_it_has_fewer_codes() -> None:
    values = list(range(1100))
    spec = BitSliced(base=10, encoding="equality", max_slices=10)
    assert bounds_of(spec, values, 1000, 5000) == [[*range(1000, 1100)]] * 2
    index, _ = opened(spec, encoded(list(values), pa.int64()))
    assert index.n_bitmaps == 10, "the topmost digit alone"


def test_top_slices_never_hide_a_null_or_a_value() -> None:
    column = encoded([None, *range(3000), None], pa.int64())
    index, _ = opened(BitSliced(max_slices=2), column)
    for atom, rows in (
        (NullAtom("c"), {0, 3001}),
        (NotNullAtom("c"), {*range(1, 3001)}),
        (Range("c", None, None), {*range(1, 3001)}),
    ):
        bounds = index.probe(atom)
        assert set(bounds.lower) == set(bounds.upper) == rows
    without = index.probe(NoneOf("c", (7,)))
    assert 1 + 7 in without.upper, "other values share its bin"
    assert 1 + 7 not in without.lower
    assert 1 + 2500 in without.lower


def test_slices_that_are_enough_are_all_of_them() -> None:
    column = encoded(list(range(256)), pa.int64())
    assert BitSliced(max_slices=8).build(column) == BitSliced().build(column)


@pytest.mark.parametrize("n", [0, -3])
def test_an_index_keeps_a_slice_at_least(n: int) -> None:
    with pytest.raises(UnknownIndexError, match="accepted: 1 or more, or None"):
        BitSliced(max_slices=n)


def test_a_payload_that_dropped_all_digits_is_refused() -> None:
    column = encoded(list(range(2000)), pa.int64())
    head, *rest = BitSliced(max_slices=4).build(column)
    kind = index_type("bit_sliced")
    for dropped in (0, 11, 255):
        parts = MemoryParts([head[:-1] + bytes([dropped]), *rest])
        with pytest.raises(CorruptIndexError, match=r"were dropped|parts"):
            kind.open(parts, column.domain, column.n_rows)


@pytest.mark.parametrize("n_values", [200, 5_000])
def test_a_small_file_pays_for_its_rows(n_values: int) -> None:
    """A container of 65,536 rows is not stored for 6,000 of them."""
    values = np.random.default_rng(5).integers(0, n_values, 6_000)
    column = encoded(values.tolist(), pa.int64())
    slices = pack_slices(column.codes, Shape.of(2, n_values, ranged=True))[:-1]
    assert sum(map(len, slices)) * 8 <= 1.2 * len(slices) * 6_000
