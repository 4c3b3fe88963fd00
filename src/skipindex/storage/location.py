"""One folder on one file system, and the few operations that we need of it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import uuid
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from skipindex.errors import TableError
from skipindex.storage.walk import is_plain, open_regular, walk

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_NOTHING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""What the system says where there is no such folder."""
_CHUNK = 1 << 20
MAX_READ = 1 << 30
"""Bytes of a file that is read as a whole."""


@dataclass(frozen=True, slots=True)
class Found:
    """One file of a listing; ``path`` is relative, ``mtime`` in nanoseconds."""

    path: str
    size: int
    mtime: int


@dataclass(frozen=True, slots=True)
class Location:
    """A folder.  Cheap to pickle, so that workers open the same one.

    Args:
        root: the folder inside of its file system, without a slash at the end.
        uri: how pyarrow finds the file system again; empty for local paths.
    """

    root: str
    uri: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the operating system can open the files itself."""
        return not self.uri

    @property
    def filesystem(self) -> pafs.FileSystem:
        """The file system, opened anew."""
        if self.is_local:
            return pafs.LocalFileSystem()
        return pafs.FileSystem.from_uri(self.uri)[0]

    def full(self, path: str) -> str:
        """The path inside of the file system."""
        return f"{self.root}/{path}" if path else self.root

    def spark_path(self, path: str = "") -> str:
        """The text that Spark's ``Path`` reads as exactly this file."""
        if self.is_local:
            return f"file:{self.full(path)}"
        # What follows a question mark is for pyarrow alone.
        base = self.uri.partition("?")[0].rstrip("/")
        return f"{base}/{path}" if path else base

    def list(self, folder: str = "") -> Iterator[Found]:
        """All files below ``folder``, in no order; links to data are followed."""
        return self._below(folder, pafs.FileType.File, links=True)

    def list_own(self) -> Iterator[Found]:
        """All files that are in this very folder: nothing that a link leads to."""
        return self._below("", pafs.FileType.File, links=False)

    def list_folders(self) -> Iterator[Found]:
        """All folders, none through a link; their size means nothing."""
        return self._below("", pafs.FileType.Directory, links=False)

    def names(self, folder: str) -> Sequence[str]:
        """The names of all that is in a folder, whatever it is."""
        if self.is_local:
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
    ) -> Iterator[Found]:
        if self.is_local:
            is_folder = kind == pafs.FileType.Directory
            for path, there in walk(self.root, folder, links=links):
                if stat.S_ISDIR(there.st_mode) == is_folder:
                    yield Found(path, there.st_size, there.st_mtime_ns)
            return
        selector = pafs.FileSelector(
            self.full(folder), recursive=True, allow_not_found=True
        )
        start = len(self.root) + 1
        for info in self.filesystem.get_file_info(selector):
            if info.type == kind:
                mtime = info.mtime_ns or 0
                yield Found(info.path[start:], info.size or 0, mtime)

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

    def stat(self, path: str) -> Found | None:
        """The file as it is now, or None if there is none."""
        info = self.filesystem.get_file_info(self.full(path))
        if info.type != pafs.FileType.File:
            return None
        return Found(path, info.size, info.mtime_ns or 0)

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
            return _LocalBytes(self.full(path))
        return _RemoteBytes(self.open_input(path))

    def write(self, path: str, data: bytes) -> None:
        """Write a file that nobody can see before it is whole."""
        if self.is_local:
            with self._beside(path, data) as hidden:
                hidden.replace(self.full(path))
        else:
            self._upload(path, data)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already; False if there is.

        Atomic on local file systems.  On an object store the check and the
        write are two steps, so there only one process at a time may commit.
        """
        if self.is_local:
            with self._beside(path, data) as hidden:
                try:
                    os.link(hidden, self.full(path))
                except FileExistsError:
                    return False
                return True
        if self.stat(path) is not None:
            return False
        self._upload(path, data)
        return True

    def delete(self, path: str) -> None:
        """Delete a file; it may be gone already."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.full(path))

    def move(self, path: str, target: str) -> None:
        """Give a file another name, and make the folder of it."""
        self._make_folder_of(target)
        self.filesystem.move(self.full(path), self.full(target))

    def copy(self, path: str, target: str) -> None:
        """Let a file be at another path too, and nothing else be there.

        A local file system links it, so that it takes no room and keeps its mark;
        elsewhere it is copied by the store.
        """
        self._make_folder_of(target)
        if not self.is_local:
            self.filesystem.copy_file(self.full(path), self.full(target))
            return
        hidden = Path(self.full(target)).parent / f".{uuid.uuid4().hex}.tmp"
        try:
            try:
                os.link(self.full(path), hidden)
            except OSError:  # a file system without links
                shutil.copy2(self.full(path), hidden)
            hidden.replace(self.full(target))
        finally:
            # Where both names are links to one file, replacing does nothing.
            hidden.unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder, if it is empty; an object store has no such folders."""
        if self.is_local:
            with contextlib.suppress(OSError):
                Path(self.full(folder)).rmdir()

    def delete_tree(self, folder: str) -> None:
        """Delete a folder with all that is in it; it may be gone already."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_dir(self.full(folder))

    @contextlib.contextmanager
    def _beside(self, path: str, data: bytes) -> Iterator[Path]:
        """A synced file in the folder of ``path``, gone again at the end."""
        target = Path(self.full(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.parent / f".{uuid.uuid4().hex}.tmp"
        try:
            with hidden.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield hidden
        finally:
            hidden.unlink(missing_ok=True)

    def _upload(self, path: str, data: bytes) -> None:
        self._make_folder_of(path)
        with self.filesystem.open_output_stream(self.full(path)) as sink:
            sink.write(data)

    def _make_folder_of(self, path: str) -> None:
        self.filesystem.create_dir(self.full(path).rpartition("/")[0], recursive=True)


class ByteSource:
    """Random access to the bytes of one immutable file."""

    def __len__(self) -> int:
        """The size of the file."""
        raise NotImplementedError

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the file ends before."""
        raise NotImplementedError


class _LocalBytes(ByteSource):
    """An open file, not mapped into memory.

    Where a mapped file is cut off, reading what is gone kills the process.
    """

    def __init__(self, path: str) -> None:
        self._file = open_regular(path)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return os.fstat(self._file).st_size

    def read(self, offset: int, length: int) -> memoryview:
        return memoryview(os.pread(self._file, length, offset))


class _RemoteBytes(ByteSource):
    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source

    def __len__(self) -> int:
        size: int = self._source.size()
        return size

    def read(self, offset: int, length: int) -> memoryview:
        length = max(0, min(length, len(self) - offset))
        return memoryview(self._source.read_at(length, offset) if length else b"")


def location_of(path: str | os.PathLike[str]) -> Location:
    """The folder that a path or URI names.

    Raises:
        TableError: pyarrow has no file system for the URI's scheme.
    """
    text = os.fspath(path)
    scheme = _SCHEME.match(text)
    if scheme is None or scheme[1] == "file":
        local = re.sub(r"^file:(//(?=/))?", "", text)
        return Location(os.path.normpath(Path(local).absolute()))
    try:
        _, root = pafs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(
            f"cannot open {text!r}: {error} (accepted: a local path, file:, s3:, gs:, "
            "hdfs: or abfss: URI)"
        ) from error
    return Location(root.rstrip("/"), text)
