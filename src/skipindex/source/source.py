"""What says which files a table has, and what is in them: a folder, or a log.

A log may say more than a plain reader of the files knows: rows that were deleted,
columns that files call otherwise, partition values that no folder has.  Then the source
reads the rows.  Indexes describe the files as they are stored.  A deleted row may only
keep a file from being skipped, and lowers the number of rows that match.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from skipindex.errors import CommitConflictError, TableError, first_line
from skipindex.expressions.arrays import Ints
from skipindex.log import Snapshot, no_snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.source.field_ids import FieldIds, Names
from skipindex.source.log_statistics import LogStatistics
from skipindex.source.partitions.hive import (
    Pairs,
    PartitionColumn,
    partition_values,
)
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import is_hidden_copy, published

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable


@dataclass(frozen=True, slots=True)
class AtVersion:
    """Which version of a table with a log is meant.

    Args:
        number: of the version, or of a snapshot; None is the newest.
        metadata: the file with an Iceberg table's metadata, which its catalog names.
        properties: how that file is opened.  They may be secret.
        known: the table of a catalog, which takes commits; None without a catalog.
    """

    number: int | None = None
    metadata: str = ""
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    known: IcebergTable | None = field(default=None, repr=False, compare=False)


NEWEST: Final = AtVersion()
CatalogFolders: TypeAlias = Callable[[], frozenset[str] | None]
"""The folders of the partitions that a catalog has now; None is "those there are"."""
COMMIT_TRIES: Final = 20
"""Commits to another log after which one is given up: other writers were faster."""


@dataclass(frozen=True, slots=True)
class Change:
    """Files of a table that others replace, which hold the same rows.

    Args:
        old: the files as they were listed, which have the same partition values.
        new: the other files.
        has_defaults: the table has columns with DEFAULT, which the new files may hold
            in place of columns that the old ones lack.
        statistics: of the new files, by path, as ``statistics_written`` has them.
    """

    old: Sequence[FileInfo]
    new: Sequence[FileInfo]
    has_defaults: bool
    statistics: Mapping[str, str]

    @property
    def paths(self) -> list[str]:
        """The paths of the old files."""
        return [file.path for file in self.old]


Replaced: TypeAlias = Callable[[Snapshot], tuple[Manifest, TableProperties, set[str]]]
"""From the newest snapshot to what the next says of the files that are kept: their
manifest, the properties of the table, and their paths."""


@dataclass(frozen=True, slots=True)
class Source(ABC):
    """What says which files a table has, and what is in them.

    Args:
        format: the name of the format.
        places: the paths under which files have columns, by their paths in the table,
            where they differ.
        ids: what gives the columns of files their numbers; None is their names.
        version: its number; None if no other one is kept.
        schema: the columns, with those of partitions, as readers see them; None if the
            files say which columns there are.
    """

    format: str
    places: Mapping[Names, Names]
    ids: FieldIds | None
    version: int | None
    schema: pa.Schema | None
    has_folders: ClassVar[bool] = True
    """Whether the folders of files say all that ``partition_of`` does."""
    why_not_added: ClassVar[str] = ""
    """Why no file can be added to the table; empty if one can."""

    @property
    def described(self) -> str:
        """What says which files the table has."""
        return self.format

    @property
    def has_versions(self) -> bool:
        """Whether older versions are kept, whose files its own vacuum deletes.

        Its readers see the files of a version alone, whatever else is in the folder.
        """
        return self.version is not None

    @abstractmethod
    def partitions(
        self,
        files: FileList,
        types: Mapping[str, pa.DataType],
        folders: Sequence[str],
    ) -> list[PartitionColumn]:
        """The partition columns, with their values in these files of the table.

        ``types`` are given to some of them.  ``folders`` are those whose names are
        partition values, of empty files too.
        """

    def statistics_of(self, files: FileList) -> LogStatistics | None:  # noqa: ARG002
        """What a log says of these files of the table."""
        return None

    def deleted_of(self, files: FileList) -> tuple[Ints, Ints] | None:  # noqa: ARG002
        """At least and at most so many rows of these files are deleted; None: none."""
        return None

    def deleted_rows(self, path: str) -> BitMap | None:  # noqa: ARG002
        """The positions of the deleted rows of a file; None if they are not known."""
        return BitMap()

    def unlike_plain(self, paths: Sequence[str]) -> str:  # noqa: ARG002
        """Why plain readers of these files return other rows or columns; empty if not.

        They take the names of columns from the files, and partition values from the
        folders.
        """
        return ""

    def reader(self, paths: Sequence[str]) -> LogSource | None:  # noqa: ARG002
        """What alone reads the rows of these files; None if plain readers do too."""
        return None

    def why_not_rewritten(self) -> str:
        """Why other files cannot be committed for its files; empty if they can."""
        return ""

    def left_out(self, path: str) -> str:  # noqa: ARG002
        """Why no group to rewrite has a file; empty if one may."""
        return ""

    def left(self, location: Location, paths: Sequence[str]) -> str:  # noqa: ARG002
        """Why Spark does not read and write a group's rows as they are; empty if so.

        Raises:
            TableError: a file cannot be read.
        """
        return self.unlike_plain(paths)

    def partition_of(self, path: str) -> Pairs:
        """What the files have in common that may become one."""
        return partition_values(path)

    def statistics_written(self, location: Location, folder: str) -> Mapping[str, str]:  # noqa: ARG002
        """What a log may say of the files below a folder, by path in the folder.

        Empty if there is none, or its commit reads the footers.

        Raises:
            TableError: a file cannot be read.
        """
        return {}

    @abstractmethod
    def replace(self, location: Location, changes: Sequence[Change]) -> Replaced:
        """Let files count instead of others that hold the same rows.

        They do so at once, or with the commit of what is returned.

        Raises:
            CommitConflictError: another writer changed the files meanwhile.
            TableError: the commit failed, or its outcome is not known.
        """

    def after(self, version: AtVersion) -> AtVersion:
        """The version to open after a commit, where ``version`` was open before."""
        return version


@dataclass(frozen=True, slots=True)
class Observed:
    """A table as it stood at one moment.

    ``refused`` has the columns that are not indexed, and why; ``schema_path`` is the
    file that the schema is taken from.  ``folders`` are those whose names are partition
    values, of empty files too, and ``notes`` warn about parts of the commit that were
    ignored.  ``visible`` has the files that a reader of the folder reads; None is those
    of ``listing``.  ``source`` says which files the table has, and what is in them.
    """

    listing: Sequence[FileInfo]
    schema: pa.Schema
    refused: Mapping[str, str]
    schema_path: str
    source: Source
    snapshot: Snapshot = field(default_factory=no_snapshot)
    folders: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    visible: Sequence[FileInfo] | None = None

    def noted(self, notes: tuple[str, ...]) -> Observed:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self

    def among(self, folders: frozenset[str], location: Location) -> Observed:
        """The same without the files of other folders, as Spark reads of a catalog."""
        files = [file for file in self.listing if _partition_of(file.path) in folders]
        if self.listing and not files:
            raise TableError(
                f"the catalog has none of the folders of {location.full('')!r} that "
                "hold files (accepted: a table after MSCK REPAIR TABLE, or its path)"
            )
        visible = self.visible
        if visible is not None:
            visible = [file for file in visible if _partition_of(file.path) in folders]
        shown = [folder for folder in self.folders if folder in folders]
        return replace(self, listing=files, folders=shown, visible=visible)


def _partition_of(path: str) -> str:
    """The folder that a file is in, or will be once it is published."""
    shown = published(path) if is_hidden_copy(path) else path
    return shown.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class LogSource(Source):
    """What the log of another format says of a table at one version.

    Args:
        sizes: the bytes of the files that hold the rows, by path in the folder.
        refused: the columns that have no index, and why.
        values: the partition values of each file, as a folder writes them.
        statistics: of the files, in the order of ``sizes``.
        deleted: at least and at most how many rows of a file are deleted, by path.
    """

    version: int
    schema: pa.Schema
    sizes: Mapping[str, int]
    refused: Mapping[str, str]
    values: Mapping[str, Pairs]
    statistics: LogStatistics
    deleted: Mapping[str, tuple[int, int]]
    why_not_added: ClassVar[str] = "skipindex does not write its log"

    @property
    def described(self) -> str:
        """See ``Source``."""
        return f"version {self.version} of {self.format}"

    @abstractmethod
    def deleted_rows(self, path: str) -> BitMap | None:
        """See ``Source``."""

    @abstractmethod
    def why_not_rewritten(self) -> str:
        """See ``Source``."""

    @abstractmethod
    def rows(self, location: Location, paths: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of files of the version, with the columns of the table.

        Deleted rows are not among them.

        Raises:
            TableError: a file cannot be read.
        """

    @property
    def partition_names(self) -> list[str]:
        """The names of the partition columns."""
        every = (name for of in self.values.values() for name, _ in of)
        return list(dict.fromkeys(every))

    def reader(self, paths: Sequence[str]) -> LogSource | None:
        """See ``Source``."""
        return self if self.unlike_plain(paths) else None

    def replace(self, location: Location, changes: Sequence[Change]) -> Replaced:
        """See ``Source``; older versions have the old files, so all are kept."""
        self.replace_files(location, changes)
        return lambda base: (base.manifest, base.properties, {*base.manifest.paths})

    @abstractmethod
    def replace_files(self, location: Location, changes: Sequence[Change]) -> None:
        """Commit the changes to the log; raises what ``replace`` does."""

    def observed(
        self, location: Location, everything: Iterable[FileInfo], snapshot: Snapshot
    ) -> Observed | str:
        """The table, of all files there are; the path of one that it names and is gone.

        Raises:
            TableError: a file has been overwritten.
        """
        there = {file.path: file for file in everything if file.path in self.sizes}
        if missing := self.sizes.keys() - there.keys():
            return min(missing)
        listing = [there[path] for path in sorted(there)]
        for file in listing:
            if file.size != self.sizes[file.path]:
                raise TableError(
                    f"{location.full(file.path)!r} has {file.size:,} bytes, and "
                    f"{self.sizes[file.path]:,} in version {self.version} of the "
                    f"{self.format} table (expected a file that is never overwritten)"
                )
        return Observed(
            listing,
            self.schema,
            self.refused,
            min(self.sizes, default=""),
            self,
            snapshot,
            notes=snapshot.notes,
        )

    def statistics_of(self, files: FileList) -> LogStatistics:
        """See ``Source``."""
        places = {path: i for i, path in enumerate(self.sizes)}
        return self.statistics.at(
            np.array([places[path] for path in files.paths], np.int64)
        )

    def deleted_of(self, files: FileList) -> tuple[Ints, Ints] | None:
        """See ``Source``."""
        if not self.deleted:
            return None
        both = np.array(
            [self.deleted.get(path, (0, 0)) for path in files.paths], np.int64
        )
        least, most = both.reshape(-1, 2).T
        return least, most

    def partitions(
        self,
        files: FileList,
        types: Mapping[str, pa.DataType],  # noqa: ARG002 (the schema has them)
        folders: Sequence[str],  # noqa: ARG002 (the log has the values)
    ) -> list[PartitionColumn]:
        """See ``Source``."""
        pairs = [dict(self.values[path]) for path in files.paths]
        result = []
        for name in self.partition_names:
            values = tuple(of[name] for of in pairs)
            raw = frozenset(text for text in values if text is not None)
            dtype = self.schema.field(name).type
            result.append(PartitionColumn(name, values, dtype, raw, (name,)))
        return result

    def unlike_plain(self, paths: Sequence[str]) -> str:
        """See ``Source``."""
        if self.places:
            return "its files have other names of columns than the table"
        for path in paths:
            if path in self.deleted:
                return f"rows of {path!r} are deleted in version {self.version}"
            if partition_values(path) != self.values[path]:
                return f"the folder of {path!r} does not have its partition values"
        return ""


def require_unchanged(location: Location, why: str) -> None:
    """Raise ``CommitConflictError`` if another writer changed what is replaced."""
    if why:
        raise CommitConflictError(
            f"optimize: another writer changed {location.full('')!r} meanwhile: {why}; "
            "nothing was replaced, try again"
        )


def require_written(location: Location, changes: Iterable[Change]) -> None:
    """Raise ``CommitConflictError`` if a new file is gone, or is not as it was."""
    # No log names it yet, so a vacuum of the table that keeps nothing deletes it.
    for file in (file for one in changes for file in one.new):
        if not file.is_same(location.stat(file.path)):
            raise CommitConflictError(
                f"optimize: {location.full(file.path)!r} was deleted or changed before "
                "it was committed, as by a vacuum with retention 0; nothing was "
                "replaced, try again"
            )


def never_committed(location: Location) -> CommitConflictError:
    """The error if other writers were faster in each of ``COMMIT_TRIES``."""
    return CommitConflictError(
        f"optimize: other writers committed to {location.full('')!r} {COMMIT_TRIES} "
        "times meanwhile; nothing was replaced, try again"
    )


def commit_failed(location: Location, log: str, error: Exception) -> TableError:
    """The error if it is not known whether ``log`` has the commit."""
    return TableError(
        f"cannot commit to the {log} of {location.full('')!r}: {first_line(error)} "
        "(the rows are the same, whether or not it has the commit)"
    )
