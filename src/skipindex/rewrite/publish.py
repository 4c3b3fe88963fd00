"""Giving rewritten files their visible names, so that each row counts once throughout.

A replacement that is older than the retention is published:

1. A commit says so; no writer rewrites its files from here on.
2. The record is written: visible copies are ignored.  (``storage.publications``)
3. The copies get their visible names: linked on a local file system, copied elsewhere.
4. The outcome is written: they count now, and the files that they replaced do not.
5. Those are deleted, each as long as it is still the same, and only if the copies
   have their rows; otherwise the next vacuum goes on here.
6. Another commit names the visible files; the hidden names become trash.
7. The record is deleted.

A publisher may sleep between any two steps while others do the rest.  Steps 2 and 4
create their file only if absent, and step 3 fails where the hidden file is gone.  So
step 5 deletes the hidden file of a visible one before that: then no publisher of it
that wakes up makes it visible again.

If the vacuum is killed, the next one does the rest.  If the log no longer knows the
replacement, the visible copies are deleted unless the outcome says that they count.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from skipindex.errors import CommitConflictError, TableError
from skipindex.rewrite.at_once import at_once
from skipindex.rewrite.selection.eligible_files import count_rows
from skipindex.rewrite.staging import sync_left
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import hidden_twin, published
from skipindex.storage.log import Snapshot, commit, newest_for_writer
from skipindex.storage.log.identity import recognised
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import TableProperties
from skipindex.storage.publications import (
    Publication,
    read_publications,
    record_path,
    write_outcome,
    write_record,
)
from skipindex.storage.replacements import (
    Replacement,
    Rewrites,
    is_in,
    is_shown_in,
    with_moved,
    without_files,
)


class _EndedError(CommitConflictError):
    """Another vacuum, or the writer itself, has ended all publications of a commit."""


@dataclass
class Publisher:
    """One run.

    Args:
        location: of the table.
        cutoff: replacements that were committed later are left, in seconds since 1970.
        delete: deletes files of the table.
        now: by the clock of the table's files, in seconds since 1970.
        links: hidden names of files that have visible ones now.
        known: an earlier snapshot, whose segments are not read again.
        _places: by hidden name, the visible file with the same content; None where the
            index must not follow.
        _made: by hidden name, visible files as this publisher made them.
        _visible: hidden names of files that this publisher made visible.
        _unfinished: ids of publications that the next vacuum goes on with.
    """

    location: Location
    cutoff: float
    delete: Callable[[Iterable[FileInfo]], None]
    now: float = 0.0
    links: set[str] = field(default_factory=set)
    known: Snapshot | None = None
    _places: dict[str, FileInfo | None] = field(default_factory=dict)
    _made: dict[str, FileInfo] = field(default_factory=dict)
    _visible: set[str] = field(default_factory=set)
    _unfinished: set[str] = field(default_factory=set)

    def due(self, snapshot: Snapshot) -> tuple[list[Replacement], list[Replacement]]:
        """The replacements to publish, and those that are void."""
        found = snapshot.rewrites.replacements
        there = self._there(found)
        found = recognised(self.location, found, there)
        publications = read_publications(self.location).recognised(self.location, there)
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
        voided = set(void)
        due = [
            r
            for r in found
            if r.publishing
            or (
                r not in voided
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
            if publications.shown_of(replacement) is None:
                self._end_without_record(replacement)
        done = [r for r in mine if not self._places.keys().isdisjoint(r.names)]
        if done:
            with contextlib.suppress(_EndedError):
                commit(
                    self.location,
                    lambda base: self._shown(base, done),
                    operation="vacuum",
                )
        for record in publications.records:
            if record.is_done and record.id not in self._unfinished:
                self.location.delete(record_path(record.id))

    def finish(self, name: str) -> None:
        """Bring one publication to its end, which the log says has begun.

        Its files have one name afterwards.  If this is killed, vacuum deletes the
        hidden names, the retention after the outcome was written.
        """
        mine = [r for r in self._being_published() if r.publication == name]
        if not mine:
            raise CommitConflictError("publish: a vacuum was faster")
        self._end(name, mine)
        names = [path for r in mine for path in r.names]
        if any(path not in self._places for path in names):
            raise TableError(f"{names[0]!r} cannot get its visible name")
        commit(
            self.location,
            lambda base: self._shown(base, mine, with_trash=False),
            operation="publish",
            known=self.known,
        )
        if lost := [path for path in names if path not in self.links]:
            raise TableError(f"{lost[0]!r} is gone")
        # A publisher who sleeps finds nothing to make visible again.
        at_once(self.location, self.location.delete, names)
        for folder in {path.rpartition("/")[0] for path in names}:
            self.location.delete_folder(folder)
        self.location.delete(record_path(name))

    def _there(self, replacements: Sequence[Replacement]) -> dict[str, FileInfo]:
        """The files of the replacements that are there, hidden and visible."""
        paths = {f.path for r in replacements for f in (*r.old, *r.new)}
        paths |= {published(f.path) for r in replacements for f in r.new}
        found = at_once(self.location, self.location.stat, sorted(paths))
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
        rewrites = rewrites.without_replacements(void, now=self.now)
        return _committed(base, rewrites, {f.path: None for r in void for f in r.new})

    def _end(self, name: str, mine: Sequence[Replacement]) -> None:
        """Bring one publication to its end; ``mine`` are those that the log knows."""
        publications = read_publications(self.location)
        if name in publications.ended:  # and a commit that said so is lost
            if mine:
                self._follow(publications.ended_with(*mine))
            return
        there = self._there(mine)
        known = recognised(self.location, mine, there)
        # Where all is visible a record is lost, and what is replaced may be gone.
        had_record = publications.record(name) is not None
        fits = [
            r
            for r, now in zip(mine, known, strict=True)
            if not now.first_mismatch(there) and (had_record or not _has_all(r, there))
        ]
        is_mine = bool(fits) and write_record(self.location, name, fits)
        is_rewrite = not all(r.arrival for r in fits)
        # The log is read before the outcome, which is older than the end of the entry.
        is_over = is_mine and is_rewrite and not self._is_begun(name)
        record = read_publications(self.location).record(name)
        if record is not None and record.shown is None:
            if is_over:  # while this vacuum slept, another one has done it all
                self.location.delete(record_path(name))
                return
            fresh = {path for r in mine for path in r.names}
            shown = [
                path
                for replacement in record.replacements
                if fresh.issuperset(replacement.names)
                for path in self._show(replacement)
            ]
            write_outcome(self.location, name, shown)
            record = read_publications(self.location).record(name)
        if record is not None and record.shown is not None:
            self._follow(record)

    def _is_begun(self, name: str) -> bool:
        """Whether the newest commit names a replacement of the publication."""
        return any(one.publication == name for one in self._being_published())

    def _follow(self, record: Publication) -> None:
        """Do what an outcome says; nothing else decides which files stay."""
        for replacement in record.replacements:
            done = record.shown_of(replacement)
            left = [file for file in replacement.new if file.path not in done]
            if done:
                if not self._remove_old(replacement, done):
                    self._unfinished.add(record.id)
                    continue
                self._count([f for f in replacement.new if f.path in done])
            if left:
                self._take_back(replacement, left)
                # Rows that arrive are in no other file: the hidden ones still count.
                there = self._there([replacement]) if replacement.arrival else {}
                gone = [file for file in left if not is_in(there, file)]
                self._places |= {file.path: None for file in gone}

    def _end_without_record(self, replacement: Replacement) -> None:
        """Go on where the record is lost, as in a copy of the table without it."""
        there = self._there([replacement])
        (now,) = recognised(self.location, [replacement], there)
        if now.first_mismatch(there) and not _has_all(now, there):
            self._places |= {file.path: None for file in now.new}
            return
        shown = self._those(
            now.new,
            lambda f: self._show_file(f) if is_in(there, f) else self._has_copy(f),
        )
        is_whole = now.arrival or len(shown) == len(now.new)
        sync_left(self.location, (published(file.path) for file in shown))
        if is_whole and self._remove_old(now, {file.path for file in shown}):
            self._count(now.new)

    def _show(self, replacement: Replacement) -> list[str]:
        """Make the copies visible; the hidden paths of those that may count."""
        there = self._there([replacement])
        (now,) = recognised(self.location, [replacement], there)
        if now.first_mismatch(there) or not self._has_rows_of(now, there):
            return []
        # A hidden file that is another one now is damaged; one that is gone may have
        # its copy.
        whole = [f for f in now.new if f.path not in there or is_in(there, f)]
        shown = self._those(
            whole,
            lambda f: self._show_file(f) or (now.arrival and self._was_visible(f)),
        )
        if not replacement.arrival and len(shown) < len(replacement.new):
            return []
        sync_left(self.location, (published(file.path) for file in shown))
        return [file.path for file in shown]

    def _those(
        self, files: Sequence[FileInfo], are: Callable[[FileInfo], bool]
    ) -> list[FileInfo]:
        """The files of which it is true."""
        found = at_once(self.location, are, files)
        return [file for file, is_one in zip(files, found, strict=True) if is_one]

    def _show_file(self, file: FileInfo) -> bool:
        target = published(file.path)
        if not self.location.owns(file.path):
            return self._has_copy(file)
        is_copy = False
        if self.location.stat(target) is None:
            try:
                is_copy = self.location.copy(file.path, target)
            except FileNotFoundError:  # others have ended the publication
                return self._has_copy(file)
            made = self.location.stat(target)
            if is_copy:
                self._visible.add(file.path)
            if self.location.is_local:  # where a link and a copy have the same time
                is_copy = made is not None and replace(file, path=target).is_same(made)
            if is_copy and made is not None:
                self._made[file.path] = made
        return self.location.owns(target) and self.location.is_same(
            file.path, target, is_copy=is_copy
        )

    def _was_visible(self, file: FileInfo) -> bool:
        """Whether a file that arrives was visible, or another one has its name."""
        if file.path in self._visible:
            return True
        try:
            count_rows(self.location, [published(file.path)])
        except TableError:
            return False
        return True

    def _has_copy(self, file: FileInfo) -> bool:
        """Whether the visible copy is there, by its name and size."""
        target = published(file.path)
        found = self.location.stat(target) if self.location.owns(target) else None
        return found is not None and found.size == file.size

    def _count(self, files: Iterable[FileInfo]) -> None:
        """Let the visible files count, and their indexes where they are the same."""

        def count(file: FileInfo) -> None:
            found = self.location.stat(published(file.path))
            is_same = found is not None and self._is_copy(file, found)
            self._places[file.path] = found if is_same else None
            if found is not None:
                self.links.add(file.path)

        at_once(self.location, count, files)

    def _is_copy(self, file: FileInfo, found: FileInfo) -> bool:
        """Whether a visible file has the content of the hidden one."""
        # Other tools see it once it is visible, and may have written it again; where
        # both are names of one file, the hidden one is then no longer what was indexed.
        made, hidden = self._made.get(file.path), self.location.stat(file.path)
        if hidden is not None and not file.is_unchanged(hidden):
            return False
        if made is not None:
            return made.is_same(found)
        if hidden is None:
            return replace(file, path=found.path).is_same(found)
        return self.location.is_same(file.path, found.path) and found.is_same(
            self.location.stat(found.path)
        )

    def _has_rows_of(
        self, replacement: Replacement, there: Mapping[str, FileInfo]
    ) -> bool:
        """Whether the copies have as many rows as what they replaced, or is left."""
        # Rows that arrive are others than those that they replace.
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

    def _remove_old(self, replacement: Replacement, shown: Collection[str]) -> bool:
        """Delete what was replaced; False if files are left: the record must stay."""
        # Files are left if those that stand for them do not have their rows, as far as
        # can be read now: the record is why readers ignore what is left.
        there = self._there([replacement])
        (now,) = recognised(self.location, [replacement], there)
        old = [there[f.path] for f in now.old if is_in(there, f)]
        new = [f for f in now.new if f.path in shown and is_shown_in(there, f)]
        if not (old and new):
            return True
        if not self._has_rows_of(now, there):
            return False

        def remove(file: FileInfo) -> None:
            twin = hidden_twin(file.path)
            if twin and self.location.owns(twin):
                self.location.delete(twin)
            self.delete([file])

        at_once(self.location, remove, old)
        # A link stays, and a file that was opened for writing may.
        return not (
            self.location.is_local
            and any(f.is_same(self.location.stat(f.path)) for f in old)
        )

    def _take_back(self, replacement: Replacement, files: Iterable[FileInfo]) -> None:
        """Delete visible copies of ``files`` whose originals are still there."""
        there = self._there([replacement])
        (now,) = recognised(self.location, [replacement], there)
        is_all_there = all(is_in(there, f) for f in now.old)
        newest = newest_for_writer(self.location)
        if newest.lost:
            return  # what they name is not known
        named = set(newest.manifest.paths)
        for file in files:
            target = there.get(published(file.path))
            if target is None or target.size != file.size or target.path in named:
                continue
            is_copy = file.is_same(there.get(file.path))
            is_copy = is_copy and self.location.is_same(file.path, target.path)
            if is_copy or (is_all_there and target.mtime == file.mtime):
                self.delete([target])

    def _shown(
        self, base: Snapshot, done: Sequence[Replacement], *, with_trash: bool = True
    ) -> tuple[Manifest, TableProperties]:
        rewrites, names = base.rewrites, {r.names for r in done}
        ended = [r for r in rewrites.replacements if r.names in names]
        if not ended:
            raise _EndedError("publish: another writer has ended the publication")
        told = {path for r in ended for path in r.names if path in self._places}
        places = {path: self._places[path] for path in told}
        left = rewrites.without_replacements(ended, now=self.now)
        waiting = tuple(w for r in ended if (w := _waiting(r, places)) is not None)
        hidden = {path for r in waiting for path in r.names}
        trash = tuple(entry for entry in left.trash if entry[0] not in hidden)
        left = Rewrites(
            (*left.replacements, *waiting), trash if with_trash else rewrites.trash
        )
        return _committed(base, left, places)


def _has_all(one: Replacement, there: Mapping[str, FileInfo]) -> bool:
    """Whether all copies of a rewrite are visible."""
    return not one.arrival and all(is_shown_in(there, file) for file in one.new)


def _waiting(
    one: Replacement, places: Mapping[str, FileInfo | None]
) -> Replacement | None:
    """What of an arrival is still to be published; what it overwrites may be gone."""
    files = tuple(file for file in one.new if file.path not in places)
    if not files:
        return None
    is_shown = any(places.get(path) is not None for path in one.names)
    return replace(one, new=files, old=() if is_shown else one.old)


def _committed(
    base: Snapshot, rewrites: Rewrites, places: Mapping[str, FileInfo | None]
) -> tuple[Manifest, TableProperties]:
    """``base`` with other rewrites, and files at other places, or gone."""
    gone = {path for path, place in places.items() if place is None}
    moved = {path: place for path, place in places.items() if place is not None}
    manifest = with_moved(without_files(base.manifest, gone), moved)
    properties = rewrites.to_properties(base.properties)
    if gone:  # what they replaced counts again, and the log does not name it
        properties = replace(properties, exclusive=None)
    return manifest, properties
