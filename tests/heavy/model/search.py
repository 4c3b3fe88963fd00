"""Breadth first through all that the parties of a cast can do."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.heavy.catalogue import Told, rounds
from tests.heavy.model import strangers
from tests.heavy.model.parties import (
    Program,
    append,
    expiry,
    optimize,
    overwrite,
    reader,
    tidy,
    vacuum,
)
from tests.heavy.model.state import (
    ALL_RULES,
    Commit,
    Entry,
    File,
    Party,
    Rewrites,
    Rules,
    State,
    wrong,
)

PROGRAMS: Final[dict[str, Program]] = {
    "append": append,
    "overwrite": overwrite,
    "other overwrite": overwrite,
    "vacuum": vacuum,
    "other vacuum": vacuum,
    "expiry": expiry,
    "optimize": optimize,
    "tidy": tidy,
    "other tidy": tidy,
    "reader": reader,
    "drop": strangers.drop,
    "rewrite": strangers.rewrite,
    "delete": strangers.delete,
    "copy": strangers.copy,
    "damage": strangers.damage,
}
OLD: Final = (
    File("o1@1", frozenset({"o1@1"})),
    File("o2@2", frozenset({"o2@2"})),
)
REWRITTEN: Final = File("h:n@1", frozenset({"o1@1", "o2@2"}))


@dataclass(frozen=True)
class Cast:
    """Who is there.

    Args:
        parties: the names of the processes.
        rewritten: whether the table begins with a rewrite that is not published.
        lost_answers: how many answers may be lost.
    """

    parties: tuple[str, ...]
    rewritten: bool = False
    lost_answers: int = 0

    def begin(self) -> State:
        """The table before any of them."""
        entries = (
            (Entry("rewrite", OLD, (REWRITTEN,), False),) if self.rewritten else ()
        )
        files = frozenset((*OLD, REWRITTEN) if self.rewritten else OLD)
        return State(
            (Commit(0, "first", "", Rewrites(entries)),),
            files,
            tuple(map(Party, self.parties)),
            frozenset({"o1@1", "o2@2"}),
            lost_answers=self.lost_answers,
        )


@dataclass(frozen=True)
class Found:
    """What a search found: a shortest way to a wrong state, or none.

    Args:
        way: the steps to it.
        problem: what is wrong there; empty if nothing is.
        n_states: how many states were looked at.
        depth: the steps of the longest way that was looked at.
        whole: whether all that can happen was looked at.
    """

    way: tuple[str, ...]
    problem: str
    n_states: int
    depth: int
    whole: bool

    def __str__(self) -> str:
        if self.problem:
            return f"{self.problem} after {len(self.way)} steps: " + "; ".join(self.way)
        end = "all" if self.whole else f"to depth {self.depth}"
        return f"nothing wrong in {self.n_states} states, {end} ({self.depth} steps)"


def search(cast: Cast, rules: Rules = ALL_RULES, *, depth: int = 1000) -> Found:
    """Look at all states that can be reached in so many steps."""
    begin = cast.begin()
    came: dict[State, tuple[State, str] | None] = {begin: None}
    queue = deque([(begin, 0)])
    deepest, whole = 0, True
    while queue:
        state, n = queue.popleft()
        deepest = max(deepest, n)
        if problem := wrong(rules, state):
            return Found(_way(came, state), problem, len(came), n, False)
        if n == depth:
            whole = False
            continue
        for i, party in enumerate(state.parties):
            if party.at == "done":
                continue
            for label, after in PROGRAMS[party.name](rules, state, i):
                if after not in came:
                    came[after] = (state, f"{party.name} {label}")
                    queue.append((after, n + 1))
    return Found((), "", len(came), deepest, whole)


def _way(came: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    steps = []
    while (before := came[state]) is not None:
        state, label = before
        steps.append(label)
    return tuple(reversed(steps))


CASTS: Final[dict[str, Cast]] = {
    "a lost answer": Cast(("overwrite", "vacuum"), lost_answers=1),
    "a number that is free again": Cast(("overwrite", "other overwrite", "expiry")),
    "a partition that is dropped": Cast(("overwrite", "drop", "vacuum")),
    "a copy of an overwrite": Cast(("overwrite", "copy", "vacuum")),
    "a copy of a vacuum": Cast(("vacuum", "copy", "other vacuum"), rewritten=True),
    "a copy that is tidied": Cast(("vacuum", "copy", "tidy"), rewritten=True),
    "a publisher that sleeps": Cast(("overwrite", "vacuum", "other overwrite")),
    "a file that is written again": Cast(("vacuum", "rewrite"), rewritten=True),
    "a file that is deleted": Cast(("vacuum", "delete"), rewritten=True),
    "a vacuum that sleeps": Cast(("vacuum", "other vacuum", "tidy"), rewritten=True),
    "a rewrite that is rewritten": Cast(("vacuum", "optimize", "tidy"), rewritten=True),
    "a reader of a vacuum": Cast(("vacuum", "tidy", "reader"), rewritten=True),
    "a reader of an overwrite": Cast(("overwrite", "reader", "append")),
    "a rewrite from begin to end": Cast(("optimize", "vacuum", "tidy", "reader")),
    "a damaged commit": Cast(("vacuum", "damage", "append"), rewritten=True),
}
"""Of three parties at most."""
DEEP: Final[dict[str, Cast]] = {
    "two writers, a vacuum and an expiry": Cast(
        ("append", "overwrite", "vacuum", "expiry"), lost_answers=1
    ),
    "two overwrites, a vacuum and an expiry": Cast(
        ("overwrite", "other overwrite", "vacuum", "expiry"), lost_answers=1
    ),
    "two vacuums, a rewrite and a copy": Cast(
        ("vacuum", "other vacuum", "rewrite", "copy"), rewritten=True
    ),
    "two vacuums, a delete and a copy": Cast(
        ("vacuum", "other vacuum", "delete", "copy"), rewritten=True
    ),
    "two vacuums, an optimize and two tidies": Cast(
        ("vacuum", "other vacuum", "optimize", "tidy", "other tidy"), rewritten=True
    ),
    "an optimize, a vacuum, an overwrite and a tidy": Cast(
        ("optimize", "vacuum", "overwrite", "tidy"), rewritten=True
    ),
    "an overwrite and two vacuums": Cast(
        ("overwrite", "vacuum", "other vacuum", "expiry"), rewritten=True
    ),
    "all writers and a copy": Cast(
        ("append", "overwrite", "vacuum", "copy", "drop"), lost_answers=1
    ),
    "a reader of all": Cast(("overwrite", "vacuum", "tidy", "reader"), rewritten=True),
    "a reader of an optimize": Cast(
        ("optimize", "vacuum", "tidy", "reader"), rewritten=True
    ),
    "damage, and two vacuums": Cast(
        ("vacuum", "damage", "append", "other vacuum", "tidy"), rewritten=True
    ),
}
"""Casts of more parties."""
_DEPTH: Final = 24


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """All that the parties of a cast can do."""
    for cast, _, only in rounds({**CASTS, **DEEP}, seed, first, parts):
        found = search(cast, depth=_DEPTH)
        yield Told(found.n_states, str(found) if found.problem else "", only)
