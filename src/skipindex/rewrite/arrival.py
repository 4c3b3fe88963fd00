"""Appending rows: a writer that fails adds none.

1. The rows are written below ``_skipindex/staging/<run>``, which no reader sees.
2. The rows of the staged footers are counted: as many as went in, or it is an error.
3. The files move into hidden folders, and are indexed there.

An append gives them their visible names, one after the other, and commits their
indexes.  Every reader counts a file once it is visible, so a writer that is killed
between two of them leaves the rows of some, as Spark's own append does.

An overwrite commits that the hidden files replace all others.  From then on a reader of
commits sees the new rows alone.  Then it publishes them and deletes what they replace
(``rewrite.publish``); if it is killed there, the next vacuum does the rest.

A batch of a stream is an overwrite that replaces nothing: its rows count from its
commit on, which also says that the table has this batch (``rewrite.batch``).
"""

from __future__ import annotations

import contextlib
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Final

from skipindex.errors import (
    CommitConflictError,
    SkipIndexError,
    StorageError,
    TableError,
)
from skipindex.log import Snapshot, newest_for_writer
from skipindex.log.manifest import Manifest
from skipindex.log.moved import with_moved, without_files
from skipindex.log.properties import TableProperties
from skipindex.rewrite.at_once import at_once
from skipindex.rewrite.batch import Batch
from skipindex.rewrite.expiry import expire_now_and_then, store_time
from skipindex.rewrite.publish import EndedError, Publisher
from skipindex.rewrite.selection.eligible_files import row_counts
from skipindex.rewrite.staging import delete_files, hide_staged, sync_left, undeleted
from skipindex.source import commit, other_format
from skipindex.source.folder.replacements import Replacement, Rewrites
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    FOLDER,
    LOG,
    PACKS,
    STAGING,
    is_data_file,
    is_hidden_copy,
    published,
)

_MARKS: Final = ("_SUCCESS", "_metadata", "_common_metadata")
"""What writers leave beside data files; it says nothing of those that follow."""

Writer = Callable[[str], int]
"""Writes rows below a folder of the table that does not exist; how many went in."""

Indexer = Callable[[Sequence[FileInfo]], tuple[Manifest, TableProperties]]
"""Indexes the new files; a manifest of them, and properties for the table."""


class SaveMode(Enum):
    """What becomes of the rows that are there."""

    APPEND = "append"
    CREATE = "write"
    OVERWRITE = "overwrite"


class _CommittedError(Exception):
    """An earlier attempt has committed the files, or another run the batch."""

    def __init__(self, base: Snapshot, *, is_mine: bool) -> None:
        self.base = base
        self.is_mine = is_mine


def arrive(
    location: Location,
    mode: SaveMode,
    *,
    write: Writer,
    index: Indexer,
    known: Snapshot | None = None,
    batch: Batch | None = None,
) -> Snapshot | None:
    """Write rows into a table in one commit, which is returned.

    Nothing is committed for no rows at all; then ``known`` is, an earlier snapshot,
    whose segments are not read again.  Nor is it for a ``batch`` to append that the
    table has; then the newest snapshot is returned.
    """
    run = uuid.uuid4().hex
    was_there = location.exists()
    made: list[str] = []
    attempts: list[Snapshot] = []
    done = False
    replaces = mode is SaveMode.OVERWRITE
    by_file = not replaces and batch is None
    if replaces:
        _require_own(location, location.list())
    if batch is not None:
        known = newest_for_writer(location, known=known)
        for one in Rewrites.of(known).replacements:
            if one.overwrites and not one.old:
                _publish(location, one, known, replaces=False)  # of a killed run
        if batch.is_in(known.properties):
            return known
    try:
        n_rows = write(f"{STAGING}/{run}")
        files = _counted(location, mode, run, n_rows, made)
        if files:
            news = index(files)
            if by_file:
                known = _added(location, mode, files, news, known, attempts)
                done = True
            else:
                arrival, known = _committed(
                    location, files, news, known, attempts, batch
                )
                done = True
                _publish(location, arrival, known, replaces=replaces)
            _expire(location, known)
    except BaseException as error:
        if not done:
            _withdraw(
                location,
                made,
                by_file=by_file,
                tried=bool(attempts),
                was_there=was_there,
            )
        if isinstance(error, _CommittedError):  # another run of the batch was faster
            return error.base
        raise
    finally:
        with contextlib.suppress(Exception):
            location.delete_tree(f"{STAGING}/{run}")
            if not (done or was_there):
                for folder in (PACKS, STAGING, FOLDER, ""):
                    location.delete_folder(folder)
    return known


def is_leftover(path: str) -> bool:
    """Whether the file was left by a writer who did not get to a commit."""
    is_ours = path.startswith(f"{FOLDER}/") and not path.startswith(f"{LOG}/")
    return is_ours or is_hidden_copy(path)


def _counted(
    location: Location, mode: SaveMode, run: str, n_rows: int, made: list[str]
) -> list[FileInfo]:
    """The staged files, hidden beside the data, if they hold as many rows."""
    hidden = hide_staged(
        location,
        f"{STAGING}/{run}",
        f"{run}-0",
        lambda path: path.rpartition("/")[0],
        made,
    )
    files = [file for _, file in hidden]
    counts = row_counts(location, [file.path for file in files])
    if sum(counts) != n_rows:
        raise TableError(
            f"{sum(counts)} of {n_rows} rows reached the files of "
            f"{location.full('')!r}; nothing was added, try again"
        )
    filled = [file for file, n in zip(files, counts, strict=True) if n]
    if mode is not SaveMode.APPEND and not filled:
        # One file without rows says what columns the table has.
        filled = files[:1]
        if not filled:
            raise TableError(
                f"no rows for {location.full('')!r}, and Spark writes no file for "
                "them with partition_by, so no file would have the columns; nothing "
                "was written (accepted: at least one row, or no partition_by)"
            )
    named = {file.path for file in filled}
    delete_files(location, [file.path for file in files if file.path not in named])
    return filled


def _added(
    location: Location,
    mode: SaveMode,
    files: Sequence[FileInfo],
    content: tuple[Manifest, TableProperties],
    known: Snapshot | None,
    attempts: list[Snapshot],
) -> Snapshot:
    """Give hidden files their visible names, and commit what is indexed of them."""
    fresh, news = content
    sources = [file.path for file in files]

    def moved(hidden: FileInfo) -> FileInfo | None:
        target = published(hidden.path)
        location.move(hidden.path, target)
        result = location.stat(target)
        # A move leaves a local file its time: one with another time is another one.
        is_mine = replace(hidden, path=target).is_unchanged(result)
        return result if is_mine or not location.is_local else None

    with undeleted():
        visible = at_once(location, moved, files)
    targets = [published(path) for path in sources]
    sync_left(location, targets)
    for folder in {path.rpartition("/")[0] for path in sources}:
        location.delete_folder(folder)
    mine: set[str] = set()

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        attempts.append(base)
        if mode is SaveMode.CREATE:
            _require_created(location, base, {*targets})
        # Others see a file once it is visible, and may have rewritten or deleted it.
        now = at_once(location, location.stat, targets)
        entries = Rewrites.of(base).entries
        rewritten = {file.path for one in entries for file in one.old}
        places = {
            source: file
            for source, file, result in zip(sources, visible, now, strict=True)
            if file is not None and file.is_same(result) and file.path not in rewritten
        }
        mine.clear()
        mine.update(file.path for file in places.values())
        named = with_moved(without_files(fresh, {*sources} - places.keys()), places)
        return base.manifest.merge(named), base.properties | news

    return commit(location, change, operation=mode.value, known=known, added=mine)


def _require_created(location: Location, base: Snapshot, mine: Collection[str]) -> None:
    """Refuse to create a table where another writer has made one meanwhile."""
    others = any(
        file.size > 0 and is_data_file(file.path) and file.path not in mine
        for file in location.list()
    )
    if others or len(base.manifest) or Rewrites.of(base).replacements:
        raise TableError(
            f"{location.full('')!r} was created by another writer meanwhile; nothing "
            "was added"
        )


def _committed(
    location: Location,
    files: Sequence[FileInfo],
    content: tuple[Manifest, TableProperties],
    known: Snapshot | None,
    attempts: list[Snapshot],
    batch: Batch | None,
) -> tuple[Replacement, Snapshot]:
    """Commit that hidden files replace all others, or are added as a new batch."""
    fresh, news = content
    arrival = Replacement((), tuple(files), 0.0, overwrites=True)

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        nonlocal arrival
        if attempts and _is_committed(location, arrival.names, base):
            raise _CommittedError(base, is_mine=True)
        if batch is not None and batch.is_in(base.properties):
            raise _CommittedError(base, is_mine=False)
        attempts.append(base)
        result = at_once(location, lambda file: location.stat(file.path), files)
        for file, now in zip(files, result, strict=True):
            if not file.is_same(now):
                raise CommitConflictError(
                    f"{operation}: {file.path!r} was deleted before it was committed "
                    "(a vacuum with a retention shorter than a write?); try again"
                )
        since = store_time(location)
        if batch is not None:
            arrival = replace(arrival, since=since)
            rewrites = Rewrites.of(base).with_added(arrival)
            properties = rewrites.to_properties(base.properties | news)
            return base.manifest.merge(fresh), properties | batch.recorded(properties)
        arrival = replace(arrival, old=_visible_files(location), since=since)
        rewrites = Rewrites.of(base).overwritten(arrival, now=since)
        # A batch that was overwritten is not added again.
        kept = TableProperties(streams=base.properties.streams)
        return fresh, rewrites.to_properties(kept) | news

    operation = "overwrite" if batch is None else "append"
    try:
        done = commit(location, change, operation=operation, known=known)
    except _CommittedError as error:
        if not error.is_mine:
            raise
        done = error.base
    return arrival, done


def _is_committed(location: Location, names: Iterable[str], base: Snapshot) -> bool:
    """Whether the hidden files of a run are in a table, published or not."""
    names = set(names)
    return not names.isdisjoint(Rewrites.of(base).hidden) or any(
        location.stat(published(name)) for name in names
    )


def _visible_files(location: Location) -> tuple[FileInfo, ...]:
    """All visible files: those that an overwrite replaces."""
    old = tuple(
        file for file in location.list() if file.size > 0 and is_data_file(file.path)
    )
    _require_own(location, old)
    return old


def _require_own(location: Location, files: Iterable[FileInfo]) -> None:
    """Refuse to overwrite what a link leads to: it is deleted from nowhere."""
    for file in files:
        if is_data_file(file.path) and (link := location.link_on_the_way(file.path)):
            raise TableError(
                f"{location.full('')!r} cannot be overwritten, because "
                f"{location.full(link)!r} is a link, and files outside are never "
                "deleted (accepted: a table without links; remove the link)"
            )


def _publish(
    location: Location, arrival: Replacement, known: Snapshot, *, replaces: bool
) -> None:
    """Give the new files visible names, and delete what they replace."""
    # The rows are committed, so an error here is a warning, unless rows are lost.
    try:
        if replaces:
            _sweep_marks(location)
        delete = partial(_delete_replaced, location)
        Publisher(location, 0.0, delete, known=known).finish(arrival)
    except EndedError:  # by a vacuum, or an overwrite that came after this one
        _require_named(location, arrival, known)
    except Exception as error:
        is_gone = False
        with contextlib.suppress(SkipIndexError):  # what cannot be seen may be there
            is_gone = any(
                location.stat(file.path) is None
                and location.stat(published(file.path)) is None
                for file in arrival.new
            )
        if is_gone:
            raise TableError(
                f"rows for {location.full('')!r} were deleted while they were written "
                "(a vacuum with a retention shorter than a write?); try again"
            ) from error
        warnings.warn(
            f"rows are committed to {location.full('')!r}, but readers that list the "
            f"folder do not see all of them before the next vacuum: {error}",
            stacklevel=4,
        )


def _require_named(location: Location, arrival: Replacement, known: Snapshot) -> None:
    """Refuse to call rows committed that the table does not have."""
    try:
        newest = newest_for_writer(location)
    except StorageError:  # it cannot be read now, and may name them
        return
    has_gone_on = newest.version > known.version
    if not (has_gone_on or _is_committed(location, arrival.names, newest)):
        raise TableError(
            f"the log of {location.full('')!r} was deleted or replaced while rows were "
            "written, and does not name them; nothing was added, try again"
        )


def _expire(location: Location, snapshot: Snapshot) -> None:
    """Delete old history; the rows are there, so an error of it is a warning."""
    try:
        expire_now_and_then(location, snapshot)
    except (SkipIndexError, OSError) as error:
        warnings.warn(
            f"old commits of {location.full('')!r} stay until the next vacuum: {error}",
            stacklevel=4,
        )


def _delete_replaced(location: Location, files: Iterable[FileInfo]) -> None:
    delete_files(location, list(files), folders=True)


def _sweep_marks(location: Location) -> None:
    """Delete summaries of the replaced files, and empty files."""
    files = list(location.list())
    # The log of another format too, because from now on it names deleted files.
    foreign = other_format(file.path for file in files)
    log = foreign[1].partition("/")[0] + "/" if foreign else None
    delete_files(
        location,
        [
            file
            for file in files
            if (file.size == 0 and is_data_file(file.path))
            or (
                file.path.rpartition("/")[2] in _MARKS
                and is_data_file(file.path.rpartition("/")[0])
            )
            or (log is not None and file.path.startswith(log))
        ],
    )


def _withdraw(
    location: Location,
    made: Sequence[str],
    *,
    by_file: bool,
    tried: bool,
    was_there: bool,
) -> None:
    """Delete the files of a writer who failed, and take back a commit of them."""
    with contextlib.suppress(Exception):
        if not tried or _is_taken_back(location, made, by_file=by_file):
            _delete_withdrawn(location, made, folders=not was_there)


def _is_taken_back(location: Location, made: Sequence[str], *, by_file: bool) -> bool:
    """Whether it is certain that no commit names the files of a writer who failed."""
    # The commit may have succeeded although it raised, and others may have gone on from
    # it.  That of rows that were added is taken back here, if the log still says so.
    newest = newest_for_writer(location)
    if newest.damaged is not None:  # which may be the commit of this writer
        return False
    gone = {*made, *map(published, made)}
    entries = Rewrites.of(newest).entries
    if not gone.isdisjoint(f.path for r in entries for f in (*r.old, *r.new)):
        return False
    is_named = not gone.isdisjoint(newest.manifest.paths)
    if not by_file:
        return not (is_named or _is_committed(location, made, newest))
    if is_named:
        commit(
            location,
            lambda base: (without_files(base.manifest, gone), base.properties),
            operation="withdraw",
        )
    return True


def _delete_withdrawn(
    location: Location, made: Sequence[str], *, folders: bool
) -> None:
    """Delete files that no commit names."""
    left = []
    # Hidden ones first, so that no publisher who sleeps makes another visible.
    for path in [*made, *map(published, made)]:
        try:
            delete_files(location, [path], folders=folders)
        except (SkipIndexError, OSError):
            left.append(path)
    if visible := [path for path in left if path not in made]:
        warnings.warn(
            f"{len(visible)} files of rows that were not added to "
            f"{location.full('')!r} cannot be deleted, so these rows count: "
            f"{', '.join(visible[:5])}",
            stacklevel=5,
        )
