"""Which files of old commits readers may still use.

Nothing that is named here may be deleted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Final

from skipindex.errors import CorruptIndexError, IndexVersionError, StorageError
from skipindex.log import (
    Segment,
    Snapshot,
    read_file,
    read_snapshot,
    segments_of,
)
from skipindex.source.folder.replacements import Rewrites
from skipindex.storage.checks import RefusedError
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import PACKS, is_commit, version_of

NS: Final = 1_000_000_000
"""Nanoseconds of a second, in which modification marks count."""


def referenced(
    location: Location,
    newest: Snapshot,
    listing: Iterable[FileInfo],
    *,
    keep: float,
    since: float,
) -> set[str]:
    """Paths that the newest commit refers to, or one within the retention.

    ``listing`` has all files of the table.  ``keep`` is the retention in seconds; with
    0 the newest commit alone counts.  It began at ``since``, in seconds since 1970.
    """
    needed = Rewrites.of(newest).hidden
    seen: set[str] = set()
    commits = sorted((f for f in listing if is_commit(f.path)), key=lambda f: f.path)
    recent = [f for f in commits if f.mtime > since * NS]
    older = [f for f in commits if f.mtime <= since * NS]
    if keep and older:  # it was the newest when the retention began
        recent.append(older[-1])
    for file in {*commits[-1:], *(recent if keep else ())}:
        needed.add(file.path)
        version = version_of(file.path.rpartition("/")[2])
        assert version is not None
        with _unless_damaged():
            if file in commits[-1:]:
                snapshot = read_snapshot(location, version)
                needed |= parts_of(snapshot) | Rewrites.of(snapshot).hidden
            else:
                for segment in segments_of(location, version):
                    needed |= _parts_of_segment(location, segment, seen)
    return needed


@contextlib.contextmanager
def _unless_damaged() -> Iterator[None]:
    """What is damaged names nothing; what cannot be read may name anything."""
    try:
        yield
    except (RefusedError, IndexVersionError) as error:
        raise StorageError(f"nothing more was deleted: {error}") from error
    except CorruptIndexError:
        pass


def _parts_of_segment(location: Location, segment: Segment, seen: set[str]) -> set[str]:
    """Paths of a segment and of all packs that it names, unless it was ``seen``."""
    if segment.name in seen:
        return set()
    seen.add(segment.name)
    result = {segment.path}
    with _unless_damaged():
        packs = read_file(location, segment).packs
        result |= {f"{PACKS}/{pack.name}" for pack in packs}
    return result


def parts_of(snapshot: Snapshot) -> set[str]:
    """Paths of the segments and the packs of a commit."""
    segments = (*snapshot.segments, *(one.segment for one in snapshot.lost))
    packs = {f"{PACKS}/{pack.name}" for pack in snapshot.manifest.packs}
    return {*(segment.path for segment in segments), *packs}
