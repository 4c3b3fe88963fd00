"""A plain folder: Parquet files, and folders that name partition values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from skipindex.errors import CommitConflictError, TableError, first_line
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.moved import without_files
from skipindex.log.properties import TableProperties
from skipindex.source.folder.hidden_files import hidden_paths
from skipindex.source.folder.live import counted_files
from skipindex.source.folder.replacements import Rewrites
from skipindex.source.parquet.files import UNREADABLE, column_reader
from skipindex.source.parquet.spark_json import Typed, given_schema
from skipindex.source.parquet.stored import footer_schema
from skipindex.source.partitions.hive import (
    PartitionColumn,
    partition_columns,
    partition_folders,
)
from skipindex.source.source import Change, Observed, Replaced, Source
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    SUMMARIES,
    is_data_file,
    is_data_name,
    is_hidden_copy,
    is_shown,
)


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

    def replace(self, location: Location, changes: Sequence[Change]) -> Replaced:
        """See ``Source``; hidden files count from a commit of skipindex on."""

        def replaced(base: Snapshot) -> tuple[Manifest, TableProperties, set[str]]:
            there = {file.path: file for file in live_files(location, base)}
            for one in changes:
                _require_unchanged(one.old, there)
            rewrites = Rewrites.of(base).with_replaced(
                [(one.old, one.new) for one in changes],
                now=location.now() / SECOND,
                has_defaults=any(one.has_defaults for one in changes),
            )
            gone = {path for one in changes for path in one.paths}
            # Readers that list the folder see the others until vacuum publishes.
            trash = set(filter(is_hidden_copy, gone))
            properties = rewrites.to_properties(base.properties)
            return without_files(base.manifest, trash), properties, there.keys() - gone

        return replaced


LISTED: Final = Folder("a listing", {}, None, None, None)
"""A folder that was listed."""
OWN_LOG: Final = replace(LISTED, format="the log of skipindex")
"""A folder whose files all stand in its log of indexes."""


def folder_of(
    files: Sequence[FileInfo],
    schema: pa.Schema,
    refused: Mapping[str, str],
    schema_path: str = "",
) -> Observed:
    """A plain folder with these files alone, of which nothing was committed."""
    return Observed(files, schema, refused, schema_path, LISTED)


class SparkListing:
    """Which of all files below a folder Spark reads.

    Names that begin with ``_`` or ``.`` are hidden (trap C-37), except
    ``_name=value``.  If a folder is named ``name=value``, the table has partitions, and
    the files in such folders are read.  Otherwise it has none, and only the files of
    the folder itself are read.
    """

    def __init__(self, everything: Iterable[FileInfo]) -> None:
        """Look at the names of all files below the folder."""
        hidden: dict[str, bool] = {"": False}
        shown: dict[str, list[FileInfo]] = {}
        data: dict[str, list[FileInfo]] = {}
        summaries: dict[str, list[FileInfo]] = {}
        for result in everything:
            folder, _, name = result.path.rpartition("/")
            if folder not in hidden:
                hidden[folder] = not all(map(is_shown, folder.split("/")))
            if hidden[folder] or not is_shown(name):
                continue
            shown.setdefault(folder, []).append(result)
            if is_data_name(name):
                data.setdefault(folder, []).append(result)
            elif name in SUMMARIES:
                summaries.setdefault(folder, []).append(result)
        with_data = {folder: data[folder] for folder in shown if folder in data}
        partitioned = partition_folders(with_data)
        self.folders: list[str] = list(partitioned)
        """Those whose names are partition values; of empty files too."""
        self._read = frozenset(
            file.path
            for folder in partitioned or with_data.keys() & {""}
            for file in with_data[folder]
            if file.size
        )
        own = shown if partitioned else {"": shown.get("", [])}
        self.summaries = [
            file.path for folder in own for file in summaries.get(folder, [])
        ]
        """Paths of the files that Spark takes the schema from first."""
        self.with_schema = self.summaries + [
            file.path for files in own.values() for file in files if file.size
        ]
        """Paths of the files that Spark takes the schema from: summaries too."""

    def is_read(self, info: FileInfo) -> bool:
        """Whether Spark reads the file, which is one of them."""
        return info.path in self._read


class FolderListing:
    """All files below a plain folder, and the columns of the table in it."""

    def __init__(
        self,
        location: Location,
        everything: Sequence[FileInfo],
        schema: pa.Schema | None,
        *,
        may_be_empty: bool,
    ) -> None:
        self._location, self._everything = location, everything
        self._schema, self._may_be_empty = schema, may_be_empty
        self._shown = SparkListing(everything)
        candidates = self._shown.with_schema
        self._typed = self._columns_of(candidates) if candidates else None

    def _columns_of(self, paths: Sequence[str]) -> tuple[str, Typed | TableError]:
        """The file of ``paths`` that Spark takes the columns from, and these."""
        every = self._shown.summaries  # which come first, those of one name before
        named = ([p for p in every if p.rpartition("/")[2] == n] for n in SUMMARIES)
        path = first_in_java(self._location, next(filter(None, named), paths))
        known = _of_path(self._everything, path)
        try:
            return path, read_schema(self._location, path, known, self._schema)
        except TableError as error:
            return path, error

    def observed(self, snapshot: Snapshot) -> Observed | str:
        """The table; a text if the file that has its columns came or went."""
        location, everything, shown = self._location, self._everything, self._shown
        listing, remarks = counted_files(location, everything, snapshot, shown.is_read)
        visible = None
        # Else a reader of the folder reads the same files.
        if hidden_paths(snapshot):
            visible = list(filter(shown.is_read, everything))
        if not (self._typed or listing or self._may_be_empty):
            raise TableError(_nothing_there(location, everything))
        paths = (file.path for file in listing)  # looked at where no columns are known
        path, columns = self._typed or self._columns_of([*paths] or [""])
        if isinstance(columns, TableError):
            now = location.stat(path)
            if now is not None and now.is_same(_of_path(everything, path)):
                raise columns
            return ""  # deleted or written since it was listed, by a vacuum perhaps
        notes = (*snapshot.notes, *remarks)
        return Observed(
            listing, *columns, path, LISTED, snapshot, shown.folders, notes, visible
        )


def live_files(location: Location, snapshot: Snapshot) -> list[FileInfo]:
    """The files that now hold the table's rows, by path, as a commit names them."""
    return listed_beside(location, snapshot)[2]


def kept_paths(location: Location, snapshot: Snapshot) -> set[str]:
    """Paths of the files that hold the rows of the table, and of copies of them."""
    live = {file.path for file in live_files(location, snapshot)}
    open_ = Rewrites.of(snapshot).replacements
    return live | {file.path for r in open_ for file in (*r.old, *r.new)}


def listed_beside(
    location: Location, snapshot: Snapshot
) -> tuple[Sequence[FileInfo], SparkListing, list[FileInfo]]:
    """All files there are now, what Spark would read, and what holds the rows."""
    everything = list(location.list())
    shown = SparkListing(everything)
    live, _ = counted_files(location, everything, snapshot, shown.is_read)
    return everything, shown, live


def _require_unchanged(
    files: Sequence[FileInfo], there: Mapping[str, FileInfo]
) -> None:
    for file in files:
        if not file.is_same(there.get(file.path)):
            raise CommitConflictError(
                f"optimize: {file.path!r} was changed or rewritten by another writer "
                "meanwhile; nothing was replaced, try again"
            )


def _of_path(files: Sequence[FileInfo], path: str) -> FileInfo | None:
    return next((file for file in files if file.path == path), None)


def first_in_java(location: Location, paths: Sequence[str]) -> str:
    """The first of some paths, as Java compares their texts."""
    if all(map(str.isascii, paths)):  # their order in Python is Java's
        return min(paths)
    spelled = {location.spark_path(path): path for path in paths}
    return spelled[min(spelled, key=lambda p: p.encode("utf-16-be", "surrogatepass"))]


def read_schema(
    location: Location,
    path: str,
    known: FileInfo | None = None,
    given: pa.Schema | None = None,
) -> Typed:
    """The columns of a file as Spark types them, and why some are not indexed.

    ``known`` is what was listed of it.  Nothing is read if the columns are ``given``.
    """
    if given is not None:
        return given_schema(given)
    try:
        with column_reader(location, path, known=known) as file:
            return footer_schema(file)
    except UNREADABLE as error:
        reason = first_line(error)
        raise TableError(
            f"{location.full(path)!r} is not a readable Parquet file: {reason} (Spark "
            "reads the columns of the table from this file; accepted: a schema that "
            "is given to open_table; names that begin with _ or . are ignored)"
        ) from error


def _nothing_there(location: Location, everything: Sequence[FileInfo]) -> str:
    where = location.plain_path("")
    if not location.exists():
        return f"no such table: {where!r} does not exist"
    why = "names that begin with _ or . are ignored"
    below = next((f.path for f in everything if f.size and is_data_file(f.path)), None)
    if below is not None:
        why = f"{below!r} is in a folder that is not named like a partition, k=v"
    return f"no Parquet files in {where!r} ({why})"
