"""A table at one moment: its files, its newest commit and its schema.

The three belong together: if a rewrite is committed meanwhile, the table is listed
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from skipindex import log
from skipindex.errors import TableError, first_line
from skipindex.log import LOOKS, Listing, Snapshot, look, never_still, no_snapshot
from skipindex.source.formats import source_of
from skipindex.source.parquet.files import UNREADABLE, column_reader
from skipindex.source.parquet.spark_json import Typed, given_schema
from skipindex.source.parquet.stored import footer_schema
from skipindex.source.partitions.hive import partition_folders
from skipindex.source.source import LISTED, NEWEST, AtVersion, OtherLog, Source
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    SUMMARIES,
    is_data_file,
    is_data_name,
    is_hidden_copy,
    is_shown,
    published,
)

CatalogFolders: TypeAlias = Callable[[], frozenset[str] | None]
"""The folders of the partitions that a catalog has now; None is "those there are"."""


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
    snapshot: Snapshot = field(default_factory=no_snapshot)
    folders: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    visible: Sequence[FileInfo] | None = None
    source: Source = LISTED

    def noted(self, notes: tuple[str, ...]) -> Observed:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))

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


def observe(
    location: Location,
    *,
    schema: pa.Schema | None = None,
    plain: bool = False,
    known: Snapshot | None = None,
    files: Listing | None = None,
    version: AtVersion = NEWEST,
) -> Observed:
    """The table below ``location`` as it is now.

    If ``schema`` is None, the columns are taken from a footer.  ``plain`` takes a table
    of another format for a plain folder.  Segments of ``known``, an earlier snapshot,
    are not read again.  ``files`` lists those that count, which may be none, instead of
    all.  ``version`` is that of a table of another format.
    """
    missing = ""

    def begin(
        everything: Sequence[FileInfo],
    ) -> Callable[[Snapshot], Observed | str]:
        source = None
        if not plain:
            paths = (file.path for file in everything)
            source = source_of(location, paths, version)
        if source is not None:
            return partial(_of_log, location, everything, source)
        may_be_empty = files is not None
        return _Folder(location, everything, schema, may_be_empty=may_be_empty).observed

    for _ in range(LOOKS):
        result = look(location, known, begin, files)
        if isinstance(result, Observed):
            return result
        missing = result
    if missing:
        raise TableError(
            f"{location.full(missing)!r} is gone, which the table's own log names "
            "(accepted: a version whose files have not been deleted by a vacuum)"
        )
    raise never_still(location)


def _of_log(
    location: Location,
    everything: Sequence[FileInfo],
    source: OtherLog,
    snapshot: Snapshot,
) -> Observed | str:
    """A table of another format; the path of a file that it names and is gone."""
    listing, missing = source.among(everything)
    if missing:
        return missing
    source.check(location, listing)
    return Observed(
        listing,
        source.schema,
        source.refused,
        min(source.sizes, default=""),
        snapshot,
        notes=snapshot.notes,
        source=source,
    )


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


class _Folder:
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
        listing, remarks = log.live_files(location, everything, snapshot, shown.is_read)
        visible = None
        if snapshot.rewrites.hidden:  # else a reader of the folder reads the same files
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
            listing, *columns, path, snapshot, shown.folders, notes, visible
        )


def _partition_of(path: str) -> str:
    """The folder that a file is in, or will be once it is published."""
    shown = published(path) if is_hidden_copy(path) else path
    return shown.rpartition("/")[0]


def live_files(location: Location, snapshot: Snapshot) -> list[FileInfo]:
    """The files that now hold the table's rows, by path, as a commit names them."""
    return listed_beside(location, snapshot)[2]


def listed_beside(
    location: Location, snapshot: Snapshot
) -> tuple[Sequence[FileInfo], SparkListing, list[FileInfo]]:
    """All files there are now, what Spark would read, and what holds the rows."""
    everything = list(location.list())
    shown = SparkListing(everything)
    live, _ = log.live_files(location, everything, snapshot, shown.is_read)
    return everything, shown, live


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
