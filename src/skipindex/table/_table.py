"""The files of a table, and what its indexes know of them.

The files are those that Spark would read.  A file that the newest commit does not
know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from skipindex.domain import Domain
from skipindex.errors import PredicateError, TableError
from skipindex.indexes._file_map import FILE_MAP
from skipindex.indexes.minmax import FileStats
from skipindex.partition_types import INSTANT
from skipindex.partitions import PartitionColumn, partition_columns
from skipindex.predicate import name_parts
from skipindex.schema import ColumnInfo, columns_of
from skipindex.storage.location import Found, Location, location_of
from skipindex.storage.log import Snapshot
from skipindex.storage.manifest import BlobUse, Manifest
from skipindex.table._derived import Derived
from skipindex.table._freshness import fresh_blobs, match, take
from skipindex.table._observe import observe

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from skipindex.planner.plan import Plan
    from skipindex.predicate import Predicate


Instants: TypeAlias = Callable[[int], tuple[int, int]]
"""Of a wall clock in microseconds, the first and the last instant that it may be."""

_ANY_ZONE: Final = 18 * 3_600_000_000
"""No zone of Java is farther from UTC."""


def in_any_zone(wall: int) -> tuple[int, int]:
    """The instants that a wall clock may be, whatever the zone."""
    return wall - _ANY_ZONE, wall + _ANY_ZONE


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


class Table:
    """The files of a table and their indexes, as they were when it was opened.

    Immutable: a call that changes the table returns, or needs, a new one.
    """

    def __init__(
        self,
        location: Location,
        listing: list[Found],
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
        """Use ``open_table``."""
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
        committed = Derived.from_json(snapshot.properties.get("derived"))
        self.derived = committed if derived is None else derived
        self._folders = folders
        self.partitions = partition_columns(self.paths, partition_types, folders)
        if declared is not None:
            names = {name.lower() for p in self.partitions for name in p.names}
            schema = pa.schema([f for f in schema if f.name.lower() not in names])
        self.schema = schema
        self._refused = refused
        self._columns = columns_of(schema, refused, self.partitions)
        self._nested = {
            leaf.name: leaf
            for column in self._columns.values()
            for leaf in column.leaves
            if leaf is not column
        }
        marks = {"size": self.sizes, "mtime": self.mtimes}
        self.rows, self.freshness = match(snapshot.manifest, self.paths, marks)
        counts = snapshot.manifest.files["n_rows"].combine_chunks()
        self.n_rows = np.asarray(take(counts, self.rows).fill_null(-1))
        self._instants: Instants = in_any_zone
        self._stats: dict[str, FileStats] = {}
        self._blobs: dict[str, list[BlobUse]] | None = None

    def __repr__(self) -> str:
        return f"Table({self.location.full('')!r}, {len(self.paths)} files)"

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def columns(self) -> list[ColumnInfo]:
        """The columns in Spark's order: those of the files, then the partitions."""
        return list(self._columns.values())

    @property
    def leaves(self) -> list[ColumnInfo]:
        """The columns, and in the place of a struct the fields inside of it."""
        return [leaf for column in self._columns.values() for leaf in column.leaves]

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
        notes = take(self.snapshot.manifest.files["note"].combine_chunks(), self.rows)
        reasons = (
            reason or note
            for reason, note in zip(self.freshness, notes.to_pylist(), strict=True)
        )
        return dict(Counter(filter(None, reasons)))

    @cached_property
    def n_bytes(self) -> int:
        """The size of all data files."""
        return int(self.sizes.sum())

    @cached_property
    def without_rows(self) -> np.ndarray | None:
        """Which files are known to have no row; None if none is."""
        empty: np.ndarray = self.n_rows == 0
        return empty if empty.any() else None

    def over(self, files: Sequence[Found]) -> Table:
        """A table of other files with the same schema; no index knows them."""
        return Table(
            self.location,
            list(files),
            self.schema,
            self._refused,
            Snapshot(-1, Manifest.empty()),
            schema_path=self.schema_path,
            folders=self._folders,
            **self._options,
        )

    @property
    def _options(self) -> dict[str, Any]:
        """What the table was opened with."""
        return {
            "partition_types": self.partition_types,
            "derived": self._given,
            "declared": self.declared,
            "plain": self.plain,
        }

    def refresh(self) -> Table:
        """The table as it is now."""
        return _open(self.location, **self._options)

    def with_partition_types(self, types: Mapping[str, pa.DataType]) -> Table:
        """The table as it is now, with partition columns of these types."""
        both = {**types, **self.partition_types}
        return _open(self.location, **{**self._options, "partition_types": both})

    def with_schema(self, declared: pa.Schema) -> Table:
        """The table as it is now, with these columns."""
        return _open(self.location, **{**self._options, "declared": declared})

    def with_derived(self, derived: Derived | None) -> Table:
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
        """The column that Spark would take ``name`` for.

        A partition column hides a column of the files that has its name.  With
        ``case_sensitive``, the ``name`` of a field of a struct is that field.

        Raises:
            PredicateError: there is none, or more than one.
        """
        if case_sensitive:
            found = [c for c in self._columns.values() if c.name == name]
            if not found and name in self._nested:
                found = [self._nested[name]]
        else:
            folded = name.lower()
            found = [c for c in self._columns.values() if c.name.lower() == folded]
            found = [c for c in found if c.is_partition] or found
        if len(found) == 1:
            return found[0]
        if found:
            raise PredicateError(
                f"column {name!r} is ambiguous: {[c.name for c in found]} (pass "
                "case_sensitive=True to tell them apart)"
            )
        raise PredicateError(
            f"no column {name!r} in {self.location.full('')!r} (columns: "
            f"{', '.join(self._columns)})"
        )

    def find(self, text: str) -> ColumnInfo:
        """The column of that name, else the field that ``a.b`` reaches in a struct.

        Raises:
            PredicateError: there is none, or more than one.
        """
        try:
            return self.resolve(text)
        except PredicateError:
            # Of names that differ in capitals alone, the one that is spelled so.
            if text in self._columns:
                return self._columns[text]
            first, *inner = name_parts(text)
            if not inner:
                raise
        column = self.resolve(first)
        for name in inner:
            column = column.field(name)
        return column

    def stats(self, column: ColumnInfo) -> FileStats:
        """What is known of ``column`` in every file, in the order of ``paths``."""
        assert column.domain is not None
        if column.name not in self._stats:
            self._stats[column.name] = self._load_stats(column, column.domain)
        return self._stats[column.name]

    def blobs(self, column: ColumnInfo) -> list[BlobUse]:
        """The index blobs of ``column``, newest first; rows are those of ``paths``."""
        return [b for b in self._blobs_of(column) if b.entry.meta.kind != FILE_MAP]

    def maps(self, column: ColumnInfo) -> list[BlobUse]:
        """The file maps of ``column``, newest first; rows are those of ``paths``."""
        return [b for b in self._blobs_of(column) if b.entry.meta.kind == FILE_MAP]

    def in_zone(self, instants: Instants) -> Table:
        """The same table, for a session whose zone ``instants`` knows.

        Partition columns of timestamps hold other values in every zone.
        """
        if not any(p.dtype == INSTANT for p in self.partitions):
            return self
        table = copy.copy(self)
        vars(table).update(_instants=instants, _stats={})
        return table

    def _partition_stats(self, column: PartitionColumn, domain: Domain) -> FileStats:
        values = column.typed(domain)
        if domain.name != "timestamp":
            return FileStats.of_values(values, domain)
        bounds = {wall: self._instants(wall) for wall in values if type(wall) is int}
        lows, highs = (
            [None if wall is None else bounds[wall][i] for wall in values]  # type: ignore[index]
            for i in (0, 1)
        )
        return FileStats.of_values(lows, domain, highs=highs)

    def _blobs_of(self, column: ColumnInfo) -> list[BlobUse]:
        if self._blobs is None:
            self._blobs = fresh_blobs(self.snapshot.manifest, self.rows)
        assert column.domain is not None
        tag = column.domain.tag
        uses = self._blobs.get(column.name, [])
        return [use for use in uses if use.entry.meta.domain == tag]

    def plan_files(self, predicate: str | Predicate, **options: Any) -> Plan:
        """``skipindex.plan_files(predicate, table=self, …)``."""
        from skipindex.planner.plan import plan_files  # noqa: PLC0415 (it uses tables)

        return plan_files(predicate, table=self, **options)

    def _load_stats(self, column: ColumnInfo, domain: Domain) -> FileStats:
        for partition in self.partitions:
            if partition.name == column.name:
                return self._partition_stats(partition, domain)
        stats = self.snapshot.manifest.stats.get(column.name)
        if stats is None or stats.domain != domain.tag:
            return FileStats.unknown(len(self), domain)
        n_rows = take(
            self.snapshot.manifest.files["n_rows"].combine_chunks(), self.rows
        )
        return FileStats.from_arrow(take(stats.values, self.rows), n_rows)


def open_table(
    table: Table | Location | str | os.PathLike[str],
    *,
    schema: pa.Schema | StructType | None = None,
    partition_types: Mapping[str, pa.DataType] | None = None,
    derived: Derived | None = None,
    plain: bool = False,
) -> Table:
    """The table below a folder: any directory of Parquet files that Spark reads.

    Its files are those of ``spark.read.parquet(path)``: the files in the folder, or,
    if there are folders named ``k=v``, those in such folders.

    Args:
        table: a path or URI; a ``Table`` is returned as it is.
        schema: the columns, as for ``spark.read.schema``: an Arrow schema or a PySpark
            ``StructType``.  A file that lacks one of them holds NULL.  By default they
            are those of one footer, as in Spark.
        partition_types: types of hive partition columns, by name, where the
            reader does not let Spark infer them.
        derived: what the partition columns were made of; by default what
            ``set_derived`` has committed.
        plain: take the folder for one of Parquet files, even if the log of Delta,
            Iceberg, Hudi or another format in it says which files count.

    Raises:
        TableError: there is no such folder, or no Parquet file in it, or Spark refuses
            its folders, or it is a table of another format.
    """
    if isinstance(table, Table):
        return table
    location = table if isinstance(table, Location) else location_of(table)
    if schema is not None and not isinstance(schema, pa.Schema):
        from skipindex.spark._columns import declared  # noqa: PLC0415 (PySpark)

        schema = declared(schema)
    return _open(
        location,
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
) -> Table:
    observed = observe(location, schema=declared, plain=plain)
    types = {} if declared is None else {f.name: f.type for f in declared}
    return Table(
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
