"""Rewritten files: hidden copies that stand for visible files, until published.

A rewrite puts its files into hidden folders beside the files that they replace,
``city=7/_skipindex-<run>/part-00000-….parquet``, which other readers do not list.  A
commit then says that they hold the same rows as certain visible files.  This counts
as long as every file on both sides is there, unchanged.  Other tools may add, delete
or overwrite visible files: a replacement that no longer fits is void, and the visible
files count again.

Vacuum publishes a replacement: the copies are linked to visible names and the
replaced files are deleted.  ``publications`` says how a reader sees each row once
meanwhile, even if the log is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
        publishing: the hidden files get their visible names.
        publication: the id of its record; None if an earlier version of this
            library published without a record.
        arrival: the hidden files hold rows of their own, so those of the visible
            ones, if there are any, are overwritten.
    """

    old: tuple[FileInfo, ...]
    new: tuple[FileInfo, ...]
    since: float
    publishing: bool = False
    publication: str | None = None
    arrival: bool = False

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Replacement:
        """The inverse of ``to_json``; ``properties`` has checked the record."""
        tags = record.get("tags", {})

        def files(side: str) -> tuple[FileInfo, ...]:
            return tuple(
                FileInfo(path, size, mtime, tags.get(path))
                for path, size, mtime in record[side]
            )

        return cls(
            files("old"),
            files("new"),
            record["since"],
            record["publishing"],
            record.get("publication"),
            record.get("arrival", False),
        )

    def to_json(self) -> dict[str, Any]:
        """As a commit and a record of a publication have it."""
        record = {
            "old": [[f.path, f.size, f.mtime] for f in self.old],
            "new": [[f.path, f.size, f.mtime] for f in self.new],
            "since": self.since,
            "publishing": self.publishing,
        }
        tags = {f.path: f.tag for f in (*self.old, *self.new) if f.tag is not None}
        if tags:
            record["tags"] = tags
        if self.publication is not None:
            record["publication"] = self.publication
        if self.arrival:
            record["arrival"] = True
        return record

    def first_mismatch(self, there: Mapping[str, FileInfo]) -> str | None:
        """The path of a file that is gone or changed, or None.

        The files that an arrival replaces are not looked at.
        """
        files = self.new if self.arrival else (*self.old, *self.new)
        return next((f.path for f in files if not f.is_same(there.get(f.path))), None)


def _no_record(_: Replacement) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Rewrites:
    """All replacements of a table, and its trash: hidden files that no longer count.

    Args:
        replacements: no two have a file in common.
        trash: paths of such files, and since when.
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
        is_shown: Callable[[Replacement], bool | None] = _no_record,
    ) -> tuple[list[FileInfo], list[str]]:
        """The files that hold the table's rows, by path, and notes on others.

        Args:
            there: every file below the table's folder by its path, hidden ones
                included, but none that a publication says to ignore.
            is_visible: whether a reader who lists the folder reads the file.
            is_shown: whether the copies have been made permanently visible; None if
                no publication tells.
        """
        found = {f.path: f for f in there.values() if is_visible(f)}
        notes = []
        for replacement in self.replacements:
            shown = is_shown(replacement) if replacement.publishing else False
            if shown:
                _by_hidden_names(replacement, there, found)
                continue
            if shown is None and _take_over(replacement, there, found):
                continue
            mismatch = replacement.first_mismatch(there)
            if mismatch is not None:
                notes.append(
                    f"{len(replacement.new)} rewritten files not used: {mismatch!r} is "
                    "gone or changed, so the visible files count"
                )
                continue
            _remove(replacement.old, found)
            found.update({file.path: there[file.path] for file in replacement.new})
        return [found[path] for path in sorted(found)], notes

    def with_replaced(
        self, old: Sequence[FileInfo], new: Sequence[FileInfo], *, now: float
    ) -> Rewrites:
        """These and one more, by which ``new`` holds the rows of ``old``.

        Where ``old`` has hidden files, they become trash, and the replacements
        that made them become one with the new one.

        Raises:
            CommitConflictError: one of them is being published.
        """
        paths = {file.path for file in old}
        touched = [r for r in self.replacements if paths & {f.path for f in r.new}]
        if any(r.publishing for r in touched):
            raise CommitConflictError(
                "optimize: vacuum is publishing files that were to be rewritten; try "
                "again when it is done"
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
        )
        return Rewrites(
            (*(r for r in self.replacements if r not in touched), whole),
            (*self.trash, *((path, now) for path in sorted(paths & made))),
        )

    def without_replacements(
        self, gone: Sequence[Replacement], *, now: float
    ) -> Rewrites:
        """All but ``gone``, whose hidden files become trash."""
        return Rewrites(
            tuple(r for r in self.replacements if r not in gone),
            (*self.trash, *((f.path, now) for r in gone for f in r.new)),
        )

    def with_publication(
        self, due: Sequence[Replacement], publication: str
    ) -> Rewrites:
        """The same, where those that are due are marked as being published."""
        marked = tuple(
            replace(r, publishing=True, publication=publication)
            if r in due and not r.publishing
            else r
            for r in self.replacements
        )
        return Rewrites(marked, self.trash)


def _remove(files: Sequence[FileInfo], found: dict[str, FileInfo]) -> None:
    """Remove the files that are unchanged."""
    for file in files:
        if file.is_same(found.get(file.path)):
            del found[file.path]


def _by_hidden_names(
    replacement: Replacement, there: Mapping[str, FileInfo], found: dict[str, FileInfo]
) -> None:
    """Let visible copies count by their hidden names, which the manifest knows."""
    for file in replacement.new:
        target = found.get(published(file.path))
        hidden = there.get(file.path)
        if hidden and file.is_same(hidden) and target and target.size == file.size:
            del found[target.path]
            found[file.path] = hidden


def _take_over(
    replacement: Replacement, there: Mapping[str, FileInfo], found: dict[str, FileInfo]
) -> bool:
    """Let the copies count, by their hidden names or the visible ones, if all are.

    An earlier version of this library published without a record.
    """
    hidden = [file for file in replacement.new if file.is_same(there.get(file.path))]
    others = [published(f.path) for f in replacement.new if f not in hidden]
    if not all(path in found for path in others):
        return False
    _remove(replacement.old, found)
    for file in hidden:
        found.pop(published(file.path), None)
        found[file.path] = there[file.path]
    return True


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
