"""What the parties of the model do, a step at a time.

Each step is one call to the file system.  A party may rest between any two steps, for
ever too, so a pause and a crash need no step of their own.  An answer may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model.state import (
    Commit,
    Entry,
    File,
    Party,
    Rules,
    State,
    is_lost,
    is_same,
    is_taken_over,
    replaced,
    visible,
)

Steps = Iterator[tuple[str, State]]
Program = Callable[[Rules, State, int], Steps]

NEW: dict[str, tuple[File, ...]] = {
    "append": (
        File("h:a1@1", frozenset({"a1@1"})),
        File("h:a2@2", frozenset({"a2@2"})),
    ),
    "overwrite": (
        File("h:b1@1", frozenset({"b1@1"})),
        File("h:b2@2", frozenset({"b2@2"})),
    ),
    "other overwrite": (File("h:c1@1", frozenset({"c1@1"})),),
}
"""What writers write; ``@`` and a digit stand for a partition."""


def put(state: State, n: int, party: Party, **changes: object) -> State:
    """The state with a party that has gone on."""
    parties = (*state.parties[:n], party, *state.parties[n + 1 :])
    return state._replace(parties=parties, **changes)  # type: ignore[arg-type]


def append(rules: Rules, state: State, n: int) -> Steps:
    """Files that count once they are visible, and a commit of their indexes."""
    me = state.parties[n]
    match me.at:
        case "begin":
            ready = me._replace(at="move", todo=NEW[me.name])
            yield (
                "hides its files",
                put(state, n, ready, files=state.files | {*ready.todo}),
            )
        case "move" if me.todo:
            file = me.todo[0]
            seen = file._replace(name=visible(file.name))
            yield (
                f"moves {seen.name}",
                put(
                    state,
                    n,
                    me._replace(todo=me.todo[1:]),
                    files=replaced(state.files, file.name, seen),
                    truth=state.truth | file.rows,
                ),
            )
        case "move" | "read":
            yield from _reads(state, n, "create")
        case "create":
            assert me.base is not None
            yield from _creates(rules, state, n, me.base.entries, "told")
        case "look":
            yield from _looks_again(state, n)
        case "told":
            yield from _goes_to(state, n, "done", "is told that it committed")


def overwrite(rules: Rules, state: State, n: int) -> Steps:
    """Files that replace all others by one commit, and are published at once."""
    me = state.parties[n]
    new = NEW[me.name]
    match me.at:
        case "begin":
            yield (
                "hides its files",
                put(state, n, me._replace(at="read"), files=state.files | {*new}),
            )
        case "read":
            yield from _reads(state, n)
        case "list":
            tried = me.nonce and rules.nonce and rules.looks_again
            if tried and _is_known(state, me):
                yield from _goes_to(state, n, "told", "sees that it is committed")
                return
            if not all(file in state.files for file in new):
                return  # it raises, and has committed nothing
            if any(_is_open(state, entry) for entry in _without_mine(rules, me)):
                yield from _goes_to(state, n, "read", "waits")
                return
            old = tuple(sorted(f for f in state.files if not f.name.startswith("h:")))
            mine = me._replace(at="create", entry=Entry(me.name, old, new))
            assert mine.entry is not None
            yield "lists", put(state, n, mine._replace(todo=(), end=False))
        case "create":
            assert me.base is not None
            assert me.entry is not None
            yield from _creates(rules, state, n, (me.entry,), "told")
        case "told":
            told = "" if me.name in state.applied else f"{me.name} was not committed"
            yield (
                "is told that it committed",
                put(state, n, me._replace(at="record"), told=told),
            )
        case _:
            yield from _publishes(rules, state, n)


def vacuum(rules: Rules, state: State, n: int) -> Steps:
    """A vacuum that publishes one entry of the newest commit."""
    me = state.parties[n]
    if me.at == "begin":
        for entry in state.newest.entries:
            yield (
                f"finds {entry.id}",
                put(state, n, me._replace(at="record", entry=entry)),
            )
        known = {entry.id for entry in state.newest.entries}
        for entry in state.records:
            if entry.id not in known and state.shown(entry.id) is not None:
                yield (
                    f"finds the record {entry.id}",
                    put(state, n, me._replace(at="old", entry=entry)),
                )
    else:
        yield from _publishes(rules, state, n)


def expiry(_: Rules, state: State, n: int) -> Steps:
    """All commits but the newest are too old for the clock of this machine."""
    if state.parties[n].at == "begin" and len(state.log) > 1:
        yield (
            "deletes old commits",
            put(state, n, Party("expiry", "done"), log=(state.newest,)),
        )


def _reads(state: State, n: int, at: str = "list") -> Steps:
    me = state.parties[n]._replace(base=state.newest, at=at)
    yield f"reads commit {state.newest.number}", put(state, n, me)


def _goes_to(state: State, n: int, at: str, what: str) -> Steps:
    me = state.parties[n]._replace(at=at, base=None, todo=())
    yield what, put(state, n, me)


def _without_mine(rules: Rules, me: Party) -> tuple[Entry, ...]:
    """The entries of the base; with the new rules a change adds an arrival once."""
    assert me.base is not None
    return tuple(e for e in me.base.entries if not (rules.nonce and e.id == me.name))


def _is_known(state: State, me: Party) -> bool:
    """Whether the arrival of a writer that has tried to commit was committed."""
    assert me.base is not None
    return (
        any(entry.id == me.name for entry in me.base.entries)
        or state.shown(me.name) is not None
        or any(state.file(visible(file.name)) for file in NEW[me.name])
    )


def _is_open(state: State, entry: Entry) -> bool:
    """Whether a file of it may still get its visible name."""
    shown = state.shown(entry.id)
    if entry.arrival or shown is not None:
        return any(
            f.name not in (shown or ()) and state.file(f.name) for f in entry.new
        )
    return True


def _creates(
    rules: Rules, state: State, n: int, entries: tuple[Entry, ...], then: str
) -> Steps:
    """Create the commit after the base, which is the only atomic step of a writer."""
    me = state.parties[n]
    assert me.base is not None
    number = me.base.number + 1
    nonce = f"{me.name}{' ends' if me.end else ''} {number}"
    mine = Commit(number, nonce, me.base.nonce, entries)
    taken = next((one for one in state.log if one.number == number), None)
    again = me._replace(at="end read" if me.end else "read", base=None, nonce=nonce)
    if taken is not None:
        if rules.nonce and taken.nonce == nonce:
            at = "look" if rules.looks_again else then
            found = me._replace(at=at, nonce=nonce)
            yield "finds its own commit", put(state, n, found)
        else:
            yield f"finds {number} taken", put(state, n, again)
        return
    made = state._replace(log=(*state.log, mine))
    if number > state.newest.number:
        made = _applied(made, me)
    at = "look" if rules.looks_again else then
    done = me._replace(at=at, nonce=nonce, todo=())
    yield f"creates commit {number}", put(made, n, done)
    if state.lost_answers:
        lost = made._replace(lost_answers=state.lost_answers - 1)
        yield f"creates commit {number}, answer lost", put(lost, n, me)


def _applied(state: State, me: Party) -> State:
    """The truth after a commit that is the newest."""
    if me.end or me.entry is None or me.name in state.applied:
        return state
    # What became visible since it listed the folder is none that it replaces.
    old = frozenset(row for file in me.entry.old for row in file.rows)
    new = frozenset(row for file in me.entry.new for row in file.rows)
    truth = state.truth - old | new
    return state._replace(truth=truth, applied=state.applied | {me.name})


def _publishes(rules: Rules, state: State, n: int) -> Steps:
    """Bring an entry to its end, as its writer and every vacuum may do."""
    me = state.parties[n]
    entry = me.entry
    assert entry is not None
    shown = state.shown(entry.id)
    match me.at:
        case "record":
            taken_over = is_taken_over(rules, state, entry)
            if shown is not None:
                yield from _goes_to(state, n, "old", "sees the outcome")
            elif rules.all_visible and taken_over:
                ready = me._replace(at="old", taken_over=True)
                yield "takes over what is visible", put(state, n, ready)
            else:
                yield from _goes_to(state, n, "write record", "sees no outcome")
        case "write record":
            is_mine = not entry.arrival and entry not in state.records
            at = "look for entry" if is_mine else "stat"
            ready = me._replace(at=at, todo=entry.new)
            records = state.records | {entry}
            yield "writes the record", put(state, n, ready, records=records)
        case "look for entry" if any(e.id == entry.id for e in state.newest.entries):
            yield "sees the entry", put(state, n, me._replace(at="stat"))
        case "look for entry":
            yield "sees no entry", put(state, n, me._replace(at="over"))
        case "over" if shown is not None:
            yield from _goes_to(state, n, "old", "sees the outcome")
        case "over":
            # It has slept, and another vacuum has done it all.
            records = state.records - {entry}
            done = Party(me.name, "done")
            yield "deletes its record", put(state, n, done, records=records)
        case "stat" if not me.todo:
            yield from _goes_to(state, n, "outcome", "has copied")
        case "stat":
            absent = state.file(visible(me.todo[0].name)) is None
            if not _fits(rules, state, entry):
                yield from _goes_to(state, n, "outcome", "finds it changed")
            elif absent:
                target = visible(me.todo[0].name)
                yield f"sees no {target}", put(state, n, me._replace(at="copy"))
            else:
                left = me._replace(todo=me.todo[1:])
                yield f"sees {visible(me.todo[0].name)}", put(state, n, left)
        case "copy":
            source, left = state.file(me.todo[0].name), me._replace(at="stat")
            left = left._replace(todo=me.todo[1:])
            target = visible(me.todo[0].name)
            if source is None or (rules.twins_first and state.file(target)):
                yield f"cannot copy {target}", put(state, n, left)
            else:
                copy = source._replace(name=target)
                files = replaced(state.files, target, copy)
                yield f"copies to {target}", put(state, n, left, files=files)
        case "outcome":
            ended = me._replace(at="old", todo=())
            names = frozenset(
                f.name for f in entry.new if state.file(visible(f.name)) is not None
            )
            if not _fits(rules, state, entry) or not (
                (rules.each_file and entry.arrival) or len(names) == len(entry.new)
            ):
                names = frozenset()
            if entry not in state.records:  # then it says that all are shown
                names = frozenset(file.name for file in entry.new)
            outcomes = state.outcomes
            if shown is None:
                outcomes |= {(entry.id, names)}
            yield "writes the outcome", put(state, n, ended, outcomes=outcomes)
        case "old" if is_lost(state, entry) and not me.taken_over:
            yield from _goes_to(state, n, "record", "misses the record")
        case "old":
            yield from _looks_at_old(rules, state, n)
        case "delete" if not me.todo:
            yield from _goes_to(state, n, "end read", "has deleted")
        case "delete" | "delete twin":
            yield from _deletes(rules, state, n)
        case "end read":
            yield from _reads(state._replace(), n, "end")
        case "end":
            assert me.base is not None
            left_over = tuple(e for e in me.base.entries if e.id != entry.id)
            if len(left_over) == len(me.base.entries):
                yield from _goes_to(state, n, "forget", "sees that it is ended")
            else:
                ending = put(state, n, me._replace(end=True))
                yield from _creates(rules, ending, n, left_over, "forget")
        case "forget":
            records = state.records
            if shown is not None and len(shown) == len(entry.new):
                records -= {entry}
            done = Party(me.name, "done")
            yield "deletes the record", put(state, n, done, records=records)
        case "look":
            yield from _looks_again(state, n)


def _looks_again(state: State, n: int) -> Steps:
    """After its create a writer looks whether its commit counts."""
    me = state.parties[n]
    counts = state.newest.nonce == me.nonce
    counts |= any(one.parent == me.nonce for one in state.log)
    then = "forget" if me.end else "told"
    again = "end read" if me.end else "read"
    yield (
        "looks at the log",
        put(state, n, me._replace(at=then if counts else again, base=None)),
    )


def _fits(rules: Rules, state: State, entry: Entry) -> bool:
    """Whether no file of it has changed."""
    if rules.each_file and entry.arrival:
        return True
    files = entry.new if entry.arrival else (*entry.old, *entry.new)
    return all(is_same(rules, file, state.file(file.name)) for file in files)


def _looks_at_old(rules: Rules, state: State, n: int) -> Steps:
    me = state.parties[n]
    entry = me.entry
    assert entry is not None
    there = [state.file(file.name) for file in entry.old]
    old = tuple(
        now
        for file, now in zip(entry.old, there, strict=True)
        if now is not None and is_same(rules, file, now)
    )
    is_there = any(state.file(visible(file.name)) for file in entry.new)
    is_shown = me.taken_over or bool(state.shown(entry.id))
    if not is_shown or (rules.new_is_there and not is_there):
        old = ()
    at = "delete twin" if rules.twins_first and old else "delete"
    yield "looks at old files", put(state, n, me._replace(at=at, todo=old))


def _deletes(rules: Rules, state: State, n: int) -> Steps:
    me = state.parties[n]
    file, *rest = me.todo
    if me.at == "delete twin":
        files = replaced(state.files, f"h:{file.name}")
        yield (
            f"deletes h:{file.name}",
            put(state, n, me._replace(at="delete"), files=files),
        )
        return
    at = "delete twin" if rules.twins_first and rest else "delete"
    left = me._replace(at=at, todo=tuple(rest))
    same = is_same(rules, file, state.file(file.name))
    files = state.files
    if same or not rules.looks_before_deleting:
        files = replaced(files, file.name)
    yield f"deletes {file.name}", put(state, n, left, files=files)
