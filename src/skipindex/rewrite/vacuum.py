"""Publishing rewritten files, and deleting what nobody needs any more.

A replacement that is older than the retention is published:

1. A commit says so; from here on the hidden files count, whatever else is there.
2. They get their visible names: linked on a local file system, copied elsewhere.
3. The files that they replaced are deleted.
4. Another commit names the visible files; the hidden names become trash.

A reader of commits reads the right rows at each step.  One who lists the folder
sees, between 2 and 4, rows twice until the replaced files are gone: never too few.
Whoever dies on the way is followed by the next vacuum, which does the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from skipindex.errors import CommitConflictError, CorruptIndexError, TableError
from skipindex.rewrite.cubes import PROPERTY, cubes_of
from skipindex.rewrite.references import NS, is_commit, referenced
from skipindex.rewrite.staging import STAGING
from skipindex.storage.location import Found, Location, location_of
from skipindex.storage.log import (
    MANIFESTS,
    PACKS,
    Snapshot,
    commit,
    read_snapshot,
)
from skipindex.storage.replacements import (
    Replacement,
    Rewrites,
    is_hidden_copy,
    published,
    with_moved,
    without_files,
)
from skipindex.table import Table, check_folder

RETENTION: Final = timedelta(days=7)

_LOG_AGE: Final = 3600.0
"""Seconds.  The number of a commit is free again once its file is deleted, so a
writer who takes longer than this between two steps could take it for the next."""


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum did, or would do.

    Args:
        published: rewritten files that became visible.
        deleted: paths of the files that were deleted.
        n_bytes: their size.
        dry_run: nothing was done.
    """

    published: int
    deleted: tuple[str, ...]
    n_bytes: int
    dry_run: bool

    def __str__(self) -> str:
        would = "would publish" if self.dry_run else "published"
        return (
            f"{would} {self.published} rewritten files and "
            f"{'delete' if self.dry_run else 'deleted'} {len(self.deleted)} files, "
            f"{self.n_bytes / 1e6:.1f} MB"
        )


def vacuum(
    table: Table | Location | str | os.PathLike[str],
    *,
    retention: timedelta = RETENTION,
    dry_run: bool = False,
) -> VacuumReport:
    """Publish rewritten files, and delete what no commit has needed for a while.

    That is: data files that were replaced, hidden copies of them, packs, manifests
    and commits that are superseded, and what was left by a writer that was killed.
    No file that holds rows of the table is deleted, and none that is not ours.

    Args:
        table: a ``Table``, a path or a URI.
        retention: how long readers may hold on to a table that they have opened.
            Below the duration of the longest query or write, those may fail.
        dry_run: only tell.

    Raises:
        TableError: the retention is negative, or the newest commit cannot be read.
    """
    if retention < timedelta(0):
        raise TableError(f"cannot keep files for {retention} (expected 0 or more)")
    if isinstance(table, Table):
        location = table.location
    else:
        location = table if isinstance(table, Location) else location_of(table)
    check_folder(location)
    if not location.exists():
        raise TableError(f"no such table: {location.full('')!r} does not exist")
    run = _Run(location, retention.total_seconds(), _newest(location))
    if not dry_run:
        run.publish()
        run.empty_trash()
    run.sweep(dry_run=dry_run)
    if dry_run:
        run.foretell()
    return VacuumReport(
        run.n_published, tuple(sorted(run.deleted)), sum(run.deleted.values()), dry_run
    )


def _newest(location: Location) -> Snapshot:
    try:
        return read_snapshot(location)
    except CorruptIndexError as error:
        raise TableError(
            f"cannot tell what {location.full('')!r} needs: {error} (build_indexes "
            "commits anew)"
        ) from error


class _Run:
    """One vacuum."""

    def __init__(self, location: Location, keep: float, snapshot: Snapshot) -> None:
        self._location = location
        self._keep = keep
        self._snapshot = snapshot
        self._cutoff = time.time() - keep
        self._links: set[str] = set()  # hidden names of what has visible ones now
        self.n_published = 0
        self.deleted: dict[str, int] = {}

    def publish(self) -> None:
        """Publish what is due, and give up what no longer fits."""
        due, void = self._due(self._snapshot, self._listing())
        if void or any(not r.publishing for r in due):
            self._snapshot = commit(self._location, self._marked, operation="vacuum")
        due = self._being_published(_newest(self._location))
        if due:
            places: dict[str, Found] = {}
            for replacement in due:
                places |= self._show(replacement)
                self._remove(replacement.old)
            self._snapshot = commit(
                self._location,
                lambda base: self._shown(base, due, places),
                operation="vacuum",
            )

    def _listing(self) -> dict[str, Found]:
        return {file.path: file for file in self._location.list()}

    def _due(
        self, snapshot: Snapshot, there: Mapping[str, Found]
    ) -> tuple[list[Replacement], list[Replacement]]:
        """The replacements to publish, and those that no longer fit."""
        replacements = Rewrites.of(snapshot.properties).replacements
        void = [r for r in replacements if not r.publishing and r.misfit(there)]
        due = [
            r
            for r in replacements
            if r.publishing or (r not in void and r.since <= self._cutoff)
        ]
        return due, void

    def _marked(self, base: Snapshot) -> Snapshot:
        due, void = self._due(base, self._listing())
        rewrites = Rewrites.of(base.properties)
        rewrites = rewrites.publishing(due).without(void, now=time.time())
        gone = {file.path for r in void for file in r.new}
        properties = rewrites.within(base.properties)
        properties[PROPERTY] = [
            replace(cube, paths=cube.paths - gone).to_json()
            for cube in cubes_of(base.properties)
            if cube.paths - gone
        ]
        manifest = without_files(base.manifest, gone)
        return Snapshot(base.version + 1, manifest, properties)

    @staticmethod
    def _being_published(snapshot: Snapshot) -> list[Replacement]:
        """What the newest commit of all says, for nothing else may be deleted."""
        replacements = Rewrites.of(snapshot.properties).replacements
        return [r for r in replacements if r.publishing]

    def _show(self, replacement: Replacement) -> dict[str, Found]:
        """Give the copies their visible names; the visible files by hidden path."""
        shown = {}
        for file in replacement.new:
            target = published(file.path)
            try:
                self._location.copy(file.path, target)
            except FileNotFoundError:
                if self._location.stat(target) is None:
                    raise
            found = self._location.stat(target)
            if found is None or found.size != file.size:
                raise TableError(f"{target!r} was changed while it was published")
            shown[file.path] = found
        self.n_published += len(shown)
        self._links |= shown.keys()
        return shown

    def _shown(
        self, base: Snapshot, due: Sequence[Replacement], places: Mapping[str, Found]
    ) -> Snapshot:
        rewrites = Rewrites.of(base.properties)
        done = [r for r in due if r in rewrites.replacements]
        if not done:
            raise CommitConflictError("vacuum: another vacuum was faster")
        properties = rewrites.without(done, now=time.time()).within(base.properties)
        properties[PROPERTY] = [
            replace(
                cube,
                paths=frozenset(
                    places[path].path if path in places else path for path in cube.paths
                ),
            ).to_json()
            for cube in cubes_of(base.properties)
        ]
        manifest = with_moved(base.manifest, places)
        return Snapshot(base.version + 1, manifest, properties)

    def empty_trash(self) -> None:
        """Delete hidden files that nobody needs any more."""
        cutoff = time.time() - self._keep
        trash = Rewrites.of(self._snapshot.properties).trash
        due = [(path, since) for path, since in trash if since <= cutoff]
        if not due:
            return
        self._delete(self._location.stat(path) for path, _ in due)

        def without(base: Snapshot) -> Snapshot:
            rewrites = Rewrites.of(base.properties)
            left = tuple(entry for entry in rewrites.trash if entry not in due)
            properties = replace(rewrites, trash=left).within(base.properties)
            return Snapshot(base.version + 1, base.manifest, properties)

        self._snapshot = commit(self._location, without, operation="vacuum")

    def sweep(self, *, dry_run: bool) -> None:
        """Delete what no commit refers to."""
        self._snapshot = _newest(self._location)
        cutoff = time.time() - self._keep
        listing = list(self._location.list())
        needed = referenced(
            self._location, self._snapshot, listing, keep=self._keep, since=cutoff
        )
        swept = [
            file
            for file in listing
            if file.path not in needed
            and file.mtime <= cutoff * NS
            and (
                is_hidden_copy(file.path)
                or file.path.startswith((f"{MANIFESTS}/", f"{PACKS}/", f"{STAGING}/"))
                or (is_commit(file) and file.mtime <= (time.time() - _LOG_AGE) * NS)
            )
        ]
        if dry_run:
            self.deleted |= {file.path: file.size for file in swept}
            return
        self._delete(swept)
        for folder in sorted(
            self._location.list_folders(), reverse=True, key=lambda file: file.path
        ):
            is_ours = is_hidden_copy(f"{folder.path}/")
            is_ours |= folder.path.startswith(f"{STAGING}/")
            if is_ours and folder.mtime <= (time.time() - self._keep) * NS:
                self._location.delete_folder(folder.path)

    def foretell(self) -> None:
        """Count what publishing and emptying the trash would do."""
        there = self._listing()
        due, _ = self._due(self._snapshot, there)
        self.n_published = sum(len(r.new) for r in due)
        trash = Rewrites.of(self._snapshot.properties).trash
        gone = [file.path for r in due for file in r.old]
        gone += [path for path, since in trash if since <= self._cutoff]
        self.deleted |= {path: there[path].size for path in gone if path in there}

    def _remove(self, files: Iterable[Found]) -> None:
        """Delete data files, unless somebody has changed them meanwhile."""
        self._delete(
            found
            for file in files
            for found in [self._location.stat(file.path)]
            if found == file
        )

    def _delete(self, files: Iterable[Found | None]) -> None:
        for file in files:
            if file is None:
                continue
            folder, slash, name = file.path.rpartition("/")
            self._location.delete(file.path)
            self._location.delete(f"{folder}{slash}.{name}.crc")  # Hadoop's, if local
            if file.path not in self._links:
                self.deleted[file.path] = file.size
