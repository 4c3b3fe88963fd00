"""Equality-encoded and cumulative bitmaps: the worked examples, and what they cost."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from skipindex.errors import UnknownIndexError
from skipindex.expressions.atoms import IntegerSet, NoneOf, NullAtom, OneOf, Range
from skipindex.indexes.kinds.bitmap import Bitmap
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.exact import Exact
from skipindex.indexes.kinds.range_bitmap import RangeBitmap
from skipindex.indexes.kinds.run_length import RunLength
from tests.indexes.columns import column_of, encoded
from tests.indexes.memory_parts import opened

PRICES = [18, 70, 2, 50, 18, 99, 51]
CITIES = [f"United ST00{i}" for i in (1, 5, 2, 5, 4, 5, 1)]


def test_check_29_a_range_is_the_union_of_the_bitmaps_of_its_values() -> None:
    index, count = opened(Bitmap(), encoded(PRICES, pa.int64()))
    below_19 = index.probe(Range("c", None, 19))
    of_2 = index.probe(OneOf("c", (2,))).lower
    of_18 = index.probe(OneOf("c", (18,))).lower
    assert below_19.lower == below_19.upper == of_2 | of_18 == BitMap([0, 2, 4])
    assert count.bitmaps == 4


def test_check_30_two_columns_each_hit_the_file_and_their_and_is_empty() -> None:
    prices, cities = encoded(PRICES, pa.int64()), encoded(CITIES, pa.string())
    cheap = Range("c", None, 3)
    in_5 = OneOf("c", (b"United ST005",))
    by_price, _ = opened(Bitmap(), prices)
    by_city, _ = opened(Bitmap(), cities)
    some, others = by_price.probe(cheap), by_city.probe(in_5)
    assert some.upper
    assert others.upper
    assert not (some & others).upper, "should skip: no row has both"
    # What knows no rows cannot know that.
    bloom, _ = opened(Bloom(), cities)
    assert bloom.probe(in_5) is None
    assert prices.minimum < 3
    assert cities.minimum <= b"United ST005" <= cities.maximum


def test_check_31_any_range_reads_two_bitmaps_range_encoded() -> None:
    values = list(range(2, 100)) * 2
    column = encoded([*values, None], pa.int64())
    by_value, counted = opened(Bitmap(), column)
    by_value.probe(Range("c", None, 51))
    assert counted.bitmaps == 49, "the bitmaps of 2 to 50"
    cumulative, count = opened(RangeBitmap(), column)
    chooser = random.Random(0)
    for _ in range(200):
        low, high = sorted(chooser.sample(range(102), 2))
        for atom in (
            Range("c", low, high),
            Range("c", None, high),
            Range("c", low, None),
            OneOf("c", (low,)),
        ):
            count.bitmaps = count.parts = 0
            bounds = cumulative.probe(atom)
            assert bounds.lower == bounds.upper
            assert count.bitmaps <= 2
            assert count.parts <= 2 + 2, "and a chunk of the dictionary an end"


def test_check_32_the_cumulative_bitmap_of_18_has_the_rows_of_2_too() -> None:
    column = encoded(PRICES, pa.int64())
    payload = RangeBitmap().build(column)
    cumulative = [BitMap.deserialize(raw) for raw in payload[2:]]
    by_value, _ = opened(Bitmap(), column)
    of_2 = by_value.probe(OneOf("c", (2,))).lower
    of_18 = by_value.probe(OneOf("c", (18,))).lower
    assert cumulative[1] == of_18 | of_2
    for one, next_one in pairwise(cumulative):
        assert one < next_one, "once a bit is 1 it stays 1"
    assert len(cumulative[-1]) == len(PRICES)


def test_number_of_bitmaps() -> None:
    column = encoded([*range(300), None], pa.int64())
    assert opened(Bitmap(), column)[0].head.n_codes == 300
    assert opened(RangeBitmap(), column)[0].n_bitmaps == 300
    assert opened(RangeBitmap(max_bitmaps=7), column)[0].n_bitmaps == 7


def test_trap_c51_more_values_than_bitmaps_is_not_none_and_not_all() -> None:
    """ClickHouse took an over-full set for an empty one."""
    rows = list(range(100)) * 3
    index, count = opened(RangeBitmap(max_bitmaps=10), encoded(rows, pa.int64()))
    inside = index.probe(Range("c", 25, 58))
    truth = BitMap([i for i, v in enumerate(rows) if 25 <= v < 58])
    assert inside.lower < truth < inside.upper
    assert len(inside.upper) == 3 * 40, "the four bins that it touches"
    assert count.bitmaps == 2, "and no more for the bins inside of it"
    aligned = index.probe(Range("c", 20, 60))
    assert aligned.lower == aligned.upper
    assert not index.probe(OneOf("c", (100,))).upper
    one = index.probe(OneOf("c", (33,)))
    assert not one.lower
    assert len(one.upper) == 30
    others = index.probe(NoneOf("c", (33,)))
    assert len(others.lower) == 270
    assert len(others.upper) == 300


def test_bins_hold_about_as_many_rows_each() -> None:
    rng = np.random.default_rng(0)
    skewed = (rng.pareto(1.0, 50_000) * 100).astype(np.int64)
    index, _ = opened(RangeBitmap(max_bitmaps=16), encoded(skewed, pa.int64()))
    assert 8 < index.n_bitmaps <= 16
    at = np.searchsorted(np.unique(skewed), skewed)
    sizes = np.diff(np.searchsorted(np.sort(at), [0, *index.ends]))
    assert sizes.max() < 2 * len(skewed) / 16


def test_a_column_of_distinct_values_costs_a_few_bytes_a_row() -> None:
    rng = np.random.default_rng(0)
    for n, limit in ((60_000, 3.0), (300_000, 4.0)):
        payload = Bitmap().build(encoded(rng.permutation(n), pa.int64()))
        assert sum(map(len, payload)) < limit * n
    sorted_keys = encoded(np.arange(60_000) // 2, pa.int64())
    assert sum(map(len, Bitmap().build(sorted_keys))) < 0.1 * 60_000


@pytest.mark.parametrize("n_values", [1, 2, 64, 65, 300, 4000, 9000, 40_000])
@pytest.mark.parametrize("n", [5_000, 70_000])
@pytest.mark.parametrize("order", ["random", "clustered", "half one value", "sparse"])
def test_each_way_to_pack_the_rows(n: int, n_values: int, order: str) -> None:
    rng = np.random.default_rng(n_values)
    values = rng.integers(0, n_values, n)
    if order == "sparse":
        values -= values % 50  # the other numbers have no row
    if order == "clustered":
        values = np.repeat(values[: n // 30 + 1], 30)[:n]
    if order == "half one value":
        values[rng.random(n) < 0.5] = n_values // 2
    null = rng.random(n) < 0.2
    index, _ = opened(Bitmap(), encoded(pa.array(values, mask=null), pa.int64()))
    for low, high in ((0, 1), (n_values // 3, n_values // 2 + 1), (1, n_values)):
        found = index.probe(Range("c", low, high)).lower
        expected = ~null & (values >= low) & (values < high)
        assert found == BitMap(np.flatnonzero(expected).tolist())
        if index.has_many(Range("c", low, high)):
            assert found
    assert index.probe(NullAtom("c")).lower == BitMap(np.flatnonzero(null).tolist())
    keys = np.unique(rng.integers(-5, n_values + 5, 300))
    rows, places = index.places_of(IntegerSet(keys))
    expected = np.flatnonzero(~null & np.isin(values, keys))
    assert rows.tolist() == expected.tolist()
    assert keys[places].tolist() == values[expected].tolist()


@pytest.mark.parametrize("n", [60_000, 100_000])
def test_one_value_reads_one_part_of_rows(n: int) -> None:
    rng = np.random.default_rng(0)
    for factor, n_parts in ((1, 1), (1000, 2)):
        column = encoded(rng.permutation(n) * factor, pa.int64())
        index, count = opened(Bitmap(), column)
        before = count.n_bytes
        assert len(index.probe(OneOf("c", (31_000 * factor,))).lower) == 1
        assert count.parts == n_parts, "entries; sparse values: a chunk of them too"
        assert count.n_bytes - before < 24_000


def test_most_of_many_values_are_all_rows_but_the_others() -> None:
    values = np.random.default_rng(0).permutation(100_000)
    index, count = opened(Bitmap(), encoded(values, pa.int64()))
    found = index.probe(Range("c", 2_000, None)).lower
    assert len(found) == 98_000
    assert count.parts == 1, "the first part has the others"
    assert index.has_many(Range("c", 2_000, None))
    assert not index.has_many(OneOf("c", (7,)))


@pytest.mark.parametrize("n", [60_000, 100_000])
def test_a_key_is_looked_up_in_an_exact_index_by_few_bytes(n: int) -> None:
    rng = np.random.default_rng(1)
    users = rng.integers(0, n, n)
    for values, few in ((users, True), (users / 100, False)):
        column = column_of(pa.array(values))
        index, count = opened(Exact(), column)
        key = column.distinct[n // 3]
        found = index.probe(OneOf("c", (int(key),))).lower
        assert found == BitMap(np.flatnonzero(values == values[found[0]]))
        assert (count.n_bytes < 24_000) == few, "floats are asked for ranges"
        runs = sum(map(len, RunLength().build(column)))
        assert sum(map(len, Exact().build(column))) <= 1.2 * runs


@pytest.mark.parametrize("max_bitmaps", [0, -1])
def test_no_bitmaps_is_no_index(max_bitmaps: int) -> None:
    with pytest.raises(UnknownIndexError, match="accepted: 1 or more"):
        RangeBitmap(max_bitmaps=max_bitmaps)


def test_the_default_takes_about_three_bytes_a_row() -> None:
    """1,000 values in random order took 125 bytes a row when each had a bitmap."""
    rng = np.random.default_rng(3)
    random_order = rng.integers(0, 1000, 60_000)
    for rows in (random_order, np.sort(random_order), random_order[:300]):
        column = column_of(pa.array(rows))
        payload = RangeBitmap().build(column)
        assert sum(map(len, payload)) < max(3.5 * len(rows), 20_000)
    assert opened(RangeBitmap(), column_of(pa.array(random_order)))[0].n_bitmaps == 21
    clustered = column_of(pa.array(np.sort(random_order)))
    assert opened(RangeBitmap(), clustered)[0].n_bitmaps == 1000
    few = column_of(pa.array(rng.integers(0, 16, 60_000)))
    assert opened(RangeBitmap(), few)[0].n_bitmaps == 16
