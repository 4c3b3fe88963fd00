"""Key sets: one intersection answers a million keys, exactly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64

import skipindex as sx
from skipindex.errors import CorruptIndexError, PredicateError, UnsupportedTypeError
from skipindex.expressions import In, to_sql
from skipindex.expressions.atoms import (
    IntegerSet,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
)
from skipindex.indexes.kinds.key_set import INDEX_TYPE, KeySet
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import column_of, encoded
from tests.indexes.memory_parts import opened
from tests.tables import build, put_all

WIDE = [-(2**63), -(2**40) - 5, -1, 0, 7, 2**32 - 1, 2**32, 2**40, 2**63 - 1]
DENSE = list(range(2**32 - 40, 2**32 + 40))
LAYOUTS = [
    pytest.param(WIDE, id="plain"),
    pytest.param(DENSE, id="two buckets"),
    pytest.param([5, 6, 9, 2000], id="one bucket"),
    pytest.param([], id="none"),
]


def possible(values: Sequence[int], atom: Any) -> bool:
    index, _ = opened(KeySet(), encoded([None, *values, *values], pa.int64()))
    bounds = index.probe(atom)
    assert bounds is None or not bounds.upper
    return bounds is None


@pytest.mark.parametrize("values", LAYOUTS)
def test_keys_are_known_exactly(values: list[int]) -> None:
    around = sorted({v + d for v in [*WIDE, *DENSE, 5, 9] for d in (-1, 0, 1)})
    for wanted in around:
        assert possible(values, OneOf("c", (wanted,))) == (wanted in values)
        if abs(wanted) < 2**63:
            many = IntegerSet(np.array([wanted, *range(5000, 6000)]))
            assert possible(values, OneOf("c", many)) == (wanted in values)
    for low, high in zip(around[::3], around[2::3], strict=False):
        inside = any(low <= v < high for v in values)
        assert possible(values, Range("c", low, high)) == inside
    assert possible(values, Range("c", None, None)) == bool(values)
    assert possible(values, NotNullAtom("c")) == bool(values)
    assert possible(values, NullAtom("c"))


@pytest.mark.parametrize("values", LAYOUTS)
def test_none_of_is_false_where_only_such_keys_are(values: list[int]) -> None:
    asked = sorted({*values, -99})
    assert not possible(values, NoneOf("c", tuple(asked)))
    assert not possible(values, NoneOf("c", IntegerSet(np.array(asked))))
    if values:
        assert possible(values, NoneOf("c", tuple(asked[:-1])))
        fewer = IntegerSet(np.array([*asked[:-1], *range(100_000, 100_100)]))
        assert possible(values, NoneOf("c", fewer))


def test_dense_keys_cost_next_to_nothing_and_scattered_ones_two_bytes() -> None:
    rng = np.random.default_rng(4)
    dense = column_of(pa.array(rng.permutation(60_000)))
    assert sum(map(len, KeySet().build(dense))) < 100
    scattered = column_of(pa.array(rng.integers(0, 6_000_000, 60_000)))
    assert sum(map(len, KeySet().build(scattered))) < 2.1 * 60_000
    hashed = column_of(pa.array(rng.integers(-(2**62), 2**62, 60_000)))
    assert sum(map(len, KeySet().build(hashed))) < 8.01 * 60_000


def test_bitmaps_and_bytes_are_counted() -> None:
    index, count = opened(KeySet(), encoded(DENSE, pa.int64()))
    index.probe(OneOf("c", (2**40,)))
    assert (count.bitmaps, count.n_bytes) == (0, 0), "no such bucket"
    index.probe(OneOf("c", (3,)))
    assert count.bitmaps == 1
    assert count.n_bytes > 0


@pytest.mark.parametrize("dtype", [pa.string(), pa.binary(), pa.decimal128(30, 2)])
def test_only_integers_have_a_key_set(dtype: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match="accepted: integers"):
        KeySet().build(encoded([None], dtype))


def test_parts_that_the_header_does_not_describe() -> None:
    for values in (WIDE, DENSE):
        column = encoded(list(values), pa.int64())
        head, body = KeySet().build(column)
        index = INDEX_TYPE.open(
            MemoryParts([head, body[:-8]]), column.domain, column.n_rows
        )
        with pytest.raises(CorruptIndexError):
            index.probe(OneOf("c", (2**32 - 1,)))


@pytest.mark.parametrize(
    "keys",
    [
        np.array([7, 3, 7], np.int32),
        np.array([3, 7], np.uint64),
        BitMap([3, 7]),
        BitMap64([7, 3]),
        IntegerSet(np.array([3, 7])),
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_isin_takes_an_array_or_a_bitmap(keys: Any) -> None:
    tree = sx.col("k").isin(keys)
    assert to_sql(tree) == "k IN (3, 7)"
    assert to_sql(~tree) == "NOT (k IN (3, 7))" or to_sql(~tree) == "k NOT IN (3, 7)"


def test_arrays_that_are_no_integers_are_taken_value_by_value() -> None:
    assert sx.col("k").isin(np.array(["b", "a"])) == sx.col("k").isin("b", "a")
    assert sx.col("k").isin(np.array([], np.int64)) == sx.col("k").isin()
    assert sx.col("k").isin(BitMap()) == sx.col("k").isin()
    beyond = sx.col("k").isin(np.array([2**64 - 1], np.uint64))
    assert isinstance(beyond, In)
    assert beyond.values == (2**64 - 1,)
    with pytest.raises(PredicateError, match="2 dimensions"):
        sx.col("k").isin(np.zeros((2, 2), np.int64))


def test_integer_sets_are_tuples_of_integers() -> None:
    numbers = IntegerSet(np.array([5, -1, 5, 2**40]))
    assert list(numbers) == [-1, 5, 2**40]
    assert (len(numbers), numbers[0], list(numbers[1:])) == (3, -1, [5, 2**40])
    assert numbers == IntegerSet(np.array([2**40, 5, -1]))
    assert numbers != IntegerSet(np.array([5]))
    assert hash(numbers) == hash(IntegerSet(np.array([2**40, 5, -1])))
    assert numbers != (-1, 5, 2**40)


KINDS = ["key_set", "bitmap", "bit_sliced", "range_bitmap", "bloom"]


@pytest.mark.few(7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dtype", [pa.int16(), pa.int64(), pa.decimal128(9, 2)], ids=str
)
def test_a_plan_with_many_keys_is_that_with_a_list(
    tmp_path: Path, kind: str, dtype: pa.DataType
) -> None:
    rng = np.random.default_rng(9)
    files = [pa.array(rng.choice(3000, 30)).cast(pa.int64()) for _ in range(8)]
    put_all(tmp_path, [{"k": pa.array(own.to_pylist(), dtype)} for own in files])
    table = build(tmp_path, {"k": kind})
    for n in (1, 40, 400):
        wanted = np.unique(rng.choice(3000, n))
        tree = sx.col("k").isin(wanted)
        for question in (tree, ~tree, tree & (sx.col("k") < 1500)):
            plan = table.plan(question)
            listed = table.plan(to_sql(question))
            assert plan.paths == listed.paths
            assert plan.count_bounds == listed.count_bounds


@pytest.mark.slow
def test_many_keys_are_planned_at_the_speed_of_numpy(tmp_path: Path) -> None:
    """Against sorting them once: no Python step for every key and file."""
    rng = np.random.default_rng(5)
    wanted = rng.integers(0, 2**31, 250_000) * 2
    files = [rng.integers(0, 2**31, 2000) * 2 + 1 for _ in range(20)]
    files[7][11] = wanted[5]
    put_all(tmp_path, [{"k": own} for own in files])
    table = build(tmp_path, {"k": "key_set"})
    began = time.perf_counter()
    list(map(int, wanted))
    one_pass = time.perf_counter() - began
    began = time.perf_counter()
    plan = table.plan(sx.col("k").isin(wanted))
    seconds = time.perf_counter() - began
    assert plan.paths == ["7.parquet"]
    assert len(plan.explain()) < 5000
    assert all(len(skipped.reason) < 1000 for skipped in plan.skipped)
    assert plan.tasks[0].residual == plan.where
    assert seconds < 30 * one_pass
