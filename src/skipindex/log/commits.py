"""The commit log: numbered JSON files, each created only if absent.

::

    _skipindex/log/00000000000000000007.json    one commit
    _skipindex/manifests/<hash>.arrow           the segments of the manifest it names
    _skipindex/packs/<hash>.puffin              the packs that the manifest names

A commit file is ``{"commit": {…}, "crc32c": n}``, where the number is the crc32c
of the commit as compact JSON with sorted keys.  The commit names the segments of its
manifest by name, size and crc32c.  Segments and packs are written first and never
changed, so a reader sees a commit whole or not at all.  A commit writes its new
rows, and names the segments of the commit before for the rest.

A segment that is damaged takes the indexes of its own files with it, and no others.

A commit has a nonce, and that of the commit before as its parent.  By the one a writer
finds its own commit where the answer of the file system was lost, by the other that a
commit of a number that had been deleted is none.
"""

from __future__ import annotations

import contextlib
import errno
import random
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final

from skipindex.errors import (
    CommitConflictError,
    CorruptIndexError,
    IndexVersionError,
    StorageError,
    TableError,
)
from skipindex.log.manifest import Manifest
from skipindex.log.narrow import narrowed, shared
from skipindex.log.properties import NO_PROPERTIES, TableProperties
from skipindex.log.segments import (
    Loaded,
    Lost,
    Segment,
    check_segments,
    load,
    nothing,
    write_changed,
)
from skipindex.storage.checks import (
    MAX_COMMIT,
    RefusedError,
    checked_int,
    checking,
    fetched,
    reason,
    require,
    sealed,
    unsealed,
)
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import (
    FOLDER,
    LOG,
    MAX_VERSION,
    commit_path,
    version_of,
)
from skipindex.storage.file_system.sidecar import uri_of

FORMAT: Final = 2
_REFUSED: Final = (
    "which version 0.1.0 wrote and this version does not read: vacuum the table twice "
    "with version 0.1.0 and retention=timedelta(0), so that visible files have all "
    f"rows, then delete {FOLDER} and build the indexes again"
)
"""What to do with a table of format 1, if rows may be in its hidden files alone."""
_NOT_READ: Final = (
    "which version 0.1.0 wrote: its indexes are not used (accepted: refresh_indexes, "
    "or skipindex refresh, which build them again)"
)
"""What to do with one that was indexed, and never rewritten."""
KNOWN: Final[frozenset[str]] = frozenset()
"""What a commit may need of its readers and writers besides the format."""
_ANOTHER: Final = frozenset({errno.EFBIG, errno.EISDIR, errno.ENXIO})
"""Errors if something else than the expected file is there: larger, or no file."""
_TRIES: Final = 50
"""Times that a commit is tried while others take its number."""
_LOOKS_BACK: Final = 16
"""How many damaged commits are passed over in search of a whole one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit of a table: its files and their indexes.

    Args:
        version: the number of the commit; -1 before the first one.
        manifest: the data files with their statistics.
        properties: the properties of the table.
        segments: the files of the manifest; it has their live rows, in order.
        lost: segments that cannot be read; their files have no index.
        damaged: the number of the newest commit, if this is an older one because
            those after it cannot be read.
        notes: ignored parts of the log, with the reason.
        refused: whether the file system refuses to read a newer commit.
        nonce: an identifier that no other commit has; empty before the first one.
        needs: features that readers and writers of the table must support.
        unknown: why this version of skipindex cannot read the newest commit, which
            another one wrote; empty if it can.
    """

    version: int
    manifest: Manifest
    properties: TableProperties = NO_PROPERTIES
    segments: tuple[Segment, ...] = ()
    lost: tuple[Lost, ...] = ()
    damaged: int | None = None
    notes: tuple[str, ...] = ()
    refused: bool = False
    nonce: str = ""
    needs: tuple[str, ...] = ()
    unknown: str = ""

    def require_known(self) -> None:
        """Raise ``IndexVersionError`` if only another version reads the commit."""
        if self.unknown:
            raise IndexVersionError(self.unknown)

    @property
    def newest(self) -> int:
        """The number of the newest commit, whole or damaged."""
        return self.version if self.damaged is None else self.damaged

    @property
    def loaded(self) -> Loaded:
        """What another commit need not read again."""
        n_rows = sum(segment.n_live for segment in self.segments)
        same = n_rows == len(self.manifest)
        return Loaded(self.manifest, self.segments) if same else nothing()

    def compact(self) -> Snapshot:
        """The same, in as few bytes of memory as one that was read."""
        return replace(self, manifest=shared(narrowed(self.manifest)))

    @property
    def is_exclusive(self) -> bool:
        """Whether it names all files of the table, as far as skipindex knows.

        Not if a part of it cannot be read, or if a newer commit is damaged.
        """
        mark = (self.properties.exclusive or {}).get("commit")
        return mark == self.version == self.newest and not self.lost


@cache
def no_snapshot() -> Snapshot:
    """The snapshot of a table without a commit."""
    return Snapshot(-1, Manifest.empty())


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One entry of the table's history.

    Args:
        version: the number of the commit.
        time: when it was written, by the writer's clock, in UTC; empty if not known.
        operation: the operation that wrote it, such as ``build``; empty if not known.
        files: the number of data files that it has; None if not known.
        note: why it cannot be read; empty if it can.
    """

    version: int
    time: str
    operation: str
    files: int | None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


Change = Callable[[Snapshot], tuple[Manifest, TableProperties]]
"""From the newest snapshot to the content of the next; called again on a conflict."""


def latest_version(location: Location) -> int:
    """The number of the newest commit, or -1, whatever has the name of its file."""
    return max(_versions(location), default=-1)


def _versions(location: Location) -> set[int]:
    result = map(version_of, location.names(LOG))
    return {version for version in result if version is not None}


def read_snapshot(
    location: Location, version: int | None = None, *, known: Snapshot | None = None
) -> Snapshot:
    """The snapshot of one commit, by default the newest; empty before the first.

    A commit says which rows count, so it is used also if all of its segments are lost.
    Segments of ``known``, another snapshot, are not read again.

    Raises:
        CorruptIndexError: the commit is missing, fails its crc32c, or has another form.
        RefusedError: it cannot be read now, and may be whole.
        IndexVersionError: another version wrote it, which this one does not read.
        TableError: it is of another table.
    """
    if version is None:
        version = latest_version(location)
    if version < 0:
        return Snapshot(-1, Manifest.empty())
    with _reading(version):
        body = _body(location, version)
        segments, of = check_segments(body["segments"]), body["properties"]
        if body["format"] < FORMAT:  # it knows of indexes alone, which are built again
            segments = ()
            of = {name: of[name] for name in ("indexes",) if name in of}
        result = load(location, segments, known.loaded if known else nothing())
        errors = [one.error for one in result.lost]
        properties, notes = TableProperties.from_json(of)
        if body["format"] < FORMAT:
            notes += (f"commit {version} has format {body['format']}, {_NOT_READ}",)
    _require_own(location, properties)
    return Snapshot(
        version,
        result.manifest,
        properties,
        result.segments,
        result.lost,
        notes=(*map(str, result.lost), *notes),
        refused=any(map(_is_refused, errors)),
        nonce=body["nonce"],
        needs=tuple(body["needs"]),
    )


def _require_own(location: Location, properties: TableProperties) -> None:
    """Refuse a log in a sidecar that is of another table, or of one that has moved."""
    if location.sidecar is None:
        return
    uri, result = uri_of(location), (properties.sidecar or {}).get("of")
    if result != uri or properties.rewrites is not None:
        raise TableError(
            f"the indexes in {location.full(FOLDER)!r} are of "
            f"{result or 'a table with indexes beside its data'}, not of {uri} "
            "(accepted: the folder that they were built for, or delete them and build "
            "again)"
        )


def segments_of(location: Location, version: int) -> tuple[Segment, ...]:
    """The segments that a commit names, which may be missing or damaged."""
    with _reading(version):
        return check_segments(_body(location, version)["segments"])


def history(location: Location) -> list[CommitInfo]:
    """What the commits say of themselves, the newest first; none is changed."""
    result = []
    for version in sorted(_versions(location), reverse=True):
        try:
            with _reading(version):
                body = _body(location, version)
                files = sum(one.n_live for one in check_segments(body["segments"]))
                operation, when = map(_text, (body["operation"], body["time"]))
        except CorruptIndexError as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            if not missing:  # else a vacuum has deleted it meanwhile
                result.append(CommitInfo(version, "", "", None, str(error)))
        else:
            result.append(CommitInfo(version, when, operation, files))
    return result


@contextlib.contextmanager
def _reading(version: int) -> Iterator[None]:
    """Errors with the number of the commit that is read."""
    try:
        with checking("it is not a commit"):
            yield
    except IndexVersionError:
        raise
    except CorruptIndexError as error:
        told = f"commit {version} cannot be read: {reason(error)}"
        raise type(error)(told) from error.__cause__ or error


def _body(location: Location, version: int) -> dict[str, Any]:
    body = unsealed("commit", fetched(location, commit_path(version), MAX_COMMIT))
    written = checked_int(body["format"])
    if written != FORMAT and not (written < FORMAT and _is_all_visible(body)):
        newer = f"newer than ours ({FORMAT}), so upgrade skipindex"
        how = newer if written > FORMAT else _REFUSED
        raise IndexVersionError(f"commit {version} has format {written}, {how}")
    _text(body["nonce"])
    if unknown := sorted({_text(name) for name in body["needs"]} - KNOWN):
        raise IndexVersionError(
            f"commit {version} needs {unknown[0]!r}, which this version of skipindex "
            f"does not know (known: {', '.join(sorted(KNOWN)) or 'nothing'}), so "
            "upgrade it"
        )
    return body


def _is_all_visible(body: dict[str, Any]) -> bool:
    """Whether a commit of an older format knows of no hidden or replaced file."""
    of = body["properties"]
    rewrites = of.get("rewrites", {}) if isinstance(of, dict) else None
    return isinstance(rewrites, dict) and not any(rewrites.values())


def _text(value: Any) -> str:
    require(isinstance(value, str), "a name is not text")
    return str(value)


def newest_snapshot(location: Location, *, known: Snapshot | None = None) -> Snapshot:
    """The newest commit that is whole; the empty snapshot if none is.

    Where newer ones are damaged, ``notes`` says so: every file that they knew and
    this one does not is read, and what it says of files that have changed since
    counts for nothing.  Where segments are damaged, ``lost`` has them, and their files
    are read.  Segments of ``known``, an earlier snapshot, are not read again.

    Raises:
        IndexVersionError: another version wrote the newest one that can be read.
    """
    while True:
        versions = _versions(location)
        newest = max(versions, default=-1)
        problems = []
        refused = False
        for version in sorted(versions, reverse=True)[:_LOOKS_BACK]:
            try:
                result = _read_or_try_again(location, version, known)
            except IndexVersionError:
                raise
            except CorruptIndexError as error:
                problems.append(str(error))
                refused |= _is_refused(error) or _may_come(location, version, error)
            else:
                break
        else:
            result = Snapshot(-1, Manifest.empty())
        if not (problems or result.lost):
            return result
        if latest_version(location) == newest:  # else it was superseded and deleted
            break
    if not problems:
        return result
    notes = [f"indexes ignored: {problem}" for problem in problems[:1]]
    if result.version >= 0:
        notes = [f"commit {result.version} is used instead: {problems[0]}"]
    notes += result.notes
    refused |= result.refused
    return replace(result, damaged=newest, notes=tuple(notes), refused=refused)


def newest_for_writer(location: Location, *, known: Snapshot | None = None) -> Snapshot:
    """The newest commit that is whole, for a caller that commits or deletes after it.

    Segments of ``known``, an earlier snapshot, are not read again.

    Raises:
        IndexVersionError: another version wrote the newest one that can be read.
        StorageError: a newer one may be whole, but the file system refuses to read
            it, perhaps only now: the rows that it names could be lost.
    """
    result = newest_snapshot(location, known=known)
    if result.refused:
        raise StorageError(
            f"cannot read {location.full(commit_path(result.newest))!r}, so nothing "
            f"was changed: {result.notes[0]}"
        )
    return result


def _read_or_try_again(
    location: Location, version: int, known: Snapshot | None
) -> Snapshot:
    try:
        result = read_snapshot(location, version, known=known)
    except CorruptIndexError as error:
        if not (_is_refused(error) or _may_come(location, version, error)):
            raise
    else:
        if not result.refused:
            return result
    return read_snapshot(location, version, known=known)


def _may_come(location: Location, version: int, error: CorruptIndexError) -> bool:
    """Whether a commit that is listed is not found, and nothing else has its name."""
    cause = error.__cause__
    while isinstance(cause, CorruptIndexError):
        cause = cause.__cause__
    # The listing of a shared or networked file system, and of some stores, may be newer
    # than what a reader gets.
    missing = isinstance(cause, FileNotFoundError) or (
        isinstance(cause, OSError) and cause.errno == errno.EINVAL
    )
    return missing and not location.is_other(commit_path(version))


def _is_refused(error: CorruptIndexError) -> bool:
    """Whether the bytes may be whole, though they cannot be read or checked now."""
    return isinstance(error, RefusedError)


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
    the other committed, and tries again.  Nothing of either is lost.  So does a writer
    who was so slow that its number had been taken and deleted; it may apply its change
    twice if it was committed and so slow afterwards.  A newest
    commit that is damaged is passed over with a warning: the change is applied to
    the newest one that is whole, and its properties and indexes stay.

    Segments of ``known``, an earlier snapshot, are not read again.  If ``forget``, what
    the next snapshot does not say stands in none of its segments.

    Raises:
        IndexVersionError: another version wrote the newest commit.
        StorageError: the file system refuses to read the newest commit, or to write.
    """
    for attempt in range(_TRIES):
        base = newest_for_writer(location, known=known)
        known, version = base, base.newest + 1
        if not attempt:
            warn_of_damage(base)
        if version >= MAX_VERSION:
            raise TableError(f"{location.full(commit_path(base.newest))!r} is the last")
        manifest, properties = change(base)
        of = None if location.sidecar is None else {"of": uri_of(location)}
        properties = replace(properties, sidecar=of)
        with _refusing(location, operation):
            stored = write_changed(location, base.loaded, manifest, forget=forget)
        nonce = uuid.uuid4().hex
        body = {
            "format": FORMAT,
            "nonce": nonce,
            "parent": base.nonce if base.damaged is None else "",
            "needs": list(base.needs),
            "operation": operation,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "segments": [segment.to_json() for segment in stored.segments],
            "properties": properties.to_json(),
        }
        data = sealed("commit", body)
        with _refusing(location, operation):
            _require_readable(data)
        made = _created(location, commit_path(version), data)
        if made and _counts(location, version, nonce):
            return Snapshot(
                version,
                stored.manifest,
                properties,
                stored.segments,
                nonce=nonce,
                needs=base.needs,
            )
        time.sleep(random.uniform(0, 0.02 * min(attempt + 1, 10)))
    raise CommitConflictError(
        f"{operation}: other writers committed first {_TRIES} times at "
        f"{location.full(LOG)!r}; try again when they are done"
    )


def _require_readable(data: bytes) -> None:
    """Check a commit that is to be written as its readers do."""
    size = f"the commit would have {len(data)} bytes (at most {MAX_COMMIT})"
    require(len(data) <= MAX_COMMIT, size)
    body = unsealed("commit", data)
    check_segments(body["segments"])
    _, notes = TableProperties.from_json(body["properties"])
    require(not notes, "; ".join(notes))


@contextlib.contextmanager
def _refusing(location: Location, operation: str) -> Iterator[None]:
    """What no reader takes is not written."""
    try:
        yield
    except CorruptIndexError as error:
        raise TableError(
            f"{operation}: nothing was committed to {location.full('')!r}, because "
            f"readers would refuse it: {reason(error)} (accepted: fewer files or "
            "columns in one change)"
        ) from error


def _created(location: Location, path: str, data: bytes) -> bool:
    """Write a commit unless its number is taken; False if it is, by another commit."""
    # The answer to the request that wrote it may be lost, so bytes that are there are
    # compared: the nonce makes them those of this writer alone.
    try:
        return location.write_new(path, data) or _holds(location, path, data)
    except OSError:
        if _holds(location, path, data):
            return True
        raise


def _holds(location: Location, path: str, data: bytes) -> bool:
    """Whether a file has these bytes."""
    try:
        return location.read(path, len(data)) == data
    except FileNotFoundError:
        return False
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _ANOTHER:
            return False
        raise StorageError(
            f"cannot determine who wrote {location.full(path)!r}: {reason(error)}"
        ) from error


def _counts(location: Location, version: int, nonce: str) -> bool:
    """Whether a commit that was created now is one of the table."""
    # Others may have committed under its number, and expiry deleted that.  The newest
    # is never deleted, so then it is another, and the next, if any, has another parent.
    versions = _versions(location)
    if max(versions, default=-1) <= version:
        return True
    if version + 1 not in versions:
        return False
    try:
        with checking("it is not a commit"):
            return bool(_body(location, version + 1).get("parent") == nonce)
    except IndexVersionError:
        raise
    except RefusedError as error:
        raise StorageError(
            f"cannot determine whether {location.full(commit_path(version))!r} is a "
            f"commit of the table: the next one cannot be read: {reason(error)}"
        ) from error
    except CorruptIndexError:
        return False


def warn_of_damage(snapshot: Snapshot) -> None:
    """Warn if newer commits than this one, or segments of it, cannot be used."""
    if snapshot.damaged is not None or snapshot.lost:
        how = "cannot be read now" if snapshot.refused else "is damaged"
        warnings.warn(
            f"commit {snapshot.newest} of the table {how}: {snapshot.notes[0]}",
            stacklevel=3,
        )
