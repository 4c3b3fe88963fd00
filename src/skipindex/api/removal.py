"""Removing everything that skipindex stores beside a table's data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from skipindex.errors import CommitConflictError, IndexVersionError, TableError
from skipindex.log import Snapshot, newest_for_writer
from skipindex.notebook import InNotebook
from skipindex.source.folder.hidden_files import hidden_paths
from skipindex.source.folder.staging import delete_with_checksum
from skipindex.source.formats import log_in
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import (
    FOLDER,
    LOG,
    MANIFESTS,
    PACKS,
    STAGING,
    is_aside,
    is_commit,
    is_hidden_copy,
    is_own_garbage,
    is_record,
    version_of,
)

_FOLDERS: Final = (STAGING, PACKS, MANIFESTS, LOG, FOLDER)
"""Folders that are deleted once they are empty, the inner ones first."""


@dataclass(frozen=True, slots=True)
class RemovalReport(InNotebook):
    """What ``Table.remove_indexes`` did, or would do.

    Args:
        folder: the table.
        deleted: paths of the deleted files, relative to the table.
        n_bytes: the size of these files.
        left: paths of files beside them that other tools wrote, which stay.
        dry_run: whether nothing was deleted.
    """

    folder: str
    deleted: tuple[str, ...]
    n_bytes: int
    left: tuple[str, ...]
    dry_run: bool

    def __str__(self) -> str:
        verb = "would remove" if self.dry_run else "removed"
        text = (
            f"{verb} {len(self.deleted)} files, {self.n_bytes / 1e6:.1f} MB, of the "
            f"indexes of {self.folder}; the data files are unchanged"
        )
        if self.left:
            text += f"; {len(self.left)} other files stay, such as {self.left[0]}"
        return text


def remove(location: Location, *, dry_run: bool) -> RemovalReport:
    """See ``Table.remove_indexes``."""
    for folder in (LOG, MANIFESTS, PACKS):
        if link := location.link_on_the_way(folder):
            raise TableError(
                f"{location.full(link)!r} is a link, and its target may belong to "
                "another table (accepted: delete the link yourself)"
            )
    listing = list(location.list_own())
    snapshot = _newest(location)
    _check_rows_are_visible(location, snapshot, listing)
    own = [file for file in listing if file.path.startswith(f"{FOLDER}/")]
    commits = sorted(
        (file for file in own if is_commit(file.path)), key=lambda file: file.path
    )
    garbage = [
        file
        for file in own
        if is_own_garbage(file.path) or is_aside(file.path) or is_record(file.path)
    ]
    packs = [file for file in garbage if not file.path.startswith(f"{MANIFESTS}/")]
    manifests = [file for file in garbage if file.path.startswith(f"{MANIFESTS}/")]
    # An index that is gone is an index less.  Of commits the newest counts, so it is
    # the last one; and what it refers to is there for as long as it is.
    due = [*packs, *commits, *manifests]
    done = due if dry_run else _delete(location, due)
    named = {file.path for file in due}
    report = RemovalReport(
        location.plain_path(""),
        tuple(sorted(file.path for file in done)),
        sum(file.size for file in done),
        tuple(sorted(file.path for file in own if file.path not in named)),
        dry_run,
    )
    if dry_run:
        return report
    _delete_folders(location)
    if any(version_of(name) is not None for name in _names(location, LOG)):
        raise CommitConflictError(
            f"another writer committed to {location.full('')!r} while its indexes were "
            "removed (remove them again once it has ended)"
        )
    return report


def _newest(location: Location) -> Snapshot:
    try:
        return newest_for_writer(location)
    except IndexVersionError as error:
        raise TableError(
            f"cannot determine which files belong to {location.full('')!r}: {error} "
            "(remove its indexes with the library that wrote them)"
        ) from error


def _check_rows_are_visible(
    location: Location, snapshot: Snapshot, listing: Iterable[FileInfo]
) -> None:
    """Raise ``TableError`` if only the log says which files hold the table's rows."""
    if snapshot.damaged is not None:
        raise TableError(
            f"the newest commit of {location.full('')!r} is damaged, so it is unknown "
            "which files belong to the table (accepted: vacuum(purge=True), and then "
            "remove_indexes)"
        )
    tables = [
        folder.path.removesuffix(FOLDER)
        for folder in location.list_folders()
        if folder.path.endswith(f"/{FOLDER}")
    ]
    hidden = [
        file.path
        for file in listing
        if is_hidden_copy(file.path) and not file.path.startswith(tuple(tables))
    ]
    if (hidden or hidden_paths(snapshot)) and not log_in(location):
        n = len(hidden)
        raise TableError(
            f"only the log of {location.full('')!r} says which files belong to the "
            f"table: {n} rewritten or appended files are hidden, or replaced files "
            "still exist (accepted: vacuum(retention=timedelta(0)), which publishes "
            "or deletes them, and then remove_indexes)"
        )


def _delete(location: Location, files: Iterable[FileInfo]) -> list[FileInfo]:
    """Delete files one after the other; those that were deleted."""
    done = []
    for file in files:
        if is_aside(file.path):
            deleted = location.settle_aside(file.path)
        else:
            deleted = delete_with_checksum(location, file)
        if deleted:
            done.append(file)
    return done


def _delete_folders(location: Location) -> None:
    inner = [f.path for f in location.list_folders() if f.path.startswith(f"{FOLDER}/")]
    for folder in [*sorted(inner, reverse=True), *_FOLDERS]:
        location.delete_folder(folder)
    if location.sidecar is not None:
        location.sidecar.delete_folder("")


def _names(location: Location, folder: str) -> list[str]:
    try:
        return list(location.names(folder))
    except OSError:  # there is no such folder any more
        return []
