"""Listing local folders: which links are followed, and never in a circle."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skipindex.storage.file_system.names import is_data_file

_MAX_LINKS: Final = 4
"""Links to folders on the way to a file; more of them are a trap, not a table."""

NOTHING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors of the system if there is no such file or folder; after any other there may
be one."""

Entry = tuple[str, os.stat_result]
"""A path relative to the root, and what is there."""


def walk(root: str, folder: str, *, links: bool, deep: bool = True) -> Iterator[Entry]:
    """Every file and folder below ``folder``, but for what has gone meanwhile.

    Not what lies in these folders, unless ``deep``.

    What is hidden and closed to this user is left out.

    Links are followed as Spark follows them, to files and to folders; not those whose
    name, or the name of a folder on the way, begins with ``_`` or ``.``, because
    what lies there is no data.

    Results are relative to ``root``.  Without ``links``, links are left out.
    """
    top = f"{root}/{folder}" if folder else root
    try:
        here = Path(top).stat()
    except OSError as error:
        if error.errno not in NOTHING:
            raise
        return
    if not stat.S_ISDIR(here.st_mode):
        return
    # A link to a folder above leads around in a circle too.
    above = (parent.stat() for parent in Path(top).resolve().parents)
    chain = frozenset([_identity(here), *map(_identity, above)])
    pending = [(folder, chain, 0)]
    while pending:
        path, chain, n_links = pending.pop()
        shown = is_data_file(path) if path else True
        for name, is_link in _entries(root, path, shown=shown):
            below = f"{path}/{name}" if path else name
            if is_link and not (links and shown and is_data_file(name)):
                continue
            try:
                there = os.stat(f"{root}/{below}")  # noqa: PTH116 (three times faster)
            except OSError as error:
                _require_passable(error, shown=shown and is_data_file(name))
                continue
            if stat.S_ISDIR(there.st_mode):
                n = n_links + is_link
                if _identity(there) in chain or n > _MAX_LINKS:
                    continue
                if deep:
                    pending.append((below, chain | {_identity(there)}, n))
                yield below, there
            elif stat.S_ISREG(there.st_mode):
                yield below, there


def _entries(root: str, path: str, *, shown: bool) -> list[tuple[str, bool]]:
    """Names in a folder, and whether they are links; hidden ones may be unreadable."""
    try:
        with os.scandir(f"{root}/{path}" if path else root) as entries:
            return [(entry.name, entry.is_symlink()) for entry in entries]
    except OSError as error:
        _require_passable(error, shown=shown)
        return []


def _require_passable(error: OSError, *, shown: bool) -> None:
    """Raise the error unless what it is of is gone, or hidden and not for this user."""
    closed = error.errno in {errno.EACCES, errno.EPERM}
    if error.errno not in NOTHING and (shown or not closed):
        raise error


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def mode_of(path: str) -> int | None:
    """The mode of a file, folder or link; None if there is none."""
    try:
        return os.lstat(path).st_mode
    except OSError as error:
        if error.errno not in NOTHING:
            raise
        return None


def open_regular(path: str) -> int:
    """A descriptor of a regular file; a pipe or a device is never waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return descriptor
