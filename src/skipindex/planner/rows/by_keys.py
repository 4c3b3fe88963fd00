"""Where the rows with given keys are, for many keys at once.

A file is asked if its bounds leave one of the keys possible.  A row-level index knows
the rows of each key; of a file without one it is known only that it may hold some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import PredicateError, UnsupportedTypeError
from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import (
    IntegerSet,
    OneOf,
    TextSet,
    Values,
    places_in,
    successor,
)
from skipindex.expressions.domain import Domain, domain_of
from skipindex.indexes.interface import UNUSABLE
from skipindex.planner.stages.index_reader import IndexReader
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.storage.deadline import checked
from skipindex.table import ColumnInfo, TableState

_CAST: Final = frozenset({"decimal", "timestamp", "timestamp_ntz"})
"""Columns whose keys may have another scale or unit; a cast that loses is refused."""
_FEW_KEYS: Final = 16
"""Keys up to which only what they read of a large index comes from a store."""
_AHEAD: Final = 64
"""Files of a store whose indexes are read at once."""


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


class KeyLocations:
    """The rows of a table that have one of some keys.

    Args:
        table: the table.
        column: of the keys.
        keys: that are looked for.
        session: holds what is read.
    """

    def __init__(
        self, table: TableState, column: ColumnInfo, keys: Keys, session: CacheSession
    ) -> None:
        self._table, self._column, self._keys = table, column, keys
        self._reader = IndexReader(table, None, session.packs)

    @cached_property
    def _paths(self) -> pa.Array:
        return pa.array(self._table.paths, pa.string())

    @property
    def schema(self) -> pa.Schema:
        """The key, the file, and the row in it."""
        path = pa.dictionary(pa.int32(), pa.string())
        return pa.schema(
            {"key": self._keys.given.type, "file": path, "row": pa.int64()}
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One batch a file that has, or may have, one of the keys."""
        for file, rows in self.by_file():
            yield self._unknown(file) if rows is None else self._known(file, *rows)

    def by_file(self) -> Iterator[tuple[int, tuple[Ints, Ints] | None]]:
        """Each such file, with its rows and the places of their keys, or None."""
        reader, column = self._reader, self._column
        start, stop = self._spans()
        wanted = start < stop
        reader.open_ahead([column])
        exact = reader.locations(column, wanted, positional=True)
        filters = reader.locations(column, wanted, positional=False)
        every = np.flatnonzero(wanted).tolist()

        def ask(index: Any) -> None:
            index.places_of(self._keys.values)

        for at in range(0, len(every), _AHEAD):
            files = every[at : at + _AHEAD]
            reader.payloads_ahead(
                (
                    (column, file, located.get(file, ()))
                    for file in files
                    for located in (exact, filters)
                ),
                {column.name: ask} if len(self._keys.values) <= _FEW_KEYS else {},
            )
            for file in checked(files):
                first, some = self._possible(start[file], stop[file])
                rows = self._rows(exact.get(file, ()), file, some)
                if rows is not None and self._has_deleted(file):
                    rows = self._without_deleted(file, rows)
                if rows is None:
                    if self._may_hold(filters.get(file, ()), file, some):
                        yield file, None
                elif len(rows[0]):
                    yield file, (rows[0].astype(np.int64), first + rows[1])

    def _spans(self) -> tuple[Ints, Ints]:
        """The places of the keys that the bounds of each file leave possible."""
        stats, values = self._table.stats(self._column), self._keys.values
        start = np.zeros(len(self._table), np.int64)
        stop = np.full(len(self._table), len(values))
        if isinstance(values, IntegerSet):
            start = values.array.searchsorted(stats.low, side="left")
            stop = values.array.searchsorted(stats.high, side="right")
        else:
            for i in np.flatnonzero(stats.bounded).tolist():
                low, high = (bounds[i].as_py() for bounds in (stats.low, stats.high))
                start[i], stop[i] = places_in(values, (low, successor(high)))
        start = np.where(stats.bounded, start, 0)
        stop = np.where(stats.bounded, stop, len(values))
        return start, np.where(stats.can_value, stop, start)

    def _possible(self, start: int, stop: int) -> tuple[int, Values]:
        """The keys that a file may have, after so many others."""
        # Of most of them all are taken, as what was made of these is made once.
        if 2 * (stop - start) > len(self._keys.values):
            return 0, self._keys.values
        return start, self._keys.values[start:stop]

    def _rows(
        self, locations: Any, file: int, values: Values
    ) -> tuple[Ints, Ints] | None:
        """The rows with one of the values, and which; None if that is not known."""
        for location in locations:
            index = self._reader.open(location, file, self._column)
            places_of = getattr(index, "places_of", None)
            if places_of is None:
                continue
            try:
                rows: tuple[Ints, Ints] | None = places_of(values)
            except UNUSABLE as error:
                self._reader.refuse(error, location[1])
                continue
            if rows is not None:
                return rows
        return None

    def _has_deleted(self, file: int) -> bool:
        deleted = self._table.deleted
        return deleted is not None and bool(deleted[1][file])

    def _without_deleted(
        self, file: int, rows: tuple[Ints, Ints]
    ) -> tuple[Ints, Ints] | None:
        """The ``rows`` that are not deleted; None if that is not known."""
        log = self._table.other_log
        assert log is not None
        deleted = log.deleted_rows(self._table.listing[file].path)
        if deleted is None:
            return None if len(rows[0]) else rows
        left = ~np.isin(rows[0], deleted.to_array())
        return rows[0][left], rows[1][left]

    def _may_hold(self, locations: Any, file: int, values: Values) -> bool:
        """Whether no value filter rules out all of the values."""
        for location in locations:
            index = self._reader.open(location, file, self._column)
            if index is None:
                continue
            try:
                answer = index.probe(OneOf(self._column.name, values))
            except UNUSABLE as error:
                self._reader.refuse(error, location[1])
                continue
            if answer is not None and not answer.upper:
                return False
        return True

    def _known(self, file: int, rows: Ints, places: Ints) -> pa.RecordBatch:
        keys = self._keys.given.take(pa.array(places))
        return self._batch(keys, file, pa.array(rows))

    def _unknown(self, file: int) -> pa.RecordBatch:
        nothing = pa.nulls(1, self._keys.given.type)
        return self._batch(nothing, file, pa.nulls(1, pa.int64()))

    def _batch(self, keys: pa.Array, file: int, rows: pa.Array) -> pa.RecordBatch:
        numbers = pa.array(np.full(len(rows), file, np.int32))
        paths = pa.DictionaryArray.from_arrays(numbers, self._paths)
        return pa.RecordBatch.from_arrays([keys, paths, rows], schema=self.schema)
