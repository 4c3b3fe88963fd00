"""Publications: which files a reader ignores while vacuum publishes rewritten files.

::

    .skipindex-publishing/<id>.json            the replacements that are published
    .skipindex-publishing/<id>.outcome.json    which of them are permanently visible

Giving hidden copies their visible names and deleting what they replaced takes many
steps, and at each of them a row must count once, though the log may be lost.  So the
record lies beside ``_skipindex``, and says which visible files are ignored:

1. The record is written.  From here on, files at the visible names of its copies are
   ignored, and the files that they replace count.
2. The copies get their visible names.
3. The outcome is written, created only if absent, so that all agree on it: for each
   replacement whether it is shown.
4. Of one that is shown, the replaced files are ignored from here on, and deleted.  Of
   one that is not, what had become visible is ignored further, and deleted.

A file is ignored only while it is the one that the record means, so an append, an
overwrite or a delete by any other tool is obeyed at each step.  When all is done, the
record is deleted.  The outcome stays for the retention, so that another vacuum which
publishes the same finds it.  Where a replacement was not shown, the record stays too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skipindex.errors import CorruptIndexError, TableError
from skipindex.storage.checks import (
    MAX_COMMIT,
    READING,
    reason,
    sealed,
    unsealed,
    whole,
)
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import published
from skipindex.storage.properties import check_replacements, is_id
from skipindex.storage.replacements import Replacement

PUBLISHING: Final = ".skipindex-publishing"
"""Deleting ``_skipindex*`` does not delete it."""

_FORMAT: Final = 1
_RECORD: Final = ".json"
_OUTCOME: Final = ".outcome.json"
_LOOKS: Final = 20


@dataclass(frozen=True, slots=True)
class Publication:
    """One record, and its outcome as far as there is one.

    Args:
        id: its name.
        replacements: that are published.
        shown: the numbers of those that are permanently visible; None before the
            outcome.
    """

    id: str
    replacements: tuple[Replacement, ...]
    shown: frozenset[int] | None = None

    def ignored(self, there: Mapping[str, FileInfo]) -> Iterator[str]:
        """Paths of visible files that do not count."""
        for i, replacement in enumerate(self.replacements):
            if self.shown is not None and i in self.shown:
                for file in replacement.old:
                    if file.is_same(there.get(file.path)):
                        yield file.path
            else:
                for file in replacement.new:
                    target = there.get(published(file.path))
                    if target is not None and target.size == file.size:
                        yield target.path


@dataclass(frozen=True, slots=True)
class Publications:
    """All records of a table.

    Args:
        records: the records that can be read.
        ended: ids of those that are done, with all of their replacements shown.
        notes: which records cannot be read, and why.
    """

    records: tuple[Publication, ...] = ()
    ended: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def ignored(self, there: Mapping[str, FileInfo]) -> set[str]:
        """Paths of visible files that do not count, of those that are there."""
        visible = {
            published(file.path)
            for record in self.records
            for i in record.shown or ()
            for file in record.replacements[i].new
        }
        found: set[str] = set()
        for record in self.records:
            hidden = set(record.ignored(there))
            old = {f.path for r in record.replacements for f in r.old}
            found |= {path for path in hidden if path in old or path not in visible}
        return found

    def is_shown(self, replacement: Replacement) -> bool | None:
        """Whether the copies are permanently visible; None if no record tells."""
        if replacement.publication in self.ended:
            return True
        record = self.record(replacement.publication)
        for i, other in enumerate(record.replacements if record else ()):
            if record and other.new == replacement.new:
                return record.shown is not None and i in record.shown
        return None

    def record(self, name: str | None) -> Publication | None:
        """The record of this id, if it can be read."""
        return next((r for r in self.records if r.id == name), None)


def read_publications(location: Location) -> Publications:
    """All records that can be read now."""
    return _read(location, _names(location))


def stable_listing(
    location: Location, list_all: Callable[[], Sequence[FileInfo]]
) -> tuple[Sequence[FileInfo], Publications]:
    """A listing, and the records that stood beside it from its begin to its end.

    Raises:
        TableError: they changed again and again.
    """
    names = _names(location)
    for _ in range(_LOOKS):
        listing = list_all()
        before, names = names, _names(location)
        if names == before:
            return listing, _read(location, names)
    raise TableError(
        f"{location.full('')!r} was published {_LOOKS} times while it was listed; try "
        "again when that is done"
    )


def _names(location: Location) -> frozenset[str]:
    return frozenset(location.names(PUBLISHING))


def _read(location: Location, names: frozenset[str]) -> Publications:
    ids = {name.partition(".")[0] for name in names}
    records, ended, notes = [], set(), []
    for name in sorted(filter(is_id, ids)):
        decided = f"{name}{_OUTCOME}" in names
        if f"{name}{_RECORD}" in names:
            try:
                records.append(_record(location, name, decided=decided))
            except READING as error:
                notes.append(f"{record_path(name)} ignored: {reason(error)}")
        elif decided:
            ended.add(name)
    return Publications(tuple(records), frozenset(ended), tuple(notes))


def _record(location: Location, name: str, *, decided: bool) -> Publication:
    data = location.read(record_path(name), MAX_COMMIT)
    body = _of_our_format(unsealed("publication", data))
    check_replacements(body["replacements"])
    replacements = tuple(map(Replacement.from_json, body["replacements"]))
    if not decided:
        return Publication(name, replacements)
    data = location.read(outcome_path(name), MAX_COMMIT)
    outcome = _of_our_format(unsealed("outcome", data))
    shown = [whole(i, 0, len(replacements) - 1) for i in outcome["shown"]]
    return Publication(name, replacements, frozenset(shown))


def _of_our_format(body: dict[str, Any]) -> dict[str, Any]:
    if whole(body["format"]) != _FORMAT:
        raise CorruptIndexError(f"format {body['format']} is not ours ({_FORMAT})")
    return body


def record_path(name: str) -> str:
    """Where the record of this id is."""
    return f"{PUBLISHING}/{name}{_RECORD}"


def outcome_path(name: str) -> str:
    """Where its outcome is."""
    return f"{PUBLISHING}/{name}{_OUTCOME}"


def outcome_of(path: str) -> str:
    """The id of the publication whose outcome is at this path; empty if it is none."""
    folder, _, name = path.rpartition("/")
    stem, dot, end = name.partition(".")
    return (
        stem if folder == PUBLISHING and is_id(stem) and dot + end == _OUTCOME else ""
    )


def is_record(path: str) -> bool:
    """Whether the file at this path is a record or an outcome, by its name."""
    folder, _, name = path.rpartition("/")
    stem, dot, end = name.partition(".")
    return folder == PUBLISHING and is_id(stem) and dot + end in {_RECORD, _OUTCOME}


def write_record(
    location: Location, name: str, replacements: Sequence[Replacement]
) -> None:
    """Write a record, unless another vacuum has done it."""
    body = {"format": _FORMAT, "replacements": [r.to_json() for r in replacements]}
    location.write_new(record_path(name), sealed("publication", body))


def write_outcome(location: Location, name: str, shown: Sequence[int]) -> None:
    """Write which replacements are permanently visible, unless another vacuum has."""
    body = {"format": _FORMAT, "shown": sorted(shown)}
    location.write_new(outcome_path(name), sealed("outcome", body))
