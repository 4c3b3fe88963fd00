"""Values of a column in the order in which Spark sorts them.

Numbers become numpy arrays, which sort NaN last and take -0.0 for 0.0 as Spark
does.  Strings become their UTF-8 bytes at full length, whose unsigned order is
Spark's.  Decimals of more than 18 digits stay Arrow decimals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import LayoutError

Numbers: TypeAlias = (
    npt.NDArray[np.int64] | npt.NDArray[np.uint64] | npt.NDArray[np.float64]
)
Positions: TypeAlias = npt.NDArray[np.int64]

ORDERABLE: Final = (
    "booleans, integers, floats, decimals, dates, times, timestamps, durations, "
    "strings and binary"
)

_INT64_DIGITS: Final = 18


class Form(Enum):
    """What holds the values of a type while they are compared."""

    NUMBERS = "numpy integers or floats"
    BYTES = "Arrow large_binary"
    DECIMALS = "Arrow decimals"
    """Of more digits than an int64 holds."""


def form_of(dtype: pa.DataType, *, column: str) -> Form:
    """Return the form in which values of ``dtype`` are compared.

    Raises:
        LayoutError: if the type has no order.
    """
    is_ = pa.types
    if (
        is_.is_boolean(dtype)
        or is_.is_integer(dtype)
        or is_.is_floating(dtype)
        or (is_.is_temporal(dtype) and not is_.is_interval(dtype))
    ):
        return Form.NUMBERS
    if (
        is_.is_string(dtype)
        or is_.is_large_string(dtype)
        or is_.is_string_view(dtype)
        or is_.is_binary(dtype)
        or is_.is_large_binary(dtype)
        or is_.is_binary_view(dtype)
        or is_.is_fixed_size_binary(dtype)
    ):
        return Form.BYTES
    if is_.is_decimal(dtype):
        is_small = dtype.precision <= _INT64_DIGITS and dtype.bit_width <= 128
        return Form.NUMBERS if is_small else Form.DECIMALS
    msg = (
        f"cannot cluster by column {column!r}: type {dtype} has no order "
        f"(accepted: {ORDERABLE})"
    )
    raise LayoutError(msg)


def value_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves, whether dictionary-encoded or not."""
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def comparable(values: pa.Array | pa.ChunkedArray, form: Form) -> pa.Array:
    """Return the values as one array of a type that has every kernel we use."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    dtype = array.type
    match form:
        case Form.NUMBERS if pa.types.is_float16(dtype):
            return array.cast(pa.float32())
        case Form.NUMBERS if pa.types.is_decimal(dtype) and dtype.bit_width < 128:
            return array.cast(pa.decimal128(dtype.precision, dtype.scale))
        case Form.BYTES:
            return array.cast(pa.large_binary())
        case Form.NUMBERS | Form.DECIMALS:
            return array
        case _:
            assert_never(form)


def numbers(values: pa.Array) -> Numbers:
    """Return int64 (uint64 only for uint64) or float64, with any value for NULL."""
    dtype = values.type
    if pa.types.is_decimal(dtype):
        # Two words a value, the low one first: the unscaled number if it is small.
        words = np.frombuffer(values.buffers()[1] or b"", np.int64)
        return words[2 * values.offset :: 2][: len(values)]
    if pa.types.is_boolean(dtype):
        values = values.cast(pa.uint8())
    elif pa.types.is_temporal(dtype):
        values = values.cast(pa.int32() if dtype.bit_width == 32 else pa.int64())
    if values.null_count:
        values = values.fill_null(0)
    found: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if found.dtype.kind == "f":
        return found.astype(np.float64, copy=False)
    if found.dtype == np.uint64:
        return found.astype(np.uint64, copy=False)
    return found.astype(np.int64, copy=False)


def count_bytes_not_above(splits: Sequence[bytes], values: pa.Array) -> Positions:
    """Return how many of the ascending ``splits`` are <= each value."""
    found = (bisect_right(splits, value) for value in values.to_pylist())
    return np.fromiter(found, np.int64, len(values))


def count_not_above(splits: pa.Array, values: pa.Array) -> Positions:
    """Return how many of the ascending ``splits`` are <= each value; 0 for NULL.

    One binary search for all values at once: every step compares each value with
    one split inside Arrow.
    """
    found = np.zeros(len(values), np.int64)
    n_splits = len(splits)
    step = 1 << n_splits.bit_length() >> 1
    while step:
        probe = found + (step - 1)
        inside = probe < n_splits
        pivots = splits.take(pa.array(np.minimum(probe, n_splits - 1)))
        below = pc.less_equal(pivots, values).fill_null(False)
        found += step * (inside & below.to_numpy(zero_copy_only=False))
        step >>= 1
    return found
