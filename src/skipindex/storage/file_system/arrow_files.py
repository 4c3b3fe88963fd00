"""A folder on a file system of pyarrow: HDFS, and what else is no object store."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs

from skipindex.errors import StorageError
from skipindex.storage.file_system.byte_source import (
    ByteSource,
    read_whole,
    remote_source,
)
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.local import link_new
from skipindex.storage.file_system.names import temporary_name

_RENAMES_ONCE: Final = frozenset({"hdfs", "viewfs"})
"""File systems that never give a file the name of another one."""


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """One folder.

    Args:
        uri: how pyarrow finds the file system.
        root: the folder in it, without a slash at the end.
    """

    uri: str
    root: str

    @property
    def _files(self) -> pafs.FileSystem:
        return pafs.FileSystem.from_uri(self.uri)[0]

    def full(self, path: str) -> str:
        """The path in the file system."""
        return f"{self.root}/{path}" if path else self.root

    def below(self, folder: str, *, links: bool = True) -> Iterator[FileInfo]:  # noqa: ARG002
        """All files below a folder."""
        return self._below(folder, pafs.FileType.File)

    def folders(self) -> Iterator[FileInfo]:
        """All folders."""
        return self._below("", pafs.FileType.Directory)

    def _below(self, folder: str, kind: pafs.FileType) -> Iterator[FileInfo]:
        selector = pafs.FileSelector(
            self.full(folder), recursive=True, allow_not_found=True
        )
        start = len(self.root) + 1
        for info in self._files.get_file_info(selector):
            if info.type == kind:
                yield FileInfo(info.path[start:], info.size or 0, info.mtime_ns or 0)

    def names(self, folder: str) -> Sequence[str]:
        """The names of all entries of a folder."""
        selector = pafs.FileSelector(self.full(folder), allow_not_found=True)
        return [info.base_name for info in self._files.get_file_info(selector)]

    def stat(self, path: str) -> FileInfo | None:
        """The file as it is now, or None if there is none."""
        info = self._files.get_file_info(self.full(path))
        if info.type != pafs.FileType.File:
            return None
        return FileInfo(path, info.size, info.mtime_ns or 0)

    def holds(self, full: str) -> bool:
        """Whether a file or a folder is at a path of the file system."""
        info = self._files.get_file_info(full)
        return bool(info.type != pafs.FileType.NotFound)

    def open_input(self, path: str, _: FileInfo | None = None) -> pa.NativeFile:
        """The file, for random access."""
        return self._files.open_input_file(self.full(path))

    def view(self, path: str) -> ByteSource:
        """The file as a source of byte ranges."""
        return remote_source(partial(self.open_input, path))

    def read(self, path: str, limit: int) -> bytes:
        """The whole file."""
        return read_whole(self.view(path), path, limit)

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file; one that is there is replaced."""
        self._make_folder_of(path)
        with self._files.open_output_stream(self.full(path)) as sink:
            sink.write(data)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already; False if there is.

        It is written under a hidden name and renamed, which HDFS refuses where the
        name is taken.

        Raises:
            StorageError: the file system has no such rename.
        """
        files = self._files
        if isinstance(files, pafs.LocalFileSystem):
            return link_new(Path(self.full(path)), data)
        if self.uri.partition(":")[0] not in _RENAMES_ONCE:
            raise StorageError(
                f"cannot commit to {self.full(path)!r}: {files.type_name} files cannot "
                "be created only if absent, so a commit could replace another one "
                "(accepted: a local disk, HDFS, S3, GCS or Azure)"
            )
        if self.stat(path) is not None:
            return False
        hidden = f"{path.rpartition('/')[0]}/{temporary_name()}"
        try:
            self.write(hidden, data)
            return self._renamed_unless_there(hidden, path)
        finally:
            with contextlib.suppress(OSError):
                self.delete(hidden)

    def delete(self, path: str) -> None:
        """Delete a file."""
        self._files.delete_file(self.full(path))

    def move(self, path: str, target: str) -> None:
        """Give a file another name."""
        self._make_folder_of(target)
        self._files.move(self.full(path), self.full(target))

    def copy(self, path: str, target: str) -> bool:
        """Copy a file; False if one is there.

        The copy has its name only once it is whole.
        """
        self._make_folder_of(target)
        hidden = f"{target.rpartition('/')[0]}/{temporary_name()}".lstrip("/")
        try:
            self._files.copy_file(self.full(path), self.full(hidden))
            if self.stat(path) is None:  # others have deleted it, and perhaps its copy
                raise FileNotFoundError(errno.ENOENT, "No such file", path)
            return self._renamed_unless_there(hidden, target)
        finally:
            with contextlib.suppress(OSError):
                self.delete(hidden)

    def _renamed_unless_there(self, path: str, target: str) -> bool:
        """Whether a file was renamed; HDFS refuses that where the name is taken."""
        if self.stat(target) is not None:
            return False
        try:
            self._files.move(self.full(path), self.full(target))
        except OSError:
            if self.stat(target) is None:
                raise
            return False
        return True

    def delete_tree(self, folder: str) -> None:
        """Delete a folder with all that is in it."""
        self._files.delete_dir(self.full(folder))

    def _make_folder_of(self, path: str) -> None:
        self._files.create_dir(self.full(path).rpartition("/")[0], recursive=True)
