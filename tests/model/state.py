"""What the disk says of a small table, and what a reader counts of it.

A file is a name, the rows in it and a time.  The hidden file of ``a`` is ``h:a``.  The
rules of the protocol are switches, so that one model shows what each of them is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final, NamedTuple


@dataclass(frozen=True)
class Rules:
    """The rules of ``docs/format.md``, each of which can be left out.

    Args:
        nonce: a writer who tries again finds its own commit, where the number is taken,
            or its files in the table.
        looks_again: a writer whose commit is not the newest asks the next one.
        each_file: a file that arrives counts for itself.
        names: a hidden file is known by its name, and a replaced one by its content
            where its time is another.
        twins_first: the hidden file of a visible one is deleted before that one.
        looks_before_deleting: at once before it deletes a file a publisher compares it.
        new_is_there: old files are replaced only while a new one is there.
        all_visible: a rewrite that is published and has no record counts by its copies
            only if all of them are visible.
        stands: a copy that is not shown is ignored only while its rows are in other
            files: of an arrival in the hidden one, of a rewrite in an old one, or in
            all hidden ones.
    """

    nonce: bool = True
    looks_again: bool = True
    each_file: bool = True
    names: bool = True
    twins_first: bool = True
    looks_before_deleting: bool = True
    new_is_there: bool = True
    all_visible: bool = True
    stands: bool = True

    def without(self, name: str) -> Rules:
        """These rules but for one."""
        return Rules(**{f.name: f.name != name for f in fields(self)})


NEW_RULES: Final = Rules()
OLD_RULES: Final = Rules(*[False] * len(fields(Rules)))
"""Those before records of publications had one entry a file."""


class File(NamedTuple):
    """One file of the table."""

    name: str
    rows: frozenset[str]
    time: int = 0


class Entry(NamedTuple):
    """Files that are published together: a rewrite, or an arrival."""

    id: str
    old: tuple[File, ...]
    new: tuple[File, ...]
    arrival: bool = True


class Commit(NamedTuple):
    """One commit; its files that are visible are in no entry."""

    number: int
    nonce: str
    parent: str
    entries: tuple[Entry, ...]


class Party(NamedTuple):
    """A process: what it does next, and what it remembers."""

    name: str
    at: str = "begin"
    base: Commit | None = None
    nonce: str = ""
    entry: Entry | None = None
    todo: tuple[File, ...] = ()
    end: bool = False
    taken_over: bool = False


class State(NamedTuple):
    """All that there is; ``truth`` are the rows that were committed.

    ``loose`` are rows that another tool replaced while they were published, for which
    there is no right answer.
    """

    log: tuple[Commit, ...]
    files: frozenset[File]
    parties: tuple[Party, ...]
    truth: frozenset[str]
    records: frozenset[Entry] = frozenset()
    outcomes: frozenset[tuple[str, frozenset[str]]] = frozenset()
    loose: frozenset[str] = frozenset()
    applied: frozenset[str] = frozenset()
    lost_answers: int = 0
    told: str = ""

    @property
    def newest(self) -> Commit:
        """The commit that readers read."""
        return max(self.log)

    def file(self, name: str) -> File | None:
        """The file of a name."""
        return next((file for file in self.files if file.name == name), None)

    def shown(self, name: str) -> frozenset[str] | None:
        """What the outcome of an id says, if there is one."""
        return next((shown for id_, shown in self.outcomes if id_ == name), None)


def visible(name: str) -> str:
    """The name under which other readers see a hidden file."""
    return name.removeprefix("h:")


def is_same(rules: Rules, file: File, now: File | None) -> bool:
    """Whether a file of a log or record is still the one that it was."""
    if now is None or now.rows != file.rows:
        return False
    return rules.names or now.time == file.time


def ignored(rules: Rules, state: State) -> Iterator[str]:
    """The visible files that do not count, by the records alone."""
    for entry in state.records:
        shown = state.shown(entry.id)
        targets = [visible(file.name) for file in entry.new]
        if shown and (not rules.new_is_there or any(map(state.file, targets))):
            for file in entry.old:
                if is_same(rules, file, state.file(file.name)):
                    yield file.name
        for file, target in zip(entry.new, targets, strict=True):
            stands = not rules.stands or _stands(rules, state, entry, file)
            if file.name not in (shown or ()) and stands:
                yield target


def _stands(rules: Rules, state: State, entry: Entry, file: File) -> bool:
    """Whether the rows of a file are in another one than its visible copy."""
    old, new = (
        [is_same(rules, one, state.file(one.name)) for one in files]
        for files in (entry.old, entry.new)
    )
    if entry.arrival:
        return is_same(rules, file, state.file(file.name))
    return any(old) or all(new)


def counted(rules: Rules, state: State) -> Counter[str]:
    """The rows that a reader counts who knows the log and the records."""
    gone = set(ignored(rules, state))
    there = {file.name: file for file in state.files if file.name not in gone}
    live = {name: file for name, file in there.items() if not name.startswith("h:")}
    entries = state.newest.entries
    named = [file.name for entry in entries for file in entry.new]
    if len(set(named)) < len(named):
        entries = ()  # the property fails its check
    for entry in entries:
        shown = state.shown(entry.id) or frozenset()
        if is_lost(state, entry):
            if is_taken_over(rules, state, entry):
                shown = frozenset(f.name for f in entry.new if visible(f.name) in live)
            elif _fits(rules, there, entry):
                for file in entry.new:
                    live.pop(visible(file.name), None)
        if not shown or entry.arrival:
            fits = [f for f in entry.new if is_same(rules, f, there.get(f.name))]
            if rules.each_file and entry.arrival:
                is_whole = bool(fits)
            else:
                is_whole = len(fits) == len(entry.new)
            if not entry.arrival and not is_taken_over(rules, state, entry):
                is_whole &= _fits(rules, there, entry)
            if is_whole:
                live |= {f.name: f for f in fits if f.name not in shown}
        is_there = any(visible(name) in live for name in shown)
        if shown:
            is_whole = is_there or not rules.new_is_there
        if is_whole:
            for file in entry.old:
                if is_same(rules, file, live.get(file.name)):
                    del live[file.name]
    return Counter(row for file in live.values() for row in file.rows)


def is_lost(state: State, entry: Entry) -> bool:
    """Whether a rewrite that is published has no record, or has none yet."""
    is_known = entry in state.records or state.shown(entry.id) is not None
    return not entry.arrival and not is_known


def is_taken_over(rules: Rules, state: State, entry: Entry) -> bool:
    """Whether its copies count, whatever has become of the old files."""
    there = [state.file(visible(file.name)) for file in entry.new]
    if not rules.all_visible:
        there = [
            state.file(file.name) or copy
            for file, copy in zip(entry.new, there, strict=True)
        ]
    return is_lost(state, entry) and all(there)


def _fits(rules: Rules, there: Mapping[str, File], entry: Entry) -> bool:
    """Whether no file of a rewrite has changed."""
    files = (*entry.old, *entry.new)
    return all(is_same(rules, file, there.get(file.name)) for file in files)


def wrong(rules: Rules, state: State) -> str:
    """What a reader counts wrongly; empty if every committed row counts once."""
    if state.told:
        return state.told
    rows = counted(rules, state)
    for row in sorted((rows.keys() | state.truth) - state.loose):
        if rows[row] != (row in state.truth):
            return f"row {row} counts {rows[row]} times"
    return ""


def replaced(files: Iterable[File], name: str, *new: File) -> frozenset[File]:
    """The files, where those of a name are gone and others are new."""
    return frozenset([*(file for file in files if file.name != name), *new])
