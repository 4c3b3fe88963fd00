"""The files of tables: those of a layout, links to them, and what the system holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import skipindex as sx


def data_files(folder: Path) -> list[Path]:
    """The data files of a layout, sorted."""
    return sorted(folder.glob("*.parquet"))


def is_written(folder: Path) -> bool:
    """Whether a write has been committed there."""
    try:
        return sx.open_table(folder).state.snapshot.version >= 0
    except sx.TableError:
        return False


def linked(files: Sequence[Path], folder: Path) -> list[Path]:
    """The same files in a new folder, under the same names, without their bytes.

    Copies where the file system cannot link.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    links = [folder / file.name for file in files]
    for file, link in zip(files, links, strict=True):
        try:
            os.link(file, link)
        except OSError:
            shutil.copyfile(file, link)
    return links


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def forget(*folders: Path) -> None:
    """Let the system forget the bytes of the files below some folders.

    The next reader has them from the disk.  Bytes that are not there yet stay: after
    files are written, ``os.sync`` comes first.
    """
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                file = os.open(path, os.O_RDONLY)
                try:
                    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(file)
