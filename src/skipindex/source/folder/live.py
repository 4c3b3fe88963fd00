"""The files that hold the table's current rows.

The log says which files count beside those that a reader of the folder sees, so a
reader looks at the log, lists the folder, and looks at the number of the newest commit
again.  If rewrites were committed meanwhile, it begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

from skipindex.errors import (
    IndexVersionError,
    SkipIndexError,
    StorageError,
    TableError,
)
from skipindex.log.commits import (
    Snapshot,
    latest_version,
    newest_snapshot,
    warn_of_damage,
)
from skipindex.log.manifest import Manifest
from skipindex.source.folder.hidden_files import hidden_paths
from skipindex.source.folder.replacements import Rewrites
from skipindex.storage.deadline import carried
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import is_hidden_copy, published

T = TypeVar("T")

_AT_ONCE: Final = 4
"""Requests that are under way while a table on a store is opened."""
LOOKS: Final = 20
"""How often a table is listed that others rewrite meanwhile."""

Listing: TypeAlias = Callable[[], Iterable[FileInfo]]
"""What lists the files below the folder of a table."""


def check_folder(location: Location) -> None:
    """Raise ``TableError`` if the path is a file, or the file system does not say."""
    try:
        file = location.stat("")
    except OSError as error:
        raise TableError(f"cannot open {location.full('')!r}: {error}") from error
    if file is not None:
        raise TableError(
            f"{location.full('')!r} is a file (expected the folder of a table)"
        )


def look(
    location: Location,
    known: Snapshot | None,
    begin: Callable[[Sequence[FileInfo]], Callable[[Snapshot], T]],
    files: Listing | None = None,
) -> T:
    """What ``begin`` makes of all files below the folder, then of the newest commit.

    They go together.  On a store ``begin`` runs while the commit is read; its result is
    called while it is not certain that they do, and both again if not.  Segments of
    ``known``, an earlier snapshot, are not read again.  ``files`` lists some folders.

    Raises:
        TableError: it is no folder, or others rewrite it all the time.
    """
    listing = files or location.list
    if not location.is_local:
        made = _look_at_once(location, known, begin, listing)
        if made is not None:
            return made.result()
    check_folder(location)
    snapshot = newest_usable(location, known)
    # Files that a rewrite replaces come and go with commits, so a listing is good only
    # if the same rewrites were committed before it and after it.
    for _ in range(LOOKS):
        try:
            everything = _list(location, listing)
        except OSError as error:
            raise TableError(str(error)) from error
        before = Rewrites.of(snapshot)
        if _latest(location) != snapshot.newest:
            snapshot = newest_usable(location, snapshot)
        if Rewrites.of(snapshot) == before:
            if snapshot.version >= 0:
                warn_of_damage(snapshot)
            return begin(everything)(snapshot)
    raise never_still(location)


def _look_at_once(
    location: Location,
    known: Snapshot | None,
    begin: Callable[[Sequence[FileInfo]], Callable[[Snapshot], T]],
    listing: Listing,
) -> Future[T] | None:
    """``look`` by requests of which several are under way; None if that fails."""
    made: Future[T] = Future()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        is_folder = pool.submit(carried(check_folder), location)
        before = pool.submit(carried(latest_version), location)
        reading = pool.submit(carried(newest_snapshot), location, known=known)
        try:
            first = before.result()
            everything = sorted(listing(), key=attrgetter("path"))
            then = pool.submit(carried(begin), everything)
            after = pool.submit(carried(latest_version), location)
            is_folder.result()
            snapshot = reading.result()
            try:
                made.set_result(then.result()(snapshot))
            except SkipIndexError as error:  # counts if no commit came meanwhile
                made.set_exception(error)
            versions = {first, after.result(), snapshot.newest}
        except (SkipIndexError, OSError):
            return None
    # If the log ends with one number before and after the files, no commit came.
    if len(versions) > 1:
        return None
    if snapshot.version >= 0:
        warn_of_damage(snapshot)
    return made


def never_still(location: Location) -> TableError:
    """The error if a table changes as often as it is listed."""
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
        unknown = str(error) if isinstance(error, IndexVersionError) else ""
        return Snapshot(
            -1,
            Manifest.empty(),
            damaged=_latest(location),
            notes=(f"indexes ignored: {error}",),
            refused=True,
            unknown=unknown,
        )


def counted_files(
    location: Location,
    everything: Sequence[FileInfo],
    snapshot: Snapshot,
    is_read: Callable[[FileInfo], bool],
) -> tuple[list[FileInfo], list[str]]:
    """The files that hold the table's rows, by path, and notes on others.

    ``everything`` is all that is below the folder; ``is_read`` says what a reader
    reads who knows no log.
    """
    there = {file.path: file for file in everything}
    if location.is_local:
        _require_listed(location, there, snapshot)
    _require_known(location, there, snapshot)
    return Rewrites.of(snapshot).live_files(there, is_read)


def _require_listed(
    location: Location, there: Mapping[str, FileInfo], snapshot: Snapshot
) -> None:
    """Refuse a listing that lacks hidden files of the log that are there."""
    # Hidden folders that are closed to this user are omitted from listings.  What is
    # there through a link alone is none of our files.
    for replacement in Rewrites.of(snapshot).replacements:
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
    named = hidden_paths(snapshot)
    for path in there:
        is_hidden = is_hidden_copy(path) and path not in named
        if is_hidden and published(path) not in there:
            raise StorageError(
                f"the newest commit of {location.full('')!r} cannot be read, and may "
                f"name {path!r}, so it is unknown which files count "
                f"({'; '.join(snapshot.notes[:1])})"
            )
