"""Removing every trace of deleted data from what is stored beside a table.

A commit omits deleted data files.  What is left of them is in older commits and
manifests, and in packs that they share with other files.  Purging writes those packs
again from the existing files, drops what cannot be read, and blanks the older
commits; the vacuum that follows deletes what nothing refers to any more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from skipindex.build.merge import rewrite_packs
from skipindex.build.repair import without_packs
from skipindex.errors import CorruptIndexError
from skipindex.log import Snapshot, latest_version, newest_for_writer
from skipindex.log.manifest import Manifest
from skipindex.log.moved import without_vanished
from skipindex.log.properties import TableProperties
from skipindex.source import commit
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import (
    PACKS,
    commit_path,
    is_commit,
)
from skipindex.storage.pack import Blob, blob_offsets
from skipindex.table import TableState

BLANK: Final = json.dumps({"purged": True}).encode()
"""A commit that says nothing: its number stays taken, for writers that are at work."""


def forget(location: Location, opened: Callable[[], TableState]) -> list[str]:
    """Remove deleted data from the newest commit and its packs.

    ``opened`` opens the table as the caller did; it is called only if a pack holds more
    than what is in use.

    Returns:
        Packs that could not be read, and so were dropped.
    """
    _commit_live(location)
    notes = _forget_packs(location, opened)
    if any(segment.dead for segment in newest_for_writer(location).segments):
        commit(location, _as_it_is, operation="purge", forget=True)
    return notes


def _as_it_is(base: Snapshot) -> tuple[Manifest, TableProperties]:
    return base.manifest, base.properties


def _forget_packs(location: Location, opened: Callable[[], TableState]) -> list[str]:
    """Write packs again that hold more than what is in use, or give them up."""
    impure = _impure(location)
    if not impure:
        return []
    table, notes = rewrite_packs(opened(), impure, forget_bins=True)
    left = impure & {pack.name for pack in table.snapshot.manifest.packs}
    if left:  # unreadable, so nothing says whose values they hold
        commit(
            location,
            lambda base: (
                without_packs(base.manifest, lambda _: left),
                base.properties,
            ),
            operation="purge",
        )
    return notes


def blank_older_commits(location: Location) -> None:
    """Leave nothing but its number of every commit but the newest."""
    newest = commit_path(latest_version(location))
    for file in list(location.list_own()):
        if is_commit(file.path) and file.path < newest:
            location.write(file.path, BLANK)


def _commit_live(location: Location) -> None:
    """A commit that knows the files that are there, and no others."""

    def live(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return without_vanished(base.manifest, location), base.properties

    base = newest_for_writer(location)
    if base.newest < 0:
        return
    is_whole = base.damaged is None and not base.lost
    if not is_whole or len(live(base)[0]) < len(base.manifest):
        commit(location, live, operation="purge")


def _impure(location: Location) -> set[str]:
    """The packs that hold more than what is referred to, or cannot be read."""
    result = set()
    for use in newest_for_writer(location).manifest.blobs():
        try:
            source = location.view(f"{PACKS}/{use.pack.name}")
            n_slots = len(Blob(source, use.entry).n_rows)
            blobs = blob_offsets(source)
        except (CorruptIndexError, OSError):
            result.add(use.pack.name)
            continue
        named = {blob.offset for blob in use.pack.blobs}
        if n_slots > len(set(use.slots.tolist())) or blobs != named:
            result.add(use.pack.name)
    return result
