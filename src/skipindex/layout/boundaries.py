"""Range boundaries of one column, found in a sample of it.

A clustering column enters a curve not by its value but by the number of the range
that the value falls into: ranges hold nearly equal numbers of rows, whatever the
type, the scale or the skew of the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import LayoutError
from skipindex.expressions.domain import NAN
from skipindex.layout.ordering import (
    Positions,
    count_not_above,
    order_keys,
    value_type,
)
from skipindex.layout.weights import Weights, split_by_weight

RangeNumbers: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

Splits: TypeAlias = npt.NDArray[np.int64] | tuple[bytes, ...]

MAX_RANGES: Final = (1 << 16) - 2
"""With a range for NULL and one for NaN the numbers still fit 16 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """Numbers the ranges of a column from 0, in Spark's ascending order.

    So ``a <= b`` gives ``rank(a) <= rank(b)``, with NULL first and NaN last, and
    the rows of the sample use every number.  A value that the sample lacks falls
    into the range of the values below it, and NULL into the lowest.  (The one
    number without rows is 1 after a sample of nothing but NULL.)
    """

    column: str
    dtype: pa.DataType
    splits: Splits
    """The least key of every range but the first, strictly ascending."""
    has_null_range: bool
    """Range 0 is for NULL alone."""

    @classmethod
    def fit(
        cls,
        sample: pa.Array | pa.ChunkedArray,
        *,
        column: str,
        max_ranges: int = MAX_RANGES,
        weights: Weights | None = None,
    ) -> Boundaries:
        """The boundaries that put nearly equal weight into each range.

        A range begins and ends between two distinct values: one value, however
        frequent, takes one range, and a column of fewer than ``max_ranges``
        values takes one for each.

        Args:
            sample: rows of the column; NULLs are counted out.
            column: its name, for messages.
            max_ranges: the most ranges of ordinary values; NULL and NaN, where
                the sample has them, get a range each on top.
            weights: what each row of the sample stands for; None is 1 each.

        Raises:
            LayoutError: if the type has no order.
        """
        if max_ranges < 1:
            raise LayoutError(f"cannot cut {column!r} into {max_ranges} ranges (min 1)")
        dtype = value_type(sample.type)
        keys = order_keys(sample, column=column)
        if keys.null_count and weights is not None:
            weights = weights[keys.is_valid().to_numpy(zero_copy_only=False)]
        distinct, counts = _distinct(keys.drop_null(), weights)
        has_nan = pa.types.is_floating(dtype) and distinct[-1:].to_pylist() == [NAN]
        n_ordinary = len(distinct) - int(has_nan)
        starts = split_by_weight(counts[:n_ordinary], max_ranges)
        starts.extend(range(n_ordinary, len(distinct)))
        chosen = distinct.take(pa.array(starts[1:], pa.int64()))
        integers = pa.types.is_integer(chosen.type)
        splits = chosen.to_numpy() if integers else tuple(chosen.to_pylist())
        return cls(column, dtype, splits, keys.null_count > 0)

    @property
    def n_ranges(self) -> int:
        """How many ranges there are; their numbers begin at 0."""
        return len(self.splits) + 1 + int(self.has_null_range)

    def rank(self, values: pa.Array | pa.ChunkedArray) -> RangeNumbers:
        """The number of the range of every value.

        Raises:
            LayoutError: if the values cannot be cast to the column's type.
        """
        keys = order_keys(self._cast(values), column=self.column)
        found = self._positions(keys)
        if self.has_null_range:
            found += 1
        if keys.null_count:
            found[keys.is_null().to_numpy(zero_copy_only=False)] = 0
        if self.n_ranges <= 1 << 16:
            return found.astype(np.uint16)
        return found.astype(np.uint32)

    def _cast(self, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        if value_type(values.type) == self.dtype:
            return values
        try:
            return values.cast(self.dtype)
        except pa.ArrowException as error:
            raise LayoutError(
                f"cannot rank column {self.column!r}: the boundaries hold "
                f"{self.dtype}, the values are {values.type}"
            ) from error

    def _positions(self, keys: pa.Array) -> Positions:
        """How many splits are <= each key; any number for NULL."""
        found: Positions
        if isinstance(self.splits, tuple):
            encoded = keys.dictionary_encode()
            known = count_not_above(self.splits, encoded.dictionary)
            known = np.append(known, 0)  # for NULL, so that 0 is in range
            codes = encoded.indices.fill_null(len(known) - 1)
            found = known[codes.to_numpy(zero_copy_only=False)]
        else:
            numbers = keys.fill_null(0).to_numpy()
            found = np.searchsorted(self.splits, numbers, side="right")
        return found


def _distinct(keys: pa.Array, weights: Weights | None) -> tuple[pa.Array, Weights]:
    """The distinct keys in ascending order, and the weight of each."""
    if pa.types.is_integer(keys.type):
        numbers, at = np.unique(keys.to_numpy(), return_inverse=True)
        return pa.array(numbers), _sum_by(at, weights, len(numbers))
    encoded = keys.dictionary_encode()
    distinct = encoded.dictionary
    counts = _sum_by(encoded.indices.to_numpy(), weights, len(distinct))
    order = pc.array_sort_indices(distinct)
    return distinct.take(order), counts[order.to_numpy()]


def _sum_by(
    at: npt.NDArray[np.integer[Any]], weights: Weights | None, n: int
) -> Weights:
    return np.bincount(at, weights, minlength=n).astype(np.float64, copy=False)
