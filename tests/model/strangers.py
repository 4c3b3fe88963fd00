"""Those who know nothing of the protocol: other tools, a copy of the folder."""

from __future__ import annotations

from tests.model.parties import Steps, put
from tests.model.state import Entry, File, Party, Rules, State, replaced, visible

_AT_REST = {"done", "begin"}


def drop(_: Rules, state: State, n: int) -> Steps:
    """A tool deletes the folder of partition 1, hidden files too.

    Not while an uncommitted file is there: a writer cannot tell when it goes.
    """
    if state.parties[n].at != "begin":
        return
    named = {f.name for e in state.newest.entries for f in e.new}
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
    if state.shown("rewrite") or state.file("n@1"):
        changed = state._replace(loose=state.loose | row)
    files = replaced(state.files, "o2@2")
    yield "deletes o2@2", put(changed, n, Party("delete", "done"), files=files)


def forget(_: Rules, state: State, n: int) -> Steps:
    """The folder of the records is lost, as in a copy without it.

    Not while a vacuum is about to write one, of whose looks it cannot know.
    """
    if state.parties[n].at != "begin" or not state.records:
        return
    if any(party.at == "write record" for party in state.parties):
        return
    yield (
        "loses the records",
        put(
            state,
            n,
            Party("forget", "done"),
            records=frozenset(),
            outcomes=frozenset(),
        ),
    )


def sweep(_: Rules, state: State, n: int) -> Steps:
    """The retention of what has ended is over: its outcome and hidden files go."""
    open_ = {entry.id for entry in (*state.newest.entries, *state.records)}
    ended = {(id_, shown) for id_, shown in state.outcomes if id_ not in open_}
    if state.parties[n].at != "begin" or not ended:
        return
    gone = {name for _, shown in ended for name in shown}
    files = frozenset(file for file in state.files if file.name not in gone)
    done = Party("sweep", "done")
    outcomes = state.outcomes - ended
    yield "sweeps what has ended", put(state, n, done, files=files, outcomes=outcomes)


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


def foreign(_: Rules, state: State, n: int) -> Steps:
    """A record and an outcome of another table come beside this one."""
    if state.parties[n].at != "begin":
        return
    old = tuple(sorted(f for f in state.files if not f.name.startswith("h:")))
    record = Entry("foreign", old, (File("h:f1@1", frozenset({"f1@1"})),))
    outcome = ("foreign", frozenset({"h:f1@1"}))
    yield (
        "a foreign record comes",
        put(
            state,
            n,
            Party("foreign", "done"),
            records=state.records | {record},
            outcomes=state.outcomes | {outcome},
        ),
    )
