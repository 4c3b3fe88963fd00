"""The commit log: numbered JSON files, each created only if absent.

::

    _skipindex/log/00000000000000000007.json    one commit
    _skipindex/manifests/<hash>.arrow           the segments of the manifest it names
    _skipindex/packs/<hash>.puffin              the packs that the manifest names

A commit file is ``{"commit": {…}, "crc32c": n}``, where the number is the crc32c
of the commit as compact JSON with sorted keys.  The commit names the segments of its
manifest by name, size and crc32c.  Segments and packs are written first and never
changed, so a reader sees a commit whole or not at all.  A commit writes what is new
in it, and names the segments of the commit before for the rest.

A segment that is damaged takes the indexes of its own files with it, and no others.
"""

from __future__ import annotations

import errno
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from skipindex.errors import (
    CommitConflictError,
    CorruptIndexError,
    IndexVersionError,
    StorageError,
    TableError,
)
from skipindex.storage.checks import (
    MAX_COMMIT,
    READING,
    reason,
    sealed,
    unsealed,
    whole,
)
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import (
    LOG,
    MAX_VERSION,
    commit_path,
    is_manifest_name,
    version_of,
)
from skipindex.storage.log.exclusive import is_exclusive, stamped
from skipindex.storage.log.segments import (
    Loaded,
    Lost,
    Segment,
    check_segments,
    load,
    nothing,
    write_changed,
)
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import NO_PROPERTIES, TableProperties
from skipindex.storage.replacements import Rewrites

FORMAT: Final = 2
_FIRST_OF_SEGMENTS: Final = 2
"""Before this format a commit named one manifest."""
_TRIES: Final = 50
_IS_NO_FILE: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO}
)
"""Errors of the system if there is no file, or something else than a file."""
_LOOKS_BACK: Final = 16
"""How many damaged commits are passed over in search of a whole one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One committed generation of a table's indexes.

    Args:
        version: the number of the commit; -1 before the first one.
        manifest: the data files that are known.
        properties: of the table.
        segments: the files of the manifest, whose live rows are its rows, one after
            another.
        lost: segments that cannot be read; nothing is known of their files.
        damaged: the number of the newest commit, if this is an older one because
            those after it cannot be read.
        notes: what of the log is ignored, and why.
        refused: the file system refuses to read a newer commit, which may be whole.
    """

    version: int
    manifest: Manifest
    properties: TableProperties = NO_PROPERTIES
    segments: tuple[Segment, ...] = ()
    lost: tuple[Lost, ...] = ()
    damaged: int | None = None
    notes: tuple[str, ...] = ()
    refused: bool = False

    @property
    def newest(self) -> int:
        """The number of the newest commit, whole or damaged."""
        return self.version if self.damaged is None else self.damaged

    @property
    def loaded(self) -> Loaded:
        """What another commit need not read again."""
        n_rows = sum(segment.n_live or 0 for segment in self.segments)
        same = n_rows == len(self.manifest)
        return Loaded(self.manifest, self.segments) if same else nothing()

    @property
    def is_exclusive(self) -> bool:
        """Whether it names all files of the table, as far as skipindex can tell."""
        return is_exclusive(self)

    @property
    def rewrites(self) -> Rewrites:
        """The replacements of the table, and its trash."""
        return Rewrites.from_properties(self.properties)


Change = Callable[[Snapshot], tuple[Manifest, TableProperties]]
"""From the newest snapshot to the content of the next; called again on a conflict."""


def latest_version(location: Location) -> int:
    """The number of the newest commit, or -1, whatever has the name of its file."""
    return max(_versions(location), default=-1)


def _versions(location: Location) -> set[int]:
    found = map(version_of, location.names(LOG))
    return {version for version in found if version is not None}


def read_snapshot(
    location: Location, version: int | None = None, *, known: Snapshot | None = None
) -> Snapshot:
    """The snapshot of one commit, by default the newest; empty before the first.

    Args:
        location: of the table.
        version: the number of the commit.
        known: another snapshot, whose segments are not read again.

    Raises:
        CorruptIndexError: the commit or all of its segments are missing, fail their
            crc32c, or are not ours.
        IndexVersionError: a newer library wrote it.
    """
    if version is None:
        version = latest_version(location)
    if version < 0:
        return Snapshot(-1, Manifest.empty())
    name = f"commit {version}"
    try:
        body = _body(location, version)
        segments = _segments(body)
        found = load(location, segments, known.loaded if known else nothing())
        errors = [one.error for one in found.lost]
        if errors and not found.segments:
            raise next((e for e in errors if _is_refused(e)), errors[0])
        properties, notes = TableProperties.from_json(body["properties"])
    except IndexVersionError:
        raise
    except READING as error:
        cause = error.__cause__ or error
        raise CorruptIndexError(f"{name} cannot be read: {reason(error)}") from cause
    return Snapshot(
        version,
        found.manifest,
        properties,
        found.segments,
        found.lost,
        notes=(*map(str, found.lost), *notes),
        refused=any(map(_is_refused, errors)),
    )


def newest_head(location: Location) -> Snapshot:
    """The newest commit, of which no segment is read: ``manifest`` is empty.

    Raises:
        CorruptIndexError: it is missing, fails its crc32c, or is not ours.
        IndexVersionError: a newer library wrote it.
    """
    version = latest_version(location)
    if version < 0:
        raise CorruptIndexError("there is no commit")
    segments = segments_of(location, version)
    properties, notes = TableProperties.from_json(
        _body(location, version)["properties"]
    )
    return Snapshot(version, Manifest.empty(), properties, segments, notes=notes)


def segments_of(location: Location, version: int) -> tuple[Segment, ...]:
    """The segments that a commit names, which may be missing or damaged.

    Raises:
        CorruptIndexError: the commit cannot be read.
        IndexVersionError: a newer library wrote it.
    """
    try:
        return _segments(_body(location, version))
    except IndexVersionError:
        raise
    except READING as error:
        raise CorruptIndexError(f"commit {version}: {reason(error)}") from error


def _body(location: Location, version: int) -> dict[str, Any]:
    body = unsealed("commit", location.read(commit_path(version), MAX_COMMIT))
    if whole(body["format"]) > FORMAT:
        raise IndexVersionError(
            f"commit {version} has format {body['format']}, newer than ours ({FORMAT})"
        )
    return body


def _segments(body: dict[str, Any]) -> tuple[Segment, ...]:
    """The segments of a commit; its one manifest, before format 2."""
    if body["format"] >= _FIRST_OF_SEGMENTS:
        return check_segments(body["segments"])
    entry = body["manifest"]
    if not is_manifest_name(entry["name"]):
        raise CorruptIndexError(f"{entry['name']!r} is no name of a manifest")
    size, crc = whole(entry["size"]), whole(entry["crc32c"])
    return (Segment(entry["name"], size, crc, None),)


def newest_snapshot(location: Location, *, known: Snapshot | None = None) -> Snapshot:
    """The newest commit that is whole; the empty snapshot if none is.

    Where newer ones are damaged, ``notes`` says so: every file that they knew and
    this one does not is read, and what it says of files that have changed since
    counts for nothing.  Where segments are damaged, ``lost`` has them, and their files
    are read.

    Args:
        location: of the table.
        known: an earlier snapshot, whose segments are not read again.

    Raises:
        IndexVersionError: a newer library wrote the newest one that can be read.
    """
    while True:
        versions = _versions(location)
        newest = max(versions, default=-1)
        problems = []
        refused = False
        for version in sorted(versions, reverse=True)[:_LOOKS_BACK]:
            try:
                found = _read_or_try_again(location, version, known)
            except IndexVersionError:
                raise
            except CorruptIndexError as error:
                problems.append(str(error))
                refused |= _is_refused(error)
            else:
                break
        else:
            found = Snapshot(-1, Manifest.empty())
        if not (problems or found.lost):
            return found
        if latest_version(location) == newest:  # else it was superseded and deleted
            break
    if not problems:
        return found
    notes = [f"indexes ignored: {problem}" for problem in problems[:1]]
    if found.version >= 0:
        notes = [f"commit {found.version} is used instead: {problems[0]}"]
    notes += found.notes
    refused |= found.refused
    return replace(found, damaged=newest, notes=tuple(notes), refused=refused)


def newest_for_writer(location: Location, *, known: Snapshot | None = None) -> Snapshot:
    """The newest commit that is whole, for a caller that commits or deletes after it.

    Args:
        location: of the table.
        known: an earlier snapshot, whose segments are not read again.

    Raises:
        IndexVersionError: a newer library wrote the newest one that can be read.
        StorageError: a newer one may be whole, but the file system refuses to read
            it, perhaps only now: the rows that it names could be lost.
    """
    found = newest_snapshot(location, known=known)
    if found.refused:
        raise StorageError(
            f"cannot read {location.full(commit_path(found.newest))!r}, so nothing was "
            f"changed: {found.notes[0]}"
        )
    return found


def _read_or_try_again(
    location: Location, version: int, known: Snapshot | None
) -> Snapshot:
    try:
        found = read_snapshot(location, version, known=known)
    except CorruptIndexError as error:
        if not _is_refused(error):
            raise
    else:
        if not found.refused:
            return found
    return read_snapshot(location, version, known=known)


def _is_refused(error: CorruptIndexError) -> bool:
    """True if the file system refused to read the bytes, which may be whole."""
    cause = error.__cause__
    return (
        isinstance(cause, OSError)
        and cause.errno is not None
        and cause.errno not in _IS_NO_FILE
    )


def commit(
    location: Location,
    change: Change,
    *,
    operation: str,
    known: Snapshot | None = None,
    forget: bool = False,
) -> Snapshot:
    """Apply ``change`` to the newest snapshot and commit the result.

    What differs from the newest snapshot is written, and now and then rows of small
    segments again.

    Two writers: one of them finds its number taken, applies its change to what
    the other committed, and tries again.  Nothing of either is lost.  A newest
    commit that is damaged is passed over with a warning: the change is applied to
    the newest one that is whole, and its properties and indexes stay.  That the log
    names all files of the table ends with a warning where the change shows otherwise.

    Args:
        location: of the table.
        change: what is to be committed.
        operation: its name in the log.
        known: an earlier snapshot, whose segments are not read again.
        forget: what the next snapshot does not say stands in none of its segments.

    Raises:
        CommitConflictError: others were faster, 50 times in a row.
        IndexVersionError: a newer library wrote the newest commit.
        StorageError: the file system refuses to read the newest commit, or to write.
        TableError: the log has no more numbers.
    """
    for attempt in range(_TRIES):
        base = newest_for_writer(location, known=known)
        known, version = base, base.newest + 1
        if not attempt:
            warn_of_damage(base)
        if version >= MAX_VERSION:
            raise TableError(f"{location.full(commit_path(base.newest))!r} is the last")
        manifest, properties = change(base)
        properties, why = stamped(base, manifest, properties, version)
        stored = write_changed(location, base.loaded, manifest, forget=forget)
        body = {
            "format": FORMAT,
            "operation": operation,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "segments": [segment.to_json() for segment in stored.segments],
            "properties": properties.to_json(),
        }
        if location.write_new(commit_path(version), sealed("commit", body)):
            if why:
                warn_of_others(location, why)
            return Snapshot(version, stored.manifest, properties, stored.segments)
        time.sleep(random.uniform(0, 0.02 * min(attempt + 1, 10)))
    raise CommitConflictError(
        f"{operation}: other writers committed first {_TRIES} times at "
        f"{location.full(LOG)!r}; try again when they are done"
    )


def warn_of_others(location: Location, why: str) -> None:
    """Warn that the log does not name all files of the table any more."""
    warnings.warn(
        f"the log of {location.full('')!r} does not say any more that its files change "
        f"only through skipindex: {why}",
        stacklevel=3,
    )


def warn_of_damage(snapshot: Snapshot) -> None:
    """Warn if newer commits than this one, or segments of it, are damaged."""
    if snapshot.damaged is not None or snapshot.lost:
        warnings.warn(
            f"commit {snapshot.newest} of the table is damaged: {snapshot.notes[0]}",
            stacklevel=3,
        )
