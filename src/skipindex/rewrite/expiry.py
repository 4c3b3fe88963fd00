"""Which files of old commits readers may still use, and deleting the others.

A table keeps superseded commits, segments and packs for its retention, for readers that
opened it before.  Vacuum deletes them later, and every 64th commit of a writer does.

A segment or pack serves commits that follow each other: once a commit leaves it out,
it comes back only by being written again, which gives it a new time.  So what is older
than the retention, and named neither by the newest commit nor by the one that was the
newest when the retention began, is named by none between them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from skipindex.errors import (
    CorruptIndexError,
    IndexVersionError,
    StorageError,
    TableError,
)
from skipindex.log import (
    Segment,
    Snapshot,
    newest_for_writer,
    read_file,
    read_snapshot,
    segments_of,
)
from skipindex.log.properties import RETENTION, retention_of
from skipindex.source.folder.hidden_files import hidden_paths
from skipindex.storage.checks import RefusedError
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    LOG,
    MANIFESTS,
    PACKS,
    commit_path,
    is_commit,
    is_own_garbage,
    version_of,
)

LOG_AGE: Final = 3600.0
"""Seconds that commits and their parts stay at least, for writers between two steps.
One who takes longer commits again (``log``)."""
_EVERY: Final = 64
"""Commits from one expiry to the next."""


def retention_record(retention: timedelta | None) -> dict[str, float] | None:
    """The property of a retention."""
    if retention is None:
        return None
    if not timedelta(0) <= retention <= timedelta(days=36525):
        raise TableError(
            f"cannot keep history for {retention} (accepted: 0 to 36525 days, or None "
            f"for {RETENTION.days} days)"
        )
    return {"seconds": retention.total_seconds()}


def expire_now_and_then(location: Location, snapshot: Snapshot) -> None:
    """``expire`` after every 64th commit; an overwrite makes two."""
    if snapshot.version % _EVERY < 2 <= snapshot.version:
        expire(location, known=snapshot)


def expire(location: Location, *, known: Snapshot | None = None) -> list[str]:
    """Delete commits, segments and packs that the retention of the table is over for.

    Nothing that the newest commit names is deleted, nor what a commit of the retention
    names.  While the newest commit, or the one that was the newest when the retention
    began, cannot be read, nothing is deleted.  Segments of ``known``, an earlier
    snapshot, are not read again.

    Returns:
        The paths of what was deleted.
    """
    newest = newest_for_writer(location, known=known)
    if newest.version < 0 or newest.damaged is not None or newest.lost:
        return []
    now = location.now() / SECOND  # by the clock that gives files their times
    keep = retention_of(newest.properties).total_seconds()
    begin, young = (now - keep) * SECOND, (now - max(keep, LOG_AGE)) * SECOND
    commits = sorted(
        (file for file in location.list(LOG) if is_commit(file.path)),
        key=lambda file: file.path,
    )
    older = [file for file in commits if file.mtime <= begin]
    if not older:
        return []
    needed = parts_of(newest) | {commit_path(newest.version)}
    try:
        needed |= _named(location, older[-1], newest)
    except (CorruptIndexError, IndexVersionError):
        return []
    listing = [*location.list(MANIFESTS), *location.list(PACKS)]
    over = [file for file in older[:-1] if file.mtime <= young]
    # A writer may have written a part that no commit names yet.
    over += [f for f in listing if f.mtime <= young and is_own_garbage(f.path)]
    return [f.path for f in over if f.path not in needed and location.delete_own(f)]


def _named(location: Location, file: FileInfo, newest: Snapshot) -> set[str]:
    """What the commit in a file names; raise if a part of it cannot be read."""
    version = version_of(file.path.rpartition("/")[2])
    assert version is not None
    snapshot = read_snapshot(location, version, known=newest)
    if snapshot.lost:
        raise snapshot.lost[0].error
    return parts_of(snapshot) | {file.path}


def referenced(
    location: Location,
    newest: Snapshot,
    listing: Iterable[FileInfo],
    *,
    keep: float,
    since: float,
) -> set[str]:
    """Paths that the newest commit refers to, or one within the retention.

    ``listing`` has all files of the table.  ``keep`` is the retention in seconds; with
    0 the newest commit alone counts.  It began at ``since``, in seconds since 1970.
    """
    needed = hidden_paths(newest)
    seen: set[str] = set()
    commits = sorted((f for f in listing if is_commit(f.path)), key=lambda f: f.path)
    recent = [f for f in commits if f.mtime > since * SECOND]
    older = [f for f in commits if f.mtime <= since * SECOND]
    if keep and older:  # it was the newest when the retention began
        recent.append(older[-1])
    for file in {*commits[-1:], *(recent if keep else ())}:
        needed.add(file.path)
        version = version_of(file.path.rpartition("/")[2])
        assert version is not None
        with _unless_damaged():
            if file in commits[-1:]:
                snapshot = read_snapshot(location, version)
                needed |= parts_of(snapshot) | hidden_paths(snapshot)
            else:
                for segment in segments_of(location, version):
                    needed |= _parts_of_segment(location, segment, seen)
    return needed


@contextlib.contextmanager
def _unless_damaged() -> Iterator[None]:
    """What is damaged names nothing; what cannot be read may name anything."""
    try:
        yield
    except (RefusedError, IndexVersionError) as error:
        raise StorageError(f"nothing more was deleted: {error}") from error
    except CorruptIndexError:
        pass


def _parts_of_segment(location: Location, segment: Segment, seen: set[str]) -> set[str]:
    """Paths of a segment and of all packs that it names, unless it was ``seen``."""
    if segment.name in seen:
        return set()
    seen.add(segment.name)
    result = {segment.path}
    with _unless_damaged():
        packs = read_file(location, segment).packs
        result |= {f"{PACKS}/{pack.name}" for pack in packs}
    return result


def parts_of(snapshot: Snapshot) -> set[str]:
    """Paths of the segments and the packs of a commit."""
    segments = (*snapshot.segments, *(one.segment for one in snapshot.lost))
    packs = {f"{PACKS}/{pack.name}" for pack in snapshot.manifest.packs}
    return {*(segment.path for segment in segments), *packs}
