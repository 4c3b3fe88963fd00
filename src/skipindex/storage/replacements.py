"""Rewritten files: hidden copies that stand for visible files, until published.

A rewrite puts its files into hidden folders beside the files that they replace,
``city=7/_skipindex-<run>/part-00000-….parquet``, which other readers do not list.  A
commit then says that they hold the same rows as certain visible files.  This counts
as long as every file on both sides is there, unchanged.  Other tools may add, delete
or overwrite visible files: a replacement that no longer fits is void, and the visible
files count again.

Files that arrive hold rows of their own, so each of them counts for itself.

Vacuum publishes a replacement: the copies are linked to visible names and the
replaced files are deleted.  ``publications`` says how a reader sees each row once
meanwhile, even if the log is lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import CommitConflictError
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.names import published
from skipindex.storage.manifest import Manifest, with_column
from skipindex.storage.properties import TableProperties


@dataclass(frozen=True, slots=True)
class Replacement:
    """Hidden files that hold the rows of visible ones.

    Args:
        old: the visible files.
        new: the hidden ones.
        since: when that was committed, in seconds since 1970.
        publication: the id of its record, while the hidden files get their visible
            names.
        arrival: the hidden files hold rows of their own, so those of the visible
            ones, if there are any, are overwritten.
        crcs: of the footers of visible files, by path, as far as they are known.
    """

    old: tuple[FileInfo, ...]
    new: tuple[FileInfo, ...]
    since: float
    publication: str | None = None
    arrival: bool = False
    crcs: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def publishing(self) -> bool:
        """Whether the hidden files get their visible names."""
        return self.publication is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the hidden files, which no other replacement ever has."""
        return tuple(file.path for file in self.new)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Replacement:
        """The inverse of ``to_json``; ``properties`` has checked the record."""
        tags = record.get("tags", {})

        def files(side: str) -> tuple[FileInfo, ...]:
            return tuple(
                FileInfo(path, size, mtime, tags.get(path))
                for path, size, mtime, *_ in record[side]
            )

        return cls(
            files("old"),
            files("new"),
            record["since"],
            record.get("publication"),
            record.get("arrival", False),
            {path: crc[0] for path, _, _, *crc in record["old"] if crc},
        )

    def to_json(self) -> dict[str, Any]:
        """The record in a commit, or of a publication."""
        record = {
            "old": [[f.path, f.size, f.mtime, *self._crc(f.path)] for f in self.old],
            "new": [[f.path, f.size, f.mtime] for f in self.new],
            "since": self.since,
        }
        tags = {f.path: f.tag for f in (*self.old, *self.new) if f.tag is not None}
        if tags:
            record["tags"] = tags
        if self.publication is not None:
            record["publication"] = self.publication
        if self.arrival:
            record["arrival"] = True
        return record

    def _crc(self, path: str) -> list[int]:
        return [self.crcs[path]] if path in self.crcs else []

    def first_mismatch(self, there: Mapping[str, FileInfo]) -> str | None:
        """The path of a file that is gone or changed, or None.

        Files that arrive count for themselves, so there it is one only if all are gone,
        and those that they overwrite are not looked at.
        """
        if self.arrival:
            is_there = any(is_in(there, f) or is_shown_in(there, f) for f in self.new)
            return None if is_there else self.new[0].path
        files = (*self.old, *self.new)
        return next((f.path for f in files if not is_in(there, f)), None)


def is_in(there: Mapping[str, FileInfo], file: FileInfo) -> bool:
    """Whether a file is there, unchanged."""
    return file.is_same(there.get(file.path))


def is_shown_in(there: Mapping[str, FileInfo], hidden: FileInfo) -> bool:
    """Whether the visible copy of a hidden file is there, by its name and size."""
    found = there.get(published(hidden.path))
    return found is not None and found.size == hidden.size


def _no_record(_: Replacement) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Rewrites:
    """All replacements of a table, and its trash: hidden files that no longer count.

    No two replacements have a file in common.  ``trash`` tells of each path since
    when it is there.
    """

    replacements: tuple[Replacement, ...] = ()
    trash: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_properties(cls, properties: TableProperties) -> Rewrites:
        """The replacements and the trash of a table."""
        record = properties.rewrites or {}
        return cls(
            tuple(map(Replacement.from_json, record.get("replacements", ()))),
            tuple((path, since) for path, since in record.get("trash", ())),
        )

    def to_properties(self, properties: TableProperties) -> TableProperties:
        """The properties with these rewrites."""
        record = {
            "replacements": [r.to_json() for r in self.replacements],
            "trash": [list(entry) for entry in self.trash],
        }
        return replace(properties, rewrites=record if any(record.values()) else None)

    def live_files(
        self,
        there: Mapping[str, FileInfo],
        is_visible: Callable[[FileInfo], bool],
        shown_of: Callable[[Replacement], frozenset[str] | None] = _no_record,
    ) -> tuple[list[FileInfo], list[str]]:
        """The files that hold the table's rows, by path, and notes on others.

        Args:
            there: every file below the table's folder by its path, hidden ones
                included, but none that a publication says to ignore.
            is_visible: whether a reader who lists the folder reads the file.
            shown_of: the hidden paths of files that are permanently visible; None if
                no publication tells.
        """
        found = {f.path: f for f in there.values() if is_visible(f)}
        notes = []
        for replacement in self.replacements:
            shown = shown_of(replacement) if replacement.publishing else frozenset()
            if replacement.arrival:
                notes += _count_arrival(replacement, there, found, shown or frozenset())
                continue
            if shown or (shown is None and _is_taken_over(replacement, found)):
                if any(is_shown_in(found, file) for file in replacement.new):
                    _remove(replacement.old, found)
                _by_hidden_names(replacement, there, found)
                continue
            mismatch = replacement.first_mismatch(there)
            if mismatch is not None:
                notes.append(
                    f"{len(replacement.new)} rewritten files not used: {mismatch!r} is "
                    "gone or changed, so the visible files count"
                )
                continue
            _remove(replacement.old, found)
            for file in replacement.new:
                if replacement.publishing and is_shown_in(found, file):
                    del found[published(file.path)]
                found[file.path] = there[file.path]
        return [found[path] for path in sorted(found)], notes

    def with_replaced(
        self,
        changes: Sequence[tuple[Sequence[FileInfo], Sequence[FileInfo]]],
        *,
        now: float,
        crcs: Mapping[str, int] | None = None,
    ) -> Rewrites:
        """These and others, by each of which new files hold the rows of old ones.

        Where the old ones of a change have hidden files, they become trash, and the
        replacements that made them become one with the new one.  An old one that counts
        though a replacement names it shows that this is void: another writer has
        written its name anew.  Then the replacement ends.

        ``now`` is in seconds since 1970; ``crcs`` are those of the footers of old
        files, by path, as far as they are known.
        """
        numbered = dict(enumerate(self.replacements))
        number_of = {f.path: i for i, r in numbered.items() for f in r.new}
        named_by = {
            path: i
            for i, r in numbered.items()
            for path in (*(f.path for f in r.old), *(published(f.path) for f in r.new))
        }
        fresh = itertools.count(len(numbered))
        known = crcs or {}
        trash = list(self.trash)
        for old, new in changes:
            paths = {file.path for file in old}
            numbers = {number_of.pop(path) for path in paths & number_of.keys()}
            touched = [numbered.pop(i) for i in sorted(numbers)]
            numbers = {named_by[path] for path in paths & named_by.keys()}
            void = [numbered.pop(i) for i in sorted(numbers & numbered.keys())]
            if any(r.publishing for r in (*touched, *void)):
                raise CommitConflictError(
                    "optimize: vacuum is publishing files that were to be rewritten; "
                    "try again when it is done"
                )
            made = {file.path for r in touched for file in r.new}
            whole = Replacement(
                old=(
                    *(file for r in touched for file in r.old),
                    *(file for file in old if file.path not in made),
                ),
                new=(
                    *(f for r in touched for f in r.new if f.path not in paths),
                    *new,
                ),
                since=now,
                crcs={
                    **{path: crc for r in touched for path, crc in r.crcs.items()},
                    **{p: known[p] for p in paths - made if p in known},
                },
            )
            left = {file.path for r in void for file in r.new}
            trash += [(path, now) for path in sorted(paths & made | left)]
            number = next(fresh)
            numbered[number] = whole
            number_of |= {file.path: number for file in whole.new}
            named_by |= {file.path: number for file in whole.old}
        return Rewrites(tuple(numbered.values()), tuple(trash))

    def without_replacements(
        self, gone: Sequence[Replacement], *, now: float
    ) -> Rewrites:
        """All but ``gone``, whose hidden files become trash."""
        names = {r.names for r in gone}
        return Rewrites(
            tuple(r for r in self.replacements if r.names not in names),
            (*self.trash, *((f.path, now) for r in gone for f in r.new)),
        )

    def with_publication(
        self, due: Sequence[Replacement], publication: str
    ) -> Rewrites:
        """The same, where those that are due are marked as being published."""
        names = {r.names for r in due}
        marked = tuple(
            replace(r, publication=publication)
            if r.names in names and not r.publishing
            else r
            for r in self.replacements
        )
        return Rewrites(marked, self.trash)


def _remove(files: Sequence[FileInfo], found: dict[str, FileInfo]) -> None:
    """Remove the files that are unchanged."""
    for file in files:
        if file.is_same(found.get(file.path)):
            del found[file.path]


def _count_arrival(
    replacement: Replacement,
    there: Mapping[str, FileInfo],
    found: dict[str, FileInfo],
    shown: frozenset[str],
) -> list[str]:
    """Let each file that arrives count, and by its hidden name while it has one."""
    # What is overwritten still counts unless something is there that overwrites it.
    if replacement.first_mismatch(there) is None:
        _remove(replacement.old, found)
    gone = []
    for file in replacement.new:
        copy = found.get(published(file.path))
        is_shown = file.path in shown
        # Another tool has written the visible file again, so it counts as it is.
        if copy is not None and not _is_copy(file, copy, there, is_shown=is_shown):
            continue
        # A file that is shown and not visible was deleted by another tool.
        if is_in(there, file) and (copy is not None or not is_shown):
            found.pop(published(file.path), None)
            found[file.path] = there[file.path]
        elif copy is None and not is_shown:
            gone.append(file.path)
    if not gone:
        return []
    return [f"{len(gone)} files that arrived are gone or changed, such as {gone[0]!r}"]


def _by_hidden_names(
    replacement: Replacement, there: Mapping[str, FileInfo], found: dict[str, FileInfo]
) -> None:
    """Let visible copies count by their hidden names, which the manifest knows."""
    for file in replacement.new:
        copy = found.get(published(file.path))
        if copy is not None and _is_copy(file, copy, there, is_shown=True):
            del found[copy.path]
            found[file.path] = there[file.path]


def _is_copy(
    file: FileInfo, copy: FileInfo, there: Mapping[str, FileInfo], *, is_shown: bool
) -> bool:
    """Whether the hidden file may be read for the visible one."""
    hidden = there.get(file.path)
    if hidden is None or not file.is_same(hidden) or copy.size != file.size:
        return False
    # Other tools see a file once it is visible.  From when it is shown for good it must
    # be the same by time or tag, as a link is; otherwise the visible file counts.
    return not is_shown or replace(hidden, path=copy.path).is_same(copy)


def _is_taken_over(replacement: Replacement, found: Mapping[str, FileInfo]) -> bool:
    """Whether a publication without a record has made all of its files visible."""
    # A copy of the table may lack the record.  As long as one file is not visible,
    # nothing that is replaced has been deleted.
    return all(is_shown_in(found, file) for file in replacement.new)


def without_files(manifest: Manifest, paths: Collection[str]) -> Manifest:
    """The manifest without the files at these paths."""
    found = manifest.rows_of(list(paths))
    mask: np.ndarray = np.ones(len(manifest), np.bool_)
    mask[found[found >= 0]] = False
    return manifest if mask.all() else manifest.only(mask)


def with_moved(manifest: Manifest, moved: Mapping[str, FileInfo]) -> Manifest:
    """The manifest with files at other paths, by the path that they have in it.

    The rows are in the same order; the content of the files is the same.
    """
    rows = manifest.rows_of(list(moved))
    places = list(moved.values())
    place_of: np.ndarray = np.full(len(manifest), -1, np.int64)
    place_of[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    files = manifest.files
    for name in ("path", "mtime", "tag"):
        there = pa.array([getattr(place, name) for place in places], files[name].type)
        fresh = there.take(pa.array(place_of, mask=place_of < 0))
        if name != "tag":  # a new place has its own, or none
            fresh = pc.coalesce(fresh, files[name])
        else:
            fresh = pc.if_else(pa.array(place_of < 0), files[name], fresh)
        files = with_column(files, name, fresh)
    return replace(manifest, files=files)
