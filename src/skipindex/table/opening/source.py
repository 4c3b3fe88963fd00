"""What says which files a table has, if not a listing of its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skipindex.errors import TableError
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.table.partitions.hive import Pairs, partition_values
from skipindex.table.statistics.of_log import LogStatistics


@dataclass(frozen=True, slots=True)
class Source:
    """What the log of another format says of a table at one version.

    Args:
        format: the name of the format.
        version: the number of the version.
        sizes: the bytes of the files that hold the rows, by path in the folder.
        schema: the columns, with those of partitions, as readers see them.
        refused: the columns that have no index, and why.
        values: the partition values of each file, as a folder writes them.
        statistics: of the files, in the order of ``sizes``.
    """

    format: str
    version: int
    sizes: Mapping[str, int]
    schema: pa.Schema
    refused: Mapping[str, str]
    values: Mapping[str, Pairs]
    statistics: LogStatistics

    def among(self, everything: Iterable[FileInfo]) -> tuple[list[FileInfo], str]:
        """The files of the version that are there, and the path of one that is not."""
        there = {file.path: file for file in everything}
        result = [there[path] for path in sorted(self.sizes) if path in there]
        return result, min(self.sizes.keys() - there.keys(), default="")

    def statistics_of(self, paths: Sequence[str]) -> LogStatistics:
        """What the log says of files of the version, by their paths in the folder."""
        places = {path: i for i, path in enumerate(self.sizes)}
        return self.statistics.at(np.array([places[path] for path in paths], np.int64))

    def check(self, location: Location, files: Iterable[FileInfo]) -> None:
        """Refuse files of which the log says something else than the folder.

        Raises:
            TableError: a file has another size, or is in a folder of other values.
        """
        for file in files:
            path = file.path
            if file.size != self.sizes[path]:
                raise TableError(
                    f"{location.full(path)!r} has {file.size:,} bytes, and "
                    f"{self.sizes[path]:,} in version {self.version} of the "
                    f"{self.format} table (expected a file that is never overwritten)"
                )
            if partition_values(path) != self.values[path]:
                raise TableError(
                    f"{location.full(path)!r} is in a folder of other partition "
                    f"values than version {self.version} of the {self.format} table "
                    f"has for it: {dict(self.values[path])} (expected folders k=v)"
                )
