"""Those who know nothing of the protocol: other tools, a copy of the folder."""

from __future__ import annotations

from tests.heavy.model.parties import Steps, put
from tests.heavy.model.state import File, Party, Rules, State, replaced, visible

_AT_REST = {"done", "begin"}


def drop(_: Rules, state: State, n: int) -> Steps:
    """A tool deletes the folder of partition 1, hidden files too.

    Not while an uncommitted file is there: a writer cannot tell when it goes.
    """
    if state.parties[n].at != "begin":
        return
    named = {f.name for e in state.newest.rewrites.open for f in e.new}
    hidden = {f.name for f in state.files if f.name.startswith("h:")}
    waiting = {f for f in hidden if visible(f) not in state.truth}
    if waiting - named:
        return
    files = frozenset(f for f in state.files if not f.name.endswith("@1"))
    truth = frozenset(row for row in state.truth if not row.endswith("@1"))
    yield (
        "drops partition 1",
        put(state, n, Party("drop", "done"), files=files, truth=truth),
    )


def rewrite(_: Rules, state: State, n: int) -> Steps:
    """A job writes o2 again under its own name."""
    if state.parties[n].at != "begin" or state.file("o2@2") is None:
        return
    new = File("o2@2", frozenset({"o2 again@2"}), 1)
    files = replaced(state.files, "o2@2", new)
    yield (
        "writes o2@2 again",
        put(
            state,
            n,
            Party("rewrite", "done"),
            files=files,
            truth=state.truth | new.rows,
            loose=state.loose | {"o2@2"},
        ),
    )


def delete(_: Rules, state: State, n: int) -> Steps:
    """A job deletes o2; that is nothing where others stand for it already."""
    if state.parties[n].at != "begin" or state.file("o2@2") is None:
        return
    row = frozenset({"o2@2"})
    changed = state._replace(truth=state.truth - row)
    if state.newest.rewrites.shown or state.file("n@1"):
        changed = state._replace(loose=state.loose | row)
    files = replaced(state.files, "o2@2")
    yield "deletes o2@2", put(changed, n, Party("delete", "done"), files=files)


def copy(_: Rules, state: State, n: int) -> Steps:
    """The folder is copied, with other times; who was at work is not in the copy."""
    if state.parties[n].at != "begin":
        return
    parties = tuple(
        p if p.at in _AT_REST else Party(p.name, "done") for p in state.parties
    )
    files = frozenset(file._replace(time=file.time + 2) for file in state.files)
    # What had not been committed is no part of the table.
    yield (
        "copies the folder",
        put(state._replace(parties=parties, files=files), n, Party("copy", "done")),
    )


def damage(_: Rules, state: State, n: int) -> Steps:
    """The newest commit cannot be read any more."""
    if state.parties[n].at != "begin" or len(state.log) < 2:
        return
    log = tuple(one for one in state.log if one != state.last)
    broken = state.last._replace(damaged=True)
    yield (
        "damages the newest commit",
        put(state, n, Party("damage", "done"), log=(*log, broken), careful=False),
    )
