"""NaN, zeros and infinities, in the order that Spark gives them."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from pyroaring import BitMap

from skipindex.expressions.atoms import NoneOf, OneOf, Range, successor
from skipindex.expressions.domain import NAN, float_key
from skipindex.indexes import IndexSpec
from tests.indexes.columns import EXACT, encoded, spec_id
from tests.indexes.memory_parts import opened

each_exact = pytest.mark.parametrize("spec", EXACT, ids=spec_id)
widths = pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])


def above(value: float) -> Range:
    return Range("c", successor(float_key(value)), None)


@each_exact
@widths
def test_trap_c1_nan_is_greater_than_every_number(
    spec: IndexSpec, dtype: pa.DataType
) -> None:
    index, _ = opened(spec, encoded([math.nan, 1.0, None], dtype))
    assert list(index.probe(above(100.0)).upper) == [0], "v > 100 should keep NaN"
    assert list(index.probe(above(math.inf)).upper) == [0]
    assert list(index.probe(Range("c", None, NAN)).upper) == [1]


@each_exact
@widths
def test_trap_c2_nan_is_equal_to_itself_and_to_nothing_else(
    spec: IndexSpec, dtype: pa.DataType
) -> None:
    index, _ = opened(spec, encoded([math.nan, 1.0, None, -math.nan], dtype))
    assert list(index.probe(OneOf("c", (NAN,))).upper) == [0, 3]
    assert list(index.probe(NoneOf("c", (float_key(1.0),))).upper) == [0, 3]
    assert list(index.probe(NoneOf("c", (NAN,))).upper) == [1]


@each_exact
@widths
def test_trap_c4_both_zeros_are_one_value(spec: IndexSpec, dtype: pa.DataType) -> None:
    index, _ = opened(spec, encoded([0.0, -0.0, 1.0], dtype))
    for zero in 0.0, -0.0:
        assert list(index.probe(OneOf("c", (float_key(zero),))).upper) == [0, 1]
        assert list(index.probe(above(zero)).upper) == [2]
        assert not index.probe(Range("c", None, float_key(zero))).upper


@each_exact
@widths
def test_trap_c5_infinities_are_values(spec: IndexSpec, dtype: pa.DataType) -> None:
    index, _ = opened(spec, encoded([math.inf, -math.inf, 0.5, None], dtype))
    assert list(index.probe(OneOf("c", (float_key(math.inf),))).upper) == [0]
    assert list(index.probe(OneOf("c", (float_key(-math.inf),))).upper) == [1]
    assert list(index.probe(Range("c", None, float_key(-1e30))).upper) == [1]
    assert not index.probe(above(math.inf)).upper


@each_exact
def test_trap_c6_not_less_is_greater_or_equal_nan_included(spec: IndexSpec) -> None:
    rows = [math.nan, 1.0, None, -2.5, -0.0, math.inf]
    index, _ = opened(spec, encoded(rows, pa.float64()))
    for bound in (float_key(1.0), float_key(0.0), float_key(-9.0), NAN):
        less = index.probe(Range("c", None, bound)).upper
        not_less = index.probe(Range("c", bound, None)).upper
        assert not less & not_less
        assert less | not_less == BitMap([0, 1, 3, 4, 5])
