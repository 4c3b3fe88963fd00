"""Deleting files that an interrupted call wrote and no commit names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from skipindex.errors import SkipIndexError
from skipindex.log.commits import Snapshot, latest_version, read_snapshot
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.telling import telling


@contextlib.contextmanager
def undone_if_interrupted(location: Location, known: Snapshot) -> Iterator[None]:
    """After an interrupt, such as Ctrl-C, no new file is left that no commit names.

    ``known`` is a snapshot from before.  An error leaves such files to ``vacuum``.
    """
    made: list[str] = []
    try:
        with telling(made=made.append):
            yield
    except (KeyboardInterrupt, SystemExit):
        with contextlib.suppress(OSError, SkipIndexError):
            _take_back(location, made, known)
        raise


def _take_back(location: Location, made: list[str], known: Snapshot) -> None:
    """Delete the files that the commits after ``known`` do not name."""
    named = set()
    for version in range(known.newest + 1, latest_version(location) + 1):
        snapshot = read_snapshot(location, version, known=known)
        named |= {f"{PACKS}/{pack.name}" for pack in snapshot.manifest.packs}
        named |= {segment.path for segment in snapshot.segments}
    for path in made:
        relative = path.removeprefix(f"{location.at(PACKS).root}/")
        if relative not in named:
            location.delete(relative)
