"""Giving rewritten files their visible names, so that each row counts once throughout.

A replacement that is older than the retention is published:

1. A commit says so; no writer rewrites its files from here on.
2. The record is written: visible copies are ignored.  (``storage.publications``)
3. The copies get their visible names: linked on a local file system, copied elsewhere.
4. The outcome is written: they count now, and the files that they replaced do not.
5. Those are deleted.
6. Another commit names the visible files; the hidden names become trash.
7. The record is deleted.

If the vacuum is killed, the next one does the rest.  If the log no longer knows the
replacement, the visible copies are deleted unless the outcome says that they count.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from skipindex.errors import CommitConflictError, TableError
from skipindex.rewrite.selection.cubes import cubes_of, with_cubes
from skipindex.rewrite.selection.eligible_files import count_rows
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import published
from skipindex.storage.log import Snapshot, commit, newest_for_writer
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import TableProperties
from skipindex.storage.publications import (
    read_publications,
    record_path,
    write_outcome,
    write_record,
)
from skipindex.storage.replacements import (
    Replacement,
    Rewrites,
    with_moved,
    without_files,
)


@dataclass
class Publisher:
    """One run.

    Args:
        location: of the table.
        cutoff: replacements that were committed later are left, in seconds since 1970.
        delete: deletes files of the table.
        links: hidden names of files that have visible ones now.
        known: an earlier snapshot, whose segments are not read again.
    """

    location: Location
    cutoff: float
    delete: Callable[[Iterable[FileInfo]], None]
    links: set[str] = field(default_factory=set)
    known: Snapshot | None = None
    _places: dict[str, FileInfo | None] = field(default_factory=dict)

    def due(self, snapshot: Snapshot) -> tuple[list[Replacement], list[Replacement]]:
        """The replacements to publish, and those that are void."""
        found = snapshot.rewrites.replacements
        there = self._there(found)
        publications = read_publications(self.location)
        taken = {
            file.path
            for record in publications.records
            for replacement in record.replacements
            for file in (*replacement.old, *replacement.new)
        }
        for path in publications.ignored(there):
            del there[path]
        open_ = [r for r in found if not r.publishing]
        void = [r for r in open_ if r.first_mismatch(there)]
        due = [
            r
            for r in found
            if r.publishing
            or (
                r not in void
                and r.since <= self.cutoff
                and not any(file.path in taken for file in (*r.old, *r.new))
                and all(self.location.owns(file.path) for file in (*r.old, *r.new))
            )
        ]
        return due, void

    def run(self) -> None:
        """Publish what is due, drop what is void, and finish what others began."""
        due, void = self.due(newest_for_writer(self.location))
        if void or any(not r.publishing for r in due):
            name = uuid.uuid4().hex
            commit(
                self.location,
                lambda base: self._marked(base, name),
                operation="vacuum",
            )
        # A record is written after the commit that it is of: what the log, which is
        # read after the records, does not know is lost, and is not about to come.
        known = {record.id for record in read_publications(self.location).records}
        mine = self._being_published()
        known |= {r.publication for r in mine if r.publication is not None}
        for name in sorted(known):
            self._end(name, [r for r in mine if r.publication == name])
        publications = read_publications(self.location)
        for replacement in mine:
            if publications.is_shown(replacement) is None:
                self._end_without_record(replacement)
        done = [r for r in mine if r.new[0].path in self._places]
        if done:
            commit(
                self.location, lambda base: self._shown(base, done), operation="vacuum"
            )
        for record in publications.records:
            if record.shown == frozenset(range(len(record.replacements))):
                self.location.delete(record_path(record.id))

    def finish(self, name: str) -> None:
        """Bring one publication to its end, which the log says has begun.

        Raises:
            CommitConflictError: a vacuum has done it meanwhile.
        """
        mine = [r for r in self._being_published() if r.publication == name]
        if not mine:
            raise CommitConflictError("publish: a vacuum was faster")
        self._end(name, mine)
        if not all(file.path in self._places for r in mine for file in r.new):
            raise TableError(f"{mine[0].new[0].path!r} cannot get its visible name")
        commit(
            self.location,
            lambda base: self._shown(base, mine),
            operation="publish",
            known=self.known,
        )
        self.location.delete(record_path(name))

    def _there(self, replacements: Sequence[Replacement]) -> dict[str, FileInfo]:
        """Those of their files that are there, hidden and visible."""
        paths = {f.path for r in replacements for f in (*r.old, *r.new)}
        paths |= {published(f.path) for r in replacements for f in r.new}
        found = map(self.location.stat, sorted(paths))
        return {file.path: file for file in found if file is not None}

    def _being_published(self) -> list[Replacement]:
        """What the newest commit of all says, for nothing else may be deleted."""
        self.known = newest_for_writer(self.location, known=self.known)
        replacements = self.known.rewrites.replacements
        return [r for r in replacements if r.publishing]

    def _marked(self, base: Snapshot, name: str) -> tuple[Manifest, TableProperties]:
        due, void = self.due(base)
        rewrites = base.rewrites
        rewrites = rewrites.with_publication(due, name)
        rewrites = rewrites.without_replacements(void, now=time.time())
        return _committed(base, rewrites, {f.path: None for r in void for f in r.new})

    def _end(self, name: str, mine: Sequence[Replacement]) -> None:
        """Bring one publication to its end; ``mine`` are those that the log knows."""
        publications = read_publications(self.location)
        if name in publications.ended:  # and a commit that said so is lost
            for replacement in mine:
                self._remove_old(replacement)
                self._count(replacement)
            return
        there = self._there(mine)
        fits = [r for r in mine if not r.first_mismatch(there)]
        if fits:
            write_record(self.location, name, fits)
        record = read_publications(self.location).record(name)
        if record is not None and record.shown is None:
            fresh = {r.new for r in mine}
            shown = [
                i
                for i, replacement in enumerate(record.replacements)
                if replacement.new in fresh and self._show(replacement)
            ]
            write_outcome(self.location, name, shown)
            record = read_publications(self.location).record(name)
        if record is None or record.shown is None:
            return
        for i, replacement in enumerate(record.replacements):
            if i in record.shown:
                self._remove_old(replacement)
                self._count(replacement)
            else:
                self._take_back(replacement)
                # Rows that arrive are in no other file: the hidden ones still count.
                if not replacement.arrival or replacement.first_mismatch(there):
                    self._places |= {file.path: None for file in replacement.new}

    def _end_without_record(self, replacement: Replacement) -> None:
        """Go on where an earlier version of this library has begun."""
        there = self._there([replacement])
        hidden = [f for f in replacement.new if f.is_same(there.get(f.path))]
        others = [published(f.path) for f in replacement.new if f not in hidden]
        if all(path in there for path in others):
            if all(self._show_file(file) for file in hidden):
                self._remove_old(replacement)
                self._count(replacement)
        else:
            self._places |= {file.path: None for file in replacement.new}

    def _show(self, replacement: Replacement) -> bool:
        """Make the copies visible; whether they can stand for the old files."""
        there = self._there([replacement])
        if replacement.first_mismatch(there) or not self._has_rows_of(
            replacement, there
        ):
            return False
        if not all(self._show_file(file) for file in replacement.new):
            return False
        # On the disk, before what they stand for is deleted.
        self.location.sync([published(file.path) for file in replacement.new])
        return True

    def _show_file(self, file: FileInfo) -> bool:
        target = published(file.path)
        if not self.location.owns(file.path):
            return False
        if self.location.stat(target) is None:
            self.location.copy(file.path, target)
        return self.location.owns(target) and self.location.is_same(file.path, target)

    def _count(self, replacement: Replacement) -> None:
        for file in replacement.new:
            found = self.location.stat(published(file.path))
            whole = found is not None and found.size == file.size
            self._places[file.path] = found if whole else None
            if whole:
                self.links.add(file.path)

    def _has_rows_of(
        self, replacement: Replacement, there: Mapping[str, FileInfo]
    ) -> bool:
        """Whether the copies have as many rows as what they replaced, or is left.

        Rows that arrive are others than those that they replace.
        """
        if replacement.arrival:
            return True
        old = [f.path for f in replacement.old if f.is_same(there.get(f.path))]
        new = [
            file.path if file.path in there else published(file.path)
            for file in replacement.new
            if file.path in there or published(file.path) in there
        ]
        try:
            n_old, n_new = (count_rows(self.location, paths) for paths in (old, new))
        except TableError:
            return False
        return n_old == n_new if len(old) == len(replacement.old) else n_old <= n_new

    def _remove_old(self, replacement: Replacement) -> None:
        """Delete what was replaced, unless it has changed meanwhile."""
        there = self._there([replacement])
        old = [f for f in replacement.old if f.is_same(there.get(f.path))]
        if old and self._has_rows_of(replacement, there):
            self.delete(old)

    def _take_back(self, replacement: Replacement) -> None:
        """Delete visible copies whose originals are still there."""
        there = self._there([replacement])
        is_all_there = all(f.is_same(there.get(f.path)) for f in replacement.old)
        newest = newest_for_writer(self.location)
        if newest.lost:
            return  # what they name is not known
        named = set(newest.manifest.paths)
        for file in replacement.new:
            target = there.get(published(file.path))
            if target is None or target.size != file.size or target.path in named:
                continue
            is_copy = file.is_same(there.get(file.path))
            is_copy = is_copy and self.location.is_same(file.path, target.path)
            if is_copy or (is_all_there and target.mtime == file.mtime):
                self.delete([target])

    def _shown(
        self, base: Snapshot, done: Sequence[Replacement]
    ) -> tuple[Manifest, TableProperties]:
        rewrites = base.rewrites
        ended = [r for r in done if r in rewrites.replacements]
        if not ended:
            raise CommitConflictError("vacuum: another vacuum was faster")
        places = {f.path: self._places.get(f.path) for r in ended for f in r.new}
        return _committed(
            base, rewrites.without_replacements(ended, now=time.time()), places
        )


def _committed(
    base: Snapshot, rewrites: Rewrites, places: Mapping[str, FileInfo | None]
) -> tuple[Manifest, TableProperties]:
    """``base`` with other rewrites, and files at other places, or gone."""
    gone = {path for path, place in places.items() if place is None}
    moved = {path: place for path, place in places.items() if place is not None}
    names = {path: place.path for path, place in moved.items()}
    cubes = [
        replace(cube, paths=frozenset(names.get(p, p) for p in cube.paths - gone))
        for cube in cubes_of(base.properties)
    ]
    manifest = with_moved(without_files(base.manifest, gone), moved)
    properties = with_cubes(rewrites.to_properties(base.properties), cubes)
    if gone:  # what they replaced counts again, and the log does not name it
        properties = replace(properties, exclusive=None)
    return manifest, properties
