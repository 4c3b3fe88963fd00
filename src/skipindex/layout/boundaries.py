"""Range boundaries of one column, found in a sample of it.

A clustering column enters a curve not by its value but by the number of the range
that the value falls into: ranges hold nearly equal numbers of rows, whatever the
type, the scale or the skew of the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import LayoutError
from skipindex.layout.ordering import (
    Form,
    Numbers,
    Positions,
    comparable,
    count_bytes_not_above,
    count_not_above,
    form_of,
    numbers,
    value_type,
)
from skipindex.layout.weights import Weights, split_by_weight

RangeNumbers: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

Splits: TypeAlias = Numbers | tuple[bytes, ...] | pa.Array

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
    """The lowest value of every range but the first, strictly ascending."""
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
        """Return boundaries that put nearly equal weight into each range.

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
        dtype = value_type(sample.type)
        form = form_of(dtype, column=column)
        if max_ranges < 1:
            raise LayoutError(f"cannot cut {column!r} into {max_ranges} ranges (min 1)")
        array = comparable(sample, form)
        if array.null_count:
            valid = array.is_valid()
            if weights is not None:
                weights = weights[valid.to_numpy(zero_copy_only=False)]
        distinct, counts = _distinct(array.drop_null(), form, weights)
        n_ordinary = len(distinct) - int(_ends_with_nan(distinct))
        starts = split_by_weight(counts[:n_ordinary], max_ranges)
        starts.extend(range(n_ordinary, len(distinct)))
        chosen = np.asarray(starts[1:], dtype=np.int64)
        splits: Splits
        if isinstance(distinct, np.ndarray):
            splits = distinct[chosen]
        else:
            splits = distinct.take(pa.array(chosen))
            if form is Form.BYTES:
                splits = tuple(splits.to_pylist())
        return cls(column, dtype, splits, array.null_count > 0)

    @property
    def n_ranges(self) -> int:
        """The numbers given out are below this."""
        return len(self.splits) + 1 + int(self.has_null_range)

    def rank(self, values: pa.Array | pa.ChunkedArray) -> RangeNumbers:
        """Return the number of the range of every value.

        Raises:
            LayoutError: if the values cannot be cast to the column's type.
        """
        form = form_of(self.dtype, column=self.column)
        array = comparable(self._cast(values), form)
        found = self._positions(array, form)
        if self.has_null_range:
            found += 1
        if array.null_count:
            found[array.is_null().to_numpy(zero_copy_only=False)] = 0
        if self.n_ranges <= 1 << 16:
            return found.astype(np.uint16)
        return found.astype(np.uint32)

    def _cast(self, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        if value_type(values.type) == self.dtype:
            return values
        try:
            return values.cast(self.dtype)
        except pa.ArrowException as error:
            msg = (
                f"cannot rank column {self.column!r}: the boundaries hold "
                f"{self.dtype}, the values are {values.type}"
            )
            raise LayoutError(msg) from error

    def _positions(self, array: pa.Array, form: Form) -> Positions:
        match form:
            case Form.NUMBERS:
                return np.searchsorted(self.splits, numbers(array), side="right")
            case Form.DECIMALS:
                return count_not_above(self.splits, array)
            case Form.BYTES:
                assert isinstance(self.splits, tuple)
                encoded = array.dictionary_encode()
                known = count_bytes_not_above(self.splits, encoded.dictionary)
                known = np.append(known, 0)  # for NULL, so that 0 is in range
                at = encoded.indices.fill_null(len(known) - 1)
                found: Positions = known[at.to_numpy(zero_copy_only=False)]
                return found
            case _:
                assert_never(form)


def _distinct(
    values: pa.Array, form: Form, weights: Weights | None
) -> tuple[Numbers | pa.Array, Weights]:
    """Return the distinct values in ascending order, and the weight of each."""
    distinct: Numbers | pa.Array
    match form:
        case Form.NUMBERS:
            distinct, at = np.unique(numbers(values), return_inverse=True)
            return distinct, _sum_by(at, weights, len(distinct))
        case Form.DECIMALS | Form.BYTES:
            encoded = values.dictionary_encode()
            distinct = encoded.dictionary
            counts = _sum_by(encoded.indices.to_numpy(), weights, len(distinct))
            order = pc.array_sort_indices(distinct)
            return distinct.take(order), counts[order.to_numpy()]
        case _:
            assert_never(form)


def _sum_by(
    at: npt.NDArray[np.integer[Any]], weights: Weights | None, n: int
) -> Weights:
    return np.bincount(at, weights, minlength=n).astype(np.float64, copy=False)


def _ends_with_nan(distinct: Numbers | pa.Array) -> bool:
    return (
        isinstance(distinct, np.ndarray)
        and distinct.dtype.kind == "f"
        and len(distinct) > 0
        and bool(np.isnan(distinct[-1]))
    )
