"""Range boundaries of one column, found in a sample of it.

A clustering column enters a curve not by its value but by the number of the range
that the value falls into: ranges hold nearly equal numbers of rows, whatever the
type, the scale or the skew of the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from skipindex.errors import LayoutError
from skipindex.expressions.domain import NAN
from skipindex.layout.ordering import (
    Positions,
    Splits,
    count_distinct,
    number_ranges,
    order_keys,
    value_type,
)
from skipindex.layout.weights import Weights, split_by_weight

MAX_RANGES: Final = (1 << 16) - 2
"""Most ranges whose numbers, with one for NULL and one for NaN, fit 16 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """Numbers the ranges of a column from 0, in Spark's ascending order.

    So ``a <= b`` gives ``rank(a) <= rank(b)``, with NULL first and NaN last, and
    the rows of the sample use every number.  A value that the sample lacks falls
    into the range of the values below it, and NULL into the lowest.  After a sample
    of nothing but NULL, the number 1 has no rows.
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
        values takes one for each.  NULL and NaN, where the sample has them, get a range
        each on top.  ``weights`` is what each row of the sample stands for; None is 1.
        """
        if max_ranges < 1:
            raise LayoutError(f"cannot cut {column!r} into {max_ranges} ranges (min 1)")
        dtype = value_type(sample.type)
        keys = order_keys(sample, column=column)
        if keys.null_count and weights is not None:
            weights = weights[keys.is_valid().to_numpy(zero_copy_only=False)]
        distinct, counts = count_distinct(keys.drop_null(), weights)
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

    def rank(self, values: pa.Array | pa.ChunkedArray) -> Positions:
        """The number of the range of every value."""
        keys = order_keys(self._cast(values), column=self.column)
        return number_ranges(self.splits, keys, lowest=int(self.has_null_range))

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
