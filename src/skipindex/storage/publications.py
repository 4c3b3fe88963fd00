"""Publications: which files a reader ignores while vacuum publishes rewritten files.

::

    .skipindex-publishing/<id>.json            the replacements that are published
    .skipindex-publishing/<id>.outcome.json    which of them are permanently visible

Giving hidden copies their visible names and deleting what they replaced takes many
steps, and at each of them a row must count once, though the log may be lost.  So the
record lies beside ``_skipindex``, and says which visible files are ignored:

1. The record is written, after the commit that it is of.  From here on, files at the
   visible names of its copies are ignored, and the files that they replace count.
2. The copies get their visible names.
3. The outcome is written, created only if absent, so that all agree on it: which
   hidden files are shown.  Of a rewrite it is all or none, of an arrival each.
4. Where one is shown and there, the replaced files are ignored from here on, and
   deleted.  Of a rewrite that is not shown, what had become visible is ignored
   further, and deleted.

A file is ignored only while it is the one that the record means, so an append, an
overwrite or a delete by any other tool is obeyed at each step.  When all is done, the
record is deleted.  The outcome stays for the retention, so that another vacuum which
publishes the same finds it.  Where a file was not shown, the record stays too.

The rows of an arrival are in no other file, so a visible one is ignored only while its
hidden file is there.  Of a rewrite the visible ones are ignored only while an old file
is there, or all hidden ones are: a vacuum that sleeps may write the record once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from skipindex.errors import (
    CorruptIndexError,
    IndexVersionError,
    StorageError,
    TableError,
)
from skipindex.storage.checks import (
    MAX_COMMIT,
    RefusedError,
    checking,
    fetched,
    reason,
    require,
    sealed,
    unsealed,
    whole,
)
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import hidden_twin, published
from skipindex.storage.log.identity import recognised
from skipindex.storage.properties import check_replacements, is_id
from skipindex.storage.replacements import Replacement, is_in, is_shown_in

PUBLISHING: Final = ".skipindex-publishing"
"""Deleting ``_skipindex*`` does not delete it."""

_FORMAT: Final = 1
_RECORD: Final = ".json"
_OUTCOME: Final = ".outcome.json"
_LOOKS: Final = 20
"""How often a table may be published while it is listed."""


@dataclass(frozen=True, slots=True)
class Publication:
    """One record, and its outcome as far as there is one.

    ``shown`` are the hidden paths of files that are permanently visible; None before
    the outcome.
    """

    id: str
    replacements: tuple[Replacement, ...]
    shown: frozenset[str] | None = None

    @property
    def is_done(self) -> bool:
        """Whether all of its files are permanently visible."""
        return self.shown is not None and all(
            self.shown.issuperset(one.names) for one in self.replacements
        )

    def shown_of(self, replacement: Replacement) -> frozenset[str]:
        """The files of a replacement that are shown: of a rewrite all, or none."""
        shown = frozenset(replacement.names) & (self.shown or frozenset())
        whole = replacement.arrival or len(shown) == len(replacement.new)
        return shown if whole else frozenset()

    def ignored(self, there: Mapping[str, FileInfo]) -> Iterator[str]:
        """Paths of visible files that do not count."""
        for replacement in self.replacements:
            shown = self.shown_of(replacement)
            visible = [f for f in replacement.new if is_shown_in(there, f)]
            if any(file.path in shown for file in visible):
                for file in replacement.old:
                    if is_in(there, file):
                        yield file.path
            stands = replacement.arrival or _stands(replacement, there)
            for file in visible:
                is_copy = stands and (not replacement.arrival or is_in(there, file))
                if file.path not in shown and is_copy:
                    yield published(file.path)


def _stands(rewrite: Replacement, there: Mapping[str, FileInfo]) -> bool:
    """Whether the rows of a rewrite are in other files than its visible copies."""
    return any(is_in(there, file) for file in rewrite.old) or all(
        is_in(there, file) for file in rewrite.new
    )


_NO_RECORD: Final[tuple[None, frozenset[str]]] = (None, frozenset())


@dataclass(frozen=True, slots=True)
class Publications:
    """All records of a table.

    ``ended`` are ids of those that have an outcome and no record, as it was deleted.
    Outcomes are read where they are asked for.  ``notes`` say which records cannot be
    read, and why.
    """

    records: tuple[Publication, ...] = ()
    ended: frozenset[str] = frozenset()
    location: Location | None = None
    notes: tuple[str, ...] = ()
    _by_id: dict[str, tuple[Publication, frozenset[str]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _outcomes: dict[str, frozenset[str] | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Find each record by its id, and the hidden paths of its files, once."""
        for record in self.records:
            names = (path for one in record.replacements for path in one.names)
            self._by_id[record.id] = record, frozenset(names)

    def ignored(self, there: Mapping[str, FileInfo]) -> set[str]:
        """Paths of visible files that do not count, of those that are there."""
        visible = {
            published(path)
            for record in self.records
            for one in record.replacements
            for path in record.shown_of(one)
        }
        found: set[str] = set()
        for record in self.records:
            hidden = set(record.ignored(there))
            old = {f.path for r in record.replacements for f in r.old}
            found |= {path for path in hidden if path in old or path not in visible}
        return found

    def recognised(
        self, location: Location, there: Mapping[str, FileInfo]
    ) -> Publications:
        """The same, where the table may be a copy with other times."""
        records = tuple(
            replace(one, replacements=recognised(location, one.replacements, there))
            for one in self.records
        )
        return replace(self, records=records)

    def shown_of(self, replacement: Replacement) -> frozenset[str] | None:
        """The hidden paths of its files that are shown; None if no record tells."""
        if replacement.publication in self.ended:
            return self.ended_with(replacement).shown_of(replacement)
        record, names = self._by_id.get(replacement.publication or "", _NO_RECORD)
        if record is None or names.isdisjoint(replacement.names):
            return None
        return record.shown_of(replacement)

    def ended_with(self, *replacements: Replacement) -> Publication:
        """The publication of these, whose record is deleted: its outcome decides.

        Raises:
            StorageError: that cannot be read now.
        """
        name = replacements[0].publication
        assert name is not None
        every = frozenset(path for one in replacements for path in one.names)
        if self.location is not None and name not in self._outcomes:
            self._outcomes[name] = _shown_in(self.location, name)
        shown = self._outcomes.get(name)
        return Publication(name, replacements, every if shown is None else shown)

    def record(self, name: str | None) -> Publication | None:
        """The record of this id, if it can be read."""
        return self._by_id.get(name or "", _NO_RECORD)[0]


def read_publications(location: Location) -> Publications:
    """All records.

    Raises:
        StorageError: one cannot be read now, so it is not known which files count.
    """
    return _read(location, _names(location))


def stable_listing(
    location: Location, list_all: Callable[[], Sequence[FileInfo]]
) -> tuple[Sequence[FileInfo], Publications]:
    """A listing, and the records that stood beside it from its begin to its end.

    Raises:
        TableError: they changed again and again.
        StorageError: as ``read_publications``.
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
                with checking("it is no record"):
                    records.append(_record(location, name, decided=decided))
            except IndexVersionError as error:
                raise TableError(
                    f"{location.full(record_path(name))!r}: {error}"
                ) from error
            except RefusedError as error:
                raise _unread(location, record_path(name), error) from error
            except CorruptIndexError as error:
                notes.append(f"{record_path(name)} ignored: {reason(error)}")
        elif decided:
            ended.add(name)
    return Publications(tuple(records), frozenset(ended), location, tuple(notes))


def _unread(location: Location, path: str, error: Exception) -> StorageError:
    """The error where nothing else says which files count."""
    return StorageError(
        f"cannot read {location.full(path)!r}, which says which files of the table "
        f"count: {reason(error)}"
    )


def _shown_in(location: Location, name: str) -> frozenset[str] | None:
    """What an outcome says; None if it is gone or damaged."""
    try:
        with checking("it is no outcome"):
            return _outcome(location, name)
    except RefusedError as error:
        raise _unread(location, outcome_path(name), error) from error
    except CorruptIndexError:
        return None


def _record(location: Location, name: str, *, decided: bool) -> Publication:
    data = fetched(location, record_path(name), MAX_COMMIT)
    body = _of_our_format(unsealed("publication", data))
    check_replacements(body["replacements"])
    replacements = tuple(map(Replacement.from_json, body["replacements"]))
    named = (path for one in replacements for path in one.names)
    ours = all(hidden_twin(published(path)) == path for path in named)
    require(ours, "a file has not the name of its run")
    if not decided:
        return Publication(name, replacements)
    return Publication(name, replacements, _outcome(location, name))


def _outcome(location: Location, name: str) -> frozenset[str]:
    data = fetched(location, outcome_path(name), MAX_COMMIT)
    outcome = _of_our_format(unsealed("outcome", data))
    shown = frozenset(outcome["shown"])
    require(all(isinstance(path, str) for path in shown), "a path is no text")
    return shown


def _of_our_format(body: dict[str, Any]) -> dict[str, Any]:
    if whole(body["format"], 1) > _FORMAT:
        raise IndexVersionError(
            f"format {body['format']} is newer than ours ({_FORMAT}), so it cannot be "
            "told which files count; use the version of skipindex that wrote it"
        )
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
) -> bool:
    """Write a record, unless another vacuum has done it; whether this one has."""
    body = {"format": _FORMAT, "replacements": [r.to_json() for r in replacements]}
    is_mine = location.write_new(record_path(name), sealed("publication", body))
    location.share([PUBLISHING, record_path(name)])
    return is_mine


def write_outcome(location: Location, name: str, shown: Collection[str]) -> None:
    """Write which hidden files are permanently visible, unless another vacuum has."""
    body = {"format": _FORMAT, "shown": sorted(shown)}
    location.write_new(outcome_path(name), sealed("outcome", body))
    location.share([PUBLISHING, outcome_path(name)])
