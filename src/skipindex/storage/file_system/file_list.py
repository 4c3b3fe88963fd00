"""The files of a listing in columns, so that millions of them are compared at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Ints
from skipindex.storage.file_system.file_info import FileInfo, Marks


class FileList(Sequence[FileInfo]):
    """The files of a listing, of which one is made where it is looked at.

    Args:
        names: the paths as bytes; of a local file they may be no UTF-8.
        sizes: in bytes.
        mtimes: modification marks, in nanoseconds.
        listed: the files one by one, where they were listed so.
        tags: of a store, where the files were not listed.
    """

    def __init__(
        self,
        names: pa.BinaryArray,
        sizes: Ints,
        mtimes: Ints,
        listed: Sequence[FileInfo] | None = None,
        tags: pa.StringArray | None = None,
    ) -> None:
        self.names = names
        self.sizes = sizes
        self.mtimes = mtimes
        self._listed = listed
        self._tags = tags

    @classmethod
    def of(cls, files: Sequence[FileInfo]) -> FileList:
        """These files; a ``FileList`` is returned as it is."""
        if isinstance(files, FileList):
            return files
        sizes = np.array([file.size for file in files], np.int64)
        mtimes = np.array([file.mtime for file in files], np.int64)
        return cls(_names([file.path for file in files]), sizes, mtimes, files)

    @cached_property
    def marks(self) -> Marks:
        """What the files must have in common with those that were committed."""
        found = self._tags
        if self._listed is not None:
            tags = [file.tag for file in self._listed]
            has_tags = any(tag is not None for tag in tags)
            found = pa.array(tags, pa.string()) if has_tags else None
        return Marks(self.sizes, self.mtimes, found)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, i: int, /) -> FileInfo: ...

    @overload
    def __getitem__(self, i: slice, /) -> list[FileInfo]: ...

    def __getitem__(self, i: int | slice, /) -> FileInfo | list[FileInfo]:
        places = range(len(self))[i]
        if isinstance(places, int):
            return self._made(np.array([places]))[0]
        return self._made(np.array(places, np.int64))

    def __iter__(self) -> Iterator[FileInfo]:
        return iter(self._made(np.arange(len(self))))

    def _made(self, places: Ints) -> list[FileInfo]:
        if self._listed is not None:
            return [self._listed[i] for i in places.tolist()]
        sizes, mtimes, tags = self.marks.at(places)
        marks = [sizes.tolist(), mtimes.tolist()]
        if tags is not None:
            marks.append(tags.to_pylist())
        return list(map(FileInfo, self.paths_at(places), *marks))

    @cached_property
    def paths(self) -> list[str]:
        """The path of every file."""
        return _texts(self.names)

    def paths_at(self, places: Ints) -> list[str]:
        """The paths of the files at these places."""
        return _texts(self.names.take(pa.array(places)))

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
