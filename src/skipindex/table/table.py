"""The files of a table, and what its indexes know of them.

The files are those that Spark would read.  A file that the newest commit does not
know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from skipindex.errors import TableError
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.storage.log import Snapshot
from skipindex.storage.manifest import BlobUse, Manifest
from skipindex.table.column_indexes import ColumnIndexes, Instants
from skipindex.table.freshness import match, take
from skipindex.table.listing import observe, read_schema
from skipindex.table.partitions.derived import Derived
from skipindex.table.partitions.hive import partition_columns
from skipindex.table.partitions.inference import INSTANT
from skipindex.table.schema import ColumnInfo, Columns, columns_of
from skipindex.table.statistics import FileStats


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One data file of a table, as it was listed.

    Args:
        path: relative to the table.
        size: in bytes.
        mtime: modification mark, in nanoseconds.
        n_rows: None if no index knows the file.
    """

    path: str
    size: int
    mtime: int
    n_rows: int | None


class TableState:
    """The files of a table and their indexes, as they were when it was opened.

    Immutable: a call that changes the table returns, or needs, a new one.
    """

    def __init__(
        self,
        location: Location,
        listing: list[FileInfo],
        schema: pa.Schema,
        refused: Mapping[str, str],
        snapshot: Snapshot,
        *,
        schema_path: str,
        partition_types: Mapping[str, pa.DataType],
        folders: Collection[str] = (),
        notes: tuple[str, ...] = (),
        derived: Derived | None = None,
        declared: pa.Schema | None = None,
        plain: bool = False,
    ) -> None:
        """Use ``open_state``."""
        self.location = location
        self.snapshot = snapshot
        self.schema_path = schema_path
        self.notes = notes
        self.paths = [found.path for found in listing]
        self.sizes = np.array([found.size for found in listing], np.int64)
        self.mtimes = np.array([found.mtime for found in listing], np.int64)
        self.partition_types = dict(partition_types)
        self.declared = declared
        self.plain = plain
        self._given = derived
        committed = Derived.from_json(snapshot.properties.derived)
        self.derived = committed if derived is None else derived
        self._folders = folders
        self.partitions = partition_columns(self.paths, partition_types, folders)
        if declared is not None:
            names = {name.lower() for p in self.partitions for name in p.names}
            schema = pa.schema([f for f in schema if f.name.lower() not in names])
        self.schema = schema
        self._refused = refused
        self._columns = self._columns_of(schema, refused)
        marks = {"size": self.sizes, "mtime": self.mtimes}
        self.rows, self.freshness = match(snapshot.manifest, self.paths, marks)
        counts = snapshot.manifest.files["n_rows"].combine_chunks()
        self.n_rows = np.asarray(take(counts, self.rows).fill_null(-1))
        self._indexes = ColumnIndexes(
            snapshot.manifest, self.rows, self._columns, self.partitions
        )

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}({self.location.full('')!r}, {len(self.paths)} files)"

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def columns(self) -> list[ColumnInfo]:
        """The columns in Spark's order: those of the files, then the partitions."""
        return list(self._columns.by_name.values())

    @property
    def leaves(self) -> list[ColumnInfo]:
        """The columns; a struct is replaced by the fields in it."""
        return self._columns.leaves

    @property
    def files(self) -> list[FileEntry]:
        """The data files, in the order of their paths."""
        return [
            FileEntry(path, int(size), int(mtime), int(n) if n >= 0 else None)
            for path, size, mtime, n in zip(
                self.paths, self.sizes, self.mtimes, self.n_rows, strict=True
            )
        ]

    @property
    def index_gaps(self) -> dict[str, int]:
        """Why files have no index, or not all of it, with the number of files."""
        return dict(Counter(filter(None, self.gaps)))

    @cached_property
    def gaps(self) -> list[str]:
        """Why each file has no index, or not all of it; empty if it has."""
        notes = take(self.snapshot.manifest.files["note"].combine_chunks(), self.rows)
        return [
            reason or note or ""
            for reason, note in zip(self.freshness, notes.to_pylist(), strict=True)
        ]

    @cached_property
    def n_bytes(self) -> int:
        """The size of all data files."""
        return int(self.sizes.sum())

    @cached_property
    def without_rows(self) -> np.ndarray | None:
        """Which files are known to have no row; None if none is."""
        empty: np.ndarray = self.n_rows == 0
        return empty if empty.any() else None

    def over(self, files: Sequence[FileInfo]) -> TableState:
        """A table of other files with the same schema; no index knows them."""
        return TableState(
            self.location,
            list(files),
            self.schema,
            self._refused,
            Snapshot(-1, Manifest.empty()),
            schema_path=self.schema_path,
            folders=self._folders,
            **self._options,
        )

    def typed(self, schema: pa.Schema, refused: Mapping[str, str]) -> TableState:
        """The same table, where a session gives the columns of its files other types.

        Args:
            schema: the columns that the session reads.
            refused: those that have no index, and why.
        """
        columns = self._columns_of(schema, refused)
        if columns.by_name == self._columns.by_name:
            return self
        table = self._with_indexes(replace(self._indexes, columns=columns))
        vars(table).update(schema=schema, _refused=refused, _columns=columns)
        return table

    def _columns_of(self, schema: pa.Schema, refused: Mapping[str, str]) -> Columns:
        found = columns_of(schema, refused, self.partitions)
        return Columns(found, self.location.full(""))

    @property
    def _options(self) -> dict[str, Any]:
        """What the table was opened with."""
        return {
            "partition_types": self.partition_types,
            "derived": self._given,
            "declared": self.declared,
            "plain": self.plain,
        }

    def noted(self, notes: Sequence[str]) -> TableState:
        """The same table with more notes."""
        other = copy.copy(self)
        other.notes = (*self.notes, *notes)
        return other

    def refresh(self) -> TableState:
        """The table as it is now."""
        return _open(self.location, **self._options)

    def with_partition_types(self, types: Mapping[str, pa.DataType]) -> TableState:
        """The table as it is now, with partition columns of these types."""
        both = {**types, **self.partition_types}
        return _open(self.location, **{**self._options, "partition_types": both})

    def with_schema(self, declared: pa.Schema) -> TableState:
        """The table as it is now, with these columns."""
        return _open(self.location, **{**self._options, "declared": declared})

    def with_derived(self, derived: Derived | None) -> TableState:
        """The table as it is now, with this declaration; None is the committed one."""
        return _open(self.location, **{**self._options, "derived": derived})

    def check_names(self, *, case_sensitive: bool) -> None:
        """Refuse folders that spell a partition column in two ways, as Spark does.

        Raises:
            TableError: capitals tell names apart, and folders disagree on them.
        """
        for partition in self.partitions:
            if case_sensitive and len(partition.names) > 1:
                raise TableError(
                    f"the partition columns {list(partition.names)} of "
                    f"{self.location.full('')!r} differ in capitals, so Spark refuses "
                    "them too (expected one spelling, or case_sensitive=False)"
                )

    def resolve(self, name: str, *, case_sensitive: bool = False) -> ColumnInfo:
        """As ``Columns.resolve``."""
        return self._columns.resolve(name, case_sensitive=case_sensitive)

    def find(self, text: str) -> ColumnInfo:
        """As ``Columns.find``."""
        return self._columns.find(text)

    def is_alone(self, column: ColumnInfo) -> bool:
        """As ``Columns.is_alone``."""
        return self._columns.is_alone(column)

    def spellings(self, column: ColumnInfo) -> list[str]:
        """As ``ColumnIndexes.spellings``."""
        return self._indexes.spellings(column)

    def stats(self, column: ColumnInfo) -> FileStats:
        """As ``ColumnIndexes.stats``."""
        return self._indexes.stats(column)

    def blobs(self, column: ColumnInfo) -> list[BlobUse]:
        """As ``ColumnIndexes.blobs``."""
        return self._indexes.blobs(column)

    def maps(self, column: ColumnInfo) -> list[BlobUse]:
        """As ``ColumnIndexes.maps``."""
        return self._indexes.maps(column)

    def built(self, column: ColumnInfo) -> list[BlobUse]:
        """As ``ColumnIndexes.built``."""
        return self._indexes.built(column)

    def with_exact_names(self) -> TableState:
        """The same table, where capitals tell names apart.

        A file that spells a column otherwise then lacks the column.
        """
        if not self._indexes.respelled:
            return self
        return self._with_indexes(replace(self._indexes, exact_names=True))

    def in_zone(self, instants: Instants) -> TableState:
        """The same table, for a session whose zone ``instants`` knows.

        Partition columns of timestamps hold other values in every zone.
        """
        if not any(p.dtype == INSTANT for p in self.partitions):
            return self
        return self._with_indexes(replace(self._indexes, instants=instants))

    def _with_indexes(self, indexes: ColumnIndexes) -> TableState:
        table = copy.copy(self)
        vars(table).update(_indexes=indexes)
        return table


def open_state(
    table: TableState | Location | str | os.PathLike[str],
    *,
    schema: pa.Schema | None = None,
    partition_types: Mapping[str, pa.DataType] | None = None,
    derived: Derived | None = None,
    plain: bool = False,
    fresh: bool = False,
) -> TableState:
    """The table below a folder: any directory of Parquet files that Spark reads.

    Its files are those of ``spark.read.parquet(path)``: the files in the folder, or,
    if there are folders named ``k=v``, those in such folders.

    Args:
        table: a path or URI; a ``TableState`` is returned as it is.
        schema: the columns, as for ``spark.read.schema``.  A file that lacks one of
            them holds NULL.  By default they are those of one footer, as in Spark.
        partition_types: types of hive partition columns, by name, where the
            reader does not let Spark infer them.
        derived: what the partition columns were made of; by default what
            ``Table.declare_derived`` has committed.
        fresh: list the files of a ``TableState`` again.
        plain: take the folder for one of Parquet files, even if the log of Delta,
            Iceberg, Hudi or another format in it says which files count.

    Raises:
        TableError: there is no such folder, or no Parquet file in it, or Spark refuses
            its folders, or it is a table of another format.
    """
    if isinstance(table, TableState):
        return table.refresh() if fresh else table
    return _open(
        location_of(table),
        partition_types=partition_types or {},
        derived=derived,
        declared=schema,
        plain=plain,
    )


def _open(
    location: Location,
    *,
    partition_types: Mapping[str, pa.DataType],
    derived: Derived | None,
    declared: pa.Schema | None,
    plain: bool,
) -> TableState:
    observed = observe(location, schema=declared, plain=plain)
    types = {} if declared is None else {f.name: f.type for f in declared}
    return TableState(
        location,
        observed.listing,
        observed.schema,
        observed.refused,
        observed.snapshot,
        schema_path=observed.schema_path,
        partition_types={**types, **partition_types},
        folders=observed.folders,
        notes=observed.notes,
        derived=derived,
        declared=declared,
        plain=plain,
    )


def table_of(location: Location, files: Sequence[FileInfo]) -> TableState:
    """A table of these files alone, whatever else there is; no index knows them.

    Raises:
        TableError: the first one is no readable Parquet file.
    """
    schema_path = files[0].path
    schema, refused = read_schema(location, schema_path)
    return TableState(
        location,
        list(files),
        schema,
        refused,
        Snapshot(-1, Manifest.empty()),
        schema_path=schema_path,
        partition_types={},
    )
