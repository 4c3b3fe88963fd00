"""Giving rewritten files their visible names, so that each row counts once throughout.

A rewrite that is older than the retention is published:

1. The hidden files get their visible names: linked on a local file system, copied
   elsewhere.  Readers of commits ignore these copies.
2. A commit says that they are shown: they count now, and what they replace does not.
3. The replaced files are deleted, each as long as it is still the same.
4. The hidden names are deleted when the retention is over once more, and a commit
   leaves the entry out.

The files of an overwrite count from its own commit on.  So what it replaces is deleted
after step 1, and a commit ends the entry; then the hidden names are deleted.

A publisher may sleep between any two steps while others do the rest, or be killed; the
next vacuum goes on.  Step 1 fails where the hidden file is gone.  So the hidden file of
a visible one is deleted before that: no publisher of it makes it visible again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from skipindex.errors import CommitConflictError, TableError
from skipindex.log import Snapshot, newest_for_writer
from skipindex.log.manifest import Manifest
from skipindex.log.moved import with_moved, without_files
from skipindex.log.properties import TableProperties
from skipindex.source.folder.exclusive import commit
from skipindex.source.folder.replacements import (
    Replacement,
    Rewrites,
    is_in,
    is_shown_in,
)
from skipindex.source.folder.staging import (
    delete_files,
    delete_with_checksum,
    sync_left,
)
from skipindex.source.parquet.footers import count_rows
from skipindex.storage.at_once import at_once
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import hidden_twin, published


class EndedError(CommitConflictError):
    """Another vacuum, or another writer, has ended what was to be published."""


@dataclass
class Publisher:
    """One run.

    Args:
        location: of the table.
        cutoff: replacements that were committed later are left, in seconds since 1970.
        now: by the clock of the table's files, in seconds since 1970.
        folders: every folder that becomes empty is deleted (``delete_files``).
        links: hidden names of files that have visible ones now.
        known: an earlier snapshot, whose segments are not read again.
        deleted: the sizes of deleted files whose rows are in no visible one, by path.
        _made: by hidden name, visible files as this publisher made them.
    """

    location: Location
    cutoff: float
    now: float = 0.0
    folders: bool = False
    links: set[str] = field(default_factory=set)
    known: Snapshot | None = None
    deleted: dict[str, int] = field(default_factory=dict)
    _made: dict[str, FileInfo] = field(default_factory=dict)

    def due(self, snapshot: Snapshot) -> tuple[list[Replacement], list[Replacement]]:
        """The replacements to publish, and those that do not fit any more."""
        result = Rewrites.of(snapshot).replacements
        there = self._there(result)
        over = [r for r in result if not r.overwrites and r.first_mismatch(there)]
        due = [
            one
            for one in result
            if (one.overwrites or (one not in over and one.since <= self.cutoff))
            and all(self._is_ours(file, there) for file in (*one.old, *one.new))
        ]
        return due, over

    def run(self) -> None:
        """Publish what is due, drop what is void, and finish what others began."""
        self.known = newest_for_writer(self.location, known=self.known)
        due, over = self.due(self.known)
        for one in due:
            if one.overwrites:
                with contextlib.suppress(EndedError, TableError):
                    self.finish(one)
        linked = {one.names: self._link(one) for one in due if not one.overwrites}
        if linked or over:
            with contextlib.suppress(EndedError):
                self.known = commit(
                    self.location,
                    lambda base: self._with_shown(base, linked),
                    operation="vacuum",
                )
        rewrites = Rewrites.of(newest_for_writer(self.location, known=self.known))
        for one in rewrites.shown:
            self._delete_old(one)
        self._take_back(rewrites)

    def finish(self, overwrite: Replacement) -> None:
        """Publish an overwrite; its files have one name afterwards.

        Raises:
            EndedError: another writer has ended it.
            TableError: a file cannot get its visible name, or is gone.
        """
        self.known = newest_for_writer(self.location, known=self.known)
        self._without(self.known, overwrite)
        at_once(self.location, self._link_file, overwrite.new)
        sync_left(self.location, map(published, overwrite.names))
        self._delete_old(overwrite)
        if left := overwrite.left(self._there([overwrite])):
            raise TableError(f"{left[0].path!r} cannot be deleted")
        commit(
            self.location,
            lambda base: self._ended(base, overwrite),
            operation="publish",
            known=self.known,
        )
        self._delete_names(overwrite)
        if lost := [path for path in overwrite.names if path not in self.links]:
            raise TableError(f"{lost[0]!r} is gone")

    def _delete_names(self, overwrite: Replacement) -> None:
        # A publisher who sleeps finds nothing to make visible again.
        at_once(self.location, self.location.delete, overwrite.names)
        for folder in {path.rpartition("/")[0] for path in overwrite.names}:
            self.location.delete_folder(folder)

    def _there(self, replacements: Sequence[Replacement]) -> dict[str, FileInfo]:
        """The files of the replacements that are there, hidden and visible."""
        paths = {f.path for r in replacements for f in (*r.old, *r.new)}
        paths |= {published(f.path) for r in replacements for f in r.new}
        return {file.path: file for file in self._files_at(sorted(paths))}

    def _is_ours(self, file: FileInfo, there: Mapping[str, FileInfo]) -> bool:
        """Whether a file is in this very folder, unless there is none."""
        return file.path not in there or self.location.owns(file.path)

    def _link(self, rewrite: Replacement) -> bool:
        """Give its files visible names; whether they may count."""
        try:
            counts = [
                count_rows(self.location, [file.path for file in files])
                for files in (rewrite.old, rewrite.new)
            ]
        except TableError:
            return False
        if counts[0] != counts[1]:
            return False
        is_whole = all(at_once(self.location, self._link_file, rewrite.new))
        sync_left(self.location, map(published, rewrite.names))
        return is_whole

    def _link_file(self, file: FileInfo) -> bool:
        """Make a file visible; whether what is visible is the same."""
        target = published(file.path)
        if not file.is_same(self.location.stat(file.path)):
            return False  # damaged, or others have ended the publication
        is_copy = False
        if self.location.stat(target) is None:
            try:
                is_copy = self.location.copy(file.path, target)
            except FileNotFoundError:
                return False
            made = self.location.stat(target)
            if self.location.is_local:  # where a link and a copy have the same time
                is_copy = made is not None and replace(file, path=target).is_same(made)
            if is_copy and made is not None:
                self._made[file.path] = made
        return self.location.owns(target) and self.location.is_same(
            file.path, target, is_copy=is_copy
        )

    def _with_shown(
        self, base: Snapshot, linked: Mapping[tuple[str, ...], bool]
    ) -> tuple[Manifest, TableProperties]:
        """``base``, where what is linked is shown, and what is void is trash."""
        rewrites = Rewrites.of(base)
        there = self._there(rewrites.replacements)
        shown: list[Replacement] = []
        void: list[Replacement] = []
        for one in rewrites.replacements:
            if one.overwrites:
                continue
            if one.first_mismatch(there):
                (shown if one.is_shown_by(there) else void).append(one)
            elif one.names in linked:
                is_whole = all(is_shown_in(there, file) for file in one.new)
                (shown if linked[one.names] and is_whole else void).append(one)
        if not (shown or void):
            raise EndedError("vacuum: another writer has ended the publication")
        places = self._places([file for one in shown for file in one.new])
        places |= {file.path: None for one in void for file in one.new}
        replaced = {file.path for one in shown for file in one.old}
        left = replace(base, manifest=without_files(base.manifest, replaced))
        return _committed(left, rewrites.ended(shown, void, now=self.now), places)

    def _ended(
        self, base: Snapshot, overwrite: Replacement
    ) -> tuple[Manifest, TableProperties]:
        """``base`` without an overwrite all of whose files are visible."""
        rewrites = self._without(base, overwrite)
        there = self._there([overwrite])
        for file in overwrite.new:
            if is_in(there, file) and published(file.path) not in there:
                raise TableError(f"{file.path!r} cannot get its visible name")
        places = self._places(overwrite.new)
        return _committed(base, rewrites, places)

    def _without(self, base: Snapshot, overwrite: Replacement) -> Rewrites:
        rewrites = Rewrites.of(base)
        open_ = rewrites.replacements
        left = tuple(one for one in open_ if one.names != overwrite.names)
        if left == open_:
            raise EndedError("publish: another writer has ended the publication")
        return replace(rewrites, replacements=left)

    def _places(self, files: Sequence[FileInfo]) -> dict[str, FileInfo | None]:
        """The visible file of each hidden name; None where no index may follow."""

        def place(file: FileInfo) -> FileInfo | None:
            result = self.location.stat(published(file.path))
            if result is not None:
                self.links.add(file.path)
            is_same = result is not None and self._is_copy(file, result)
            return result if is_same else None

        result = at_once(self.location, place, files)
        return dict(zip([file.path for file in files], result, strict=True))

    def _is_copy(self, file: FileInfo, info: FileInfo) -> bool:
        """Whether a visible file has the content of the hidden one."""
        # Other tools see it once it is visible, and may have written it again; where
        # both are names of one file, the hidden one is then no longer what was indexed.
        made, hidden = self._made.get(file.path), self.location.stat(file.path)
        if hidden is not None and not file.is_unchanged(hidden):
            return False
        if made is not None:
            return made.is_same(info)
        if hidden is None:
            return replace(file, path=info.path).is_same(info)
        return self.location.is_same(file.path, info.path) and info.is_same(
            self.location.stat(info.path)
        )

    def _delete_old(self, one: Replacement) -> None:
        """Delete what is left of the replaced files; one behind a link stays."""

        def remove(file: FileInfo) -> None:
            twin = hidden_twin(file.path)
            if twin is not None and self.location.owns(twin):
                self.location.delete(twin)
            self.delete([file])

        at_once(self.location, remove, one.left(self._there([one])))

    def _take_back(self, rewrites: Rewrites) -> None:
        """Delete visible copies of trash, as a publisher makes who was too late."""

        def remove(file: FileInfo) -> None:
            result = self.location.stat(published(file.path))
            if result is not None and is_own_copy(self.location, file, result):
                self.delete([result])

        at_once(self.location, remove, [trash.file for trash in rewrites.trash])

    def delete(self, files: Iterable[FileInfo]) -> None:
        """Delete files of skipindex; vacuum and publishers delete files only here."""

        def delete(file: FileInfo) -> None:
            is_deleted = delete_with_checksum(self.location, file)
            if is_deleted and file.path not in self.links:
                self.deleted[file.path] = file.size

        if self.folders:
            delete_files(self.location, files, folders=True)
        else:
            at_once(self.location, delete, files)

    def foretold(self, snapshot: Snapshot) -> tuple[int, list[str]]:
        """How many files a run would publish, and the paths that it would delete."""
        due, _ = self.due(snapshot)
        rewrites = Rewrites.of(snapshot)
        gone = [file.path for one in due for file in one.old]
        gone += [one.file.path for one in rewrites.trash if one.since <= self.cutoff]
        over = (one for one in rewrites.shown if one.since <= self.cutoff)
        gone += [path for one in over for path in one.names]
        return sum(len(one.new) for one in due), gone

    def empty_trash(self, snapshot: Snapshot, keep: float) -> None:
        """Delete hidden files that count no more, once the retention is over.

        ``keep`` is the retention in seconds.
        """
        rewrites = Rewrites.of(snapshot)
        if snapshot.damaged is not None or not (rewrites.shown or rewrites.trash):
            return
        cutoff = self.location.now() / SECOND - keep
        old = {file.path for one in rewrites.shown for file in one.old}
        old |= {path for one in rewrites.shown for path in one.names if one.old}
        there = {file.path: file for file in self._files_at(sorted(old))}
        bare = [one for one in rewrites.shown if not one.left(there)]
        over = [one for one in bare if one.since <= cutoff]
        due = [trash for trash in rewrites.trash if trash.since <= cutoff]
        self.delete(self._files_at([path for one in over for path in one.names]))
        self._delete_trash([trash.file for trash in due])
        if not (over or due or any(one.old for one in bare)):
            return
        ended = {one.names for one in over}
        short, emptied = {one.names for one in bare}, {trash.file for trash in due}

        def without(base: Snapshot) -> tuple[Manifest, TableProperties]:
            known = Rewrites.of(base)
            shown = tuple(
                replace(one, old=()) if one.names in short else one
                for one in known.shown
                if one.names not in ended
            )
            trash = tuple(one for one in known.trash if one.file not in emptied)
            left = replace(known, shown=shown, trash=trash)
            return base.manifest, left.to_properties(base.properties)

        commit(self.location, without, operation="vacuum")

    def _files_at(self, paths: Sequence[str]) -> list[FileInfo]:
        """The files of some paths that are there."""
        result = at_once(self.location, self.location.stat, paths)
        return [file for file in result if file is not None]

    def _delete_trash(self, files: Sequence[FileInfo]) -> None:
        """Delete hidden files, and then the copies of them that are visible."""
        # A publisher who sleeps makes no copy any more once the hidden file is gone.
        location = self.location

        def is_of_others(file: FileInfo) -> bool:
            result = location.stat(published(file.path))
            return result is not None and not is_own_copy(location, file, result)

        others = at_once(location, is_of_others, files)
        self.delete(self._files_at([file.path for file in files]))
        copies = [
            published(file.path)
            for file, is_other in zip(files, others, strict=True)
            if not is_other
        ]
        self.delete(self._files_at(copies))


def is_own_copy(location: Location, hidden: FileInfo, info: FileInfo) -> bool:
    """Whether a file at the visible name is a copy of the hidden one, not another's."""
    if info.size != hidden.size:
        return False
    if location.stat(hidden.path) is not None:
        return location.is_same(hidden.path, info.path)
    return not location.is_local or info.mtime == hidden.mtime


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
