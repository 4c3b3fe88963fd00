"""Deleting old history after a commit, without looking at the data.

A table keeps superseded commits, segments and packs for its retention, for readers that
opened it before.  Vacuum deletes them later, and every 64th commit of a writer does.

A segment or pack serves commits that follow each other: once a commit leaves it out,
it comes back only by being written again, which gives it a new time.  So what is older
than the retention, and named neither by the newest commit nor by the one that was the
newest when the retention began, is named by none between them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from skipindex.errors import CorruptIndexError, IndexVersionError, TableError
from skipindex.log import Snapshot, newest_for_writer, read_snapshot
from skipindex.log.properties import RETENTION, retention_of
from skipindex.rewrite.retention import NS, parts_of
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


def store_time(location: Location) -> float:
    """Now by the clock that gives files their times, in seconds since 1970."""
    return location.now() / NS


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
    now = store_time(location)
    keep = retention_of(newest.properties).total_seconds()
    begin, young = (now - keep) * NS, (now - max(keep, LOG_AGE)) * NS
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
