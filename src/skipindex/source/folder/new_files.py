"""New files, which are hidden until their rows count.

An append gives them their visible names, one after the other, and commits their
indexes.  Every reader counts a file once it is visible, so a writer that is killed
between two of them leaves the rows of some, as Spark's own append does.

An overwrite commits that the hidden files replace all others.  From then on a reader of
commits sees the new rows alone.  Then it publishes them and deletes what they replace
(``publish``); if it is killed there, the next vacuum does the rest.

A batch of a stream is an overwrite that replaces nothing: its rows count from its
commit on, which also says that the table has this batch (``batch``).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
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
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.exclusive import commit
from skipindex.source.folder.hidden_files import counts_hidden_files, hidden_paths
from skipindex.source.folder.publish import EndedError, Publisher
from skipindex.source.folder.replacements import Replacement, Rewrites
from skipindex.source.folder.staging import delete_files, sync_left, undeleted
from skipindex.source.formats import other_format
from skipindex.storage.at_once import at_once
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import is_data_file, published

_MARKS: Final = ("_SUCCESS", "_metadata", "_common_metadata")
"""What writers leave beside data files; it says nothing of those that follow."""


class SaveMode(Enum):
    """What becomes of the rows that are there."""

    APPEND = "append"
    CREATE = "write"
    OVERWRITE = "overwrite"


class CommittedError(Exception):
    """An earlier attempt has committed the files, or another run the batch."""

    def __init__(self, base: Snapshot, *, is_mine: bool) -> None:
        self.base = base
        self.is_mine = is_mine


@dataclass
class NewFiles:
    """The new files of one run: a write, an append, or a batch of a stream.

    Args:
        location: of the table.
        mode: what the run does.
        known: the newest commit that it knows; None if there may be none.
        batch: of a stream, if it is one.
        made: the paths that it has given files, as long as they are hidden.
        count: whether they count: they are not withdrawn any more.
        _tried: whether it has tried to commit.
    """

    location: Location
    mode: SaveMode
    known: Snapshot | None = None
    batch: Batch | None = None
    made: list[str] = field(default_factory=list)
    count: bool = False
    _tried: bool = False

    @property
    def _by_file(self) -> bool:
        """Whether each file counts as soon as it is visible."""
        return self.mode is not SaveMode.OVERWRITE and self.batch is None

    def begin(self) -> bool:
        """Whether there is anything to write: no batch that the table has.

        Batches of runs that were killed are published.
        """
        if self.mode is SaveMode.OVERWRITE:
            _require_own(self.location, self.location.list())
        if self.batch is None:
            return True
        self.known = newest_for_writer(self.location, known=self.known)
        for one in Rewrites.of(self.known).replacements:
            if one.overwrites and not one.old:
                self._publish(one, self.known)
        return not self.batch.is_in(self.known.properties)

    def add(
        self, files: Sequence[FileInfo], fresh: Manifest, news: TableProperties
    ) -> Snapshot:
        """Let hidden files count, by a commit of what is indexed of them.

        Raises:
            CommittedError: another run has added the batch.
        """
        if self._by_file:
            self.known = self._show(files, fresh, news)
            self.count = True
            return self.known
        arrival, self.known = self._commit(files, fresh, news)
        self.count = True
        self._publish(arrival, self.known)
        return self.known

    def _show(
        self, files: Sequence[FileInfo], fresh: Manifest, news: TableProperties
    ) -> Snapshot:
        """Give hidden files their visible names, and commit what is indexed of them."""
        location, sources = self.location, [file.path for file in files]

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
            self._tried = True
            if self.mode is SaveMode.CREATE:
                _require_created(location, base, {*targets})
            # Others see a file once it is visible, and may rewrite or delete it.
            now = at_once(location, location.stat, targets)
            entries = Rewrites.of(base).entries
            rewritten = {file.path for one in entries for file in one.old}
            places = {
                source: file
                for source, file, result in zip(sources, visible, now, strict=True)
                if file is not None
                and file.is_same(result)
                and file.path not in rewritten
            }
            mine.clear()
            mine.update(file.path for file in places.values())
            named = with_moved(without_files(fresh, {*sources} - places.keys()), places)
            return base.manifest.merge(named), base.properties | news

        return commit(
            location, change, operation=self.mode.value, known=self.known, added=mine
        )

    def _commit(
        self, files: Sequence[FileInfo], fresh: Manifest, news: TableProperties
    ) -> tuple[Replacement, Snapshot]:
        """Commit that hidden files replace all others, or are added as a new batch."""
        location, batch = self.location, self.batch
        arrival = Replacement((), tuple(files), 0.0, overwrites=True)

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            nonlocal arrival
            if self._tried and _is_committed(location, arrival.names, base):
                raise CommittedError(base, is_mine=True)
            if batch is not None and batch.is_in(base.properties):
                raise CommittedError(base, is_mine=False)
            self._tried = True
            result = at_once(location, lambda file: location.stat(file.path), files)
            for file, now in zip(files, result, strict=True):
                if not file.is_same(now):
                    raise CommitConflictError(
                        f"{operation}: {file.path!r} was deleted before it was "
                        "committed (a vacuum with a retention shorter than a write?); "
                        "try again"
                    )
            since = location.now() / SECOND
            if batch is not None:
                arrival = replace(arrival, since=since)
                rewrites = Rewrites.of(base)
                open_ = (*rewrites.replacements, arrival)
                rewrites = replace(rewrites, replacements=open_)
                properties = rewrites.to_properties(base.properties | news)
                added = batch.recorded(properties)
                return base.manifest.merge(fresh), properties | added
            arrival = replace(arrival, old=_visible_files(location), since=since)
            rewrites = Rewrites.of(base).overwritten(arrival, now=since)
            # A batch that was overwritten is not added again.
            kept = TableProperties(streams=base.properties.streams)
            return fresh, rewrites.to_properties(kept) | news

        operation = self.mode.value
        try:
            done = commit(location, change, operation=operation, known=self.known)
        except CommittedError as error:
            if not error.is_mine:
                raise
            done = error.base
        return arrival, done

    def _publish(self, arrival: Replacement, known: Snapshot) -> None:
        """Give the new files visible names, and delete what they replace."""
        # The rows are committed, so an error here is a warning, unless rows are lost.
        location = self.location
        try:
            if self.mode is SaveMode.OVERWRITE:
                _sweep_marks(location)
            Publisher(location, 0.0, folders=True, known=known).finish(arrival)
        except EndedError:  # by a vacuum, or an overwrite that came after this one
            _require_named(location, arrival, known)
        except Exception as error:
            is_gone = False
            with contextlib.suppress(SkipIndexError):  # what is not seen may be there
                is_gone = any(
                    location.stat(file.path) is None
                    and location.stat(published(file.path)) is None
                    for file in arrival.new
                )
            if is_gone:
                raise TableError(
                    f"rows for {location.full('')!r} were deleted while they were "
                    "written (a vacuum with a retention shorter than a write?); try "
                    "again"
                ) from error
            warnings.warn(
                f"rows are committed to {location.full('')!r}, but readers that list "
                f"the folder do not see all of them before the next vacuum: {error}",
                stacklevel=5,
            )

    def withdraw(self, *, folders: bool) -> None:
        """Delete the files of a run that failed, and take back a commit of them.

        With ``folders``, those that become empty are deleted.
        """
        with contextlib.suppress(Exception):
            if not self._tried or self._is_taken_back():
                _delete_withdrawn(self.location, self.made, folders=folders)

    def _is_taken_back(self) -> bool:
        """Whether it is certain that no commit names the files of a failed run."""
        # The commit may have succeeded although it raised, and others may have gone on
        # from it.  That of rows that were added is taken back here, if the log still
        # says so.
        location = self.location
        newest = newest_for_writer(location)
        if newest.damaged is not None:  # which may be the commit of this writer
            return False
        gone = {*self.made, *map(published, self.made)}
        entries = Rewrites.of(newest).entries
        if not gone.isdisjoint(f.path for r in entries for f in (*r.old, *r.new)):
            return False
        is_named = not gone.isdisjoint(newest.manifest.paths)
        if not self._by_file:
            return not (is_named or _is_committed(location, self.made, newest))
        if is_named:
            commit(
                location,
                lambda base: (without_files(base.manifest, gone), base.properties),
                operation="withdraw",
            )
        return True


def _require_created(location: Location, base: Snapshot, mine: Collection[str]) -> None:
    """Refuse to create a table where another writer has made one meanwhile."""
    others = any(
        file.size > 0 and is_data_file(file.path) and file.path not in mine
        for file in location.list()
    )
    if others or len(base.manifest) or counts_hidden_files(base):
        raise TableError(
            f"{location.full('')!r} was created by another writer meanwhile; nothing "
            "was added"
        )


def _is_committed(location: Location, names: Iterable[str], base: Snapshot) -> bool:
    """Whether the hidden files of a run are in a table, published or not."""
    names = set(names)
    return not names.isdisjoint(hidden_paths(base)) or any(
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
