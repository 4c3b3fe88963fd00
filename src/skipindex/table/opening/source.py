"""What says which files a table has, and what is in them, if not a listing.

The log of another format may say more than a plain reader of the files knows: rows that
were deleted, columns that files call otherwise, partition values that no folder has.
Indexes describe the files as they are stored.  A deleted row may only keep a file from
being skipped, and lowers the number of rows that match.  Rows are read by the source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from skipindex.errors import TableError
from skipindex.expressions.arrays import Ints
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.table.field_ids import FieldIds, Names
from skipindex.table.partitions.hive import Pairs, PartitionColumn, partition_values
from skipindex.table.statistics.of_log import LogStatistics


@dataclass(frozen=True, slots=True)
class AtVersion:
    """Which version of a table with a log is meant.

    Args:
        number: of the version, or of a snapshot; None is the newest.
        metadata: the file with an Iceberg table's metadata, which its catalog names.
        properties: how that file is opened.  They may be secret.
    """

    number: int | None = None
    metadata: str = ""
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)


NEWEST: Final = AtVersion()


@dataclass(frozen=True, slots=True)
class Source(ABC):
    """What the log of another format says of a table at one version.

    Args:
        format: the name of the format.
        version: the number of the version.
        sizes: the bytes of the files that hold the rows, by path in the folder.
        schema: the columns, with those of partitions, as readers see them.
        refused: the columns that have no index, and why.
        values: the partition values of each file, as a folder writes them.
        statistics: of the files, in the order of ``sizes``.
        places: the paths under which files have columns, by their paths in the table,
            where they differ.
        ids: what gives the columns of files their numbers; None is their names.
        deleted: at least and at most how many rows of a file are deleted, by path.
    """

    format: str
    version: int
    sizes: Mapping[str, int]
    schema: pa.Schema
    refused: Mapping[str, str]
    values: Mapping[str, Pairs]
    statistics: LogStatistics
    places: Mapping[Names, Names]
    ids: FieldIds | None
    deleted: Mapping[str, tuple[int, int]]

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

    def among(self, everything: Iterable[FileInfo]) -> tuple[list[FileInfo], str]:
        """The files of the version that are there, and the path of one that is not."""
        there = {file.path: file for file in everything}
        result = [there[path] for path in sorted(self.sizes) if path in there]
        return result, min(self.sizes.keys() - there.keys(), default="")

    def statistics_of(self, paths: Sequence[str]) -> LogStatistics:
        """What the log says of files of the version, by their paths in the folder."""
        places = {path: i for i, path in enumerate(self.sizes)}
        return self.statistics.at(np.array([places[path] for path in paths], np.int64))

    def deleted_of(self, paths: Sequence[str]) -> tuple[Ints, Ints] | None:
        """At least and at most so many rows of files are deleted; None if none is."""
        if not self.deleted:
            return None
        both = np.array([self.deleted.get(path, (0, 0)) for path in paths], np.int64)
        least, most = both.reshape(-1, 2).T
        return least, most

    def partitions(self, paths: Sequence[str]) -> list[PartitionColumn]:
        """The partition columns, with the values that the log has of these files."""
        pairs = [dict(self.values[path]) for path in paths]
        names = dict.fromkeys(name for of in self.values.values() for name, _ in of)
        result = []
        for name in names:
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
