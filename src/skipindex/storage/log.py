"""The commit log: numbered JSON files, each created only if absent.

::

    _skipindex/log/00000000000000000007.json    one commit
    _skipindex/manifests/<hash>.arrow           the manifest that it names
    _skipindex/packs/<hash>.puffin              the packs that the manifest names

A commit file is ``{"commit": {…}, "crc32c": n}``, where the number is the crc32c
of the commit as compact JSON with sorted keys.  The commit names its manifest by
name, size and crc32c.  Manifests and packs are written first and never changed,
so a reader sees a commit whole or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from crc32c import crc32c

from skipindex.errors import (
    CommitConflictError,
    CorruptIndexError,
    IndexVersionError,
    StorageError,
    TableError,
)
from skipindex.storage.checks import (
    MAX_COMMIT,
    MAX_MANIFEST,
    READING,
    reason,
    sealed,
    unsealed,
    whole,
)
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import (
    LOG,
    MANIFESTS,
    MAX_VERSION,
    commit_path,
    is_manifest_name,
    version_of,
)
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import NO_PROPERTIES, TableProperties
from skipindex.storage.replacements import Rewrites

FORMAT: Final = 1
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
        manifest_name: the file that the manifest was read from.
        damaged: the number of the newest commit, if this is an older one because
            those after it cannot be read.
        notes: what of the log is ignored, and why.
        refused: the file system refuses to read a newer commit, which may be whole.
    """

    version: int
    manifest: Manifest
    properties: TableProperties = NO_PROPERTIES
    manifest_name: str = ""
    damaged: int | None = None
    notes: tuple[str, ...] = ()
    refused: bool = False

    @property
    def newest(self) -> int:
        """The number of the newest commit, whole or damaged."""
        return self.version if self.damaged is None else self.damaged

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


def read_snapshot(location: Location, version: int | None = None) -> Snapshot:
    """The snapshot of one commit, by default the newest; empty before the first.

    Raises:
        CorruptIndexError: a file is missing, fails its crc32c, or is not ours.
        IndexVersionError: a newer library wrote it.
    """
    if version is None:
        version = latest_version(location)
    if version < 0:
        return Snapshot(-1, Manifest.empty())
    name = f"commit {version}"
    try:
        body = unsealed("commit", location.read(commit_path(version), MAX_COMMIT))
        _check_format(body["format"], name)
        manifest, manifest_name = _manifest(location, body["manifest"])
        properties, notes = TableProperties.from_json(body["properties"])
    except IndexVersionError:
        raise
    except READING as error:
        raise CorruptIndexError(f"{name} cannot be read: {reason(error)}") from error
    return Snapshot(version, manifest, properties, manifest_name, notes=notes)


def _check_format(number: Any, name: str) -> None:
    if whole(number) > FORMAT:
        raise IndexVersionError(
            f"{name} has format {number}, newer than ours ({FORMAT})"
        )


def _manifest(location: Location, entry: Any) -> tuple[Manifest, str]:
    """The manifest that a commit names, and the name of its file."""
    name = entry["name"]
    if not is_manifest_name(name):
        raise CorruptIndexError(f"{name!r} is no name of a manifest")
    data = location.read(f"{MANIFESTS}/{name}", MAX_MANIFEST)
    if crc32c(data) != entry["crc32c"]:
        raise CorruptIndexError("its manifest fails its crc32c")
    return Manifest.from_bytes(data), name


def newest_snapshot(location: Location) -> Snapshot:
    """The newest commit that is whole; the empty snapshot if none is.

    Where newer ones are damaged, ``notes`` says so: every file that they knew and
    this one does not is read, and what it says of files that have changed since
    counts for nothing.

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
                found = _read_or_try_again(location, version)
            except IndexVersionError:
                raise
            except CorruptIndexError as error:
                problems.append(str(error))
                refused |= _is_refused(error)
            else:
                break
        else:
            found = Snapshot(-1, Manifest.empty())
        if not problems:
            return found
        if latest_version(location) == newest:  # else it was superseded and deleted
            break
    notes = [f"indexes ignored: {problem}" for problem in problems[:1]]
    if found.version >= 0:
        notes = [f"commit {found.version} is used instead: {problems[0]}"]
    notes += found.notes
    return replace(found, damaged=newest, notes=tuple(notes), refused=refused)


def newest_for_writer(location: Location) -> Snapshot:
    """The newest commit that is whole, for a caller that commits or deletes after it.

    Raises:
        IndexVersionError: a newer library wrote the newest one that can be read.
        StorageError: a newer one may be whole, but the file system refuses to read
            it, perhaps only now: the rows that it names could be lost.
    """
    found = newest_snapshot(location)
    if found.refused:
        raise StorageError(
            f"cannot read {location.full(commit_path(found.newest))!r}, so nothing was "
            f"changed: {found.notes[0]}"
        )
    return found


def _read_or_try_again(location: Location, version: int) -> Snapshot:
    try:
        return read_snapshot(location, version)
    except CorruptIndexError as error:
        if not _is_refused(error):
            raise
    return read_snapshot(location, version)


def _is_refused(error: CorruptIndexError) -> bool:
    """True if the file system refused to read the bytes, which may be whole."""
    cause = error.__cause__
    return (
        isinstance(cause, OSError)
        and cause.errno is not None
        and cause.errno not in _IS_NO_FILE
    )


def commit(location: Location, change: Change, *, operation: str) -> Snapshot:
    """Apply ``change`` to the newest snapshot and commit the result.

    Two writers: one of them finds its number taken, applies its change to what
    the other committed, and tries again.  Nothing of either is lost.  A newest
    commit that is damaged is passed over with a warning: the change is applied to
    the newest one that is whole, and its properties and indexes stay.

    Raises:
        CommitConflictError: others were faster, 50 times in a row.
        IndexVersionError: a newer library wrote the newest commit.
        StorageError: the file system refuses to read the newest commit, or to write.
        TableError: the log has no more numbers.
    """
    for attempt in range(_TRIES):
        base = newest_for_writer(location)
        version = base.newest + 1
        if not attempt:
            warn_of_damage(base)
        if version >= MAX_VERSION:
            raise TableError(f"{location.full(commit_path(base.newest))!r} is the last")
        manifest, properties = change(base)
        data = manifest.to_bytes()
        name = hashlib.sha256(data).hexdigest()[:32] + ".arrow"
        location.write(f"{MANIFESTS}/{name}", data)
        body = {
            "format": FORMAT,
            "operation": operation,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "manifest": {"name": name, "size": len(data), "crc32c": crc32c(data)},
            "properties": properties.to_json(),
        }
        if location.write_new(commit_path(version), sealed("commit", body)):
            return Snapshot(version, manifest, properties, name)
        time.sleep(random.uniform(0, 0.02 * min(attempt + 1, 10)))
    raise CommitConflictError(
        f"{operation}: other writers committed first {_TRIES} times at "
        f"{location.full(LOG)!r}; try again when they are done"
    )


def warn_of_damage(snapshot: Snapshot) -> None:
    """Warn if newer commits than this one are damaged."""
    if snapshot.damaged is not None:
        warnings.warn(
            f"commit {snapshot.damaged} of the table is damaged: {snapshot.notes[0]}",
            stacklevel=3,
        )
