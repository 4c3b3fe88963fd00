"""Which files of a rewrite are still the same in a copy of a table.

``cp -r``, a sync of a store and a restore give files new times.  A hidden file is known
by its name.  A file that was replaced has the name that another tool gave it, and that
tool may write it again.  So its time counts, and where the hidden files beside it have
other times too, which shows a copy, the crc32c of its footer.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crc32c import crc32c

from skipindex.errors import StorageError, TableError, first_line
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.replacements import Replacement


def recognised(
    location: Location,
    replacements: Sequence[Replacement],
    there: Mapping[str, FileInfo],
) -> tuple[Replacement, ...]:
    """The replacements, with the times that their old files have now in a copy.

    Raises:
        StorageError: one of them cannot be read now.
    """
    return tuple(_in_copy(location, one, there) for one in replacements)


def _in_copy(
    location: Location, one: Replacement, there: Mapping[str, FileInfo]
) -> Replacement:
    if not one.crcs:
        return one
    if not any(_has_another_time(file, there.get(file.path)) for file in one.new):
        return one
    old = tuple(
        _as_now(location, file, one.crcs.get(file.path), there.get(file.path))
        for file in one.old
    )
    return one if old == one.old else replace(one, old=old)


def _has_another_time(file: FileInfo, now: FileInfo | None) -> bool:
    """Whether a hidden file is a copy, by its time."""
    if now is None:
        return False
    if file.tag is None and now.tag is None:
        return now.mtime != file.mtime
    # Stores tell fractions of a second in a listing, but not of a single object.
    return now.mtime // SECOND != file.mtime // SECOND


def _as_now(
    location: Location, file: FileInfo, crc: int | None, now: FileInfo | None
) -> FileInfo:
    if now is None or crc is None or file.is_same(now) or file.size != now.size:
        return file
    try:
        return now if footer_crc(location, now) == crc else file
    except (FileNotFoundError, TableError):
        return file
    except OSError as error:
        raise StorageError(
            f"cannot read {location.full(file.path)!r}, so it cannot be told whether "
            f"it was replaced: {first_line(error)}"
        ) from error


def footer_crc(location: Location, found: FileInfo) -> int:
    """The crc32c of the Parquet footer, which names every column chunk.

    Raises:
        TableError: the file has no Parquet footer.
    """
    with location.open_input(found.path, found) as source:
        if found.size < 12:
            raise TableError(f"{found.size} bytes are too few for a Parquet file")
        tail = source.read_at(8, found.size - 8)
        if len(tail) < 8:
            raise FileNotFoundError(errno.ENOENT, "it has become shorter", found.path)
        if tail[4:] == b"PARE":
            raise TableError("its footer is encrypted")
        (length,) = struct.unpack("<I", tail[:4])
        if tail[4:] != b"PAR1" or length + 12 > found.size:
            raise TableError("no Parquet footer at its end")
        return int(crc32c(source.read_at(length, found.size - 8 - length)))
