"""What says which files a table has, if not a listing of its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

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
        sizes: the files that hold the rows, with their bytes, by path in the table.
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
        """The files of the version, of all below the folder, and one that is not there.

        A path of the log may be escaped, as the log of Delta writes it.
        """
        there = {file.path: file for file in everything}
        result, missing = [], ""
        for path in self.sizes:
            file = there.get(unquote(path)) or there.get(path)
            if file is None:
                missing = unquote(path)
            else:
                result.append(file)
        return sorted(result, key=lambda file: file.path), missing

    def statistics_of(self, paths: Sequence[str]) -> LogStatistics:
        """What the log says of files of the version, by their paths in the folder."""
        places = {unquote(path): i for i, path in enumerate(self.sizes)}
        places |= {path: i for i, path in enumerate(self.sizes) if path not in places}
        return self.statistics.at(np.array([places[path] for path in paths], np.int64))

    def check(self, location: Location, files: Iterable[FileInfo]) -> None:
        """Refuse files of which the log says something else than the folder.

        Raises:
            TableError: a file has another size, or is in a folder of other values.
        """
        known = {unquote(path): path for path in self.sizes}
        for file in files:
            path = known.get(file.path, file.path)
            if file.size != self.sizes[path]:
                raise TableError(
                    f"{location.full(file.path)!r} has {file.size:,} bytes, and "
                    f"{self.sizes[path]:,} in version {self.version} of the "
                    f"{self.format} table (expected a file that is never overwritten)"
                )
            if partition_values(file.path) != self.values[path]:
                raise TableError(
                    f"{location.full(file.path)!r} is in a folder of other partition "
                    f"values than version {self.version} of the {self.format} table "
                    f"has for it: {dict(self.values[path])} (expected folders k=v)"
                )
