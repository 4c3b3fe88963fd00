"""One folder on one file system, and the operations on it."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar, cast

import pyarrow as pa

from skipindex.errors import StorageError, TableError
from skipindex.storage.deadline import check, checked
from skipindex.storage.file_system.arrow_files import ArrowFiles
from skipindex.storage.file_system.byte_source import ByteSource, Files
from skipindex.storage.file_system.file_info import SECOND, FileInfo
from skipindex.storage.file_system.local import (
    LocalFiles,
    denied_by,
    deny,
    make_folder,
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
from skipindex.storage.telling import listener

__all__ = ["FileInfo", "Location", "location_of", "without_secrets"]

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_GLOB = re.compile(r"[\\*?\[\]{}]")
_CHUNK = 1 << 20
"""Bytes that are compared at once."""
_READS: Final = frozenset({"list", "look at", "open"})
"""What may stop at a deadline; a change is made whole, or an error."""
_MAY_BE_GONE: Final = frozenset({"open", "move", "copy", "sync"})
"""What is done with files that others may delete meanwhile, which is no refusal."""
MAX_READ = 1 << 30
"""Bytes of a file that is read as a whole."""
_CLOCKS: Final = 60 * SECOND
"""Nanoseconds by which the clocks of two file systems may differ."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


@contextlib.contextmanager
def _storage_errors(verb: str, path: str) -> Iterator[None]:
    """Errors of the file system as ours; that a file is gone stays as it is."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            if verb == "delete":
                return  # so there is nothing left to do
            if verb in _MAY_BE_GONE:
                raise
        reason = error.strerror or str(error)
        if verb == "list" and error.filename:
            path = os.fspath(error.filename)  # of the very file below it
        raise StorageError(f"cannot {verb} {path!r}: {reason}") from error


def _operation(verb: str) -> Callable[[_Method], _Method]:
    """A method of the location that has the path, its first argument."""

    def decorated(method: _Method) -> _Method:
        @wraps(method)
        def call(self: Location, path: str = "", *more: Any, **named: Any) -> Any:
            place = self.at(path)
            if verb in _READS:
                check()
            with _storage_errors(verb, place.full(path)):
                return method(place, path, *more, **named)

        @wraps(method)
        def listing(self: Location, folder: str = "") -> Iterator[FileInfo]:
            place = self.at(folder)
            with _storage_errors(verb, place.full(folder)):
                yield from checked(method(place, folder))

        is_listing = inspect.isgeneratorfunction(method)
        return cast("_Method", listing if is_listing else call)

    return decorated


@dataclass(frozen=True, slots=True)
class Location:
    """A folder.  Cheap to pickle, so that workers open the same one.

    Its calls raise ``StorageError`` where the file system refuses: then nothing is
    known of what was asked for.  That a file is gone which is to be opened, moved,
    copied or synchronised is a ``FileNotFoundError``.

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
    def files(self) -> Files:
        """The file system, whose errors are its own."""
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
        if self.sidecar is None:
            return self
        return self.sidecar if f"{path}/".startswith(f"{FOLDER}/") else self

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

    @_operation("list")
    def list(self, folder: str = "") -> Iterator[FileInfo]:
        """All files below ``folder``, in no order; links to data are followed."""
        yield from self.files.below(folder, links=True)

    def list_own(self) -> Iterator[FileInfo]:
        """All files in this very folder, nothing through a link; or in its sidecar."""
        place = self.at(FOLDER)
        with _storage_errors("list", place.root):
            yield from place.files.below("", links=False)

    def list_folders(self) -> Iterator[FileInfo]:
        """All folders where ``list_own`` lists files; their size means nothing."""
        place = self.at(FOLDER)
        with _storage_errors("list", place.root):
            yield from place.files.folders()

    @_operation("list")
    def entries(self, folder: str) -> Iterator[FileInfo]:
        """The files of a folder, and its folders, whose paths end with a slash."""
        yield from self.files.entries(folder)

    @_operation("list")
    def names(self, folder: str) -> Sequence[str]:
        """The names of all entries of a folder."""
        return self.files.names(folder)

    @_operation("look at")
    def owns(self, path: str) -> bool:
        """Whether a file is there, in this very folder and not through a link."""
        return self.files.owns(path)

    @_operation("look at")
    def is_other(self, path: str) -> bool:
        """Whether something else than a file is there, such as a folder or a link."""
        return self.files.is_other(path)

    @_operation("look at")
    def link_on_the_way(self, folder: str) -> str:
        """The first part of a folder's path that is a link; empty if none is."""
        return self.files.link_on_the_way(folder)

    def is_same(self, path: str, other: str, *, is_copy: bool = False) -> bool:
        """Whether two files have the same content, or are one.

        They are read only if nothing else tells.  If it ``is_copy``, the file system
        has just made one of the other, so the size tells.
        """
        with _storage_errors("open", self.full(other)):
            if self.files.are_one(path, other):
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

    @_operation("look at")
    def stat(self, path: str) -> FileInfo | None:
        """The file as it is now, or None if there is none."""
        return self.files.stat(path)

    def exists(self) -> bool:
        """Whether there is anything at the root."""
        return self.holds(self.root)

    def holds(self, full: str) -> bool:
        """Whether anything is at a full path of the file system."""
        check()
        with _storage_errors("look at", full):
            return self.files.holds(full)

    def now(self) -> int:
        """The modification time that a file of ours gets which is written now.

        So it counts in the ticks of the file system's own clock.  A hidden file is
        written to learn it, and deleted.
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

    @_operation("open")
    def open_input(self, path: str, known: FileInfo | None = None) -> pa.NativeFile:
        """The file, for random access.

        If ``known`` has a tag, every read is of that content, or an error.
        """
        return self.files.open_input(path, known)

    def read(self, path: str, limit: int = MAX_READ) -> bytes:
        """The whole file; errors of the system stay, as their numbers are looked at.

        Raises:
            OSError: there is none, or it is larger than ``limit`` bytes.
        """
        check()
        return self.at(path).files.read(path, limit)

    @_operation("open")
    def view(self, path: str) -> ByteSource:
        """The file as a source of byte ranges."""
        return self.files.view(path)

    @_operation("write")
    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file that is invisible until it is whole and on the disk."""
        tell = listener()
        is_index = path.startswith((PACKS, MANIFESTS))
        if tell is not None and is_index and self.files.stat(path) is None:
            tell(path)
        self.files.write(path, data)

    @_operation("write")
    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already; False if there is.

        Atomic, and the file is on the disk afterwards; no reader sees it before it is
        whole.  An object store decides by one conditional request.
        """
        return self.files.write_new(path, data)

    @_operation("delete")
    def delete(self, path: str) -> None:
        """Delete a file; it may be gone already."""
        self.files.delete(path)

    def delete_own(self, file: FileInfo) -> bool:
        """Delete a file of this very folder that is still as it was listed.

        Another writer may have written another one, or the same one again, under its
        name; then it stays.  A local file is put aside and looked at before it is
        deleted, so one that is written meanwhile stays too.  No store deletes on a
        condition, so there the look and the request come one after the other.

        Returns:
            Whether it was deleted.
        """
        place = self.at(file.path)
        if place.is_local and not place.owns(file.path):
            return False
        result = place.stat(file.path)
        if result is None or not (file.is_same(result) or _is_listed(file, result)):
            return False
        with _storage_errors("delete", place.full(file.path)):
            return place.files.delete_seen(result)
        return False  # it was gone

    @_operation("delete")
    def settle_aside(self, path: str) -> bool:
        """End what ``delete_own`` began before its process was killed.

        Returns:
            Whether the file was deleted; otherwise it has its name again, unless a
            newer one has that.
        """
        return self.files.owns(path) and self.files.settle_aside(path)

    @_operation("move")
    def move(self, path: str, target: str) -> None:
        """Give a file another name, and make the folder of it."""
        self.files.move(path, target)

    @_operation("copy")
    def copy(self, path: str, target: str) -> bool:
        """Make a file available at another path too, unless a file is there.

        A local file system links it in one step, so it takes no space and has the same
        modification time; an object store copies it, and replaces what is there.

        Returns:
            Whether it was made; False if a file was there.
        """
        return self.files.copy(path, target)

    def sync(self, paths: Iterable[str]) -> None:
        """Write files and their names to the disk; a store has them already."""
        files = [*paths]
        # A new folder has a name in the folder above it, up to the table's.
        folders = {str(one) for path in files for one in PurePosixPath(path).parents}
        for path in (*files, *folders):
            with _storage_errors("sync", self.full(path)):
                self.files.sync(path)

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

    @_operation("delete")
    def delete_folder(self, folder: str) -> None:
        """Delete a folder, if it is empty; an object store has no such folders."""
        self.files.delete_folder(folder)

    @_operation("delete")
    def delete_tree(self, folder: str) -> None:
        """Delete a folder with all that is in it; it may be gone already."""
        self.files.delete_tree(folder)


def _is_listed(listed: FileInfo, info: FileInfo) -> bool:
    """Whether a store that has no tags may mean one object, by size and second."""
    seconds = {one.mtime // SECOND for one in (listed, info)}
    sizes = {one.size for one in (listed, info)}
    no_tags = listed.tag is None and info.tag is None
    whole = info.mtime % SECOND == 0
    return no_tags and whole and len(seconds) == len(sizes) == 1


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
