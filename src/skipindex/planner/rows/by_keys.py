"""Keys that are looked up, as values of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import PredicateError, UnsupportedTypeError
from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import (
    IntegerSet,
    TextSet,
)
from skipindex.expressions.domain import Domain, domain_of
from skipindex.table import ColumnInfo, TableState

_CAST: Final = frozenset({"decimal", "timestamp", "timestamp_ntz"})
"""Columns whose keys may have another scale or unit; a cast that loses is refused."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of a column: those that were given, and their values in its domain.

    Args:
        given: distinct, without NULL, in the order of ``values``.
        values: of the column's domain, ascending.
        order: the place in ``values`` of each key that was given, without NULL.
        domain: of the column.
    """

    given: pa.Array
    values: IntegerSet | TextSet
    order: Ints
    domain: Domain

    @classmethod
    def of(cls, keys: Any, column: ColumnInfo, table: TableState) -> Keys:
        """Keys of a column of a table.

        Raises:
            PredicateError: they are of another type, or the column has no order.
        """
        domain = column.domain
        if domain is None or domain.nanoseconds or column.is_partition:
            why = column.reason or "it is a partition column, or counts nanoseconds"
            raise PredicateError(
                f"cannot locate keys of column {column.shown!r}: {why} (accepted: a "
                "column of the files that an index can have)"
            )
        dtype, given = table.type_of(column), _array(keys)
        if pa.types.is_null(given.type):
            given = given.cast(dtype)
        converted = _converted(given, dtype, domain)
        if converted is None:
            raise PredicateError(
                f"cannot locate keys of type {given.type} in column {column.shown!r} "
                f"(accepted: {dtype})"
            )
        given = converted.drop_null()
        encoded = domain.encode(given)
        if domain.is_bytes:
            first = {text: i for i, text in enumerate(encoded.to_pylist())}
            texts = sorted(first)
            places = pa.array([first[text] for text in texts], pa.int64())
            values = TextSet(texts)
            order = pc.index_in(encoded, values.array).to_numpy().astype(np.int64)
            return cls(given.take(places), values, order, domain)
        numbers, at, order = np.unique(
            encoded.to_numpy(), return_index=True, return_inverse=True
        )
        return cls(given.take(pa.array(at)), IntegerSet(numbers), order, domain)

    def places_in(self, column: pa.ChunkedArray) -> tuple[Ints, Ints]:
        """The rows of a column with one of the keys, and the places of their keys."""
        encoded = self.domain.encode(column.combine_chunks())
        result = pc.index_in(encoded, pa.array(self.values.array)).fill_null(-1)
        places = result.to_numpy().astype(np.int64)
        rows = np.flatnonzero(places >= 0)
        return rows, places[rows]


def _converted(given: pa.Array, dtype: pa.DataType, domain: Domain) -> pa.Array | None:
    """Keys that are encoded as the values of a column are; None if they cannot be."""
    try:
        theirs = domain_of(given.type)
        if theirs.nanoseconds:
            return None
        if theirs == domain or {theirs.name, domain.name} == {"int"}:
            return given
        can_be_cast = theirs.name == domain.name and domain.name in _CAST
        return given.cast(dtype) if can_be_cast else None
    except (UnsupportedTypeError, pa.ArrowException):
        return None


def _array(keys: Any) -> pa.Array:
    if isinstance(keys, str | bytes):
        raise PredicateError(f"no keys: {keys!r} (accepted: a list of values)")
    try:
        result = keys if isinstance(keys, pa.ChunkedArray) else pa.array(keys)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise PredicateError(f"no keys: {error} (accepted: values of one type)") from (
            error
        )
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if pa.types.is_dictionary(result.type):
        result = result.dictionary_decode()
    # Arrow has no kernels for views.
    if pa.types.is_string_view(result.type):
        return result.cast(pa.string())
    return result.cast(pa.binary()) if pa.types.is_binary_view(result.type) else result
