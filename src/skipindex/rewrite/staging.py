"""Files that were written where no reader looks, and their way beside the data.

A run writes below ``_skipindex/staging/<run>``, a folder that no other job knows.
What is there becomes part of a table by moving into hidden folders beside the data,
by a commit that names it, and last by visible names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import HIDDEN, is_copy_folder, is_data_file


def hide_staged(
    location: Location,
    staged: str,
    name: str,
    folder_of: Callable[[str], str],
    made: list[str],
) -> list[tuple[str, FileInfo]]:
    """Move staged files into hidden folders; where each was staged, and where it is.

    They are on the disk afterwards, so that a commit may name them.

    Args:
        location: of the table.
        staged: the folder that they are in.
        name: of the run; no other files have it.
        folder_of: the folder of the table that a staged file belongs into.
        made: gets every path before a file is moved there.
    """
    numbers: dict[str, int] = {}
    moved = []
    for file in sorted(location.list(staged), key=lambda file: file.path):
        path = file.path.removeprefix(f"{staged}/")
        if file.size == 0 or not is_data_file(path):
            continue
        folder = folder_of(path)
        number = numbers.get(folder, 0)
        numbers[folder] = number + 1
        base = path.rpartition("/")[2]
        suffix = base[base.index(".") :] if "." in base else ""
        beside = f"{folder}/" if folder else ""
        target = f"{beside}{HIDDEN}{name}/part-{number:05d}-{name}{_short(suffix)}"
        made.append(target)
        location.move(file.path, target)
        hidden = location.stat(target)
        assert hidden is not None
        moved.append((path, hidden))
    location.sync([hidden.path for _, hidden in moved])
    return moved


def delete_files(
    location: Location, paths: Sequence[str], *, folders: bool = False
) -> None:
    """Delete files, Hadoop's checksums of them, and hidden folders left empty.

    The files may be gone already.  With ``folders``, every folder that becomes empty is
    deleted.  Another writer may have made it a moment ago, so this is for a table that
    is replaced whole.
    """
    for path in paths:
        folder, slash, name = path.rpartition("/")
        location.delete(path)
        location.delete(f"{folder}{slash}.{name}.crc")
    for folder in {path.rpartition("/")[0] for path in paths}:
        above = folder
        while above and (folders or is_copy_folder(above)):
            location.delete_folder(above)
            above = above.rpartition("/")[0]


def _short(suffix: str) -> str:
    """``.snappy.parquet`` of Spark's ``.c000.snappy.parquet``."""
    return ".".join(["", *suffix.split(".")[-2:]]) if suffix.count(".") > 2 else suffix
