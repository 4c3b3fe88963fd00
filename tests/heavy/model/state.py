"""What the disk says of a small table, and what a reader counts of it.

A file is a name, the rows in it and a time.  The hidden file of ``a`` is ``h:a``.  The
rules of the protocol are switches, so that one model shows what each of them is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final, NamedTuple


@dataclass(frozen=True)
class Rules:
    """The rules of ``docs/format.md``, each of which can be left out.

    Args:
        nonce: a writer who tries again finds its own commit, where the number is taken,
            or its files in the table.
        looks_again: a writer whose commit is not the newest asks the next one.
        each_file: a file of an overwrite counts for itself.
        twins_first: the hidden file of a visible one is deleted before that one.
        looks_before_deleting: at once before it deletes a file a publisher compares it.
        shown_first: a commit says that copies count before an old file is deleted.
        copies_wait: a visible copy is ignored while an old file is there.
        copies_count: a visible copy counts where no old file is there.
        trash: a hidden file that counts no more is in the log until it is gone and its
            visible copy too.
        old_by_path: an old file is there if its name is.
        copy_by_time: where a hidden file has another time, the table is a copy, and an
            old file is known by its content.
        changes: a reader looks again if rewrites were committed while it listed.
        gone_is_shown: copies count too if one old file is gone and all of them are
            there.
    """

    nonce: bool = True
    looks_again: bool = True
    each_file: bool = True
    twins_first: bool = True
    looks_before_deleting: bool = True
    shown_first: bool = True
    copies_wait: bool = True
    copies_count: bool = True
    trash: bool = True
    old_by_path: bool = True
    copy_by_time: bool = True
    changes: bool = True
    gone_is_shown: bool = True

    def without(self, name: str) -> Rules:
        """These rules but for one."""
        return Rules(**{f.name: f.name != name for f in fields(self)})


ALL_RULES: Final = Rules()


class File(NamedTuple):
    """One file of the table."""

    name: str
    rows: frozenset[str]
    time: int = 0


class Entry(NamedTuple):
    """Hidden files that stand for visible ones: a rewrite, or an overwrite."""

    id: str
    old: tuple[File, ...]
    new: tuple[File, ...]
    overwrite: bool = True


class Rewrites(NamedTuple):
    """What a commit says of files that do not count, or do though they are hidden.

    ``open`` are the entries whose hidden files count, ``shown`` those whose visible
    copies do, and ``trash`` hidden files that count no more.
    """

    open: tuple[Entry, ...] = ()
    shown: tuple[Entry, ...] = ()
    trash: tuple[File, ...] = ()
    changes: int = 0

    def changed(self, **parts: object) -> Rewrites:
        """The rewrites of the next commit."""
        return self._replace(changes=self.changes + 1, **parts)  # type: ignore[arg-type]


class Commit(NamedTuple):
    """One commit; its files that are visible are in no entry."""

    number: int
    nonce: str
    parent: str
    rewrites: Rewrites = Rewrites()
    damaged: bool = False


class Party(NamedTuple):
    """A process: what it does next, and what it remembers."""

    name: str
    at: str = "begin"
    base: Commit | None = None
    nonce: str = ""
    entry: Entry | None = None
    todo: tuple[File, ...] = ()
    seen: frozenset[File] = frozenset()
    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    then: str = ""


class State(NamedTuple):
    """All that there is; ``truth`` are the rows that were committed.

    ``loose`` are rows that another tool replaced while they were published, for which
    there is no right answer.  After two faults, ``careful`` is false: rows may count
    twice, but none may be lost.
    """

    log: tuple[Commit, ...]
    files: frozenset[File]
    parties: tuple[Party, ...]
    truth: frozenset[str]
    loose: frozenset[str] = frozenset()
    applied: frozenset[str] = frozenset()
    lost_answers: int = 0
    careful: bool = True
    told: str = ""

    @property
    def last(self) -> Commit:
        """The commit of the highest number."""
        return max(self.log)

    @property
    def newest(self) -> Commit:
        """The commit that readers read, which may have been followed by others."""
        return max(one for one in self.log if not one.damaged)

    def file(self, name: str) -> File | None:
        """The file of a name."""
        return next((file for file in self.files if file.name == name), None)


def visible(name: str) -> str:
    """The name under which other readers see a hidden file."""
    return name.removeprefix("h:")


def is_same(file: File, now: File | None) -> bool:
    """Whether a file of the log is still the one that it was: hidden ones by name."""
    if now is None or now.rows != file.rows:
        return False
    return file.name.startswith("h:") or now.time == file.time


def is_copied(rules: Rules, entry: Entry, there: Mapping[str, File]) -> bool:
    """Whether a hidden file has another time than in the log."""
    now = [(file, there.get(file.name)) for file in entry.new]
    return rules.copy_by_time and any(n and n.time != f.time for f, n in now)


def fits(entry: Entry, there: Mapping[str, File]) -> bool:
    """Whether no file of a rewrite has changed."""
    files = (*entry.old, *entry.new)
    return all(is_same(file, there.get(file.name)) for file in files)


def is_old_there(rules: Rules, entry: Entry, there: Mapping[str, File]) -> list[bool]:
    """Of each old file, whether it is there, though it may have changed."""
    return [
        file.name in there if rules.old_by_path else is_same(file, there.get(file.name))
        for file in entry.old
    ]


def all_visible(entry: Entry, there: Mapping[str, File]) -> bool:
    """Whether each file has its visible copy."""
    copies = [there.get(visible(file.name)) for file in entry.new]
    return all(
        copy is not None and copy.rows == file.rows
        for file, copy in zip(entry.new, copies, strict=True)
    )


def is_shown_by(rules: Rules, entry: Entry, there: Mapping[str, File]) -> bool:
    """Whether copies count for a rewrite that does not fit."""
    old = is_old_there(rules, entry, there)
    if not any(old):
        return rules.copies_count
    return rules.gone_is_shown and not all(old) and all_visible(entry, there)


def counted(rules: Rules, commit: Commit, files: Iterable[File]) -> Counter[str]:
    """The rows that a reader counts who knows the log."""
    there = {file.name: file for file in files}
    live = {name: file for name, file in there.items() if not name.startswith("h:")}

    def drop_old(entry: Entry, *, by_content: bool = False) -> None:
        for file in entry.old:
            now = live.get(file.name)
            if is_same(file, now) or (by_content and now and now.rows == file.rows):
                live.pop(file.name, None)

    def drop_copies(new: Iterable[File]) -> None:
        for file in new:
            copy = live.get(visible(file.name))
            if copy and copy.rows == file.rows:
                del live[copy.name]

    for entry in commit.rewrites.shown:
        drop_old(entry, by_content=is_copied(rules, entry, there))
    if rules.trash:
        drop_copies(commit.rewrites.trash)
    for entry in commit.rewrites.open:
        if entry.overwrite:
            alone = [f for f in entry.new if is_same(f, there.get(f.name))]
            if not rules.each_file and len(alone) < len(entry.new):
                alone = []
            drop_old(entry, by_content=is_copied(rules, entry, there))
            drop_copies(alone)
            live |= {file.name: there[file.name] for file in alone}
        elif fits(entry, there):
            drop_copies(entry.new)
            drop_old(entry)
            live |= {file.name: there[file.name] for file in entry.new}
        elif is_shown_by(rules, entry, there):
            drop_old(entry, by_content=is_copied(rules, entry, there))
        elif rules.copies_wait:
            drop_copies(entry.new)
    return Counter(row for file in live.values() for row in file.rows)


def wrong(rules: Rules, state: State) -> str:
    """What a reader counts wrongly; empty if every committed row counts once."""
    if state.told:
        return state.told
    rows = counted(rules, state.newest, state.files)
    for row in sorted((rows.keys() | state.truth) - state.loose):
        due = row in state.truth
        if rows[row] < due or (state.careful and rows[row] > due):
            return f"row {row} counts {rows[row]} times"
    return ""


def replaced(files: Iterable[File], name: str, *new: File) -> frozenset[File]:
    """The files, where those of a name are gone and others are new."""
    return frozenset([*(file for file in files if file.name != name), *new])
