"""The files of a table, and what its indexes know of them.

The files are those that Spark would read.  A file that the newest commit does not
know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from skipindex.errors import PredicateError, TableError
from skipindex.expressions import name_parts
from skipindex.expressions.domain import Domain
from skipindex.indexes.file_map import FILE_MAP
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.storage.log import Snapshot
from skipindex.storage.manifest import BlobUse, Manifest, StatsColumn
from skipindex.table.freshness import first_counted, fresh_blobs, match, take
from skipindex.table.listing import observe, read_schema
from skipindex.table.partitions.derived import Derived
from skipindex.table.partitions.hive import PartitionColumn, partition_columns
from skipindex.table.partitions.inference import INSTANT
from skipindex.table.schema import ColumnInfo, columns_of
from skipindex.table.statistics import FileStats, summary_type

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
        self._columns = columns_of(schema, refused, self.partitions)
        self._nested = _nested(self._columns)
        marks = {"size": self.sizes, "mtime": self.mtimes}
        self.rows, self.freshness = match(snapshot.manifest, self.paths, marks)
        counts = snapshot.manifest.files["n_rows"].combine_chunks()
        self.n_rows = np.asarray(take(counts, self.rows).fill_null(-1))
        self._instants: Instants = in_any_zone
        self._stats: dict[str, FileStats] = {}
        self._fitting: dict[str, np.ndarray | None] = {}
        self._blobs: dict[str, list[BlobUse]] | None = None

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}({self.location.full('')!r}, {len(self.paths)} files)"

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
        columns = columns_of(schema, refused, self.partitions)
        if columns == self._columns:
            return self
        table = copy.copy(self)
        vars(table).update(
            schema=schema,
            _refused=refused,
            _columns=columns,
            _nested=_nested(columns),
            _stats={},
            _fitting={},
        )
        for name in ("_respelled", "_folded"):
            vars(table).pop(name, None)
        return table

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

    def is_alone(self, column: ColumnInfo) -> bool:
        """Whether the table has no other column of this name but for capitals."""
        return self._folded[column.name.lower()] == 1

    @cached_property
    def _folded(self) -> Counter[str]:
        """How many columns have a name, but for capitals."""
        return Counter(leaf.name.lower() for leaf in self.leaves)

    @cached_property
    def _respelled(self) -> set[str]:
        """The names that something is built under, and no column has."""
        manifest = self.snapshot.manifest
        built = {blob.meta.column for pack in manifest.packs for blob in pack.blobs}
        return {*manifest.stats, *built} - {leaf.name for leaf in self.leaves}

    def with_exact_names(self) -> TableState:
        """The same table, where names are told apart by their capitals.

        A column that a file spells otherwise then is not in that file.
        """
        if not self._respelled:
            return self
        table = copy.copy(self)
        vars(table).update(_respelled=set(), _stats={}, _fitting={})
        return table

    def spellings(self, column: ColumnInfo) -> list[str]:
        """The names under which something is built on ``column``, its own first."""
        folded = column.name.lower()
        others = [name for name in self._respelled if name.lower() == folded]
        if not others or not self.is_alone(column):
            return [column.name]
        return [column.name, *sorted(others)]

    def stats(self, column: ColumnInfo) -> FileStats:
        """What is known of ``column`` in every file, in the order of ``paths``.

        Of files whose values Spark reads as they are stored; of others, nothing.
        """
        assert column.domain is not None
        if column.name not in self._stats:
            stats = self._load_stats(column, column.domain)
            span = None if column.is_partition else column.domain.span
            fitting = None if span is None else stats.within(*span)
            if fitting is not None and fitting.all():
                fitting = None
            self._fitting[column.name] = fitting
            self._stats[column.name] = stats if fitting is None else stats.only(fitting)
        return self._stats[column.name]

    def blobs(self, column: ColumnInfo) -> list[BlobUse]:
        """The index blobs of ``column``, newest first; rows are those of ``paths``.

        Only of files whose values Spark reads as they are stored.
        """
        uses = self._as_read(column)
        return [use for use in uses if use.entry.meta.kind != FILE_MAP]

    def maps(self, column: ColumnInfo) -> list[BlobUse]:
        """The file maps of ``column``, as ``blobs``."""
        uses = self._as_read(column)
        return [use for use in uses if use.entry.meta.kind == FILE_MAP]

    def _as_read(self, column: ColumnInfo) -> list[BlobUse]:
        """The blobs, without the files where a value does not fit the column's type."""
        self.stats(column)
        fitting, uses = self._fitting[column.name], self.built(column)
        if fitting is None:
            return uses
        mine = [fitting[use.rows] for use in uses]
        return [
            replace(use, rows=use.rows[own], slots=use.slots[own])
            for use, own in zip(uses, mine, strict=True)
        ]

    def built(self, column: ColumnInfo) -> list[BlobUse]:
        """All blobs of ``column``, also of files where Spark reads other values."""
        if self._blobs is None:
            self._blobs = fresh_blobs(self.snapshot.manifest, self.rows)
        assert column.domain is not None
        tag = column.domain.tag
        names = self.spellings(column)
        uses = [use for name in names for use in self._blobs.get(name, [])]
        return [use for use in uses if use.entry.meta.domain == tag]

    def in_zone(self, instants: Instants) -> TableState:
        """The same table, for a session whose zone ``instants`` knows.

        Partition columns of timestamps hold other values in every zone.
        """
        if not any(p.dtype == INSTANT for p in self.partitions):
            return self
        table = copy.copy(self)
        vars(table).update(_instants=instants, _stats={}, _fitting={})
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

    def _load_stats(self, column: ColumnInfo, domain: Domain) -> FileStats:
        for partition in self.partitions:
            if partition.name == column.name:
                return self._partition_stats(partition, domain)
        manifest = self.snapshot.manifest
        known = [manifest.stats.get(name) for name in self.spellings(column)]
        mine = [s.values for s in known if s is not None and _is_of(s, domain)]
        if not mine:
            return FileStats.unknown(len(self), domain)
        n_rows = take(manifest.files["n_rows"].combine_chunks(), self.rows)
        return FileStats.from_arrow(take(first_counted(mine), self.rows), n_rows)


def _nested(columns: Mapping[str, ColumnInfo]) -> dict[str, ColumnInfo]:
    """The fields of structs, by name."""
    return {
        leaf.name: leaf
        for column in columns.values()
        for leaf in column.leaves
        if leaf is not column
    }


def _is_of(stats: StatsColumn, domain: Domain) -> bool:
    """Whether statistics are of values in this domain."""
    return stats.domain == domain.tag and stats.values.type == summary_type(domain)


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
            ``set_derived`` has committed.
        fresh: list the files of a ``TableState`` again.
        plain: take the folder for one of Parquet files, even if the log of Delta,
            Iceberg, Hudi or another format in it says which files count.

    Raises:
        TableError: there is no such folder, or no Parquet file in it, or Spark refuses
            its folders, or it is a table of another format.
    """
    if isinstance(table, TableState):
        return table.refresh() if fresh else table
    location = table if isinstance(table, Location) else location_of(table)
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
