"""One folder on one file system, and the operations on it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from skipindex.errors import StorageError
from skipindex.storage.file_system.byte_source import (
    ByteSource,
    local_source,
    remote_source,
)
from skipindex.storage.file_system.local import (
    denied_by,
    deny,
    link_new,
    link_or_copy,
    make_folder,
    sync_file,
    sync_folder,
    written_beside,
)
from skipindex.storage.file_system.uris import (
    StorageOptions,
    checked_options,
    open_store,
    root_of,
    without_secrets,
)
from skipindex.storage.file_system.walk import is_plain, walk

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_NOTHING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Errors of the system if there is no such folder."""
_CHUNK = 1 << 20
MAX_READ = 1 << 30
"""Bytes of a file that is read as a whole."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a listing; ``path`` is relative, ``mtime`` in nanoseconds."""

    path: str
    size: int
    mtime: int


@dataclass(frozen=True, slots=True)
class Location:
    """A folder.  Cheap to pickle, so that workers open the same one.

    Args:
        root: the folder in its file system, without a slash at the end.
        uri: how pyarrow finds the file system again; empty for local paths.
        options: of that file system, by name.  They may be secret, so no text has them.
    """

    root: str
    uri: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"Location({without_secrets(self.uri) or self.root!r})"

    @property
    def is_local(self) -> bool:
        """Whether the operating system can open the files itself."""
        return not self.uri

    @property
    def filesystem(self) -> pafs.FileSystem:
        """The file system, opened again at each call."""
        if self.is_local:
            return pafs.LocalFileSystem()
        if self.options:
            return open_store(self.uri, dict(self.options))
        return pafs.FileSystem.from_uri(self.uri)[0]

    def full(self, path: str) -> str:
        """The path in the file system."""
        return f"{self.root}/{path}" if path else self.root

    def spark_path(self, path: str = "") -> str:
        """The text that Spark's ``Path`` reads as exactly this file."""
        if self.is_local:
            return f"file:{self.full(path)}"
        base = without_secrets(self.uri).rstrip("/")
        return f"{base}/{path}" if path else base

    def list(self, folder: str = "") -> Iterator[FileInfo]:
        """All files below ``folder``, in no order; links to data are followed."""
        return self._below(folder, pafs.FileType.File, links=True)

    def list_own(self) -> Iterator[FileInfo]:
        """All files that are in this very folder: nothing that a link leads to."""
        return self._below("", pafs.FileType.File, links=False)

    def list_folders(self) -> Iterator[FileInfo]:
        """All folders, none through a link; their size means nothing."""
        return self._below("", pafs.FileType.Directory, links=False)

    def names(self, folder: str) -> Sequence[str]:
        """The names of all entries of a folder.

        Raises:
            StorageError: the file system refuses.
        """
        if self.is_local:
            with _storage_errors("list", self.full(folder)):
                try:
                    with os.scandir(self.full(folder)) as entries:
                        return [entry.name for entry in entries]
                except OSError as error:
                    if error.errno in _NOTHING:
                        return []
                    raise
        selector = pafs.FileSelector(self.full(folder), allow_not_found=True)
        return [info.base_name for info in self.filesystem.get_file_info(selector)]

    def _below(
        self, folder: str, kind: pafs.FileType, *, links: bool
    ) -> Iterator[FileInfo]:
        if self.is_local:
            is_folder = kind == pafs.FileType.Directory
            for path, there in walk(self.root, folder, links=links):
                if stat.S_ISDIR(there.st_mode) == is_folder:
                    yield FileInfo(path, there.st_size, there.st_mtime_ns)
            return
        selector = pafs.FileSelector(
            self.full(folder), recursive=True, allow_not_found=True
        )
        start = len(self.root) + 1
        for info in self.filesystem.get_file_info(selector):
            if info.type == kind:
                mtime = info.mtime_ns or 0
                yield FileInfo(info.path[start:], info.size or 0, mtime)

    def owns(self, path: str) -> bool:
        """Whether a file is there, in this very folder and not through a link."""
        if self.is_local:
            return is_plain(self.root, path)
        return self.stat(path) is not None

    def is_same(self, path: str, other: str) -> bool:
        """Whether two files have the same content, or are one."""
        if self.is_local and Path(self.full(path)).samefile(self.full(other)):
            return True
        with self.open_input(path) as one, self.open_input(other) as two:
            if one.size() != two.size():
                return False
            while data := one.read(_CHUNK):
                if data != two.read(_CHUNK):
                    return False
        return True

    def stat(self, path: str) -> FileInfo | None:
        """The file as it is now, or None if there is none."""
        info = self.filesystem.get_file_info(self.full(path))
        if info.type != pafs.FileType.File:
            return None
        return FileInfo(path, info.size, info.mtime_ns or 0)

    def exists(self) -> bool:
        """Whether there is anything at the root."""
        info = self.filesystem.get_file_info(self.root)
        return bool(info.type != pafs.FileType.NotFound)

    def open_input(self, path: str) -> pa.NativeFile:
        """The file, for random access."""
        return self.filesystem.open_input_file(self.full(path))

    def read(self, path: str, limit: int = MAX_READ) -> bytes:
        """The whole file.

        Raises:
            OSError: there is none, or it is larger than ``limit`` bytes.
        """
        source = self.view(path)
        if len(source) > limit:
            raise OSError(f"{path!r} has {len(source)} bytes (at most {limit})")
        return bytes(source.read(0, len(source)))

    def view(self, path: str) -> ByteSource:
        """The file as a source of byte ranges."""
        if self.is_local:
            return local_source(self.full(path))
        return remote_source(partial(self.open_input, path))

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file that is invisible until it is whole and on the disk.

        Raises:
            StorageError: the file system refuses.
        """
        with _storage_errors("write", self.full(path)):
            if self.is_local:
                with written_beside(Path(self.full(path)), data) as hidden:
                    hidden.replace(self.full(path))
                    sync_folder(hidden.parent)
            else:
                self._upload(path, data)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already; False if there is.

        Atomic on local file systems, and the file is on the disk afterwards.  Where
        a file system has no hard links, a reader may see the file before it is whole.
        On an object store the check and the write are two steps, so there only one
        process at a time may commit.

        Raises:
            StorageError: the file system refuses.
        """
        with _storage_errors("write", self.full(path)):
            if self.is_local:
                return link_new(Path(self.full(path)), data)
            if self.stat(path) is not None:
                return False
            self._upload(path, data)
            return True

    def delete(self, path: str) -> None:
        """Delete a file; it may be gone already."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.full(path))

    def move(self, path: str, target: str) -> None:
        """Give a file another name, and make the folder of it.

        Raises:
            StorageError: the file system refuses.
        """
        with _storage_errors("move", self.full(path)):
            self._make_folder_of(target)
            self.filesystem.move(self.full(path), self.full(target))

    def copy(self, path: str, target: str) -> None:
        """Make a file available at another path too; a file there is replaced.

        A local file system links it, so it takes no space and has the same modification
        time; an object store copies it.

        Raises:
            StorageError: the file system refuses.
        """
        with _storage_errors("copy", self.full(path)):
            self._make_folder_of(target)
            if not self.is_local:
                self.filesystem.copy_file(self.full(path), self.full(target))
                return
            link_or_copy(self.full(path), Path(self.full(target)))

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

    def restrict(
        self, folder: str, paths: Iterable[str], others: Iterable[str] = ()
    ) -> None:
        """Restrict ``folder`` to users who may read all the files.

        ``others`` are full paths.  The folder is made if there is none.  What is
        written below it later can be read by no one else.  An object store has
        permissions of its own.
        """
        if not self.is_local:
            return
        target = Path(self.full(folder))
        with _storage_errors("make", str(target)):
            make_folder(target)
            deny(target, denied_by([*map(self.full, paths), *others]))

    def narrow(self, files: Iterable[str], paths: Iterable[str]) -> None:
        """Restrict ``files`` to users who may read all files at ``paths``."""
        if not self.is_local:
            return
        denied = denied_by(map(self.full, paths))
        for file in files:
            deny(Path(self.full(file)), denied)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder, if it is empty; an object store has no such folders."""
        if self.is_local:
            with contextlib.suppress(OSError):
                Path(self.full(folder)).rmdir()

    def delete_tree(self, folder: str) -> None:
        """Delete a folder with all that is in it; it may be gone already."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_dir(self.full(folder))

    def _upload(self, path: str, data: bytes | memoryview) -> None:
        self._make_folder_of(path)
        with self.filesystem.open_output_stream(self.full(path)) as sink:
            sink.write(data)

    def _make_folder_of(self, path: str) -> None:
        folder = self.full(path).rpartition("/")[0]
        if self.is_local:
            make_folder(Path(folder))
        else:
            self.filesystem.create_dir(folder, recursive=True)


@contextlib.contextmanager
def _storage_errors(verb: str, path: str) -> Iterator[None]:
    """Errors of the file system as ours; that a file is gone stays as it is."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and verb in {"move", "copy", "sync"}:
            raise
        reason = error.strerror or str(error)
        raise StorageError(f"cannot {verb} {path!r}: {reason}") from error


def location_of(
    path: Location | str | os.PathLike[str], options: StorageOptions | None = None
) -> Location:
    """The folder that a path or URI names; a ``Location`` is returned as it is.

    Args:
        path: the folder.
        options: for the file system of a URI, such as credentials.

    Raises:
        TableError: pyarrow has no file system for the URI, or refuses the options.
    """
    if isinstance(path, Location):
        return path
    text = os.fspath(path)
    if options:
        root, checked = checked_options(text, options)
        return Location(root, text, tuple(sorted(checked.items())))
    scheme = _SCHEME.match(text)
    if scheme is None or scheme[1] == "file":
        local = re.sub(r"^file:(//(?=/))?", "", text)
        return Location(os.path.normpath(Path(local).absolute()))
    return Location(root_of(text), text)
