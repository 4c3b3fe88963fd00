"""The rows with some keys: where they are, and the rows themselves, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from skipindex.expressions.arrays import Ints
from skipindex.planner.rows.by_keys import KeyLocations, Keys
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.table import ColumnInfo, TableState
from skipindex.table.files import values_at


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
        self._locations = KeyLocations(table, column, keys, session)

    @property
    def schema(self) -> pa.Schema:
        """The key, the file, and the row in it."""
        return self._locations.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._locations.batches()

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

        table, located = self._table, dict(self._locations.by_file())
        log, files = table.other_log, [*located]
        if log is not None and log.unlike_plain(
            table.paths_at(np.array(files, np.int64))
        ):
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
