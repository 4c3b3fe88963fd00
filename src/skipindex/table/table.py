"""The files of a table, and what its indexes know of them.

The files are those that Spark would read.  A file that the newest commit does not
know, or knows with another identity, simply has no index.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.conditions.columns import ColumnInfo
from skipindex.errors import PlanError, TableError
from skipindex.expressions import stored_name
from skipindex.expressions.arrays import Ints
from skipindex.log import Snapshot, no_snapshot
from skipindex.log.manifest import as_one_array
from skipindex.log.unchanged import match
from skipindex.source import Listing
from skipindex.source.folder.folder import LISTED, folder_of, read_schema
from skipindex.source.folder.hidden_files import hidden_paths, replaced_paths
from skipindex.source.opening import Opening, Trust, check_trust, observe
from skipindex.source.parquet.files import DataFile, column_reader
from skipindex.source.partitions.inference import INSTANT
from skipindex.source.source import NEWEST, AtVersion, CatalogFolders, Observed, Source
from skipindex.storage.blobs import BlobUse
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.table.column_indexes import ColumnIndexes, Instants, is_every_row, take
from skipindex.table.derived import Derived
from skipindex.table.schema import Columns, columns_of
from skipindex.table.statistics import FileStats
from skipindex.table.statistics.counts import Counts


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One data file of a table, as it was listed.

    Args:
        path: relative to the table.
        size: in bytes.
        mtime: modification time, in nanoseconds.
        n_rows: its number of rows; None if no index has the file.
    """

    path: str
    size: int
    mtime: int
    n_rows: int | None


@dataclass(frozen=True, slots=True)
class Options(Opening):
    """What a table is opened with; if ``derived`` is None, it is what is committed."""

    partition_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    derived: Derived | None = None


NO_OPTIONS: Final = Options()
_CHANGED: Final = "changed since it was indexed"


class TableState:
    """The files of a table and their indexes, as they were when it was opened.

    Immutable: a call that changes the table returns, or needs, a new one.
    """

    def __init__(
        self, location: Location, observed: Observed, options: Options = NO_OPTIONS
    ) -> None:
        """Use ``open_state``."""
        self.location = location
        self.options = options
        self.snapshot = observed.snapshot
        self.schema_path = observed.schema_path
        self.source: Source = observed.source
        self.notes = observed.notes
        self.n_unlisted = 0
        """Folders that were omitted before they were listed."""
        self.listing = FileList.of(observed.listing)
        # Without the files, which ``listing`` has, in columns of the manifest.
        self._observed = replace(observed, listing=())
        self.sizes, self.mtimes = self.listing.sizes, self.listing.mtimes
        self.partitions = self.source.partitions(
            self.listing, self.partition_types, observed.folders
        )
        self.schema = observed.schema
        if options.declared is not None:
            self.schema = self._own_columns(observed.schema)
        self._columns = self._columns_of(self.schema, observed.refused)
        self.derived = options.derived or self._declared()
        manifest = self.snapshot.manifest
        names, marks = self.listing.names, self.listing.marks
        self.rows, self._known = match(manifest, names, marks)
        if is_every_row(self.rows, len(manifest)):
            self.listing = self.listing.sharing(manifest.files)
            self.sizes, self.mtimes = self.listing.sizes, self.listing.mtimes
        counts = as_one_array(manifest.files["n_rows"])
        self.n_rows = Counts.of(take(counts, self.rows))
        self._indexes = ColumnIndexes(
            manifest,
            self.rows,
            self._columns,
            self.partitions,
            of_log=self.source.statistics_of(self.listing),
        )

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}({self.folder!r}, {len(self)} files)"

    def __len__(self) -> int:
        return len(self.listing)

    @property
    def paths(self) -> list[str]:
        """The paths of the data files, relative to the table."""
        return self.listing.paths

    def paths_at(self, files: np.ndarray) -> list[str]:
        """The paths of some files, by their positions in the table."""
        return self.listing.paths_at(files)

    @property
    def folder(self) -> str:
        """Where the table is: a path, or a URI without secrets."""
        return self.location.plain_path("")

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
            FileEntry(file.path, file.size, file.mtime, self.n_rows.of_file(i))
            for i, file in enumerate(self.listing)
        ]

    @property
    def index_gaps(self) -> dict[str, int]:
        """Why files have no index, or not all of it, with the number of files."""
        is_fresh = self.rows >= 0
        gaps = {
            self._never: int((~self._known).sum()),
            _CHANGED: int((self._known & ~is_fresh).sum()),
        }
        counted = pc.value_counts(self._notes(self.rows[is_fresh]).drop_null())
        for note, n in zip(*counted.flatten(), strict=True):
            gaps[note.as_py()] = gaps.get(note.as_py(), 0) + n.as_py()
        return {reason: n for reason, n in gaps.items() if n and reason}

    @cached_property
    def vanished(self) -> Ints:
        """The rows of the manifest whose file is deleted or changed.

        Files of rewrites stay until a vacuum.  None where another version may have it.
        """
        snapshot, manifest = self.snapshot, self.snapshot.manifest
        is_gone = np.full(len(manifest), not self.source.has_versions)
        waiting = sorted(replaced_paths(snapshot) | hidden_paths(snapshot))
        kept = np.concatenate([self.rows, manifest.rows_of(waiting)])
        is_gone[kept[kept >= 0]] = False
        return np.flatnonzero(is_gone)

    @property
    def freshness(self) -> list[str]:
        """Why each file has no index; empty if it has."""
        reasons = np.array([self._never, _CHANGED, ""], object)
        result: list[str] = reasons[self._known * 1 + (self.rows >= 0)].tolist()
        return result

    @cached_property
    def gaps(self) -> list[str]:
        """Why each file has no index, or not all of it; empty if it has."""
        notes = self._notes(self.rows).to_pylist()
        return [
            reason or note or ""
            for reason, note in zip(self.freshness, notes, strict=True)
        ]

    def _notes(self, rows: np.ndarray) -> pa.Array:
        return take(as_one_array(self.snapshot.manifest.files["note"]), rows)

    @property
    def _never(self) -> str:
        if self.snapshot.unknown:
            return "its indexes are of another version of skipindex"
        has_any = len(self.snapshot.manifest) > 0
        return "never indexed" if has_any else "the table has no index"

    def row_groups(self, files: Ints) -> list[Ints | None]:
        """Rows, first byte and bytes of the row groups of each file, a row for each.

        None for a file whose row groups are not known.
        """
        groups = as_one_array(self.snapshot.manifest.files["groups"])
        known = take(groups, self.rows[files])
        n_rows, sizes = (
            self.n_rows.or_else(0)[files].tolist(),
            self.sizes[files].tolist(),
        )
        return [
            None
            if one is None
            else np.frombuffer(one, "<i8").reshape(-1, 3)
            if one
            else np.array([[n, 0, size]])
            for one, n, size in zip(known.to_pylist(), n_rows, sizes, strict=True)
        ]

    def columns_hashes(self, files: Sequence[int]) -> list[int | None]:
        """Numbers of which equal ones are of files with equal columns; None: unknown.

        They are known of files that have not changed since they were indexed.
        """
        hashes = as_one_array(self.snapshot.manifest.files["columns"])
        known: list[int | None] = take(hashes, self.rows[files]).to_pylist()
        return known

    @cached_property
    def n_bytes(self) -> int:
        """The size of all data files."""
        return int(self.sizes.sum())

    @cached_property
    def without_rows(self) -> np.ndarray | None:
        """Which files are known to have no row; None if none is."""
        empty = self.n_rows.known & ~self.n_rows.above_zero()
        return empty if empty.any() else None

    @property
    def declared(self) -> pa.Schema | None:
        """The columns that the table was opened with; None takes them from a footer."""
        return self.options.declared

    @property
    def partition_types(self) -> dict[str, pa.DataType]:
        """The types that partition columns were given, by name."""
        given = {f.name: f.type for f in self.options.declared or ()}
        return {**given, **self.options.partition_types}

    def over(self, files: Sequence[FileInfo]) -> TableState:
        """A table of other files with the same schema; no index knows them."""
        others = replace(
            self._observed,
            listing=list(files),
            source=replace(LISTED, places=self.source.places, ids=self.source.ids),
            schema=self.schema,
            snapshot=no_snapshot(),
            notes=(),
        )
        return TableState(self.location, others, self.options)

    def typed(self, schema: pa.Schema, refused: Mapping[str, str]) -> TableState:
        """The same table, where a session gives the columns of its files other types.

        ``refused`` says which of the columns have no index, and why.
        """
        schema = self._own_columns(schema)
        columns = self._columns_of(schema, refused)
        if columns.by_name == self._columns.by_name:
            return self
        return self._copy(
            schema=schema,
            _observed=replace(self._observed, refused=refused),
            _columns=columns,
            _indexes=replace(self._indexes, columns=columns),
        )

    @cached_property
    def deleted(self) -> tuple[Ints, Ints] | None:
        """At least and at most so many rows of each file are deleted; None: no row."""
        return self.source.deleted_of(self.listing)

    def require_plain_rows(self, paths: Sequence[str], reader: str) -> None:
        """Refuse a reader of the files alone where it would return other rows.

        Raises:
            PlanError: it would return other rows or columns.
        """
        if why := self.source.unlike_plain(paths):
            raise PlanError(
                f"{reader} cannot read the rows of the {self.source.format} table "
                f"{self.folder!r}: {why} (accepted: plan.to_arrow(), to_duckdb(), "
                "to_polars() or to_pandas(), which do)"
            )

    def type_of(self, column: ColumnInfo) -> pa.DataType:
        """The type of a column, or of a field of structs."""
        if column.is_partition:
            name = column.own_name
            return next(p.dtype for p in self.partitions if p.name == name)
        dtype = self.schema.field(column.path[0]).type
        for name in column.path[1:]:
            dtype = dtype.field(name).type
        return dtype

    @contextmanager
    def opened(self, i: int, encoded: Collection[str] = ()) -> Iterator[DataFile]:
        """A data file, open as long as the block runs; see ``column_reader``."""
        path, ids = self.listing[i].path, self.source.ids
        with column_reader(self.location, path, encoded=encoded, ids=ids) as file:
            yield file

    def _own_columns(self, schema: pa.Schema) -> pa.Schema:
        """The columns that do not stand in the folders; other capitals are another."""
        names = {name for p in self.partitions for name in p.names}
        return pa.schema([field for field in schema if field.name not in names])

    def _columns_of(self, schema: pa.Schema, refused: Mapping[str, str]) -> Columns:
        places, ids = self.source.places, self.source.ids
        result = columns_of(schema, refused, self.partitions, places, ids)
        return Columns(result, self.folder)

    def _declared(self) -> Derived:
        """The committed declaration, if its names still mean the same columns."""
        record = self.snapshot.properties.derived
        result = Derived.from_json(record)
        if record is None or record.get("places", {}) == self.places_in(result):
            return result
        why = "derived partition columns were declared before columns were renamed"
        self.notes += (
            f"{why}: the declaration is not used (accepted: declare_derived)",
        )
        return Derived()

    def places_in(self, derived: Derived) -> dict[str, str]:
        """Where files have the columns that a declaration names, by their names.

        Empty if the files say which columns there are, which then keep their names.
        """
        if self.source.schema is None:
            return {}
        texts = " ".join([*derived.columns, *derived.columns.values()]).lower()
        own = [
            (one.own_name, one.place) for one in self.columns if not one.is_partition
        ]
        own += [(one.name, (one.name,)) for one in self.partitions]
        places = self.source.places
        return {
            name: stored_name(places.get((name,), place))
            for name, place in own
            if name.lower() in texts
        }

    def noted(self, notes: Sequence[str]) -> TableState:
        """The same table with more notes."""
        return self._copy(notes=(*self.notes, *notes))

    def refresh(self, done: Snapshot | None = None) -> TableState:
        """The table as it is now; what is known of its log is not read again.

        ``done`` is what a commit of this process has returned.
        """
        return self.reopened(self.snapshot if done is None else done.compact())

    def reopened(self, known: Snapshot | None = None, **options: Any) -> TableState:
        """The table as it is now, opened with other ``options``.

        What ``known``, a snapshot of it, has of the log is not read again.
        """
        return _open(self.location, replace(self.options, **options), known)

    def shown(self) -> TableState:
        """The table, if it was listed, as a reader of its folder sees it.

        Before rewritten files are published, that reader has the old ones.
        """
        if self._observed.visible is None:
            return self
        visible = replace(self._observed, listing=self._observed.visible, visible=None)
        return TableState(self.location, visible, self.options)

    def without_folders(self, n: int) -> TableState:
        """The same table, of which ``n`` folders were never listed."""
        return self._copy(n_unlisted=n)

    def declaring(self, derived: Derived) -> TableState:
        """The same table, of whose partition columns something else is declared."""
        return self._copy(derived=derived)

    def require_appendable(self) -> None:
        """Refuse to add data files where the source does not take them."""
        self._require_written("append to", self.source.why_not_added)

    def require_rewritable(self, action: str) -> None:
        """Refuse to replace data files where the source does not take others."""
        self._require_written(action, self.source.why_not_rewritten())

    def _require_written(self, action: str, why_not: str) -> None:
        name = self.source.format
        if why_not:
            raise TableError(
                f"cannot {action} {self.folder!r}: it is a {name} table, and {why_not} "
                f"(accepted: a plain folder of Parquet files, or a writer of {name}, "
                "and refresh_indexes after it)"
            )

    def check_names(self, *, case_sensitive: bool) -> None:
        """Refuse folders that spell a partition column in two ways, as Spark does."""
        for partition in self.partitions:
            if case_sensitive and len(partition.names) > 1:
                raise TableError(
                    f"the partition columns {list(partition.names)} of "
                    f"{self.folder!r} differ in capitals, so Spark refuses "
                    "them too (expected one spelling, or case_sensitive=False)"
                )

    def resolve(self, name: str, *, case_sensitive: bool = False) -> ColumnInfo:
        """Like ``Columns.resolve``."""
        return self._columns.resolve(name, case_sensitive=case_sensitive)

    def stored(self, name: str) -> ColumnInfo:
        """Like ``Columns.stored``."""
        return self._columns.stored(name)

    @property
    def has_exact_names(self) -> bool:
        """Whether capitals tell names apart."""
        return self._indexes.exact_names

    def find(self, text: str) -> ColumnInfo:
        """Like ``Columns.find``."""
        return self._columns.find(text)

    def is_alone(self, column: ColumnInfo) -> bool:
        """Like ``Columns.is_alone``."""
        return self._columns.is_alone(column)

    def spellings(self, column: ColumnInfo) -> list[str]:
        """Like ``ColumnIndexes.spellings``."""
        return self._indexes.spellings(column)

    def stats(self, column: ColumnInfo) -> FileStats:
        """Like ``ColumnIndexes.stats``."""
        return self._indexes.stats(column)

    def blobs(self, column: ColumnInfo) -> list[BlobUse]:
        """Like ``ColumnIndexes.blobs``."""
        return self._indexes.blobs(column)

    def maps(self, column: ColumnInfo) -> list[BlobUse]:
        """Like ``ColumnIndexes.maps``."""
        return self._indexes.maps(column)

    def built(self, column: ColumnInfo) -> list[BlobUse]:
        """Like ``ColumnIndexes.built``."""
        return self._indexes.built(column)

    def counted(self, column: ColumnInfo) -> np.ndarray:
        """Which files the newest commit has statistics of ``column`` for."""
        result = np.zeros(len(self), np.bool_)
        for name in column.stored_names:
            stats = self.snapshot.manifest.stats.get(name)
            tag = None if column.domain is None else column.domain.tag
            if stats is not None and stats.domain == tag:
                result |= np.asarray(take(stats.values, self.rows).is_valid())
        return result

    def with_exact_names(self) -> TableState:
        """The same table, where capitals tell names apart.

        A file that spells a column otherwise then lacks the column.
        """
        return self._copy(_indexes=replace(self._indexes, exact_names=True))

    def in_zone(self, instants: Instants) -> TableState:
        """The same table, for a session whose zone ``instants`` knows.

        Partition columns of timestamps hold other values in every zone.
        """
        if not any(p.dtype == INSTANT for p in self.partitions):
            return self
        return self._copy(_indexes=replace(self._indexes, instants=instants))

    def _copy(self, **changes: object) -> TableState:
        table = copy.copy(self)
        vars(table).update(changes)
        return table


def open_state(
    table: TableState | Location | str | os.PathLike[str],
    *,
    schema: pa.Schema | None = None,
    partition_types: Mapping[str, pa.DataType] | None = None,
    derived: Derived | None = None,
    plain: bool = False,
    fresh: bool = False,
    trust: Trust = "listing",
    folders: CatalogFolders | None = None,
    version: AtVersion = NEWEST,
) -> TableState:
    """The table below a folder; ``skipindex.open_table`` tells the rest.

    A ``TableState`` is returned as it is; if ``fresh``, its files are listed again,
    as it was opened.
    """
    check_trust(trust)
    if isinstance(table, TableState):
        return _open(table.location, table.options) if fresh else table
    if plain and version != NEWEST:
        raise TableError(
            "plain=True reads no log, so it takes no version (accepted: one of the two)"
        )
    types = partition_types or {}
    options = Options(schema, plain, trust, folders, version, types, derived)
    return _open(location_of(table), options, insist=True)


def open_listed(
    location: Location, options: Options, files: Listing, known: Snapshot
) -> TableState:
    """The table of what ``files`` lists, which may be nothing.

    ``known`` is a snapshot of it.
    """
    return _open(location, options, known, files=files)


def _open(
    location: Location,
    options: Options,
    known: Snapshot | None = None,
    *,
    insist: bool = False,
    files: Listing | None = None,
) -> TableState:
    observed = observe(location, options, known, insist=insist, files=files)
    if observed.source.schema is not None:
        if insist and (options.declared is not None or options.partition_types):
            raise TableError(
                f"{location.full('')!r} is a {observed.source.format} table, and takes "
                "its columns from its log (accepted: no schema, no partition_types)"
            )
        options = replace(options, declared=observed.source.schema)
    folders = None if options.folders is None else options.folders()
    if folders is not None:
        observed = observed.among(folders, location)
    return TableState(location, observed, options)


def table_of(location: Location, files: Sequence[FileInfo]) -> TableState:
    """A table of these files alone, whatever else there is; no index knows them."""
    path = files[0].path
    schema, refused = read_schema(location, path)
    return TableState(location, folder_of(list(files), schema, refused, path))
