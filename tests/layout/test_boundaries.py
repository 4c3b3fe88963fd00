"""Range numbers: order, density, NULL, NaN, skew, every type."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.errors import LayoutError
from skipindex.layout import Boundaries
from skipindex.layout.weights import split_by_weight
from tests.quick_run import examples

UTC = dt.UTC
NAN, INF = math.nan, math.inf

floats = st.floats(width=64) | st.sampled_from([NAN, -0.0, 0.0, INF, -INF])
texts = st.text(st.sampled_from("a\0b\x7fé\uffff\U0001f33c"), max_size=4)

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "int8": (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), floats),
    "decimal": (pa.decimal128(15, 2), st.decimals(-99, 99, places=2)),
    "wide decimal": (
        pa.decimal128(38, 0),
        st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    ),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "zoned timestamp": (
        pa.timestamp("us", "Asia/Tokyo"),
        st.dates(min_value=dt.date(1, 1, 3)).map(
            lambda d: dt.datetime(d.year, d.month, d.day, tzinfo=UTC)
        ),
    ),
    "duration": (
        pa.duration("us"),
        st.timedeltas(dt.timedelta(-(10**6)), dt.timedelta(10**6)),
    ),
    "string": (pa.string(), texts),
    "large string": (pa.large_string(), texts),
    "string view": (pa.string_view(), texts),
    "binary": (pa.binary(), st.binary(max_size=3)),
    "binary of 2": (pa.binary(2), st.binary(min_size=2, max_size=2)),
}
if hasattr(pa, "decimal32"):  # pyarrow 19
    TYPES["decimal32"] = pa.decimal32(5, 2), st.decimals(-99, 99, places=2)


def sort_key(value: Any) -> tuple[int, Any]:
    """Order as Spark does: NULL, values, NaN; strings by their bytes."""
    if value is None:
        return (0, 0)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, float | np.floating):
        return (2, 0.0) if math.isnan(value) else (1, float(value))
    return (1, value)


def fit(values: Sequence[Any], dtype: pa.DataType | None = None, **kw: Any) -> Any:
    return Boundaries.fit(pa.array(values, dtype), column="c", **kw)


def ranks(values: Sequence[Any], dtype: pa.DataType | None = None, **kw: Any) -> Any:
    array = pa.array(values, dtype)
    return Boundaries.fit(array, column="c", **kw).rank(array).tolist()


def test_anchor_delta_range_partition_id() -> None:
    assert ranks([0, 1, 3, 15, 36, 99], max_ranges=3) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("name", list(TYPES))
def test_ranks_keep_the_order_of_spark(name: str) -> None:
    dtype, values = TYPES[name]

    @examples(40)
    @given(
        st.lists(values | st.none(), max_size=12),
        st.lists(values | st.none(), max_size=12),
        st.integers(1, 12),
    )
    def check(sample: list[Any], unseen: list[Any], max_ranges: int) -> None:
        boundaries = fit(sample, dtype, max_ranges=max_ranges)
        rows = sorted([*sample, *unseen], key=sort_key)
        found = boundaries.rank(pa.array(rows, dtype)).tolist()
        assert found == sorted(found)
        assert all(0 <= rank < boundaries.n_ranges for rank in found)
        for one, other, a, b in zip(rows, rows[1:], found, found[1:], strict=False):
            if sort_key(one) == sort_key(other):
                assert a == b

    check()


@pytest.mark.parametrize("name", list(TYPES))
def test_check_26_ranks_begin_at_0_without_gaps(name: str) -> None:
    dtype, values = TYPES[name]

    @examples(40)
    @given(st.lists(values, max_size=12), st.booleans(), st.integers(1, 12))
    def check(sample: list[Any], has_null: bool, max_ranges: int) -> None:
        rows = [*sample, None] if has_null else sample
        distinct = {sort_key(value) for value in sample}
        n_nan = len({key for key in distinct if key[0] == 2})
        n_ordinary = min(len(distinct) - n_nan, max_ranges)
        found = set(ranks(rows, dtype, max_ranges=max_ranges))
        assert found == set(range(n_ordinary + n_nan + has_null))

    check()


def test_each_value_of_a_low_cardinality_column_has_a_range() -> None:
    values = ["de"] * 9000 + ["fr"] * 10 + ["it"] + ["uk"] * 989
    assert fit(values).n_ranges == 4
    assert sorted(set(ranks(values))) == [0, 1, 2, 3]
    assert fit(values, max_ranges=3).n_ranges == 3, "distinct boundaries only"


def test_a_heavy_value_does_not_use_up_the_ranges_of_the_others() -> None:
    values = np.concatenate([np.full(90_000, 5_000), np.arange(10_000)])
    array = pa.array(values)
    boundaries = Boundaries.fit(array, column="c", max_ranges=101)
    counts = np.bincount(boundaries.rank(array))
    assert len(counts) == 101
    heavy = counts.argmax()
    assert counts[heavy] - 90_001 < 50, "it is alone, but for half a range"
    others = np.delete(counts, heavy)
    assert others.max() <= 1.1 * others.min(), "the others share evenly"


def test_ranges_of_a_continuous_column_are_equally_full() -> None:
    values = np.random.default_rng(0).lognormal(size=100_000)
    array = pa.array(values)
    counts = np.bincount(Boundaries.fit(array, column="c", max_ranges=64).rank(array))
    assert len(counts) == 64
    assert counts.max() - counts.min() <= 2


def test_check_04_nulls_are_counted_out_and_still_ranked() -> None:
    values = [None] * 900 + list(range(100))
    found = ranks(values, max_ranges=10)
    assert found[:900] == [0] * 900
    assert np.bincount(found[900:]).tolist() == [0] + [10] * 10


def test_null_and_nan_have_ranges_of_their_own() -> None:
    values = [NAN, 1.0, None, INF, -0.0, 0.0, -INF]
    assert ranks(values) == [5, 3, 0, 4, 2, 2, 1]
    assert ranks(values, max_ranges=1) == [2, 1, 0, 1, 1, 1, 1]


def test_what_the_sample_lacks_is_ranked_all_the_same() -> None:
    boundaries = fit([10.0, 20.0, 30.0])
    unseen = pa.array([None, -INF, 15.0, 25.0, 35.0, INF, NAN])
    assert boundaries.rank(unseen).tolist() == [0, 0, 0, 1, 2, 2, 2]
    only_null = fit([None, None], pa.string())
    assert only_null.rank(pa.array(["x", None])).tolist() == [1, 0]
    nothing = fit([], pa.string())
    assert nothing.n_ranges == 1
    assert nothing.rank(pa.array(["x", None])).tolist() == [0, 0]


def test_strings_are_compared_at_full_length_and_by_bytes() -> None:
    stem = "x" * 5_000
    assert ranks([stem + "b", stem + "a", stem]) == [2, 1, 0]
    assert ranks(["a\0", "a", "a\0\0"]) == [1, 0, 2]
    assert ranks(["\U0001f33c", "\ufffd", "a", "B"]) == [3, 2, 1, 0]
    assert ranks([b"\xff", b"\x7f", b""]) == [2, 1, 0]


@pytest.mark.parametrize(
    "other",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.large_binary(),
    ],
    ids=str,
)
def test_ranks_do_not_depend_on_how_arrow_stores_the_strings(
    other: pa.DataType,
) -> None:
    words = ["kiwi", None, "fig", "date", "fig", "plum", ""]
    boundaries = fit(words)
    expected = boundaries.rank(pa.array(words)).tolist()
    assert boundaries.rank(pa.array(words).cast(other)).tolist() == expected
    assert fit(words, pa.string()).rank(pa.array(words, pa.string())).tolist() == (
        expected
    )
    refitted = Boundaries.fit(pa.array(words).cast(other), column="c")
    assert refitted.rank(pa.array(words).cast(other)).tolist() == expected


def test_slices_and_chunks_are_ranked_like_whole_arrays() -> None:
    rows = pa.array([7, None, 3, 9, None, 1])
    boundaries = Boundaries.fit(rows, column="c")
    expected = [3, 0, 2, 4, 0, 1]
    assert boundaries.rank(rows.slice(2, 3)).tolist() == expected[2:5]
    chunked = pa.chunked_array([rows.slice(0, 1), rows.slice(1)])
    assert boundaries.rank(chunked).tolist() == expected
    assert boundaries.rank(pa.chunked_array([], pa.int64())).tolist() == []
    assert Boundaries.fit(chunked, column="c").rank(rows).tolist() == expected


def test_an_instant_has_one_rank_in_every_zone() -> None:
    instants = [dt.datetime(2024, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
    here = pa.array(instants, pa.timestamp("us", "America/New_York"))
    there = pa.array(instants, pa.timestamp("us", "Asia/Tokyo"))
    assert Boundaries.fit(here, column="c").rank(there).tolist() == [0, 1, 2]


def test_integers_stand_for_dates_and_instants() -> None:
    days = fit([dt.date(1970, 1, 2), dt.date(1970, 1, 3)])
    assert days.rank(pa.array([1, 2, None], pa.int32())).tolist() == [0, 1, 0]
    zoned = fit([1, 2], pa.timestamp("us", "UTC"))
    assert zoned.rank(pa.array([2, 1], pa.int64())).tolist() == [1, 0]


def test_values_of_another_type_are_refused_by_name() -> None:
    boundaries = Boundaries.fit(pa.array([1, 2]), column="age")
    with pytest.raises(LayoutError, match=r"'age': .* hold int64, the values are list"):
        boundaries.rank(pa.array([[1]]))


@pytest.mark.parametrize(
    "dtype",
    [
        pa.list_(pa.int32()),
        pa.map_(pa.string(), pa.int32()),
        pa.struct([("x", pa.int32())]),
        pa.null(),
        pa.month_day_nano_interval(),
        pa.decimal256(60, 0),
    ],
    ids=str,
)
def test_types_without_order_are_refused_by_name(dtype: pa.DataType) -> None:
    with pytest.raises(LayoutError, match=r"'c': type .* has no order .accepted: bool"):
        fit([None], dtype)


def test_no_ranges_are_refused() -> None:
    with pytest.raises(LayoutError, match="'c' into 0 ranges"):
        fit([1], max_ranges=0)


def test_boundaries_travel_without_their_sample() -> None:
    for sample in (
        pa.array(np.arange(1_000_000)),
        pa.array([f"customer {i:09}" for i in range(100_000)]),
        pa.array(np.arange(100_000)).cast(pa.decimal128(21, 2)),
    ):
        boundaries = Boundaries.fit(sample, column="c", max_ranges=16)
        packed = pickle.dumps(boundaries)
        assert len(packed) < 3_000
        copy = pickle.loads(packed)
        assert (copy.rank(sample) == boundaries.rank(sample)).all()


def test_check_18_equal_weights_and_one_huge_row() -> None:
    rows = list(range(9))
    assert split_by_weight(np.ones(9), 4) == [0, 2, 4, 6]
    equal = ranks(rows, max_ranges=3, weights=np.ones(9))
    assert equal == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    sizes = np.ones(9)
    sizes[2] = 100.0
    # The step is worked out anew from what the huge row leaves.
    assert ranks(rows, max_ranges=4, weights=sizes) == [0, 0, 1, 2, 2, 2, 3, 3, 3]
    sizes[2], sizes[8] = 1.0, 100.0
    assert ranks(rows, max_ranges=3, weights=sizes) == [0, 0, 0, 0, 1, 1, 1, 1, 2]


def test_weights_of_null_rows_do_not_count() -> None:
    weights = np.array([50.0, 1.0, 1.0, 1.0, 1.0])
    assert ranks([None, 1, 2, 3, 4], max_ranges=2, weights=weights) == [0, 1, 1, 2, 2]


@given(
    st.lists(st.floats(0.001, 1000), max_size=30), st.integers(1, 40), st.integers(0, 3)
)
@example([1.0, 1.0, 1.0], 2, 0)
def test_runs_are_as_many_as_asked_and_none_is_empty(
    weights: list[float], n_runs: int, zeros: int
) -> None:
    items = np.array([*weights, *[0.0] * zeros])
    starts = split_by_weight(items, n_runs)
    assert len(starts) == min(n_runs, len(items))
    assert starts == sorted(set(starts))
    assert not starts or starts[0] == 0
    assert all(start < len(items) for start in starts)
