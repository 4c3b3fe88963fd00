"""Values of a column as keys in Spark's order: those of the column's domain.

Types that Spark's columns do not have are brought to one that a domain has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import LayoutError, UnsupportedTypeError
from skipindex.expressions.domain import domain_of

Positions: TypeAlias = npt.NDArray[np.int64]

ORDERABLE: Final = (
    "booleans, integers, floats, decimals, dates, times, timestamps, durations, "
    "strings and binary"
)
_MAX_DIGITS: Final = 38
"""Of a decimal of Spark."""


def value_type(dtype: pa.DataType) -> pa.DataType:
    """The type of the values themselves, whether dictionary-encoded or not."""
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def order_keys(values: pa.Array | pa.ChunkedArray, *, column: str) -> pa.Array:
    """A key for every value, int64 or large_binary, NULLs where they were.

    Keys of one type of values compare as Spark compares the values: -0.0 is 0.0,
    NaN is above infinity, text is in the order of its bytes.

    Raises:
        LayoutError: if the type has no order.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    dtype = array.type
    if pa.types.is_decimal(dtype) and dtype.precision > _MAX_DIGITS:
        return _wide_decimals(array)
    if pa.types.is_temporal(dtype) and not pa.types.is_interval(dtype):
        # In its own unit: the domain's microseconds may overflow, or be too coarse.
        array = array.cast(pa.int32() if dtype.bit_width == 32 else pa.int64())
    elif pa.types.is_float16(dtype):
        array = array.cast(pa.float32())
    try:
        return domain_of(array.type, column).encode(array)
    except UnsupportedTypeError:
        raise LayoutError(
            f"cannot cluster by column {column!r}: type {dtype} has no order "
            f"(accepted: {ORDERABLE})"
        ) from None


def _wide_decimals(values: pa.Array) -> pa.Array:
    """Decimals of 256 bits as big-endian bytes, the sign bit flipped."""
    words = np.frombuffer(values.buffers()[1] or b"", "<u8").reshape(-1, 4)
    keys = words[values.offset :][: len(values), ::-1].astype(">u8")
    keys[:, 0] ^= np.uint64(1 << 63)
    texts = np.frombuffer(keys.tobytes(), "V32").tolist()
    mask = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(texts, pa.large_binary(), mask=mask)


def count_not_above(splits: Sequence[bytes], values: pa.Array) -> Positions:
    """How many of the ascending ``splits`` are <= each value, which is not NULL."""
    found = (bisect_right(splits, value) for value in values.to_pylist())
    return np.fromiter(found, np.int64, len(values))
