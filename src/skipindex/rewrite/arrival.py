"""Appending rows: a writer that fails adds none.

1. The rows are written below ``_skipindex/staging/<run>``, which no reader sees.
2. The rows of the staged footers are counted: as many as went in, or it is an error.
3. The files move into hidden folders, and are indexed there.
4. They count from a commit on (``source.folder.new_files``).
"""

from __future__ import annotations

import contextlib
import uuid
import warnings
from collections.abc import Callable, Sequence

from skipindex.errors import SkipIndexError, TableError
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.expiry import expire_now_and_then
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.new_files import CommittedError, NewFiles, SaveMode
from skipindex.source.folder.staging import delete_files, hide_staged
from skipindex.source.parquet.footers import row_counts
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    FOLDER,
    LOG,
    PACKS,
    STAGING,
    is_hidden_copy,
)

Writer = Callable[[str], int]
"""Writes rows below a folder of the table that does not exist; how many went in."""

Indexer = Callable[[Sequence[FileInfo]], tuple[Manifest, TableProperties]]
"""Indexes the new files; a manifest of them, and properties for the table."""


def arrive(
    location: Location,
    mode: SaveMode,
    *,
    write: Writer,
    index: Indexer,
    known: Snapshot | None = None,
    batch: Batch | None = None,
) -> Snapshot | None:
    """Write rows into a table in one commit, which is returned.

    Nothing is committed for no rows at all; then ``known`` is, an earlier snapshot,
    whose segments are not read again.  Nor is it for a ``batch`` to append that the
    table has; then the newest snapshot is returned.
    """
    run = uuid.uuid4().hex
    was_there = location.exists()
    new = NewFiles(location, mode, known, batch)
    if not new.begin():
        return new.known
    try:
        n_rows = write(f"{STAGING}/{run}")
        if files := _counted(new, run, n_rows):
            _expire(location, new.add(files, *index(files)))
    except BaseException as error:
        if not new.count:
            new.withdraw(folders=not was_there)
        if isinstance(error, CommittedError):  # another run of the batch was faster
            return error.base
        raise
    finally:
        with contextlib.suppress(Exception):
            location.delete_tree(f"{STAGING}/{run}")
            if not (new.count or was_there):
                for folder in (PACKS, STAGING, FOLDER, ""):
                    location.delete_folder(folder)
    return new.known


def is_leftover(path: str) -> bool:
    """Whether the file was left by a writer who did not get to a commit."""
    is_ours = path.startswith(f"{FOLDER}/") and not path.startswith(f"{LOG}/")
    return is_ours or is_hidden_copy(path)


def _counted(new: NewFiles, run: str, n_rows: int) -> list[FileInfo]:
    """The staged files, hidden beside the data, if they hold as many rows."""
    location, staged = new.location, f"{STAGING}/{run}"
    hidden = hide_staged(
        location, staged, f"{run}-0", lambda path: path.rpartition("/")[0], new.made
    )
    files = [file for _, file in hidden]
    counts = row_counts(location, [file.path for file in files])
    if sum(counts) != n_rows:
        raise TableError(
            f"{sum(counts)} of {n_rows} rows reached the files of "
            f"{location.full('')!r}; nothing was added, try again"
        )
    filled = [file for file, n in zip(files, counts, strict=True) if n]
    if new.mode is not SaveMode.APPEND and not filled:
        # One file without rows says what columns the table has.
        filled = files[:1]
        if not filled:
            raise TableError(
                f"no rows for {location.full('')!r}, and Spark writes no file for "
                "them with partition_by, so no file would have the columns; nothing "
                "was written (accepted: at least one row, or no partition_by)"
            )
    named = {file.path for file in filled}
    delete_files(location, [file.path for file in files if file.path not in named])
    return filled


def _expire(location: Location, snapshot: Snapshot) -> None:
    """Delete old history; the rows are there, so an error of it is a warning."""
    try:
        expire_now_and_then(location, snapshot)
    except (SkipIndexError, OSError) as error:
        warnings.warn(
            f"old commits of {location.full('')!r} stay until the next vacuum: {error}",
            stacklevel=4,
        )
