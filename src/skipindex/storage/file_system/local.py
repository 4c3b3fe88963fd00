"""Local files and folders that are on the disk once a call returns.

A new one is never open to more people than the folder that it is in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
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


def denied_by(paths: Iterable[str]) -> int:
    """The permissions of all who may not read one of the files."""
    denied = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            mode = Path(path).stat().st_mode
            denied |= 0 if mode & stat.S_IRGRP else stat.S_IRWXG
            denied |= 0 if mode & stat.S_IROTH else stat.S_IRWXO
    return denied


@contextlib.contextmanager
def written_beside(target: Path, data: bytes | memoryview) -> Iterator[Path]:
    """A synced file in the folder of ``target``, gone again at the end."""
    make_folder(target.parent)
    hidden = temporary(target.parent)
    try:
        with hidden.open("xb") as file:
            narrow_to(hidden, target.parent)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield hidden
    finally:
        hidden.unlink(missing_ok=True)


def link_new(target: Path, data: bytes) -> bool:
    """Write a whole file, unless there is one already; False if there is."""
    with written_beside(target, data) as hidden:
        try:
            try:
                os.link(hidden, target)
            except FileExistsError:
                raise
            except OSError:  # no hard links: exFAT, SMB, many FUSE mounts
                with target.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                shutil.copymode(hidden, target)
        except FileExistsError:
            return False
        sync_folder(target.parent)
        return True


def link_or_copy(path: str, target: Path) -> None:
    """Make a file available at ``target`` too; a file there is replaced."""
    hidden = temporary(target.parent)
    try:
        try:
            os.link(path, hidden)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without links
            shutil.copy2(path, hidden)
        hidden.replace(target)
    finally:
        # Where both names are links to one file, replacing does nothing.
        hidden.unlink(missing_ok=True)
