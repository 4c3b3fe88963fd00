"""The columns of a listing are its files."""

from __future__ import annotations

import sys
from dataclasses import replace

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
    assert found.unnamed.tolist() == ([2] if files is ODD else [])
    assert FileList.of(found) is found
    assert not make(files[1:]).has_folders  # type: ignore[call-arg]
    with pytest.raises(IndexError):
        found[len(files)]


def test_tags_come_back_and_no_file_is_held() -> None:
    files = [FileInfo("a", 1, 2, '"x"'), FileInfo("b", 3, 4), FileInfo("c", 5, 6)]
    before = [sys.getrefcount(file) for file in files]
    found = FileList.of(files)
    assert list(found) == files
    assert found[0].tag == '"x"'
    assert [sys.getrefcount(file) for file in files] == before


@pytest.mark.parametrize("changed", ["nothing", "path", "size", "mtime", "length"])
def test_what_a_manifest_holds_too_is_held_once(changed: str) -> None:
    files = list(FILES)
    committed = pa.table(
        {
            "path": pa.array([file.path for file in files]),
            "size": pa.array([file.size for file in files]),
            "mtime": pa.array([file.mtime for file in files]),
        }
    )
    if changed == "length":
        del files[1]
    elif changed != "nothing":
        other = {"path": "y.parquet", "size": 99, "mtime": 98}[changed]
        files[2] = replace(files[2], **{changed: other})
    listing = FileList.of(files)
    found = listing.sharing(committed)
    assert list(found) == files
    held = committed["size"].chunk(0).to_numpy()
    shares = changed in {"nothing", "path", "mtime"}
    assert np.shares_memory(found.sizes, held) == shares
