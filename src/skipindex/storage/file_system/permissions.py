"""New files and folders: never open to more people than the folder they are in."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path


def temporary(folder: Path) -> Path:
    """A new hidden name in a folder."""
    return folder / f".skipindex-{uuid.uuid4().hex}.tmp"


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, no more open than the folder that is there."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
    narrow_to(folder, folder.parent)


def narrow_to(path: Path, folder: Path) -> None:
    """Take the permissions that ``folder`` does not give from a new file or folder."""
    deny(path, ~(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU))


def deny(path: Path, denied: int) -> None:
    """Take permissions from a file or folder."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & denied:
        path.chmod(mode & ~denied)


def sync_file(path: Path) -> None:
    """Write a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, if the file system can do that."""
    with contextlib.suppress(OSError):
        sync_file(folder)
