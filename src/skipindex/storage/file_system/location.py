"""One folder on one file system, and the operations on it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pyarrow as pa

from skipindex.errors import StorageError, TableError
from skipindex.storage.deadline import check, checked
from skipindex.storage.file_system.arrow_files import ArrowFiles
from skipindex.storage.file_system.byte_source import ByteSource, Files
from skipindex.storage.file_system.file_info import SECOND, FileInfo
from skipindex.storage.file_system.local import (
    LocalFiles,
    delete_aside,
    denied_by,
    deny,
    make_folder,
    settle_aside,
    sync_file,
    sync_folder,
)
from skipindex.storage.file_system.names import (
    FOLDER,
    MANIFESTS,
    PACKS,
    temporary_name,
)
from skipindex.storage.file_system.object_store import StoreFiles
from skipindex.storage.file_system.store_options import (
    checked_options,
    has_own_endpoint,
    opened_store,
    secrets_of,
)
from skipindex.storage.file_system.uris import (
    StorageOptions,
    arrow_root,
    store_place,
    without_secrets,
)
from skipindex.storage.file_system.walk import is_other, is_plain, link_on_the_way
from skipindex.storage.telling import listener

__all__ = ["FileInfo", "Location", "location_of", "without_secrets"]

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_GLOB = re.compile(r"[\\*?\[\]{}]")
_CHUNK = 1 << 20
"""Bytes that are compared at once."""
_MAY_BE_GONE = frozenset({"open", "move", "copy", "sync", "delete"})
"""What is done with files that others may delete meanwhile, which is no refusal."""
MAX_READ = 1 << 30
"""Bytes of a file that is read as a whole."""
_CLOCKS: Final = 60 * SECOND
"""Nanoseconds by which the clocks of two file systems may differ."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _by_path(method: _Method) -> _Method:
    """A method of the location that has the path, which is its first argument."""

    @wraps(method)
    def routed(self: Location, path: str = "", *more: Any, **named: Any) -> Any:
        return method(self.at(path), path, *more, **named)

    return cast("_Method", routed)


@dataclass(frozen=True, slots=True)
class Location:
    """A folder.  Cheap to pickle, so that workers open the same one.

    Args:
        root: the folder in its file system, without a slash at the end.
        uri: the folder as it was given, with nothing secret; empty for local paths.
        options: of an object store, by name.  They may be secret, so no text has them.
        sidecar: another folder, which has what this one would have in ``_skipindex``.
            Each call takes the path to the folder that has it, so no caller need know.
    """

    root: str
    uri: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    sidecar: Location | None = None

    def __repr__(self) -> str:
        return f"Location({without_secrets(self.uri) or self.root!r})"

    @property
    def is_local(self) -> bool:
        """Whether the operating system can open the files itself."""
        return not self.uri

    @property
    def _files(self) -> Files:
        if self.is_local:
            return LocalFiles(self.root)
        place = store_place(self.uri)
        if place is None:
            return ArrowFiles(self.uri, self.root)
        return StoreFiles(
            opened_store(place, self.options),
            place.bucket,
            self.root.partition("/")[2],
            secrets_of(self.options),
            place.kind != "s3" or not has_own_endpoint(place.kind, self.options),
        )

    def at(self, path: str) -> Location:
        """The location that has a path: the sidecar has ``_skipindex``."""
        is_own = f"{path}/".startswith(f"{FOLDER}/")
        return self.sidecar if self.sidecar is not None and is_own else self

    def full(self, path: str) -> str:
        """The path in the file system."""
        root = self.at(path).root
        return f"{root}/{path}" if path else root

    def spark_path(self, path: str = "") -> str:
        """The text that Spark's ``Path`` reads as exactly this file."""
        if self.is_local:
            return f"file:{self.full(path)}"
        base = without_secrets(self.uri).rstrip("/")
        return f"{base}/{path}" if path else base

    def plain_path(self, path: str) -> str:
        """The path on a local disk, else the URI, with the name as it is."""
        return self.full(path) if self.is_local else self.spark_path(path)

    def spark_pattern(self, path: str) -> str:
        """The text that ``spark.read`` takes for exactly this file.

        It reads names as patterns.  Its own option against that, ``__globPaths__``,
        reads all files again for every name that has a ``*``, ``?``, ``[`` or ``{``.
        """
        return _GLOB.sub(r"\\\g<0>", self.spark_path(path))

    @_by_path
    def list(self, folder: str = "") -> Iterator[FileInfo]:
        """All files below ``folder``, in no order; links to data are followed.

        Raises:
            StorageError: the file system refuses; then nothing is known of the rest.
        """
        with _storage_errors("list", self.full(folder)):
            yield from checked(self._files.below(folder, links=True))

    def list_own(self) -> Iterator[FileInfo]:
        """All files in this very folder, nothing through a link; or in its sidecar."""
        if self.sidecar is not None:
            yield from self.sidecar.list_own()
            return
        with _storage_errors("list", self.root):
            yield from self._files.below("", links=False)

    def list_folders(self) -> Iterator[FileInfo]:
        """All folders where ``list_own`` lists files; their size means nothing."""
        if self.sidecar is not None:
            yield from self.sidecar.list_folders()
            return
        with _storage_errors("list", self.root):
            yield from self._files.folders()

    @_by_path
    def entries(self, folder: str) -> Iterator[FileInfo]:
        """The files of a folder, and its folders, whose paths end with a slash.

        Raises:
            StorageError: the file system refuses; then nothing is known of the rest.
        """
        with _storage_errors("list", self.full(folder)):
            yield from checked(self._files.entries(folder))

    @_by_path
    def names(self, folder: str) -> Sequence[str]:
        """The names of all entries of a folder.

        Raises:
            StorageError: the file system refuses.
        """
        check()
        with _storage_errors("list", self.full(folder)):
            return self._files.names(folder)

    @_by_path
    def owns(self, path: str) -> bool:
        """Whether a file is there, in this very folder and not through a link.

        Raises:
            StorageError: the file system refuses.
        """
        if self.is_local:
            with _storage_errors("look at", self.full(path)):
                return is_plain(self.root, path)
        return self.stat(path) is not None

    @_by_path
    def is_other(self, path: str) -> bool:
        """Whether something else than a file is there: a folder or link, for example.

        Raises:
            StorageError: the file system refuses.
        """
        if not self.is_local:
            return False
        with _storage_errors("look at", self.full(path)):
            return is_other(self.full(path))

    @_by_path
    def link_on_the_way(self, folder: str) -> str:
        """The first part of a folder's path that is a link; empty if none is.

        Raises:
            StorageError: the file system refuses.
        """
        if not self.is_local:
            return ""
        with _storage_errors("look at", self.full(folder)):
            return link_on_the_way(self.root, folder)

    def is_same(self, path: str, other: str, *, is_copy: bool = False) -> bool:
        """Whether two files have the same content, or are one.

        They are read only if nothing else tells.  If it ``is_copy``, the file system
        has just made one of the other, so the size tells.

        Raises:
            StorageError: the file system refuses.
        """
        if self.is_local:
            with (
                contextlib.suppress(FileNotFoundError),
                _storage_errors("open", self.full(other)),
            ):
                if Path(self.full(path)).samefile(self.full(other)):
                    return True
        one, two = self.stat(path), self.stat(other)
        if one is None or two is None or one.size != two.size:
            return False
        if is_copy or (one.tag is not None and one.tag == two.tag):
            return True
        with self.open_input(path) as left, self.open_input(other) as right:
            while data := left.read(_CHUNK):
                if data != right.read(_CHUNK):
                    return False
        return True

    @_by_path
    def stat(self, path: str) -> FileInfo | None:
        """The file as it is now, or None if there is none.

        Raises:
            StorageError: the file system refuses, so there may be one.
        """
        check()
        with _storage_errors("look at", self.full(path)):
            return self._files.stat(path)

    def exists(self) -> bool:
        """Whether there is anything at the root."""
        return self.holds(self.root)

    def holds(self, full: str) -> bool:
        """Whether anything is at a full path of the file system.

        Raises:
            StorageError: the file system refuses.
        """
        check()
        with _storage_errors("look at", full):
            return self._files.holds(full)

    def now(self) -> int:
        """The modification time that a file of ours gets which is written now.

        So it counts in the ticks of the file system's own clock.  A hidden file is
        written to learn it, and deleted.

        Raises:
            StorageError: the file system refuses.
        """
        probe = f"{FOLDER}/{temporary_name()}"
        self.write(probe, b"")
        try:
            written = self.stat(probe)
        finally:
            self.delete(probe)
        return -1 if written is None else written.mtime

    def past(self) -> int:
        """A time before that of every data file that is written from now on.

        It is ``now``, or a minute earlier if a sidecar is on another file system, which
        has another clock.
        """
        now, places = self.now(), {self, self.at(FOLDER)}
        clocks: set[object] = {*places}
        if all(place.is_local for place in places):
            clocks = {Path(place.root).stat().st_dev for place in places}
        return now - (len(clocks) - 1) * _CLOCKS

    @_by_path
    def open_input(self, path: str, known: FileInfo | None = None) -> pa.NativeFile:
        """The file, for random access.

        If ``known`` has a tag, every read is of that content, or an error.

        Raises:
            FileNotFoundError: there is none.
            StorageError: the file system refuses.
        """
        check()
        with _storage_errors("open", self.full(path)):
            return self._files.open_input(path, known)

    @_by_path
    def read(self, path: str, limit: int = MAX_READ) -> bytes:
        """The whole file.

        Raises:
            OSError: there is none, or it is larger than ``limit`` bytes.
        """
        check()
        return self._files.read(path, limit)

    @_by_path
    def view(self, path: str) -> ByteSource:
        """The file as a source of byte ranges.

        Raises:
            FileNotFoundError: there is none.
            StorageError: the file system refuses.
        """
        with _storage_errors("open", self.full(path)):
            return self._files.view(path)

    @_by_path
    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file that is invisible until it is whole and on the disk.

        Raises:
            StorageError: the file system refuses.
        """
        with _storage_errors("write", self.full(path)):
            tell = listener()
            is_index = path.startswith((PACKS, MANIFESTS))
            if tell is not None and is_index and self._files.stat(path) is None:
                tell(path)
            self._files.write(path, data)

    @_by_path
    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already; False if there is.

        Atomic, and the file is on the disk afterwards; no reader sees it before it is
        whole.  An object store decides by one conditional request.

        Raises:
            StorageError: the file system refuses, or cannot do that.
        """
        with _storage_errors("write", self.full(path)):
            return self._files.write_new(path, data)

    @_by_path
    def delete(self, path: str) -> None:
        """Delete a file; it may be gone already.

        Raises:
            StorageError: the file system refuses.
        """
        with (
            contextlib.suppress(FileNotFoundError),
            _storage_errors("delete", self.full(path)),
        ):
            self._files.delete(path)

    def delete_own(self, file: FileInfo) -> bool:
        """Delete a file of this very folder that is still as it was listed.

        Another writer may have written another one, or the same one again, under its
        name; then it stays.  A local file is put aside and looked at before it is
        deleted, so one that is written meanwhile stays too.  No store deletes on a
        condition, so there the look and the request come one after the other.

        Returns:
            Whether it was deleted.

        Raises:
            StorageError: the file system refuses.
        """
        if (place := self.at(file.path)) is not self:
            return place.delete_own(file)
        if self.is_local and not self.owns(file.path):
            return False
        result = self.stat(file.path)
        if result is None or not (file.is_same(result) or _is_listed(file, result)):
            return False
        if self.is_local:
            with _storage_errors("delete", self.full(file.path)):
                return delete_aside(Path(self.full(file.path)), result)
        self.delete(file.path)
        return True

    @_by_path
    def settle_aside(self, path: str) -> bool:
        """End what ``delete_own`` began before its process was killed.

        Returns:
            Whether the file was deleted; otherwise it has its name again, unless a
            newer one has that.

        Raises:
            StorageError: the file system refuses.
        """
        if not (self.is_local and self.owns(path)):
            return False
        with _storage_errors("delete", self.full(path)):
            return settle_aside(Path(self.full(path)))

    def move(self, path: str, target: str) -> None:
        """Give a file another name, and make the folder of it.

        Raises:
            StorageError: the file system refuses.
        """
        with _storage_errors("move", self.full(path)):
            self._files.move(path, target)

    def copy(self, path: str, target: str) -> bool:
        """Make a file available at another path too, unless a file is there.

        A local file system links it in one step, so it takes no space and has the same
        modification time; an object store copies it, and replaces what is there.

        Returns:
            Whether it was made; False if a file was there.

        Raises:
            StorageError: the file system refuses.
        """
        with _storage_errors("copy", self.full(path)):
            return self._files.copy(path, target)

    def sync(self, paths: Iterable[str]) -> None:
        """Write files and their names to the disk.

        An object store has them when it has answered.

        Raises:
            StorageError: the file system refuses.
        """
        if not self.is_local:
            return
        folders: set[Path] = set()
        for path in paths:
            full = Path(self.full(path))
            with _storage_errors("sync", str(full)):
                sync_file(full)
            # A new folder has a name in the folder above it, up to the table's.
            above = full.parents
            folders.update(above[: len(above) - len(Path(self.root).parents)])
        for folder in folders:
            sync_folder(folder)

    def restrict(self, folder: str, paths: Iterable[str]) -> None:
        """Restrict ``folder`` to users who may read all the files.

        The folder is made if there is none.  What is written below it later can be read
        by no one else.  An object store has permissions of its own.
        """
        if not self.at(folder).is_local:
            return
        every = [*map(self.full, paths)] if self.is_local else ()
        target = Path(self.full(folder))
        with _storage_errors("make", str(target)):
            make_folder(target)
            deny(target, denied_by(every))

    def narrow(self, files: Iterable[str], paths: Iterable[str]) -> None:
        """Restrict ``files`` to users who may read all files at ``paths``."""
        if not self.is_local:
            return
        with _storage_errors("restrict", self.root):
            denied = denied_by(map(self.full, paths))
            for file in files:
                deny(Path(self.full(file)), denied)

    @_by_path
    def delete_folder(self, folder: str) -> None:
        """Delete a folder, if it is empty; an object store has no such folders."""
        if self.is_local:
            with contextlib.suppress(OSError):
                Path(self.full(folder)).rmdir()

    @_by_path
    def delete_tree(self, folder: str) -> None:
        """Delete a folder with all that is in it; it may be gone already."""
        with (
            contextlib.suppress(FileNotFoundError),
            _storage_errors("delete", self.full(folder)),
        ):
            self._files.delete_tree(folder)


def _is_listed(listed: FileInfo, info: FileInfo) -> bool:
    """Whether a store that has no tags may mean one object, by size and second."""
    seconds = {one.mtime // SECOND for one in (listed, info)}
    sizes = {one.size for one in (listed, info)}
    no_tags = listed.tag is None and info.tag is None
    whole = info.mtime % SECOND == 0
    return no_tags and whole and len(seconds) == len(sizes) == 1


@contextlib.contextmanager
def _storage_errors(verb: str, path: str) -> Iterator[None]:
    """Errors of the file system as ours; that a file is gone stays as it is."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and verb in _MAY_BE_GONE:
            raise
        reason = error.strerror or str(error)
        if verb == "list" and error.filename:
            path = os.fspath(error.filename)  # of the very file below it
        raise StorageError(f"cannot {verb} {path!r}: {reason}") from error


def location_of(
    path: Location | str | os.PathLike[str], options: StorageOptions | None = None
) -> Location:
    """The folder that a path or URI names; a ``Location`` is returned as it is."""
    if isinstance(path, Location):
        return path
    text = os.fspath(path)
    place = store_place(text)
    if place is not None:
        result = checked_options(place, options or {})
        return Location(place.root, place.uri, result)
    if options:
        raise TableError(
            f"{without_secrets(text)!r} takes no storage_options (accepted: an s3:, "
            "s3a:, gs:, abfss: or wasbs: URI)"
        )
    scheme = _SCHEME.match(text)
    if scheme is None or scheme[1] == "file":
        local = re.sub(r"^file:(//(?=/))?", "", text)
        return Location(os.path.normpath(Path(local).absolute()))
    return Location(arrow_root(text), text)
