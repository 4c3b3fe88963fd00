"""A folder of an object store, through obstore.

An object has an ETag, which says whether its content is another one, and is written
whole or not at all.  There are no folders: what is below ``a/`` has a key that begins
so.  Requests that fail are repeated with a growing pause, by obstore.
"""

from __future__ import annotations

import contextlib
import errno
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from skipindex.errors import StorageError, first_line
from skipindex.storage.file_system.byte_source import (
    Files,
    too_large,
    too_short,
)
from skipindex.storage.file_system.file_info import FileInfo, mark_of
from skipindex.storage.file_system.names import FOLDER, is_shown, temporary_name
from skipindex.storage.file_system.store_input import StoreSource, as_file

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_PAGE: Final = 1000
"""Objects of a listing that come at once, as from the stores themselves."""
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_WRITER: Final = "skipindexwriter"
"""The metadata of an object that say who wrote it; Azure takes letters alone."""
MAX_COPY: Final = 5 << 30
"""Bytes of the largest object that S3 copies by one request."""
_SMALL: Final = 8 << 20
"""Bytes that are written by one request."""


@dataclass(frozen=True)
class StoreFiles(Files):
    """One folder of a bucket.

    ``prefix`` has no slash at the end; empty, it is the whole bucket.  No message shows
    ``secrets``.  A store that is not known to be ``conditional``, so that it writes an
    object only if absent, is tried out before the first commit.
    """

    store: ObjectStore
    bucket: str
    prefix: str
    secrets: tuple[str, ...] = ()
    conditional: bool = True

    def _key(self, path: str) -> str:
        return f"{self.prefix}/{path}".strip("/")

    def below(self, folder: str, *, links: bool = True) -> Iterator[FileInfo]:  # noqa: ARG002
        """All objects below a folder, but for marks of folders."""
        result = list(self._objects(folder))
        parents = {path.rpartition("/")[0] for path, _ in result}
        for path, meta in result:
            if meta["size"] or not _is_mark(path, parents):
                yield _info(path, meta)

    def folders(self) -> Iterator[FileInfo]:
        """All folders that something lies in; their time means nothing."""
        seen: set[str] = set()
        for path, _ in self._objects(""):
            folder = path.rpartition("/")[0]
            while folder and folder not in seen:
                seen.add(folder)
                yield FileInfo(folder, 0, 0)
                folder = folder.rpartition("/")[0]

    def _objects(self, folder: str) -> Iterator[tuple[str, Any]]:
        """What lies below a folder by its relative path."""
        import obstore  # noqa: PLC0415 (of the extra "stores")

        start = len(self.prefix) + 1 if self.prefix else 0
        with self._errors(folder):
            pages = obstore.list(
                self.store, self._key(folder) or None, chunk_size=_PAGE
            )
            for page in pages:
                for meta in page:
                    yield meta["path"][start:], meta

    def entries(self, folder: str) -> Iterator[FileInfo]:
        result = self._in_folder(folder)
        start = len(self.prefix) + 1 if self.prefix else 0
        folders = [path.rstrip("/")[start:] for path in result["common_prefixes"]]
        for path in folders:
            yield FileInfo(f"{path}/", 0, 0)
        parents = set(folders)
        for meta in result["objects"]:
            path = meta["path"][start:]
            if meta["size"] or not _is_mark(path, parents):
                yield _info(path, meta)

    def names(self, folder: str) -> Sequence[str]:
        result = self._in_folder(folder)
        objects = (meta["path"] for meta in result["objects"])
        paths = [*objects, *result["common_prefixes"]]
        return [path.rstrip("/").rpartition("/")[2] for path in paths]

    def _in_folder(self, folder: str) -> Any:
        import obstore  # noqa: PLC0415

        with self._errors(folder):
            return obstore.list_with_delimiter(self.store, self._key(folder) or None)

    def stat(self, path: str) -> FileInfo | None:
        import obstore  # noqa: PLC0415

        if not self._key(path):
            return None
        try:
            with self._errors(path):
                return _info(path, obstore.head(self.store, self._key(path)))
        except FileNotFoundError:
            return None

    def holds(self, full: str) -> bool:
        """Whether anything has this key, or one below it, in its bucket."""
        import obstore  # noqa: PLC0415

        bucket, _, key = full.partition("/")
        if bucket != self.bucket:
            return False
        with self._errors(full):
            pages = obstore.list(self.store, key or None, chunk_size=1)
            if next(iter(pages), None):
                return True
        return bool(key) and StoreFiles(self.store, bucket, "").stat(key) is not None

    def open_input(self, path: str, known: FileInfo | None = None) -> pa.NativeFile:
        """The object, for random access.

        With ``known``, from a listing, every read is of that content.
        """
        result = known or self.stat(path)
        if result is None:
            raise _not_found(self.bucket, self._key(path))
        return as_file(self.view(path, result))

    def view(self, path: str, known: FileInfo | None = None) -> StoreSource:
        """The object as a source of byte ranges; the first read says if it is there."""
        return StoreSource(
            self.store,
            self._key(path),
            lambda: self._errors(path),
            None if known is None else known.size,
            None if known is None else known.tag,
        )

    def read(self, path: str, limit: int) -> bytes:
        import obstore  # noqa: PLC0415

        with self._errors(path):
            result = obstore.get(self.store, self._key(path))
            size = result.meta["size"]
            if size > limit:
                raise too_large(path, size, limit)
            data = bytes(result.bytes())
            if len(data) < size:
                raise too_short(path, len(data), size)
            return data

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write an object; one that is there is replaced."""
        import obstore  # noqa: PLC0415

        with self._errors(path):
            whole = len(data) <= _SMALL
            parts = None if whole else False
            obstore.put(self.store, self._key(path), bytes(data), use_multipart=parts)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write an object unless there is one already; False if there is.

        The store decides, by one conditional request.  If it cannot, a lock decides
        that the user supplies.
        """
        lock = commit_lock()
        try:
            self._require_conditions()
            return self._create(path, data)
        except _NoConditionsError:
            if lock is None:
                raise
        with lock.held(f"{self.bucket}/{self._key(path)}"):
            return self._create_alone(path, data)

    def _create_alone(self, path: str, data: bytes) -> bool:
        """``write_new`` while no other writer does it."""
        import obstore  # noqa: PLC0415

        with self._errors(path):
            try:
                obstore.head(self.store, self._key(path))
            except FileNotFoundError:
                obstore.put(self.store, self._key(path), data, use_multipart=False)
                return True
            return False

    def _create(self, path: str, data: bytes) -> bool:
        import obstore  # noqa: PLC0415
        from obstore.exceptions import (  # noqa: PLC0415
            AlreadyExistsError,
            NotSupportedError,
            PreconditionError,
        )

        mine, key = uuid.uuid4().hex, self._key(path)
        with self._errors(path):
            try:
                obstore.put(
                    self.store, key, data, mode="create", attributes={_WRITER: mine}
                )
            except (AlreadyExistsError, PreconditionError):
                # An answer may be lost, and the request repeated by obstore.
                try:
                    there = obstore.get(self.store, key, options={"head": True})
                except FileNotFoundError:
                    return False
                return there.attributes.get(_WRITER) == mine
            except (NotImplementedError, NotSupportedError) as error:
                raise self._no_conditions() from error
            return True

    def _require_conditions(self) -> None:
        if self.conditional or self.store in _TRIED:
            return
        probe = f"{FOLDER}/{temporary_name()}"
        try:
            if not self._create(probe, b"1") or self._create(probe, b"2"):
                raise self._no_conditions()
        finally:
            with contextlib.suppress(OSError):
                self.delete(probe)
        _TRIED.append(self.store)

    def _no_conditions(self) -> StorageError:
        return _NoConditionsError(
            f"cannot commit to {self.bucket}/{self.prefix!r}: this store does not "
            "write an object only if absent (If-None-Match), so a commit could replace "
            "another commit (accepted: AWS S3, GCS, Azure, and others that do, or a "
            "lock of yours: skipindex.api.set_commit_lock)"
        )

    def delete(self, path: str) -> None:
        import obstore  # noqa: PLC0415

        with self._errors(path):
            obstore.delete(self.store, self._key(path))

    def move(self, path: str, target: str) -> None:
        """Copy an object to another key, and delete it."""
        self.copy(path, target)
        self.delete(path)

    def copy(self, path: str, target: str) -> bool:
        """Copy an object within the store; one that is there is replaced."""
        import obstore  # noqa: PLC0415

        try:
            with self._errors(path):
                obstore.copy(self.store, self._key(path), self._key(target))
        except FileNotFoundError:
            raise
        except OSError as error:
            result = self.stat(path)
            if result is None or result.size <= MAX_COPY:
                raise
            raise StorageError(
                f"cannot copy {self.bucket}/{self._key(path)!r}: it has {result.size} "
                f"bytes, and S3 copies at most {MAX_COPY} by one request (accepted: "
                "smaller files, by rows_per_file or bytes_per_file)"
            ) from error
        return True

    def delete_tree(self, folder: str) -> None:
        import obstore  # noqa: PLC0415

        with self._errors(folder):
            keys = [self._key(path) for path, _ in self._objects(folder)]
            if keys:
                obstore.delete(self.store, keys)

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        """Errors of obstore as those of the system, in one line without secrets."""
        from obstore.exceptions import (  # noqa: PLC0415
            BaseError,
            PermissionDeniedError,
            UnauthenticatedError,
        )

        try:
            yield
        except FileNotFoundError:
            raise _not_found(self.bucket, self._key(path)) from None
        except (BaseError, ValueError) as error:
            refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
            reason = first_line(error)
            for secret in self.secrets:
                reason = reason.replace(secret, "***")
            raise OSError(
                errno.EACCES if refused else errno.EIO,
                reason[:300],
                f"{self.bucket}/{self._key(path)}",
            ) from None


class _NoConditionsError(StorageError):
    """The store does not write an object only if absent."""


_TRIED: Final[list[Any]] = []
"""Stores of this process that write an object only if absent, as was tried out."""


def _not_found(bucket: str, key: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "No such object", f"{bucket}/{key}")


def _info(path: str, meta: Any) -> FileInfo:
    mtime = mark_of((meta["last_modified"] - _EPOCH) // _MICROSECOND * 1000)
    return FileInfo(path, meta["size"], mtime, strong_tag(meta["e_tag"]))


def strong_tag(tag: str | None) -> str | None:
    """An ETag without its quotes; None for a weak one, which two contents may have."""
    if tag is None or tag.startswith("W/"):
        return None
    return tag.strip('"') or None


def _is_mark(path: str, parents: set[str]) -> bool:
    """Whether an empty object stands for a folder: its key ended in a slash."""
    name = path.rpartition("/")[2]
    return path in parents or "=" in name or ("." not in name and is_shown(name))


class CommitLock(Protocol):
    """Mutual exclusion of all writers of a table, on all machines.

    >>> from contextlib import nullcontext
    >>> class OneWriter:
    ...     "For a table that one process alone writes to."
    ...     def held(self, name):
    ...         return nullcontext()
    """

    def held(self, name: str, /) -> AbstractContextManager[object]:
        """A block in which no other writer is in a block of the same name.

        Args:
            name: what is about to be written: bucket and key, or a local path.
        """


_USED: list[CommitLock] = []


def set_commit_lock(lock: CommitLock | None) -> None:
    """Let commits of this process hold ``lock`` where a store has no conditions.

    No commit is lost as long as every writer of the table uses the same lock, the lock
    lets one of them in at a time, and no writer is still in its block when the lock is
    given to another.  A lease that ends while its holder is stopped breaks that: the
    holder goes on, and replaces the commit of the next one.  So a lease must outlast
    every pause of a writer, or better: use a store with conditional requests.

    Stores that create objects only if absent (S3, GCS, Azure) do not use the lock, nor
    do local folders that have hard links or a rename that replaces nothing.

    Args:
        lock: has a method ``held``, as ``CommitLock`` tells; None takes it back.

    >>> from contextlib import nullcontext
    >>> from skipindex.api import set_commit_lock
    >>> class OneWriter:
    ...     "For a table that one process alone writes to."
    ...     def held(self, name):
    ...         return nullcontext()
    >>> set_commit_lock(OneWriter())
    >>> set_commit_lock(None)
    """
    _USED[:] = [] if lock is None else [lock]


def commit_lock() -> CommitLock | None:
    """The lock that is used."""
    return _USED[0] if _USED else None
