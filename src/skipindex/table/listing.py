"""A table as it stands at one moment: its files, its newest commit and its schema.

The three belong together: if a rewrite is committed meanwhile, the table is listed
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from typing import Final, TypeAlias

import pyarrow as pa

from skipindex.errors import (
    IndexVersionError,
    SkipIndexError,
    StorageError,
    TableError,
    first_line,
)
from skipindex.storage.associated import Association, fingerprint_of
from skipindex.storage.deadline import carried
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    SUMMARIES,
    is_data_file,
    is_hidden_copy,
    published,
)
from skipindex.storage.log import (
    Snapshot,
    latest_version,
    newest_snapshot,
    warn_of_damage,
)
from skipindex.storage.manifest import Manifest
from skipindex.table.files import (
    UNREADABLE,
    SparkListing,
    check_folder,
    column_reader,
)
from skipindex.table.opening.formats import require_plain
from skipindex.table.spark_json import given_schema
from skipindex.table.stored import footer_schema

_AT_ONCE: Final = 4
"""Requests that are under way while a table on a store is opened."""
LOOKS: Final = 20
"""How often a table is listed that others rewrite meanwhile."""


Listing: TypeAlias = Callable[[], Iterable[FileInfo]]
"""What lists the files below the folder of a table."""
CatalogFolders: TypeAlias = Callable[[], frozenset[str] | None]
"""The folders of the partitions that a catalog has now; None is "those there are"."""


@cache
def no_snapshot() -> Snapshot:
    """The snapshot of a table without a commit."""
    return Snapshot(-1, Manifest.empty())


@dataclass(frozen=True, slots=True)
class Observed:
    """A table as it stood at one moment.

    ``refused`` has the columns that are not indexed, and why; ``schema_path`` is the
    file that the schema is taken from.  ``folders`` are those whose names are partition
    values, of empty files too, and ``notes`` warn about parts of the commit that were
    ignored.
    """

    listing: Sequence[FileInfo]
    schema: pa.Schema
    refused: Mapping[str, str]
    schema_path: str
    snapshot: Snapshot = field(default_factory=no_snapshot)
    folders: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    def noted(self, notes: tuple[str, ...]) -> Observed:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def among(self, folders: frozenset[str], location: Location) -> Observed:
        """The same without the files of other folders, as Spark reads of a catalog.

        Raises:
            TableError: no file is left.
        """
        files = [file for file in self.listing if _partition_of(file.path) in folders]
        if self.listing and not files:
            raise TableError(
                f"the catalog has none of the folders of {location.full('')!r} that "
                "hold files (accepted: a table after MSCK REPAIR TABLE, or its path)"
            )
        shown = [folder for folder in self.folders if folder in folders]
        return replace(self, listing=files, folders=shown)


def observe(
    location: Location,
    *,
    schema: pa.Schema | None = None,
    plain: bool = False,
    known: Snapshot | None = None,
    files: Listing | None = None,
) -> Observed:
    """The table below ``location`` as it is now.

    If ``schema`` is None, the columns are taken from a footer.  ``plain`` takes a table
    of another format for a plain folder.  Segments of ``known``, an earlier snapshot,
    are not read again.  ``files`` lists those that count, which may be none, instead of
    all.
    """
    for _ in range(LOOKS):
        everything, snapshot = _listed(location, known, files)
        if not plain:
            require_plain(location, (file.path for file in everything), insist=True)
        shown, listing, remarks = _live(location, everything, snapshot)
        candidates = shown.with_schema or [file.path for file in listing]
        if not candidates and files is None:
            raise TableError(_nothing_there(location, everything))
        schema_path = ""
        if candidates:
            schema_path = _schema_path(location, candidates, shown.summaries)
        try:
            columns, refused = (
                read_schema(location, schema_path, _of_path(everything, schema_path))
                if schema is None
                else given_schema(schema)
            )
        except TableError:
            now = location.stat(schema_path)
            if now is not None and now.is_same(_of_path(everything, schema_path)):
                raise
            continue  # deleted or written since it was listed, by a vacuum perhaps
        notes = (*snapshot.notes, *remarks)
        return Observed(
            listing, columns, refused, schema_path, snapshot, shown.folders, notes
        )
    raise never_still(location)


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
    shown, live, _ = _live(location, everything, snapshot)
    return everything, shown, live


def current_files(location: Location) -> list[FileInfo]:
    """The files that hold the table's rows now, by path.

    Raises:
        SkipIndexError: they cannot be told.
        OSError: the folder cannot be listed.
    """
    everything, snapshot = _listed(location, None)
    return _live(location, everything, snapshot)[1]


class JoinedTables:
    """The tables that associated columns are looked up in, each listed once."""

    def __init__(self, fact: Location) -> None:
        self._fact = fact
        self._fingerprints: dict[Location, str | SkipIndexError | OSError] = {}

    def why_void(self, one: Association) -> str:
        """Why what is built of an associated column is not true any more, if it is not.

        Empty if it is true.
        """
        place = one.location(self._fact)
        if place not in self._fingerprints:
            self._fingerprints[place] = _fingerprint(place)
        now = self._fingerprints[place]
        if now == one.fingerprint:
            return ""
        if not isinstance(now, str):
            return f"the table {place.full('')!r} cannot be listed: {first_line(now)}"
        return (
            f"the table {place.full('')!r} has changed since column {one.name!r} was "
            "indexed (refresh_indexes indexes it again)"
        )


def _fingerprint(place: Location) -> str | SkipIndexError | OSError:
    try:
        return fingerprint_of(current_files(place))
    except (SkipIndexError, OSError) as error:
        return error


def _live(
    location: Location,
    everything: Sequence[FileInfo],
    snapshot: Snapshot,
) -> tuple[SparkListing, list[FileInfo], list[str]]:
    """What Spark would read, the files that hold the rows, and notes on others."""
    there = {file.path: file for file in everything}
    if location.is_local:
        _require_listed(location, there, snapshot)
    _require_known(location, there, snapshot)
    shown = SparkListing(there.values())
    live, notes = snapshot.rewrites.live_files(there, shown.is_read)
    return shown, live, notes


def _require_listed(
    location: Location, there: Mapping[str, FileInfo], snapshot: Snapshot
) -> None:
    """Refuse a listing that lacks hidden files of the log that are there."""
    # Hidden folders that are closed to this user are left out of listings.  What is
    # there through a link alone is none of our files.
    for replacement in snapshot.rewrites.replacements:
        for file in replacement.new:
            if file.path in there:
                continue
            folder = location.full(file.path.rpartition("/")[0])
            try:
                is_there = location.owns(file.path)
            except OSError as error:
                raise TableError(
                    f"rows of the table are in {folder!r}: {error}"
                ) from error
            if is_there:
                raise TableError(
                    f"rows of the table are in {folder!r}, which cannot be listed "
                    "(accepted: a folder that every reader of the table may list)"
                )


def _require_known(
    location: Location, there: Mapping[str, FileInfo], snapshot: Snapshot
) -> None:
    """Refuse to count rows where a commit that cannot be read now may name more."""
    if not snapshot.refused or snapshot.damaged is None:
        return
    named = snapshot.rewrites.hidden
    for path in there:
        is_hidden = is_hidden_copy(path) and path not in named
        if is_hidden and published(path) not in there:
            raise StorageError(
                f"the newest commit of {location.full('')!r} cannot be read, and may "
                f"name {path!r}, so it cannot be told which files count "
                f"({'; '.join(snapshot.notes[:1])})"
            )


def _listed(
    location: Location, known: Snapshot | None, files: Listing | None = None
) -> tuple[Sequence[FileInfo], Snapshot]:
    """All files and the newest commit, in a state that goes together."""
    listing = files or location.list
    found = None if location.is_local else _listed_at_once(location, known, listing)
    if found is not None:
        return found
    check_folder(location)
    snapshot = newest_usable(location, known)
    # Files that a rewrite replaces come and go with commits, so a listing is good only
    # if the same rewrites were committed before it and after it.
    for _ in range(LOOKS):
        try:
            everything = _list(location, listing)
        except OSError as error:
            raise TableError(str(error)) from error
        before = snapshot.rewrites
        if _latest(location) != snapshot.newest:
            snapshot = newest_usable(location, snapshot)
        if snapshot.rewrites == before:
            if snapshot.version >= 0:
                warn_of_damage(snapshot)
            return everything, snapshot
    raise never_still(location)


def _listed_at_once(
    location: Location, known: Snapshot | None, listing: Listing
) -> tuple[Sequence[FileInfo], Snapshot] | None:
    """``_listed`` by requests of which several are under way; None if that fails."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        is_folder = pool.submit(carried(check_folder), location)
        before = pool.submit(carried(latest_version), location)
        reading = pool.submit(carried(newest_snapshot), location, known=known)
        try:
            first = before.result()
            everything = sorted(listing(), key=attrgetter("path"))
            after = pool.submit(carried(latest_version), location)
            is_folder.result()
            snapshot = reading.result()
            versions = {first, after.result(), snapshot.newest}
        except (SkipIndexError, OSError):
            return None
    # The log is listed before and after the files: no commit came meanwhile if the
    # number is the same.
    if len(versions) > 1:
        return None
    if snapshot.version >= 0:
        warn_of_damage(snapshot)
    return everything, snapshot


def _of_path(files: Sequence[FileInfo], path: str) -> FileInfo | None:
    return next((file for file in files if file.path == path), None)


def never_still(location: Location) -> TableError:
    """The error where a table changes as often as it is looked at."""
    return TableError(
        f"{location.full('')!r} was rewritten {LOOKS} times while it was listed; try "
        "again when that is done"
    )


def _list(location: Location, listing: Listing) -> list[FileInfo]:
    """The files below the folder that are listed, by path."""
    check_folder(location)
    return sorted(listing(), key=attrgetter("path"))


def _latest(location: Location) -> int:
    """The number of the newest commit; -1 if the log cannot be listed."""
    try:
        return latest_version(location)
    except OSError:
        return -1


def newest_usable(location: Location, known: Snapshot | None) -> Snapshot:
    """The newest whole commit; the empty one, with a note, if it cannot be used."""
    try:
        return newest_snapshot(location, known=known)
    except (IndexVersionError, OSError) as error:
        newest, notes = _latest(location), (f"indexes ignored: {error}",)
        return Snapshot(-1, Manifest.empty(), damaged=newest, notes=notes, refused=True)


def _schema_path(
    location: Location, candidates: list[str], summaries: list[str]
) -> str:
    """The file that Spark takes the schema from: a summary, else the first by path."""
    for name in SUMMARIES:
        named = [path for path in summaries if path.rpartition("/")[2] == name]
        if named:
            return first_in_java(location, named)
    return first_in_java(location, candidates)


def first_in_java(location: Location, paths: Sequence[str]) -> str:
    """The first of some paths, as Java compares their texts."""
    if all(map(str.isascii, paths)):  # their order in Python is Java's
        return min(paths)
    spelled = {location.spark_path(path): path for path in paths}
    return spelled[min(spelled, key=lambda p: p.encode("utf-16-be", "surrogatepass"))]


def read_schema(
    location: Location, path: str, known: FileInfo | None = None
) -> tuple[pa.Schema, Mapping[str, str]]:
    """The columns of a file as Spark types them, and why some are not indexed.

    ``known`` is what was listed of it.
    """
    try:
        with column_reader(location, path, known=known) as file:
            return footer_schema(file)
    except UNREADABLE as error:
        reason = first_line(error)
        raise TableError(
            f"{location.full(path)!r} is no readable Parquet file: {reason} (Spark "
            "takes the columns of the table from this file; accepted: a schema that is "
            "given to open_table; names that begin with _ or . are left out)"
        ) from error


def _nothing_there(location: Location, everything: Sequence[FileInfo]) -> str:
    where = location.full("")
    if not location.exists():
        return f"no such table: {where!r} does not exist"
    left_out = "names that begin with _ or . are left out"
    below = next((f.path for f in everything if f.size and is_data_file(f.path)), None)
    if below is not None:
        left_out = f"{below!r} lies in a folder that is no partition, as k=v would be"
    return f"no Parquet files in {where!r} ({left_out})"
