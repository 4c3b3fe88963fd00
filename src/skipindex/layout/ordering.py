"""Sort keys of a column in Spark's order, and the splits that keys belong to."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import LayoutError, UnsupportedTypeError
from skipindex.expressions.domain import domain_of
from skipindex.layout.weights import Weights

Positions: TypeAlias = npt.NDArray[np.int64]
Splits: TypeAlias = npt.NDArray[np.int64] | tuple[bytes, ...]

ORDERABLE: Final = (
    "booleans, integers, floats, decimals, dates, times, timestamps, durations, "
    "strings and binary"
)


def sampled_column(sample: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of a sample."""
    if sample.schema.get_field_index(name) < 0:
        raise LayoutError(
            f"cannot lay out by {name!r}: the sample has {sample.column_names!r}"
        )
    return sample.column(name)


def value_type(dtype: pa.DataType) -> pa.DataType:
    """The type of the values themselves, whether dictionary-encoded or not."""
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def order_keys(values: pa.Array | pa.ChunkedArray, *, column: str) -> pa.Array:
    """A key for every value, int64 or large_binary, NULLs where they were.

    Keys of one type of values compare as Spark compares the values: -0.0 is 0.0,
    NaN is above infinity, text is in the order of its bytes.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    dtype = value_type(array.type)
    if pa.types.is_temporal(dtype) and not pa.types.is_interval(dtype):
        # In its own unit: the domain's microseconds may overflow, or be too coarse.
        array = array.cast(dtype).cast(pa.int32() if dtype.bit_width == 32 else "int64")
    try:
        return domain_of(array.type, column).encode(array)
    except UnsupportedTypeError:
        raise LayoutError(
            f"cannot cluster by column {column!r}: type {dtype} has no order "
            f"(accepted: {ORDERABLE})"
        ) from None


def count_distinct(
    keys: pa.Array, weights: Weights | None = None
) -> tuple[pa.Array, Weights]:
    """The distinct keys in ascending order, and the weight of each; none is NULL.

    ``weights`` of None is 1 for each key.
    """
    if pa.types.is_integer(keys.type):
        numbers, at = np.unique(keys.to_numpy(), return_inverse=True)
        return pa.array(numbers), _sum_by(at, weights, len(numbers))
    encoded = keys.dictionary_encode()
    distinct = encoded.dictionary
    sums = _sum_by(encoded.indices.to_numpy(), weights, len(distinct))
    order = pc.array_sort_indices(distinct)
    return distinct.take(order), sums[order.to_numpy()]


def number_ranges(splits: Splits, keys: pa.Array, *, lowest: int) -> Positions:
    """The number of the range of every key; 0 for NULL.

    ``splits`` are the least keys of all ranges but the first, which has the number
    ``lowest``; they ascend strictly.
    """
    result: Positions
    if isinstance(splits, tuple):
        encoded = keys.dictionary_encode()
        known = [bisect_right(splits, key) for key in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(known))  # of the 0 behind the others
        result = np.array([*known, 0])[codes.to_numpy(zero_copy_only=False)]
    else:
        result = np.searchsorted(splits, keys.fill_null(0).to_numpy(), side="right")
    result += lowest
    if keys.null_count:
        result[keys.is_null().to_numpy(zero_copy_only=False)] = 0
    return result


def _sum_by(
    at: npt.NDArray[np.integer[Any]], weights: Weights | None, n: int
) -> Weights:
    return np.bincount(at, weights, minlength=n).astype(np.float64, copy=False)
