"""A table: Parquet files below one folder, and what our indexes know of them.

The files are those that Spark would read: everything below the root that is not
empty and whose path has no part that begins with ``_`` or ``.`` (trap C-37).  A
file that the newest commit does not know, or knows with another identity, simply
has no index.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.domain import Domain
from skipindex.errors import CorruptIndexError, PredicateError, TableError
from skipindex.indexes._file_map import FILE_MAP
from skipindex.indexes.minmax import FileStats
from skipindex.partitions import partition_columns
from skipindex.predicate import name_parts
from skipindex.schema import ColumnInfo, arrow_schema, columns_of
from skipindex.storage.location import Found, Location, location_of
from skipindex.storage.log import Snapshot, latest_version, read_snapshot
from skipindex.storage.manifest import BlobUse, Manifest
from skipindex.storage.replacements import Rewrites

if TYPE_CHECKING:
    from skipindex.planner.plan import Plan
    from skipindex.predicate import Predicate

__all__ = [
    "UNREADABLE",
    "ColumnInfo",
    "Derived",
    "FileEntry",
    "FileStats",
    "Table",
    "arrow_schema",
    "check_folder",
    "column_reader",
    "is_data_file",
    "open_table",
]

_SUMMARIES: Final = ("_common_metadata", "_metadata")
"""Files that Spark takes the schema from before any data file."""

_LOOKS: Final = 20
"""How often a table is listed anew that others rewrite meanwhile."""

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for a damaged file; ValueError for names that are no UTF-8."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What the partition columns of a table were made of.

    Args:
        columns: by partition column, a function of a column of the files in SQL.
        zone: of the session that wrote; None if it is not known.
    """

    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    zone: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As the table property ``derived``."""
        return {"columns": dict(self.columns), "zone": self.zone}

    @classmethod
    def from_json(cls, value: Any) -> Derived:
        """The inverse; what is no such property declares nothing."""
        try:
            columns, zone = dict(value["columns"]), value["zone"]
        except (KeyError, TypeError, ValueError):
            return cls()
        texts = all(isinstance(v, str) for v in [*columns, *columns.values()])
        known = zone is None or isinstance(zone, str)
        return cls(columns, zone) if texts and known else cls()


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
        notes: tuple[str, ...] = (),
        derived: Derived | None = None,
    ) -> None:
        """Use ``open_table``."""
        self.location = location
        self.snapshot = snapshot
        self.schema_path = schema_path
        self.notes = notes
        self.paths = [found.path for found in listing]
        self.sizes = np.array([found.size for found in listing], np.int64)
        self.mtimes = np.array([found.mtime for found in listing], np.int64)
        self.schema = schema
        self.partition_types = dict(partition_types)
        self._given = derived
        committed = Derived.from_json(snapshot.properties.get("derived"))
        self.derived = committed if derived is None else derived
        self.partitions = partition_columns(self.paths, partition_types)
        self._refused = refused
        self._columns = columns_of(schema, refused, self.partitions)
        self._nested = {
            leaf.name: leaf
            for column in self._columns.values()
            for leaf in column.leaves
            if leaf is not column
        }
        self.rows, self.freshness = self._match(snapshot.manifest)
        counts = snapshot.manifest.files["n_rows"].combine_chunks()
        self.n_rows = np.asarray(_take(counts, self.rows).fill_null(-1))
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
        notes = _take(self.snapshot.manifest.files["note"].combine_chunks(), self.rows)
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
            partition_types=self.partition_types,
            derived=self._given,
        )

    def refresh(self) -> Table:
        """The table as it is now."""
        return open_table(
            self.location, partition_types=self.partition_types, derived=self._given
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

    def _blobs_of(self, column: ColumnInfo) -> list[BlobUse]:
        if self._blobs is None:
            self._blobs = self._load_blobs()
        assert column.domain is not None
        tag = column.domain.tag
        uses = self._blobs.get(column.name, [])
        return [use for use in uses if use.entry.meta.domain == tag]

    def plan_files(self, predicate: str | Predicate, **options: Any) -> Plan:
        """``skipindex.plan_files(predicate, table=self, …)``."""
        from skipindex.planner.plan import plan_files  # noqa: PLC0415 (it uses tables)

        return plan_files(predicate, table=self, **options)

    def _match(self, manifest: Manifest) -> tuple[np.ndarray, list[str]]:
        """For every file its row in the manifest or -1, and why there is none."""
        known = {path: i for i, path in enumerate(manifest.paths)}
        rows = np.array([known.get(path, -1) for path in self.paths], np.int64)
        there = rows >= 0
        same = there.copy()
        for name, now in (("size", self.sizes), ("mtime", self.mtimes)):
            then = manifest.files[name].to_numpy()
            same[there] &= then[rows[there]] == now[there]
        never = "never indexed" if len(manifest) else "the table has no index"
        changed = "changed since it was indexed"
        reasons = np.select([same, there], ["", changed], default=never)
        return np.where(same, rows, -1), [str(reason) for reason in reasons]

    def _load_stats(self, column: ColumnInfo, domain: Domain) -> FileStats:
        for partition in self.partitions:
            if partition.name == column.name:
                return FileStats.of_values(partition.typed(domain), domain)
        stats = self.snapshot.manifest.stats.get(column.name)
        if stats is None or stats.domain != domain.tag:
            return FileStats.unknown(len(self), domain)
        n_rows = _take(
            self.snapshot.manifest.files["n_rows"].combine_chunks(), self.rows
        )
        return FileStats.from_arrow(_take(stats.values, self.rows), n_rows)

    def _load_blobs(self) -> dict[str, list[BlobUse]]:
        file_of_row = np.full(len(self.snapshot.manifest) + 1, -1, np.int64)
        file_of_row[self.rows] = np.arange(len(self))
        file_of_row[-1] = -1  # where rows is -1
        found: dict[str, list[BlobUse]] = {}
        for use in reversed(self.snapshot.manifest.blobs()):
            files = file_of_row[use.rows]
            fresh = files >= 0
            mine = replace(use, rows=files[fresh], slots=use.slots[fresh])
            found.setdefault(use.entry.meta.column, []).append(mine)
        return found


def open_table(
    table: Table | Location | str | os.PathLike[str],
    *,
    partition_types: Mapping[str, pa.DataType] | None = None,
    derived: Derived | None = None,
) -> Table:
    """The table below a folder: any directory of Parquet files that Spark reads.

    Args:
        table: a path or URI; a ``Table`` is returned as it is.
        partition_types: types of hive partition columns, by name, where the
            reader does not let Spark infer them.
        derived: what the partition columns were made of; by default what
            ``set_derived`` has committed.

    Raises:
        TableError: there is no such folder, or no Parquet file in it.
    """
    if isinstance(table, Table):
        return table
    location = table if isinstance(table, Location) else location_of(table)
    everything, snapshot, notes = _observe(location)
    listing, remarks = Rewrites.of(snapshot.properties).live(everything, is_visible)
    notes = (*notes, *remarks)
    if not listing:
        raise TableError(_nothing_there(location))
    schema_path = _schema_path(location, everything, listing)
    schema, refused = _read_schema(location, schema_path)
    return Table(
        location,
        listing,
        schema,
        refused,
        snapshot,
        schema_path=schema_path,
        partition_types=partition_types or {},
        notes=notes,
        derived=derived,
    )


def is_data_file(path: str) -> bool:
    """Whether Spark would read the file at this relative path, if it is not empty."""
    return not any(
        (part.startswith("_") and "=" not in part)
        or part.startswith(".")
        or part.endswith("._COPYING_")
        for part in path.split("/")
    )


def is_visible(found: Found) -> bool:
    """Whether Spark would read the file."""
    return found.size > 0 and is_data_file(found.path)


def column_reader(
    location: Location, path: str
) -> tuple[pq.ParquetFile, Callable[[], None]]:
    """The Parquet file at ``path``, and the call that closes it."""
    source = location.open_input(path)
    try:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    except BaseException:
        source.close()
        raise
    return file, source.close


def check_folder(location: Location) -> None:
    """Raise ``TableError`` if there is a file in the place of the folder."""
    if location.stat("") is not None:
        raise TableError(
            f"{location.full('')!r} is a file (expected the folder of a table)"
        )


def _list(location: Location) -> list[Found]:
    """All files below the folder, by path."""
    check_folder(location)
    try:
        return sorted(location.list(), key=lambda found: found.path)
    except OSError as error:
        raise TableError(f"cannot list {location.full('')!r}: {error}") from error


def _observe(location: Location) -> tuple[list[Found], Snapshot, tuple[str, ...]]:
    """All files and the newest commit, in a state that goes together.

    Files that a rewrite replaces come and go with commits, so a listing is good
    only if the same rewrites were committed before it and after it.
    """
    check_folder(location)
    snapshot, notes = _newest(location)
    for _ in range(_LOOKS):
        everything = _list(location)
        before = Rewrites.of(snapshot.properties)
        if latest_version(location) != snapshot.version:
            snapshot, notes = _newest(location)
        if Rewrites.of(snapshot.properties) == before:
            return everything, snapshot, notes
    raise TableError(
        f"{location.full('')!r} was rewritten {_LOOKS} times while it was listed; try "
        "again when that is done"
    )


def _newest(location: Location) -> tuple[Snapshot, tuple[str, ...]]:
    """The newest commit; a damaged or newer one is no index, with a note."""
    try:
        return read_snapshot(location), ()
    except CorruptIndexError as error:
        return Snapshot(-1, Manifest.empty()), (f"indexes ignored: {error}",)
    except OSError as error:
        raise TableError(f"cannot list {location.full('')!r}: {error}") from error


def _schema_path(
    location: Location, everything: list[Found], listing: list[Found]
) -> str:
    """The file that Spark takes the schema from: a summary, else the first by path."""

    def java_order(path: str) -> bytes:
        return location.spark_path(path).encode("utf-16-be", "surrogatepass")

    shown = [
        found.path
        for found in everything
        if found.size > 0 and is_data_file(found.path.rpartition("/")[0])
    ]
    for name in _SUMMARIES:
        summaries = [path for path in shown if path.rpartition("/")[2] == name]
        if summaries:
            return min(summaries, key=java_order)
    visible = list(filter(is_data_file, shown))
    return min(visible or [file.path for file in listing], key=java_order)


def _read_schema(location: Location, path: str) -> tuple[pa.Schema, dict[str, str]]:
    try:
        file, close = column_reader(location, path)
        try:
            return arrow_schema(file)
        finally:
            close()
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise TableError(
            f"{location.full(path)!r} is no readable Parquet file: {reason} "
            "(names that begin with _ or . are left out)"
        ) from error


def _nothing_there(location: Location) -> str:
    where = location.full("")
    if not location.exists():
        return f"no such table: {where!r} does not exist"
    return f"no Parquet files in {where!r} (names that begin with _ or . are left out)"


def _take(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """``values`` at ``rows``; null where the row is -1."""
    return values.take(pa.array(rows, mask=rows < 0))
