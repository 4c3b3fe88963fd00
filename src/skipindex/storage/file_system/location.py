"""One folder on one file system, and the operations on it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from skipindex.errors import StorageError, TableError
from skipindex.storage.deadline import check, checked
from skipindex.storage.file_system.arrow_files import ArrowFiles
from skipindex.storage.file_system.byte_source import Files
from skipindex.storage.file_system.file_info import SECOND, FileInfo
from skipindex.storage.file_system.local import (
    LocalFiles,
    denied_by,
    deny,
    make_folder,
)
from skipindex.storage.file_system.names import (
    FOLDER,
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
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class _StorageErrors:
    """Errors of the file system as ours; that a file is gone stays as it is.

    A class, as a plan looks at each of its files: a generator takes several times as
    long to enter and to leave.
    """

    verb: str
    path: str

    def __enter__(self) -> None: ...

    def __exit__(
        self, _: object, error: BaseException | None, __: object
    ) -> bool | None:
        if not isinstance(error, OSError) or isinstance(error, StorageError):
            return False
        path = self.path
        if isinstance(error, FileNotFoundError):
            if self.verb == "delete":
                return True  # so there is nothing left to do
            if self.verb in _MAY_BE_GONE:
                return False
        reason = error.strerror or str(error)
        if self.verb == "list" and error.filename:
            path = os.fspath(error.filename)  # of the very file below it
        raise StorageError(f"cannot {self.verb} {path!r}: {reason}") from error


def _operation(
    verb: str, method: Callable[Concatenate[Files, P], R]
) -> Callable[Concatenate[Location, P], R]:
    """A call of the folder that has the path, which is the first argument."""

    @wraps(method)
    def call(self: Location, /, *args: P.args, **named: P.kwargs) -> R:
        place = self.at(path := str(args[0]) if args else "")
        if verb in _READS:
            check()
        with _StorageErrors(verb, place.full(path)):
            result: R = getattr(place.files, method.__name__)(*args, **named)
            return result
        return cast("R", None)  # what was to be deleted is gone

    return call


def _listing(
    method: Callable[Concatenate[Files, P], Iterator[FileInfo]],
) -> Callable[Concatenate[Location, P], Iterator[FileInfo]]:
    """The same for a listing, which goes on while it is looked at."""

    @wraps(method)
    def listed(self: Location, /, *args: P.args, **named: P.kwargs) -> Any:
        place = self.at(folder := str(args[0]) if args else "")
        with _StorageErrors("list", place.full(folder)):
            yield from checked(getattr(place.files, method.__name__)(*args, **named))

    return listed


@dataclass(frozen=True, slots=True)
class Location:
    """A folder.  Cheap to pickle, so that workers open the same one.

    What it does with files is what ``Files`` says.  Its calls raise ``StorageError``
    where the file system refuses: then nothing is known of what was asked for.  That a
    file is gone which is to be opened, moved, copied or synchronised is a
    ``FileNotFoundError``.

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
    def is_store(self) -> bool:
        """Whether it is a folder of an object store."""
        return store_place(self.uri) is not None

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

    list = _listing(Files.list)
    entries = _listing(Files.entries)
    names = _operation("list", Files.names)
    stat = _operation("look at", Files.stat)
    owns = _operation("look at", Files.owns)
    is_other = _operation("look at", Files.is_other)
    link_on_the_way = _operation("look at", Files.link_on_the_way)
    open_input = _operation("open", Files.open_input)
    view = _operation("open", Files.view)
    write_new = _operation("write", Files.write_new)
    move = _operation("move", Files.move)
    copy = _operation("copy", Files.copy)
    delete = _operation("delete", Files.delete)
    settle_aside = _operation("delete", Files.settle_aside)
    delete_folder = _operation("delete", Files.delete_folder)
    delete_tree = _operation("delete", Files.delete_tree)

    def list_own(self, folder: str = "") -> Iterator[FileInfo]:
        """All files in this very folder, nothing through a link; or in its sidecar."""
        place = self.at(FOLDER)
        with _StorageErrors("list", place.root):
            yield from place.files.below(folder, links=False)

    def list_folders(self) -> Iterator[FileInfo]:
        """All folders where ``list_own`` lists files; their size means nothing."""
        place = self.at(FOLDER)
        with _StorageErrors("list", place.root):
            yield from place.files.folders()

    def is_same(self, path: str, other: str, *, is_copy: bool = False) -> bool:
        """Whether two files have the same content, or are one.

        They are read only if nothing else tells.  If it ``is_copy``, the file system
        has just made one of the other, so the size tells.
        """
        with _StorageErrors("open", self.full(other)):
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

    def exists(self) -> bool:
        """Whether there is anything at the root."""
        return self.holds(self.root)

    def holds(self, full: str) -> bool:
        """Whether anything is at a full path of the file system."""
        check()
        with _StorageErrors("look at", full):
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

    def read(self, path: str, limit: int = MAX_READ) -> bytes:
        """The whole file; errors of the system stay, as their numbers are looked at.

        Raises:
            OSError: there is none, or it is larger than ``limit`` bytes.
        """
        check()
        return self.at(path).files.read(path, limit)

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file that is invisible until it is whole and on the disk."""
        place = self.at(path)
        with _StorageErrors("write", place.full(path)):
            place.files.write(path, data)

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
        with _StorageErrors("delete", place.full(file.path)):
            return place.files.delete_seen(result)
        return False  # it was gone

    def sync(self, paths: Iterable[str]) -> None:
        """Write files and their names to the disk; a store has them already."""
        files = [*paths]
        # A new folder has a name in the folder above it, up to the table's.
        folders = {str(one) for path in files for one in PurePosixPath(path).parents}
        for path in (*files, *folders):
            with _StorageErrors("sync", self.full(path)):
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
        with _StorageErrors("make", str(target)):
            make_folder(target)
            deny(target, denied_by(every))

    def narrow(self, files: Iterable[str], paths: Iterable[str]) -> None:
        """Restrict ``files`` to users who may read all files at ``paths``."""
        if not self.is_local:
            return
        with _StorageErrors("restrict", self.root):
            denied = denied_by(map(self.full, paths))
            for file in files:
                deny(Path(self.full(file)), denied)


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
    """The folder that a path or URI names; a ``Location`` is returned as it is.

    ``~`` is the user's home.
    """
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
        if scheme is None and re.match("~(/|$)", local):
            local = os.path.expanduser(local)  # noqa: PTH111 (a link in it stays)
        return Location(os.path.normpath(Path(local).absolute()))
    return Location(arrow_root(text), text)
