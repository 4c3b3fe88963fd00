"""The columns of a listing are its files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import FileInfo

PATHS = ["a/k=1/x.parquet", "b.parquet", "ü.parquet", "z.parquet"]
FILES = [FileInfo(path, i, 10 * i) for i, path in enumerate(PATHS)]
ODD = [*FILES[:2], FileInfo(b"\xff.parquet".decode("utf-8", "surrogateescape"), 7, 8)]


def in_columns(files: list[FileInfo]) -> FileList:
    names = [file.path.encode("utf-8", "surrogateescape") for file in files]
    sizes = np.array([file.size for file in files], np.int64)
    mtimes = np.array([file.mtime for file in files], np.int64)
    return FileList(pa.array(names, pa.binary()), sizes, mtimes)


@pytest.mark.parametrize("files", [FILES, ODD, []], ids=["text", "bytes", "none"])
@pytest.mark.parametrize("make", [FileList.of, in_columns])
def test_a_file_is_made_where_it_is_looked_at(
    files: list[FileInfo], make: type[FileList]
) -> None:
    found: FileList = make(files)  # type: ignore[call-arg]
    assert len(found) == len(files)
    assert list(found) == files
    assert found[1:] == files[1:]
    assert found[::-2] == files[::-2]
    assert [found[i] for i in range(-len(files), len(files))] == files * 2
    assert found.paths == [file.path for file in files]
    assert found.paths_at(np.arange(len(files))[::-1]) == found.paths[::-1]
    assert found.sizes.tolist() == [file.size for file in files]
    assert found.mtimes.tolist() == [file.mtime for file in files]
    assert found.has_folders == any("/" in file.path for file in files)
    assert FileList.of(found) is found
    with pytest.raises(IndexError):
        found[len(files)]


def test_a_flat_listing_has_no_folders() -> None:
    assert not FileList.of(FILES[1:]).has_folders
