"""Rewritten files: hidden files that replace visible ones until vacuum shows them.

A rewrite puts its files into hidden folders beside the files that they replace,
``city=7/_skipindex-<run>/part-00000-….parquet``, which other readers do not list.  A
commit then says that they hold the same rows as certain visible files.  This counts
as long as every file on both sides is there, unchanged.  Other tools may add, delete
or overwrite visible files: a replacement that no longer fits is void, and the visible
files count again.

An overwrite is one whose hidden files hold other rows than those that it replaces, so
each of them counts for itself.  One that replaces nothing adds rows, all at once.

Vacuum shows what was rewritten: it links the hidden files to visible names, commits
that these count, and deletes what they replace.  Until that commit the visible copies
are ignored.  A hidden file that counts no more is trash: its visible copy, which a
vacuum that sleeps may make, is ignored as long as it is listed there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skipindex.errors import CommitConflictError
from skipindex.log.commits import Snapshot
from skipindex.log.properties import TableProperties
from skipindex.storage.file_system.file_info import SECOND, FileInfo
from skipindex.storage.file_system.names import published

There = Mapping[str, FileInfo]
"""The files that are there, by path."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Hidden files that stand for visible ones.

    Args:
        old: the visible files.
        new: the hidden ones.
        since: when that was committed, or that they are shown, in seconds since 1970.
        overwrites: the hidden files hold rows of their own.
        has_defaults: the table had columns with DEFAULT, which the hidden files may
            hold in place of columns that the visible ones lack.
    """

    old: tuple[FileInfo, ...]
    new: tuple[FileInfo, ...]
    since: float
    overwrites: bool = False
    has_defaults: bool = False

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
                for path, size, mtime in record[side]
            )

        return cls(
            files("old"),
            files("new"),
            record["since"],
            record.get("overwrites", False),
            record.get("has_defaults", False),
        )

    def to_json(self) -> dict[str, Any]:
        """The record in a commit."""
        record: dict[str, Any] = {
            "old": [[file.path, file.size, file.mtime] for file in self.old],
            "new": [[file.path, file.size, file.mtime] for file in self.new],
            "since": self.since,
        }
        tags = {f.path: f.tag for f in (*self.old, *self.new) if f.tag is not None}
        if tags:
            record["tags"] = tags
        for name in ("overwrites", "has_defaults"):
            if getattr(self, name):
                record[name] = True
        return record

    def first_mismatch(self, there: There) -> str | None:
        """The path of a deleted or changed file of a rewrite, or None."""
        files = (*self.old, *self.new)
        return next((f.path for f in files if not is_in(there, f)), None)

    def is_shown_by(self, there: There) -> bool:
        """Whether visible copies count of a rewrite that does not fit any more."""
        # Its rows are in the old files, as long as these are there, changed or not.
        # Vacuum deletes them after a commit, which is lost then.
        old = [file.path in there for file in self.old]
        if not any(old):
            return True
        return not all(old) and all(is_shown_in(there, file) for file in self.new)

    def left(self, there: There) -> list[FileInfo]:
        """The old files that are there, and the same, as they are now."""
        # In a copy of the table all files have other times.
        hidden = [(file, there.get(file.path)) for file in self.new]
        is_copied = any(now and _differ_in_time(file, now) for file, now in hidden)
        result = [(file, there.get(file.path)) for file in self.old]
        return [
            now
            for file, now in result
            if now is not None
            and (file.is_same(now) or (is_copied and file.size == now.size))
        ]


def _differ_in_time(file: FileInfo, now: FileInfo) -> bool:
    if file.tag is None and now.tag is None:
        return now.mtime != file.mtime
    # Stores tell fractions of a second in a listing, but not of a single object.
    return now.mtime // SECOND != file.mtime // SECOND


def is_in(there: There, file: FileInfo) -> bool:
    """Whether a file is there, unchanged."""
    return file.is_same(there.get(file.path))


def is_shown_in(there: There, hidden: FileInfo) -> bool:
    """Whether the visible copy of a hidden file is there, by its name and size."""
    result = there.get(published(hidden.path))
    return result is not None and result.size == hidden.size


@dataclass(frozen=True, slots=True)
class Trash:
    """A hidden file that counts no more, and neither does its visible copy.

    ``since`` is when that was committed, in seconds since 1970.
    """

    file: FileInfo
    since: float


@dataclass(frozen=True, slots=True)
class Rewrites:
    """What a commit says of files that count, and do not, by more than being listed.

    No two replacements have a file in common.

    Args:
        replacements: those whose hidden files count.
        shown: those whose visible copies count.  The hidden files are still there, for
            those who opened the table before, and perhaps some of the old ones.
        trash: hidden files that count no more.
        changes: how often this has changed.
    """

    replacements: tuple[Replacement, ...] = ()
    shown: tuple[Replacement, ...] = ()
    trash: tuple[Trash, ...] = ()
    changes: int = 0

    @property
    def entries(self) -> tuple[Replacement, ...]:
        """Open replacements, and those that are shown."""
        return (*self.replacements, *self.shown)

    @property
    def replaced(self) -> dict[str, FileInfo]:
        """The visible files that hidden ones were made of, by path.

        A reader that lists the folder reads them, so the log keeps their indexes.
        """
        rewrites = (one for one in self.replacements if not one.overwrites)
        return {file.path: file for one in rewrites for file in one.old}

    @classmethod
    def of(cls, snapshot: Snapshot) -> Rewrites:
        """The rewrites that a commit names."""
        return cls.from_properties(snapshot.properties)

    @classmethod
    def from_properties(cls, properties: TableProperties) -> Rewrites:
        """The rewrites of a table."""
        record = properties.rewrites or {}
        return cls(
            tuple(map(Replacement.from_json, record.get("replacements", ()))),
            tuple(map(Replacement.from_json, record.get("shown", ()))),
            tuple(Trash(FileInfo(*f), at) for *f, at in record.get("trash", ())),
            record.get("changes", 0),
        )

    def to_properties(self, properties: TableProperties) -> TableProperties:
        """The properties of the next commit, with these rewrites."""
        trash = [[t.file.path, t.file.size, t.file.mtime, t.since] for t in self.trash]
        record = {
            "replacements": [r.to_json() for r in self.replacements],
            "shown": [r.to_json() for r in self.shown],
            "trash": trash,
            "changes": self.changes + 1,
        }
        return replace(properties, rewrites=record)

    def live_files(
        self, there: There, is_visible: Callable[[FileInfo], bool]
    ) -> tuple[list[FileInfo], list[str]]:
        """The files that hold the table's rows, by path, and notes on others.

        Args:
            there: every file below the table's folder by its path, hidden ones
                included.
            is_visible: whether a reader that lists the folder reads the file.
        """
        result = {f.path: f for f in there.values() if is_visible(f)}
        notes = []
        for one in self.shown:
            _remove(one.left(there), result)
        _remove_copies((trash.file for trash in self.trash), result)
        for one in self.replacements:
            mismatch = one.first_mismatch(there)
            if one.overwrites:
                _remove(one.left(there), result)
                alone = [file for file in one.new if is_in(there, file)]
                _remove_copies(alone, result)
                result |= {file.path: there[file.path] for file in alone}
                gone = [
                    file.path
                    for file in one.new
                    if file.path not in result and published(file.path) not in result
                ]
                if gone:
                    notes.append(
                        f"{len(gone)} new files are deleted or changed, such as "
                        f"{gone[0]!r}"
                    )
            elif mismatch is None:
                _remove(one.left(there), result)
                _remove_copies(one.new, result)
                result |= {file.path: there[file.path] for file in one.new}
            else:
                if one.is_shown_by(there):
                    _remove(one.left(there), result)
                    if any(is_shown_in(result, file) for file in one.new):
                        continue
                else:
                    _remove_copies(one.new, result)
                notes.append(
                    f"{len(one.new)} rewritten files not used: {mismatch!r} was "
                    "deleted or changed, so the visible files count"
                )
        return [result[path] for path in sorted(result)], notes

    def with_replaced(
        self,
        changes: Sequence[tuple[Sequence[FileInfo], Sequence[FileInfo]]],
        *,
        now: float,
        has_defaults: bool = False,
    ) -> Rewrites:
        """These and others, by each of which new files hold the rows of old ones.

        Where the old ones of a change have hidden files, they become trash, and the
        replacements that made them become one with the new one.  An old one that counts
        though a replacement names it shows that this has ended: another writer has
        written its name again, or its visible copies count.

        ``now`` is in seconds since 1970, and ``has_defaults`` is that of the others.
        """
        numbered = dict(enumerate(self.replacements))
        number_of = {f.path: i for i, r in numbered.items() for f in r.new}
        named_by = {
            path: i
            for i, r in numbered.items()
            for path in (*(f.path for f in r.old), *(published(f.path) for f in r.new))
        }
        fresh = itertools.count(len(numbered))
        shown, trash = list(self.shown), list(self.trash)
        for old, new in changes:
            paths = {file.path for file in old}
            numbers = {number_of.pop(path) for path in paths & number_of.keys()}
            touched = [numbered.pop(i) for i in sorted(numbers)]
            numbers = {named_by[path] for path in paths & named_by.keys()}
            ended = [numbered.pop(i) for i in sorted(numbers & numbered.keys())]
            if any(one.overwrites for one in (*touched, *ended)):
                raise CommitConflictError(
                    "optimize: another writer is publishing files that this run would "
                    "rewrite; try again later (if that writer was killed, run vacuum)"
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
                has_defaults=has_defaults or any(r.has_defaults for r in touched),
            )
            gone = [f for r in touched for f in r.new if f.path in paths]
            for one in ended:
                if any(published(file.path) in paths for file in one.new):
                    shown.append(replace(one, since=now))
                else:
                    gone += one.new
            trash += (Trash(file, now) for file in gone)
            number = next(fresh)
            numbered[number] = whole
            number_of |= {file.path: number for file in whole.new}
            named_by |= {file.path: number for file in whole.old}
        return replace(
            self,
            replacements=tuple(numbered.values()),
            shown=tuple(shown),
            trash=tuple(trash),
        )

    def overwritten(self, by: Replacement, *, now: float) -> Rewrites:
        """What is left once a replacement stands for all that counted."""
        gone = (file for one in self.entries for file in one.new)
        trash = (*self.trash, *(Trash(file, now) for file in gone))
        return replace(self, replacements=(by,), shown=(), trash=trash)

    def ended(
        self,
        shown: Sequence[Replacement],
        void: Sequence[Replacement],
        *,
        now: float,
    ) -> Rewrites:
        """The same, where the copies of some count, and others are trash."""
        names = {one.names for one in (*shown, *void)}
        visible = (replace(one, since=now) for one in shown)
        gone = (Trash(file, now) for one in void for file in one.new)
        return replace(
            self,
            replacements=tuple(r for r in self.replacements if r.names not in names),
            shown=(*self.shown, *visible),
            trash=(*self.trash, *gone),
        )


def _remove(files: Iterable[FileInfo], infos: dict[str, FileInfo]) -> None:
    for file in files:
        infos.pop(file.path, None)


def _remove_copies(hidden: Iterable[FileInfo], infos: dict[str, FileInfo]) -> None:
    """Remove the visible copies of hidden files, by name and size."""
    for file in hidden:
        if is_shown_in(infos, file):
            del infos[published(file.path)]
