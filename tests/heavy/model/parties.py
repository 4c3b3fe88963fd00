"""What the parties of the model do, a step at a time.

Each step is one call to the file system.  A party may rest between any two steps, for
ever too, so a pause and a crash need no step of their own.  An answer may be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from tests.heavy.model.state import (
    Commit,
    Entry,
    File,
    Party,
    Rewrites,
    Rules,
    State,
    all_visible,
    counted,
    fits,
    is_copied,
    is_same,
    is_shown_by,
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
    """The state with a party that has gone on; readers learn what became true."""
    after = state._replace(**changes)  # type: ignore[arg-type]
    parties = [*state.parties[:n], party, *state.parties[n + 1 :]]
    for i, one in enumerate(parties):
        if one.name == "reader" and one.at not in {"begin", "done"}:
            must, may = one.must & after.truth, one.may | after.truth | after.loose
            parties[i] = one._replace(must=must, may=may)
    return after._replace(parties=tuple(parties))


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
            yield from _reads(rules, state, n, "create")
        case "create":
            assert me.base is not None
            yield from _creates(rules, state, n, me.base.rewrites, "read", "told")
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
            yield from _reads(rules, state, n, "list")
        case "list":
            assert me.base is not None
            if me.nonce and rules.nonce and _is_known(state, me):
                yield from _goes_to(state, n, "told", "sees that it is committed")
                return
            if not all(file in state.files for file in new):
                return  # it raises, and has committed nothing
            old = tuple(sorted(f for f in state.files if not f.name.startswith("h:")))
            mine = me._replace(at="create", entry=Entry(me.name, old, new))
            yield "lists", put(state, n, mine)
        case "create":
            assert me.base is not None
            assert me.entry is not None
            known = me.base.rewrites
            gone = [f for e in (*known.open, *known.shown) for f in e.new]
            after = known.changed(
                open=(me.entry,), shown=(), trash=(*known.trash, *gone)
            )
            yield from _creates(rules, state, n, after, "read", "told")
        case "told":
            told = "" if me.name in state.applied else f"{me.name} was not committed"
            ready = me._replace(at="link", todo=me.entry.new if me.entry else ())
            yield "is told that it committed", put(state, n, ready, told=told)
        case _:
            yield from _ends_overwrite(rules, state, n)


def vacuum(rules: Rules, state: State, n: int) -> Steps:
    """A vacuum that brings one entry of the newest commit to its end."""
    me = state.parties[n]
    known = state.newest.rewrites
    if me.at == "begin":
        for entry in known.open:
            at = "link" if entry.overwrite else "look at files"
            ready = me._replace(at=at, entry=entry, todo=entry.new)
            yield f"finds {entry.id}", put(state, n, ready)
        for entry in known.shown:
            ready = me._replace(at="old", entry=entry)
            yield f"finds {entry.id} shown", put(state, n, ready)
    elif me.entry is not None and me.entry.overwrite:
        yield from _ends_overwrite(rules, state, n)
    else:
        yield from _publishes(rules, state, n)


def optimize(rules: Rules, state: State, n: int) -> Steps:
    """One hidden file for two, for what was rewritten, or for its visible copy."""
    me = state.parties[n]
    match me.at:
        case "begin":
            again = File("h:m@1", frozenset({"o1@1", "o2@2"}))
            files = state.files | {again}
            ready = me._replace(at="read", todo=(again,))
            yield "hides its file", put(state, n, ready, files=files)
        case "read":
            yield from _reads(rules, state, n, "list")
        case "list":
            assert me.base is not None
            known, there = me.base.rewrites, {f.name: f for f in state.files}
            (again,) = me.todo
            now = counted(rules, me.base, state.files)
            if now != Counter(again.rows) or again not in state.files:
                return  # other rows: it would have rewritten others
            copy = there.get("n@1")
            if known.open and fits(known.open[0], there):
                (before,) = known.open
                after = known.changed(
                    open=(Entry("again", before.old, me.todo, False),),
                    trash=(*known.trash, *before.new),
                )
            elif not known.open:
                plain = (there.get("o1@1"), there.get("o2@2"))
                seen = (copy,) if copy else tuple(filter(None, plain))
                entry = Entry("again", seen, me.todo, False)
                after = known.changed(open=(entry,))
            else:
                return
            base = me.base._replace(rewrites=after)
            yield "lists", put(state, n, me._replace(at="create", base=base))
        case "create":
            assert me.base is not None
            yield from _creates(rules, state, n, me.base.rewrites, "read", "done")
        case "look":
            yield from _looks_again(state, n)


def tidy(rules: Rules, state: State, n: int) -> Steps:
    """The retention is over for hidden files that count no more."""
    me = state.parties[n]
    match me.at:
        case "begin" if not state.last.damaged:
            known = state.newest.rewrites
            there = {file.name: file for file in state.files}
            over = [e for e in known.shown if not _left(rules, e, there)]
            todo = tuple(f for e in over for f in e.new)
            if todo:
                ready = me._replace(at="hidden", todo=todo, then="shown")
                yield "finds what is shown", put(state, n, ready)
            if known.trash:
                ready = me._replace(at="hidden", todo=known.trash, then="trash")
                yield "finds trash", put(state, n, ready)
        case "hidden" if me.todo:
            file, *rest = me.todo
            left = me._replace(todo=tuple(rest), seen=me.seen | {file})
            files = replaced(state.files, file.name)
            yield f"deletes {file.name}", put(state, n, left, files=files)
        case "hidden":
            at = "copies" if me.then == "trash" else "read"
            ready = me._replace(at=at, todo=tuple(sorted(me.seen)))
            yield "has deleted the hidden ones", put(state, n, ready)
        case "copies" if me.todo:
            file, *rest = me.todo
            copy = state.file(visible(file.name))
            files = state.files
            if copy is not None and copy.rows == file.rows:
                files = replaced(files, copy.name)
            left = me._replace(todo=tuple(rest))
            yield f"deletes {visible(file.name)}", put(state, n, left, files=files)
        case "copies":
            yield from _goes_to(state, n, "read", "has deleted the copies")
        case "read":
            yield from _reads(rules, state, n, "create")
        case "create":
            assert me.base is not None
            known = me.base.rewrites
            trash = known.trash
            if me.then == "trash":
                trash = tuple(f for f in known.trash if f not in me.seen)
            shown = tuple(
                e
                for e in known.shown
                if me.then == "trash" or not me.seen.issuperset(e.new)
            )
            after = known.changed(shown=shown, trash=trash)
            yield from _creates(rules, state, n, after, "read", "done")
        case "look":
            yield from _looks_again(state, n)


def reader(rules: Rules, state: State, n: int) -> Steps:
    """The log is read, each partition listed, and the number of the log read again."""
    me = state.parties[n]
    match me.at:
        case "begin":
            base, truth = state.newest, state.truth
            ready = me._replace(at="list 1", base=base, must=truth, may=truth)
            yield f"reads commit {base.number}", put(state, n, ready)
        case "list 1":
            seen = frozenset(f for f in state.files if f.name.endswith("@1"))
            yield (
                "lists partition 1",
                put(state, n, me._replace(at="list 2", seen=seen)),
            )
        case "list 2":
            seen = me.seen | {f for f in state.files if f.name.endswith("@2")}
            yield (
                "lists partition 2",
                put(state, n, me._replace(at="again", seen=seen)),
            )
        case "again":
            assert me.base is not None
            now, then = state.newest, me.base.rewrites
            if now.rewrites != then and (
                rules.changes or now.rewrites._replace(changes=then.changes) != then
            ):
                again = me._replace(at="list 1", base=now, seen=frozenset())
                yield "looks again", put(state, n, again)
                return
            rows = counted(rules, now, me.seen)
            told = ""
            for row in sorted((rows.keys() | me.must) - state.loose):
                least, most = row in me.must, row in me.may
                if not least <= rows[row] <= most:
                    told = f"a reader counts row {row} {rows[row]} times"
            yield "counts", put(state, n, Party("reader", "done"), told=told)


def expiry(rules: Rules, state: State, n: int) -> Steps:
    """All commits but the newest are too old for the clock of this machine."""
    if state.parties[n].at == "begin" and len(state.log) > 1:
        if state.last.damaged:
            return
        yield (
            "deletes old commits",
            put(state, n, Party("expiry", "done"), log=(state.newest,)),
        )


def _reads(rules: Rules, state: State, n: int, at: str) -> Steps:
    newest = state.newest
    if newest.number < state.last.number:  # the number is taken, though damaged
        newest = newest._replace(number=state.last.number, nonce=state.last.nonce)
    me = state.parties[n]._replace(base=newest, at=at)
    yield f"reads commit {newest.number}", put(state, n, me)


def _goes_to(state: State, n: int, at: str, what: str) -> Steps:
    me = state.parties[n]._replace(at=at, base=None, todo=())
    if at == "done":
        me = Party(me.name, "done")
    yield what, put(state, n, me)


def _is_known(state: State, me: Party) -> bool:
    """Whether the files of a writer that has tried to commit were committed."""
    assert me.base is not None
    known = me.base.rewrites
    return (
        any(entry.id == me.name for entry in (*known.open, *known.shown))
        or any(file in known.trash for file in NEW[me.name])
        or any(state.file(visible(file.name)) for file in NEW[me.name])
    )


def _creates(
    rules: Rules, state: State, n: int, rewrites: Rewrites, again: str, then: str
) -> Steps:
    """Create the commit after the base, which is the only atomic step of a writer."""
    me = state.parties[n]
    assert me.base is not None
    number = me.base.number + 1
    nonce = f"{me.name} {again} {number}"
    mine = Commit(number, nonce, me.base.nonce, rewrites)
    taken = next((one for one in state.log if one.number == number), None)
    at = "look" if rules.looks_again else then
    looking = me._replace(at=at, nonce=nonce, then=f"{then}|{again}|{me.then}")
    if not rules.looks_again:
        looking = looking._replace(then=me.then, base=None)
    if taken is not None:
        if rules.nonce and taken.nonce == nonce:
            yield "finds its own commit", put(state, n, looking)
        else:
            retry = me._replace(at=again, base=None, nonce=nonce)
            yield f"finds {number} taken", put(state, n, retry)
        return
    made = state._replace(log=(*state.log, mine))
    if number > state.last.number:
        made = _applied(made, me)
    if at == "done":
        looking = Party(me.name, "done")
    yield f"creates commit {number}", put(made, n, looking)
    if state.lost_answers:
        lost = made._replace(lost_answers=state.lost_answers - 1)
        yield f"creates commit {number}, answer lost", put(lost, n, me)


def _applied(state: State, me: Party) -> State:
    """The truth after a commit that is the newest."""
    is_mine = me.entry is not None and me.entry.id == me.name
    if not is_mine or me.name in state.applied:
        return state
    assert me.entry is not None
    # What became visible since it listed the folder is none that it replaces.
    assert me.base is not None
    hidden = [file for entry in me.base.rewrites.open for file in entry.new]
    old = frozenset(row for file in (*me.entry.old, *hidden) for row in file.rows)
    new = frozenset(row for file in me.entry.new for row in file.rows)
    truth = state.truth - old | new
    return state._replace(truth=truth, applied=state.applied | {me.name})


def _looks_again(state: State, n: int) -> Steps:
    """After its create a writer looks whether its commit counts."""
    me = state.parties[n]
    then, again, before = me.then.split("|")
    counts = state.last.nonce == me.nonce
    counts |= any(one.parent == me.nonce for one in state.log)
    at = then if counts else again
    after = me._replace(at=at, base=None, then=before)
    if at == "done":
        after = Party(me.name, "done")
    yield "looks at the log", put(state, n, after)


def _links(rules: Rules, state: State, n: int, then: str) -> Steps:
    """Each hidden file gets its visible name, in a look and a call."""
    me = state.parties[n]
    if not me.todo:
        yield from _goes_to(state, n, then, "has linked")
        return
    file, *rest = me.todo
    target, left = visible(file.name), me._replace(at="link", todo=tuple(rest))
    if me.at == "link":
        absent = state.file(target) is None
        ready = me._replace(at="link now") if absent else left
        yield f"looks at {target}", put(state, n, ready)
        return
    source = state.file(file.name)
    if source is None or state.file(target):
        yield f"cannot link {target}", put(state, n, left)
    else:
        files = replaced(state.files, target, source._replace(name=target))
        yield f"links {target}", put(state, n, left, files=files)


def _ends_overwrite(rules: Rules, state: State, n: int) -> Steps:
    """Link, delete what is overwritten, commit, delete the hidden names."""
    me = state.parties[n]
    entry = me.entry
    assert entry is not None
    match me.at:
        case "link" | "link now":
            yield from _links(rules, state, n, "old")
        case "old" | "delete" | "delete twin":
            yield from _deletes_old(rules, state, n, "end read")
        case "end read":
            yield from _reads(rules, state, n, "end")
        case "end":
            assert me.base is not None
            known = me.base.rewrites
            left = tuple(e for e in known.open if e.id != entry.id)
            if left == known.open:
                yield from _hides(state, n)
            else:
                after = known.changed(open=left)
                yield from _creates(rules, state, n, after, "end read", "hide")
        case "look":
            yield from _looks_again(state, n)
        case "hide":
            yield from _hides(state, n)
        case "hidden" if me.todo:
            file, *rest = me.todo
            files = replaced(state.files, file.name)
            left_ = me._replace(todo=tuple(rest))
            yield f"deletes {file.name}", put(state, n, left_, files=files)
        case "hidden":
            yield from _goes_to(state, n, "done", "ends")


def _hides(state: State, n: int) -> Steps:
    me = state.parties[n]
    assert me.entry is not None
    ready = me._replace(at="hidden", todo=me.entry.new, base=None)
    yield "has ended the entry", put(state, n, ready)


def _publishes(rules: Rules, state: State, n: int) -> Steps:
    """Bring a rewrite to its end."""
    me = state.parties[n]
    entry = me.entry
    assert entry is not None
    there = {file.name: file for file in state.files}
    match me.at:
        case "look at files":
            at = "link" if fits(entry, there) else "show read"
            todo = entry.new if at == "link" else ()
            yield "looks at the files", put(state, n, me._replace(at=at, todo=todo))
        case "link now" if not fits(entry, there) and entry.new == me.todo:
            # Another tool has deleted an old file since the look: its rows come back.
            rows = frozenset(row for file in entry.new for row in file.rows)
            loose = state._replace(loose=state.loose | (rows - state.truth))
            yield from _links(rules, loose, n, "show read")
        case "link" | "link now":
            yield from _links(
                rules, state, n, "show read" if rules.shown_first else "old"
            )
        case "show read":
            yield from _reads(rules, state, n, "show")
        case "show":
            assert me.base is not None
            known = me.base.rewrites
            now = next((e for e in known.open if e.id == entry.id), None)
            if now is None:
                is_shown = any(e.id == entry.id for e in known.shown)
                at = "old" if is_shown else "done"
                yield from _goes_to(state, n, at, "sees that it is ended")
                return
            left = tuple(e for e in known.open if e.id != entry.id)
            is_whole = fits(now, there) and all_visible(now, there)
            if is_whole or (not fits(now, there) and is_shown_by(rules, now, there)):
                shown = (*known.shown, now)
                after = known.changed(open=left, shown=shown)
                ready = me._replace(then="old")
            elif fits(now, there):
                return  # a copy was deleted meanwhile: the next vacuum goes on
            else:
                after = known.changed(open=left, trash=(*known.trash, *now.new))
                ready = me._replace(then="done")
            base = me.base._replace(rewrites=after)
            yield (
                "looks at the copies",
                put(state, n, ready._replace(at="show now", base=base)),
            )
        case "show now":
            assert me.base is not None
            yield from _creates(rules, state, n, me.base.rewrites, "show read", me.then)
        case "look":
            yield from _looks_again(state, n)
        case "old" | "delete" | "delete twin":
            yield from _deletes_old(rules, state, n, "done")


def _left(rules: Rules, entry: Entry, there: dict[str, File]) -> list[File]:
    """The old files that are still there, and the same."""
    by_content = is_copied(rules, entry, there)
    found = [(file, there.get(file.name)) for file in entry.old]
    return [
        now
        for file, now in found
        if now and (is_same(file, now) or (by_content and now.rows == file.rows))
    ]


def _deletes_old(rules: Rules, state: State, n: int, then: str) -> Steps:
    me = state.parties[n]
    entry = me.entry
    assert entry is not None
    there = {file.name: file for file in state.files}
    if me.at == "old":
        old = tuple(_left(rules, entry, there))
        at = "delete twin" if rules.twins_first and old else "delete"
        yield "looks at old files", put(state, n, me._replace(at=at, todo=old))
        return
    if not me.todo:
        yield from _goes_to(state, n, then, "has deleted")
        return
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
    files = state.files
    if is_same(file, state.file(file.name)) or not rules.looks_before_deleting:
        files = replaced(files, file.name)
    yield f"deletes {file.name}", put(state, n, left, files=files)
