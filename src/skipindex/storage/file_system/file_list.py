"""The files of a listing in columns, so that millions of them are compared at once.

A file takes the bytes of its path and a few numbers, and no object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Ints
from skipindex.storage.file_system.file_info import FileInfo, Marks


class FileList(Sequence[FileInfo]):
    """The files of a listing, of which one is made where it is looked at.

    ``names`` are paths as bytes, as a local path may be no UTF-8.  Sizes are in bytes,
    ``mtimes`` in nanoseconds, and ``tags`` are like those of ``Marks``.
    """

    def __init__(
        self,
        names: pa.BinaryArray,
        sizes: Ints,
        mtimes: Ints,
        tags: pa.StringArray | None = None,
    ) -> None:
        self.names = names
        self.sizes = sizes
        self.mtimes = mtimes
        self.tags = tags

    @classmethod
    def of(cls, files: Sequence[FileInfo]) -> FileList:
        """These files; a ``FileList`` is returned as it is."""
        if isinstance(files, FileList):
            return files
        sizes = np.array([file.size for file in files], np.int64)
        mtimes = np.array([file.mtime for file in files], np.int64)
        tags = pa.array([file.tag for file in files], pa.string())
        has_tags = tags.null_count < len(tags)
        names = _names([file.path for file in files])
        return cls(names, sizes, mtimes, tags if has_tags else None)

    @property
    def marks(self) -> Marks:
        """What the files must have in common with those that were committed."""
        return Marks(self.sizes, self.mtimes, self.tags)

    def sharing(self, files: pa.Table) -> FileList:
        """The same files; columns that a manifest's files have too are held once."""
        path, size, mtime = (
            files[name].chunk(0) if files[name].num_chunks == 1 else None
            for name in ("path", "size", "mtime")
        )
        if path is None or size is None or mtime is None:
            return self
        names = path.cast(self.names.type)
        pairs = (self.sizes, size.to_numpy()), (self.mtimes, mtime.to_numpy())
        sizes, mtimes = (
            theirs if np.array_equal(own, theirs) else own for own, theirs in pairs
        )
        names = names if names.equals(self.names) else self.names
        return FileList(names, sizes, mtimes, self.tags)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, i: int, /) -> FileInfo: ...

    @overload
    def __getitem__(self, i: slice, /) -> list[FileInfo]: ...

    def __getitem__(self, i: int | slice, /) -> FileInfo | list[FileInfo]:
        places = range(len(self))[i]
        if isinstance(places, int):
            return self.at(np.array([places]))[0]
        return self.at(np.array(places, np.int64))

    def __iter__(self) -> Iterator[FileInfo]:
        return iter(self.at(np.arange(len(self))))

    def at(self, places: Ints) -> list[FileInfo]:
        """The files at these places."""
        marks = self.marks.at(places)
        columns = marks.sizes.tolist(), marks.mtimes.tolist()
        result = map(FileInfo, self.paths_at(places), *columns)
        if marks.tags is None:
            return list(result)
        tags = marks.tags.to_pylist()
        return [replace(file, tag=tag) for file, tag in zip(result, tags, strict=True)]

    @cached_property
    def paths(self) -> list[str]:
        """The path of every file."""
        return _texts(self.names)

    def paths_at(self, places: Ints) -> list[str]:
        """The paths of the files at these places."""
        return _texts(self.names.take(pa.array(places)))

    @cached_property
    def unnamed(self) -> Ints:
        """The places of the files whose path is no UTF-8, so no log can name it."""
        try:
            self.names.cast(pa.string())
        except pa.ArrowInvalid:
            names = map(_is_text, self.names.to_pylist())
            return np.flatnonzero(~np.fromiter(names, bool, len(self)))
        return np.empty(0, np.int64)

    @cached_property
    def has_folders(self) -> bool:
        """Whether some file lies in a folder."""
        return bool(pc.any(pc.match_substring(self.names, "/")).as_py())


def _names(paths: Sequence[str]) -> pa.BinaryArray:
    try:
        return pa.array(paths, pa.binary())
    except UnicodeEncodeError:
        texts = [path.encode("utf-8", "surrogateescape") for path in paths]
        return pa.array(texts, pa.binary())


def _texts(names: pa.BinaryArray) -> list[str]:
    try:
        texts: list[str] = names.cast(pa.string()).to_pylist()
    except pa.ArrowInvalid:
        return [name.decode("utf-8", "surrogateescape") for name in names.to_pylist()]
    return texts


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
