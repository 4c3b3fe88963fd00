"""What index kinds are told about a column."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.domain import NAN, domain_of, float_key
from skipindex.indexes.encoding import column as column_module
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.indexes.kinds.bitmap import Bitmap
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.range_bitmap import RangeBitmap
from tests.indexes.columns import encoded


def test_counts_extremes_and_codes() -> None:
    column = encoded([30, None, 10, 20, 10, None], pa.int32())
    assert (column.n_rows, column.null_count, column.nan_count) == (6, 2, 0)
    assert (column.minimum, column.maximum) == (10, 30)
    assert column.codes.tolist() == [2, NULL_CODE, 0, 1, 0, NULL_CODE]
    assert column.distinct.tolist() == [10, 20, 30]
    assert column.counts.tolist() == [2, 1, 1]
    assert column.values.tolist() == [30, 10, 20, 10]
    assert column.n_distinct == 3


@pytest.mark.parametrize("dtype", [pa.int64(), pa.string(), pa.float32()])
@pytest.mark.parametrize("n", [0, 3])
def test_no_value_at_all(dtype: pa.DataType, n: int) -> None:
    column = encoded([None] * n, dtype)
    assert (column.minimum, column.maximum) == (None, None)
    assert (column.n_distinct, column.null_count, column.nan_count) == (0, n, 0)
    assert column.codes.tolist() == [NULL_CODE] * n


def test_nan_is_a_value_above_all_others() -> None:
    column = encoded([math.nan, 1.0, None, math.inf, -0.0, 0.0], pa.float64())
    assert column.nan_count == 1
    assert column.maximum == NAN
    assert column.minimum == 0
    assert column.n_distinct == 4


def test_trap_c3_one_nan_hides_no_other_value() -> None:
    column = encoded([5.0, math.nan, -7.0], pa.float64())
    assert column.minimum == float_key(-7.0)
    assert column.distinct.tolist() == [float_key(-7.0), float_key(5.0), NAN]


def test_extremes_do_not_need_ranks_and_agree_with_them() -> None:
    for values, dtype in ([3, -1, 2], pa.int8()), (["b", "a\0", "é"], pa.string()):
        fresh, ranked = encoded(values, dtype), encoded(values, dtype)
        assert len(ranked.codes) == 3
        assert (fresh.minimum, fresh.maximum) == (ranked.minimum, ranked.maximum)


def test_chunks_and_slices_are_seen_as_one_column() -> None:
    chunks = [pa.array(["x", "b", None, "é"]).slice(1), pa.array([], pa.string())]
    chunked = pa.chunked_array([*chunks, pa.array(["a", "b"])])
    column = EncodedColumn("c", chunked, domain_of(pa.string()))
    assert column.n_rows == 5
    assert column.distinct.to_pylist() == [b"a", b"b", "é".encode()]
    assert column.codes.tolist() == [1, NULL_CODE, 2, 0, 1]


def test_no_chunk_at_all() -> None:
    for dtype in pa.int64(), pa.string(), pa.dictionary(pa.int32(), pa.string()):
        column = EncodedColumn("c", pa.chunked_array([], dtype), domain_of(dtype))
        assert (column.n_rows, column.n_distinct, column.minimum) == (0, 0, None)


def _same(one: EncodedColumn, other: EncodedColumn) -> None:
    assert one.codes.tolist() == other.codes.tolist()
    assert list(one.distinct) == list(other.distinct)
    assert list(one.values) == list(other.values)
    assert (one.minimum, one.maximum) == (other.minimum, other.maximum)
    assert (one.null_count, one.nan_count) == (other.null_count, other.nan_count)
    for spec in BitSliced(), Bitmap(), RangeBitmap(), Bloom():
        assert spec.build(one) == spec.build(other)


def test_a_dictionary_array_is_what_it_stands_for() -> None:
    plain = pa.array(["b", "a", None, "b", "ä"])
    _same(encoded(plain, plain.type), encoded(plain, plain.type))
    _same(_column_of(plain.dictionary_encode()), _column_of(plain))
    numbers = pa.array([5, None, -5, 5, 0])
    _same(_column_of(numbers.dictionary_encode()), _column_of(numbers))


def _column_of(array: pa.Array | pa.ChunkedArray) -> EncodedColumn:
    return EncodedColumn("c", array, domain_of(array.type))


def test_dictionary_entries_that_repeat_or_go_unused() -> None:
    entries = pa.array(["z", "b", "a", "b", ""])
    array = pa.DictionaryArray.from_arrays(pa.array([1, 2, 3, None, 1]), entries)
    column = _column_of(array)
    assert column.distinct.to_pylist() == [b"a", b"b"]
    assert column.codes.tolist() == [1, 0, 1, NULL_CODE, 1]
    floats = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2]), pa.array([-0.0, 0.0, math.nan])
    )
    assert _column_of(floats).codes.tolist() == [0, 0, 1]


def test_dictionary_with_null_among_its_entries() -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None]), pa.array([None, "x"])
    )
    column = _column_of(array)
    assert column.null_count == 2
    assert column.codes.tolist() == [NULL_CODE, 0, NULL_CODE]


def test_chunks_with_different_dictionaries() -> None:
    one, two = pa.array(["b", "a"]), pa.array(["c", "a", None])
    chunked = pa.chunked_array([one.dictionary_encode(), two.dictionary_encode()])
    _same(_column_of(chunked), _column_of(pa.chunked_array([one, two])))


def test_more_rows_than_32_bits_have_no_positional_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(column_module, "MAX_ROWS", 3)
    column = encoded([1, 2, 3, 4], pa.int64())
    for spec in BitSliced(), Bitmap(), RangeBitmap():
        with pytest.raises(UnsupportedTypeError, match="column 'c': the file has 4"):
            spec.build(column)
    assert Bloom().build(column)


def test_ranks_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(len(values))
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.uint32), distinct

    monkeypatch.setattr(column_module, "rank_ints", counted)
    column = encoded([3, 1, 3], pa.int64())
    for spec in Bitmap(), RangeBitmap(), BitSliced(), Bloom():
        spec.build(column)
    assert calls == [3]
