"""Publishing rewritten files, and deleting what is no longer needed.

Only files of skipindex are deleted: files in this very folder, through no link,
with names that we give ourselves, and none that a live listing counts or that may
belong to a table below or above.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from skipindex.errors import IndexVersionError, TableError
from skipindex.log import Snapshot, latest_version, newest_for_writer, warn_of_damage
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties, retention_of
from skipindex.notebook import InNotebook
from skipindex.rewrite.expiry import LOG_AGE, referenced
from skipindex.rewrite.purge import blank_older_commits, forget
from skipindex.source import (
    check_folder,
    commit,
    difference_from_log,
    kept_paths,
    warn_of_others,
)
from skipindex.source.folder.hidden_files import hidden_paths, waiting
from skipindex.source.folder.publish import Publisher
from skipindex.source.formats import log_above, log_in
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.storage.file_system.names import (
    FOLDER,
    STAGING,
    is_aside,
    is_commit,
    is_copy_folder,
    is_hidden_copy,
    is_own_garbage,
    is_temporary,
)
from skipindex.table import TableState, open_state, queries


@dataclass(frozen=True, slots=True)
class VacuumReport(InNotebook):
    """The result of a vacuum, or of a dry run.

    Args:
        published: the number of rewritten files that became visible.
        deleted: paths of the deleted files.
        n_bytes: the size of these files, in bytes.
        dry_run: whether nothing was changed.
        given_up: indexes that could not be read, and were purged with their packs.
        waiting: the rewritten files that are not visible yet, and the time when they
            will be; empty if there are none.
    """

    published: int
    deleted: tuple[str, ...]
    n_bytes: int
    dry_run: bool
    given_up: tuple[str, ...] = ()
    waiting: str = ""

    def __str__(self) -> str:
        would = "would publish" if self.dry_run else "published"
        text = (
            f"{would} {self.published} rewritten files and "
            f"{'delete' if self.dry_run else 'deleted'} {len(self.deleted)} files, "
            f"{self.n_bytes / 1e6:.1f} MB"
        )
        return f"{text}\n{self.waiting}".rstrip()


def vacuum(
    table: TableState | Location | str | os.PathLike[str],
    *,
    retention: timedelta | None = None,
    dry_run: bool = False,
    purge: bool = False,
) -> VacuumReport:
    """See ``Table.vacuum``."""
    if retention is not None and retention < timedelta(0):
        raise TableError(f"cannot keep files for {retention} (expected 0 or more)")
    location = table.location if isinstance(table, TableState) else location_of(table)
    check_folder(location)
    if not location.exists():
        raise TableError(f"no such table: {location.full('')!r} does not exist")
    if purge:
        retention = timedelta(0)
    given_up: list[str] = []
    run = _Run(location, retention, dry_run=dry_run)
    if not dry_run:
        if not run.foreign_log:
            run.publisher.run()
        run.compare()
        if not run.foreign_log:
            run.publisher.empty_trash(_newest(location), run.keep)
    if purge and not dry_run:
        given_up = forget(
            location, lambda: open_state(table, plain=True).reopened(trust="listing")
        )
        blank_older_commits(location)
        queries.forget(location)
    run.sweep(dry_run=dry_run)
    if dry_run:
        run.foretell()
    return VacuumReport(
        run.n_due if dry_run else len(run.publisher.links),
        tuple(sorted(run.deleted)),
        sum(run.deleted.values()),
        dry_run,
        tuple(given_up),
        run.waiting(),
    )


def _newest(location: Location) -> Snapshot:
    try:
        return newest_for_writer(location)
    except IndexVersionError as error:
        raise TableError(
            f"cannot determine which files {location.full('')!r} needs: {error} "
            "(vacuum with the library that wrote it)"
        ) from error


class _Run:
    """One vacuum."""

    def __init__(
        self, location: Location, retention: timedelta | None, *, dry_run: bool
    ) -> None:
        self._location = location
        self._snapshot = _newest(location)
        if retention is None:
            retention = retention_of(self._snapshot.properties)
        self.keep = keep = retention.total_seconds()
        warn_of_damage(self._snapshot)
        # Of another host's clock nothing is known, and a dry run writes no file.
        self._time = time.time if dry_run else lambda: location.now() / SECOND
        now = self._time()
        self.publisher = Publisher(location, now - keep, now=now)
        self.foreign_log = log_in(location) or log_above(location)
        """The path of a log that may name data files, which then all stay."""
        self.n_due = 0
        self.deleted = self.publisher.deleted

    def waiting(self) -> str:
        """What is not visible after this run, and for how long."""
        if self.foreign_log and hidden_paths(self._snapshot):
            return (
                f"rewritten files are not published: {self.foreign_log!r} may name the "
                "files that they replace, so vacuum deletes no data files here"
            )
        keep = timedelta(seconds=self.keep)
        return waiting(self._snapshot, keep, since=self.publisher.cutoff)

    def compare(self) -> None:
        """Commit that the log does not name all files, where a listing shows it."""

        def without(base: Snapshot) -> tuple[Manifest, TableProperties]:
            return base.manifest, replace(base.properties, exclusive=None)

        self._snapshot = _newest(self._location)
        if not self._snapshot.is_exclusive:
            return
        why = difference_from_log(self._location, self._snapshot)
        if why and latest_version(self._location) == self._snapshot.version:
            commit(self._location, without, operation="vacuum")
            warn_of_others(self._location, why)

    def sweep(self, *, dry_run: bool) -> None:
        """Delete what no commit refers to.

        While the newest commit or one of its segments is damaged it is not known what
        it refers to: then all is left until another is committed.
        """
        self._snapshot = _newest(self._location)
        if self._snapshot.damaged is not None or self._snapshot.lost:
            return
        now = self._time()
        cutoff, young = now - self.keep, now - max(self.keep, LOG_AGE)
        listing = list(self._location.list_own())
        folders = list(self._location.list_folders())
        needed = referenced(
            self._location, self._snapshot, listing, keep=self.keep, since=cutoff
        )
        if not self.foreign_log:
            needed |= kept_paths(self._location, self._snapshot)
        else:  # no data file is deleted, and folders mean nothing
            listing = [one for one in listing if one.path.startswith(f"{FOLDER}/")]
            folders = [one for one in folders if one.path.startswith(f"{FOLDER}/")]
        for file in filter(lambda file: is_aside(file.path), listing):
            if not dry_run and self._location.settle_aside(file.path):
                self.deleted[file.path] = file.size
        others = _Others(self._location, folders)
        swept = [
            file
            for file in listing
            if file.path not in needed
            and not others.may_own(file.path)
            and (
                file.mtime <= cutoff * SECOND
                if is_own_garbage(file.path)
                else file.mtime <= young * SECOND and is_commit(file.path)
            )
        ]
        if dry_run:
            self.deleted |= {file.path: file.size for file in swept}
            return
        # Commits come last, one after the other.
        self.publisher.delete(file for file in swept if is_own_garbage(file.path))
        for file in swept:
            if not is_own_garbage(file.path):
                self.publisher.delete([file])
        for folder in sorted(folders, reverse=True, key=lambda file: file.path):
            is_ours = is_copy_folder(folder.path) and not others.may_own(folder.path)
            is_ours |= folder.path.startswith(f"{STAGING}/")
            if is_ours and folder.mtime <= cutoff * SECOND:
                self._location.delete_folder(folder.path)

    def foretell(self) -> None:
        """Count what publishing and emptying the trash would do."""
        if self.foreign_log:
            return
        there = {file.path: file for file in self._location.list()}
        self.n_due, gone = self.publisher.foretold(self._snapshot)
        self.deleted |= {path: there[path].size for path in gone if path in there}


class _Others:
    """Tables below and above this one, whose hidden copies look like ours."""

    def __init__(self, location: Location, folders: Iterable[FileInfo]) -> None:
        self._below = tuple(
            f"{folder.path.removesuffix(FOLDER)}"
            for folder in folders
            if folder.path.endswith(f"/{FOLDER}")
        )
        self._above = _is_below_a_table(location)

    def may_own(self, path: str) -> bool:
        """Whether a hidden file that no commit names may be of such a table."""
        beside = is_hidden_copy(path) or is_copy_folder(path) or is_temporary(path)
        return beside and (self._above or path.startswith(self._below))


def _is_below_a_table(location: Location) -> bool:
    """Whether a folder above has an index; if that cannot be seen, it may have one."""
    root = Path(location.root)
    parents = {*root.parents, *(root.resolve().parents if location.is_local else ())}
    if not location.is_local:
        return any(location.holds((parent / FOLDER).as_posix()) for parent in parents)
    for parent in parents:
        try:
            os.lstat(parent / FOLDER)
        except FileNotFoundError:
            continue
        except OSError:
            return True
        return True
    return False
