"""The rows with some keys: where they are, and the rows themselves, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import (
    IntegerSet,
    OneOf,
    Values,
    places_in,
    successor,
)
from skipindex.indexes.interface import UNUSABLE
from skipindex.planner.rows.by_keys import Keys
from skipindex.planner.stages.index_reader import IndexReader
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.source.parquet.files import values_at
from skipindex.storage.deadline import checked
from skipindex.table import ColumnInfo, TableState

_FEW_KEYS: Final = 16
"""Keys up to which only what they read of a large index comes from a store."""
_AHEAD: Final = 64
"""Files of a store whose indexes are read at once."""


class Located:
    """Where the rows with some keys are: record batches, each of one file.

    Iterate over them, or call ``read_all``; libraries that take a stream of Arrow take
    this object too.  Indexes are read each time.  ``read`` returns the rows.
    """

    def __init__(
        self, table: TableState, column: ColumnInfo, keys: Keys, session: CacheSession
    ) -> None:
        """Use ``Table.locate``."""
        self._table, self._column, self._keys = table, column, keys
        self._reader = IndexReader(table, None, session.packs)

    @property
    def schema(self) -> pa.Schema:
        """The key, the file, and the row in it."""
        path = pa.dictionary(pa.int32(), pa.string())
        return pa.schema(
            {"key": self._keys.given.type, "file": path, "row": pa.int64()}
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for file, rows in self._by_file():
            yield self._unknown(file) if rows is None else self._known(file, *rows)

    def read_all(self) -> pa.Table:
        """All batches as one table.

        >>> table.locate(["Paris"], "city").read_all().to_pylist()
        [{'key': 'Paris', 'file': 'part-1.parquet', 'row': 0}]
        """
        return pa.Table.from_batches(self, self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self)
        return reader.__arrow_c_stream__(requested_schema)

    def read(
        self, columns: Sequence[str] | None = None, *, timezone: str | None = None
    ) -> pa.Table:
        """The rows with the keys, in the order of the keys.

        A key has all its rows, file by file, each time that it is given.  A key without
        a row, or NULL, has none.  Only the pages that hold the rows are read, or
        entire columns of files if that is faster.  In files without a row-level index
        the column of the keys is read.

        Args:
            columns: names of the columns to read; by default all.
            timezone: of the times in the names of folders, if the table has any.

        Raises:
            PlanError: a column does not exist, or Arrow would read a file otherwise
                than Spark, or a file changed since the table was opened.

        >>> located = table.locate(["Rome", "Oslo", "Rome"], "city")
        >>> located.read(["price"])["price"].to_pylist()
        [1, 5, 2, 3, 1, 5]
        """
        from skipindex.planner.rows.dataset import (  # noqa: PLC0415 (a slow import)
            Files,
            chosen_of,
            of_log,
        )
        from skipindex.planner.rows.selected import (  # noqa: PLC0415
            is_faster_than_arrow,
            rows_at,
        )

        table, located = self._table, dict(self._by_file())
        files = [*located]
        log = table.source.reader(table.paths_at(np.array(files, np.int64)))
        if log is not None:
            whole = pa.schema([field.remove_metadata() for field in log.schema])
            schema, reader = chosen_of(whole, columns), None
        else:
            reader = Files(table, files, timezone=timezone, case_sensitive=False)
            schema = chosen_of(reader.schema, columns)
            whole = reader.schema
        key = self._column.path[0]
        kept = schema if len(schema) else pa.schema([whole.field(key)])
        parts, places = [kept.empty_table()], [np.zeros(0, np.int64)]

        def add(rows: pa.Table, given: tuple[Ints, Ints] | None) -> None:
            if given is None:
                given = self._keys.places_in(values_at(rows, self._column.path))
            parts.append(rows.select(kept.names).take(pa.array(given[0])))
            places.append(given[1])

        if reader is None:
            assert log is not None
            for rows in of_log(log, table, files, whole):
                add(rows, None)
        else:
            known = {i: one[0] for i, one in located.items() if one is not None}
            few = rows_at(reader, known, kept, (), is_faster_than_arrow)
            start = 0
            for i, one in located.items():
                if one is None or few is None:
                    add(reader.read(i, [*{*kept.names, key}]), one)
                else:
                    parts.append(few.slice(start, len(one[0])))
                    places.append(one[1])
                    start += len(one[0])
        order = self._order(np.concatenate(places))
        return pa.concat_tables(parts).take(order).select(schema.names)

    def _order(self, place_of: Ints) -> pa.Array:
        """The rows in the order of the keys; ``place_of`` has the key of each row."""
        rows, given = place_of.argsort(kind="stable"), self._keys.order
        ends = np.bincount(place_of, minlength=len(self._keys.values)).cumsum()
        begins = np.append(0, ends)[given]
        lengths = ends[given] - begins
        before = np.cumsum(lengths) - lengths
        step = np.arange(lengths.sum()) - np.repeat(before, lengths)
        return pa.array(rows[np.repeat(begins, lengths) + step])

    @cached_property
    def _paths(self) -> pa.Array:
        return pa.array(self._table.paths, pa.string())

    def _by_file(self) -> Iterator[tuple[int, tuple[Ints, Ints] | None]]:
        """Each file that may have a key: its rows, and the places of their keys."""
        # A file is asked if its bounds leave one of the keys possible.  A row-level
        # index knows the rows of each key; of a file without one, which has None, it is
        # known only that it may hold some.
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
        path = self._table.listing[file].path
        deleted = self._table.source.deleted_rows(path)
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
