"""Files in a staging folder that no reader lists, and moving them beside the data.

A run writes below ``_skipindex/staging/<run>``, a folder that no other job knows.
What is there becomes part of a table by moving into hidden folders beside the data,
by a commit that names it, and last by visible names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from skipindex.errors import CommitConflictError, TableError
from skipindex.storage.at_once import at_once
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    HIDDEN,
    HIDDEN_END,
    is_copy_folder,
    is_data_file,
)


def hide_staged(
    location: Location,
    staged: str,
    name: str,
    folder_of: Callable[[str], str],
    made: list[str],
    *,
    visible: bool = False,
) -> list[tuple[str, FileInfo]]:
    """Move staged files into hidden folders; where each was staged, and where it is.

    With ``visible``, they get the names that hidden ones are published by.

    They are on the disk afterwards, so that a commit may name them.  No other files
    have the ``name`` of the run.  ``made`` gets each path before a file is moved there.
    """
    files = [
        (path, file)
        for file in sorted(location.list(staged), key=lambda file: file.path)
        if file.size and is_data_file(path := file.path.removeprefix(f"{staged}/"))
    ]
    for folder in sorted({folder_of(path) for path, _ in files}):
        if link := location.link_on_the_way(folder):
            raise TableError(
                f"no file can be added to {location.full(folder)!r}, because "
                f"{location.full(link)!r} is a link, and skipindex writes nothing "
                "outside of the table (accepted: a folder of the table itself)"
            )
    numbers: dict[str, int] = {}
    targets = []
    for path, _ in files:
        folder = folder_of(path)
        number = numbers.get(folder, 0)
        numbers[folder] = number + 1
        base = path.rpartition("/")[2]
        suffix = base[base.index(".") :] if "." in base else ""
        beside = f"{folder}/" if folder else ""
        shown = f"part-{number:05d}-{name}{_short(suffix)}"
        hidden = f"{HIDDEN}{name}/{shown}{HIDDEN_END}"
        targets.append(f"{beside}{shown if visible else hidden}")

    def moved(staged_at: str, target: str) -> FileInfo:
        made.append(target)
        location.move(staged_at, target)
        result = location.stat(target)
        if result is None:
            raise FileNotFoundError(target)
        return result

    sources = [file.path for _, file in files]
    with undeleted():
        result = at_once(location, moved, sources, targets)
        location.sync(targets)
    return [(path, file) for (path, _), file in zip(files, result, strict=True)]


def sync_left(location: Location, paths: Iterable[str]) -> None:
    """Write visible files to the disk; other tools may have deleted some of them."""
    left = list(paths)
    while left:
        try:
            location.sync(left)
        except FileNotFoundError:
            left = [path for path in left if location.stat(path) is not None]
        else:
            break


@contextlib.contextmanager
def undeleted() -> Iterator[None]:
    """Raise a conflict if a hidden file of the run was deleted."""
    try:
        yield
    except FileNotFoundError as error:
        raise CommitConflictError(
            f"a file was deleted before it was committed: {error} (by a vacuum with a "
            "retention shorter than a write?); try again"
        ) from error


def delete_files(
    location: Location, files: Iterable[str | FileInfo], *, folders: bool = False
) -> None:
    """Delete files, Hadoop's checksums of them, and hidden folders left empty.

    The files may be gone already, and what a link leads to stays.  Those that are given
    as they were listed stay if they have changed since.  With ``folders``, every folder
    that becomes empty is deleted.  Another writer may have made it a moment ago, so
    this is for a table that is replaced whole.
    """
    files = list(files)
    paths = [file if isinstance(file, str) else file.path for file in files]
    parents = {path.rpartition("/")[0] for path in paths}
    own = {folder for folder in parents if not location.link_on_the_way(folder)}

    def delete(file: str | FileInfo, path: str) -> None:
        if path.rpartition("/")[0] not in own:
            return
        if isinstance(file, str):
            location.delete(path)
        elif not location.delete_own(file):
            return
        location.delete(checksum_of(path))

    at_once(location, delete, files, paths)
    for folder in own:
        above = folder
        while above and (folders or is_copy_folder(above)):
            location.delete_folder(above)
            above = above.rpartition("/")[0]


def _short(suffix: str) -> str:
    """``.snappy.parquet`` of Spark's ``.c000.snappy.parquet``."""
    return ".".join(["", *suffix.split(".")[-2:]]) if suffix.count(".") > 2 else suffix


def delete_with_checksum(location: Location, file: FileInfo) -> bool:
    """Delete a file that is as it was listed, and its checksum; whether it was."""
    if not location.delete_own(file):
        return False
    if location.owns(checksum_of(file.path)):
        location.delete(checksum_of(file.path))
    return True


def checksum_of(path: str) -> str:
    """Where Hadoop's file system of a local disk keeps the checksum of a file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"
