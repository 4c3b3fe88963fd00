"""What says which files a table has, and what is in them: a folder, or a log.

The log of another format may say more than a plain reader of the files knows: rows that
were deleted, columns that files call otherwise, partition values that no folder has.
Indexes describe the files as they are stored.  A deleted row may only keep a file from
being skipped, and lowers the number of rows that match.  Rows are read by the source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from skipindex.errors import CommitConflictError, TableError, first_line
from skipindex.expressions.arrays import Ints
from skipindex.source.field_ids import FieldIds, Names
from skipindex.source.log_statistics import LogStatistics
from skipindex.source.partitions.hive import (
    Pairs,
    PartitionColumn,
    partition_columns,
    partition_values,
)
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import FileInfo, Location

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
COMMIT_TRIES: Final = 20
"""Commits to another log after which one is given up: other writers were faster."""


@dataclass(frozen=True, slots=True)
class Change:
    """Files of a table that others replace, which hold the same rows.

    Args:
        old: the paths of the files, which have the same partition values.
        new: the other files.
        statistics: of the new files, by path, as ``statistics_written`` has them.
    """

    old: Sequence[str]
    new: Sequence[FileInfo]
    statistics: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Source(ABC):
    """What says which files a table has, and what is in them.

    Args:
        format: the name of the format.
        places: the paths under which files have columns, by their paths in the table,
            where they differ.
        ids: what gives the columns of files their numbers; None is their names.
    """

    format: str
    places: Mapping[Names, Names]
    ids: FieldIds | None

    @property
    def described(self) -> str:
        """What says which files the table has."""
        return self.format

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

    @abstractmethod
    def statistics_of(self, files: FileList) -> LogStatistics | None:
        """What a log says of these files of the table."""

    @abstractmethod
    def deleted_of(self, files: FileList) -> tuple[Ints, Ints] | None:
        """At least and at most so many rows of these files are deleted; None: none."""


@dataclass(frozen=True, slots=True)
class Folder(Source):
    """Parquet files, and folders that name the values of partition columns."""

    def partitions(
        self,
        files: FileList,
        types: Mapping[str, pa.DataType],
        folders: Sequence[str],
    ) -> list[PartitionColumn]:
        """See ``Source``."""
        is_flat = not folders and not files.has_folders
        # Not ``files.paths``, which would stay in memory.
        paths = [] if is_flat else files.paths_at(np.arange(len(files)))
        return partition_columns(paths, types, folders)

    def statistics_of(self, files: FileList) -> None:
        """See ``Source``."""

    def deleted_of(self, files: FileList) -> None:
        """See ``Source``."""


LISTED: Final = Folder("a listing", {}, None)
"""A folder that was listed."""
OWN_LOG: Final = Folder("the log of skipindex", {}, None)
"""A folder whose files all stand in its log of indexes."""


@dataclass(frozen=True, slots=True)
class OtherLog(Source):
    """What the log of another format says of a table at one version.

    Args:
        version: the number of the version.
        sizes: the bytes of the files that hold the rows, by path in the folder.
        schema: the columns, with those of partitions, as readers see them.
        refused: the columns that have no index, and why.
        values: the partition values of each file, as a folder writes them.
        statistics: of the files, in the order of ``sizes``.
        deleted: at least and at most how many rows of a file are deleted, by path.
    """

    version: int
    sizes: Mapping[str, int]
    schema: pa.Schema
    refused: Mapping[str, str]
    values: Mapping[str, Pairs]
    statistics: LogStatistics
    deleted: Mapping[str, tuple[int, int]]

    @property
    def described(self) -> str:
        """See ``Source``."""
        return f"version {self.version} of {self.format}"

    @abstractmethod
    def rows(self, location: Location, paths: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of files of the version, with the columns of the table.

        Deleted rows are not among them.

        Raises:
            TableError: a file cannot be read.
        """

    @abstractmethod
    def deleted_rows(self, path: str) -> BitMap | None:
        """The positions of the deleted rows of a file; None if they are not known."""

    @property
    def partition_names(self) -> list[str]:
        """The names of the partition columns."""
        every = (name for of in self.values.values() for name, _ in of)
        return list(dict.fromkeys(every))

    def why_not_rewritten(self) -> str:
        """Why other files cannot be committed for its files; empty if they can."""
        return f"skipindex does not write the log of {self.format}"

    def left_out(self, path: str) -> str:  # noqa: ARG002 (no file by default)
        """Why no group to rewrite has a file, as the log has it; empty if one may."""
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

    @property
    def has_folders(self) -> bool:
        """Whether the folders of files say all that ``partition_of`` does."""
        return True

    def after(self, version: AtVersion) -> AtVersion:
        """The version to open after a commit, where ``version`` was open before."""
        return version

    def statistics_written(self, location: Location, folder: str) -> Mapping[str, str]:
        """What the log may say of the files below a folder, by path in the folder.

        Empty where the commit reads the footers.

        Raises:
            TableError: a file cannot be read.
        """
        raise NotImplementedError(location, folder)

    def replace_files(self, location: Location, changes: Sequence[Change]) -> None:
        """Commit files for others that hold the same rows.

        Raises:
            CommitConflictError: another writer changed the files meanwhile.
            TableError: the commit failed, or its outcome is not known.
        """
        raise NotImplementedError(location, changes)

    def among(self, everything: Iterable[FileInfo]) -> tuple[list[FileInfo], str]:
        """The files of the version that are there, and the path of one that is not."""
        there = {file.path: file for file in everything}
        result = [there[path] for path in sorted(self.sizes) if path in there]
        return result, min(self.sizes.keys() - there.keys(), default="")

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

    def check(self, location: Location, files: Iterable[FileInfo]) -> None:
        """Refuse files that the log knows with another size.

        Raises:
            TableError: a file has been overwritten.
        """
        for file in files:
            path = file.path
            if file.size != self.sizes[path]:
                raise TableError(
                    f"{location.full(path)!r} has {file.size:,} bytes, and "
                    f"{self.sizes[path]:,} in version {self.version} of the "
                    f"{self.format} table (expected a file that is never overwritten)"
                )

    def unlike_plain(self, paths: Sequence[str]) -> str:
        """Why plain readers of these files return other rows or columns; empty if not.

        They take the names of columns from the files, and partition values from the
        folders.
        """
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
