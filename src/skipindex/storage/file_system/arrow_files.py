"""A folder on a file system of pyarrow: HDFS, and what else is no object store."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from skipindex.errors import StorageError
from skipindex.storage.file_system.byte_source import (
    ByteSource,
    Files,
    read_whole,
    remote_source,
)
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.local import link_new
from skipindex.storage.file_system.names import temporary_name
from skipindex.storage.file_system.object_store import commit_lock


@dataclass(frozen=True, slots=True)
class ArrowFiles(Files):
    """One folder.

    ``uri`` is how pyarrow finds the file system; ``root`` has no slash at the end.
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
        return self._below(folder, pafs.FileType.File)

    def folders(self) -> Iterator[FileInfo]:
        return self._below("", pafs.FileType.Directory)

    def _below(self, folder: str, kind: pafs.FileType) -> Iterator[FileInfo]:
        start = len(self.root) + 1
        for info in self._entries(folder, recursive=True):
            if info.type == kind:
                yield FileInfo(info.path[start:], info.size or 0, info.mtime_ns or 0)

    def entries(self, folder: str) -> Iterator[FileInfo]:
        for info in self._entries(folder, recursive=False):
            path = info.path[len(self.root) + 1 :]
            is_file = info.type == pafs.FileType.File
            name = path if is_file else f"{path}/"
            yield FileInfo(name, info.size or 0, info.mtime_ns or 0)

    def names(self, folder: str) -> Sequence[str]:
        return [info.base_name for info in self._entries(folder, recursive=False)]

    def _entries(self, folder: str, *, recursive: bool) -> list[pafs.FileInfo]:
        """What is in a folder; nothing if there is none."""
        full = self.full(folder)
        try:
            # With ``allow_not_found`` every error of HDFS would be "there is none".
            result = self._files.get_file_info(
                pafs.FileSelector(full, recursive=recursive)
            )
        except FileNotFoundError:
            if self.holds(full):  # one of its folders is gone, or cannot be listed
                raise
            return []
        return list(result)

    def stat(self, path: str) -> FileInfo | None:
        info = self._info(self.full(path))
        if info is None or info.type != pafs.FileType.File:
            return None
        return FileInfo(path, info.size, info.mtime_ns or 0)

    def holds(self, full: str) -> bool:
        return self._info(full) is not None

    def _info(self, full: str) -> pafs.FileInfo | None:
        """What is known of a path; None if nothing is there."""
        info = self._files.get_file_info(full)
        if info.type != pafs.FileType.NotFound:
            return info
        # pyarrow says "not found" for every error of HDFS, so opening the file decides.
        try:
            self._files.open_input_file(full).close()
        except FileNotFoundError:
            return None
        raise OSError(errno.EIO, "it is there and cannot be looked at", full)

    def open_input(self, path: str, _: FileInfo | None = None) -> pa.NativeFile:
        return self._files.open_input_file(self.full(path))

    def view(self, path: str, _: FileInfo | None = None) -> ByteSource:
        return remote_source(partial(self.open_input, path))

    def read(self, path: str, limit: int) -> bytes:
        return read_whole(self.view(path), path, limit)

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file; one that is there is replaced."""
        self._make_folder_of(path)
        with self._files.open_output_stream(self.full(path)) as sink:
            sink.write(data)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already; False if there is.

        HDFS has a rename that replaces nothing, but pyarrow deletes what has the name
        and renames again.  So a lock decides that the user supplies.
        """
        files = self._files
        if isinstance(files, pafs.LocalFileSystem):
            return link_new(Path(self.full(path)), data)
        lock = commit_lock()
        if lock is None:
            raise StorageError(
                f"cannot commit to {self.full(path)!r}: by pyarrow, {files.type_name} "
                "files cannot be created only if absent, so a commit could replace "
                "another one (accepted: a local disk, S3, GCS, Azure, or a lock of "
                "yours: skipindex.api.set_commit_lock)"
            )
        hidden = f"{path.rpartition('/')[0]}/{temporary_name()}"
        with lock.held(self.full(path)):
            try:
                self.write(hidden, data)
                return self._renamed_unless_there(hidden, path)
            finally:
                with contextlib.suppress(OSError):
                    self.delete(hidden)

    def delete(self, path: str) -> None:
        self._files.delete_file(self.full(path))

    def move(self, path: str, target: str) -> None:
        self._make_folder_of(target)
        self._files.move(self.full(path), self.full(target))

    def copy(self, path: str, target: str) -> bool:
        """Copy a file; False if one is there.

        The copy has its name only once it is whole.  Two publishers make the same copy,
        so it does no harm if the second takes the place of the first.
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
        """Whether a file was renamed, as nothing had the name."""
        if self.stat(target) is not None:
            return False
        self._files.move(self.full(path), self.full(target))
        return True

    def delete_tree(self, folder: str) -> None:
        self._files.delete_dir(self.full(folder))

    def _make_folder_of(self, path: str) -> None:
        self._files.create_dir(self.full(path).rpartition("/")[0], recursive=True)
