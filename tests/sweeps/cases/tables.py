"""Tables that live, and what befalls them."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

from tests.rewrite.kill_and_damage import WRITERS, sweep
from tests.sweeps.catalogue import Told, rounds
from tests.sweeps.hostile.__main__ import run
from tests.sweeps.months import LIMIT, live
from tests.sweeps.writers.__main__ import tables

_SHARES: Final = 12
"""What can befall the table of a killed writer is so many cases."""
_TABLES: Final = 10**6
"""Hostile tables of one seed."""
_ROUNDS: Final = 5
_BUILDS: Final = 100


def kills(seed: int, first: int) -> Iterator[Told]:
    """Each step of a writer, killed there, and then a share of what can befall it."""
    all_of = [(name, start) for start in range(_SHARES) for name in WRITERS]
    for (name, start), _ in rounds(all_of, seed, first):
        with tempfile.TemporaryDirectory() as work:
            told = [*sweep(name, Path(work), stride=_SHARES, start=start)]
        wrong = "\n".join(f"{case}: {problem}" for case, problem in told if problem)
        again = f"python -m tests.rewrite.kill_and_damage '{name}'"
        yield Told(len(told), wrong, again)


def hostile(seed: int, first: int) -> Iterator[Told]:
    """A table that is spoiled, planned and vacuumed."""
    begin = seed * _TABLES
    with tempfile.TemporaryDirectory() as work:
        for told in run(begin + first, begin + _TABLES, Path(work)):
            failure = str(told) if told["wrong"] else ""
            again = f"python -m tests.sweeps.hostile --seed {told['seed']} --count 1"
            yield Told(1, failure, again)


def concurrent(seed: int, first: int) -> Iterator[Told]:
    """A table that several write at once."""
    command = f"python -m tests.sweeps.writers --of-table {_ROUNDS} --players 2"
    command += f" --seed {seed}"
    judges = tables(seed, first, n_players=2, n_rounds=_ROUNDS)
    for case, judge in enumerate(judges, first):
        again = f"{command} --only {case}"
        n = sum(judge.outcomes.values())
        yield Told(n, "\n".join(judge.failures), again)


def months(seed: int, first: int) -> Iterator[Told]:
    """A build after each of some appends, with few descriptors."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
    for one in count(seed + first):
        with tempfile.TemporaryDirectory() as work:
            problem = _problem(lambda: live(Path(work), _BUILDS, one))  # noqa: B023
        again = f"python -m tests.sweeps.months --builds {_BUILDS} --seed {one}"
        yield Told(_BUILDS, problem, again)


def _problem(call: Callable[[], None]) -> str:
    """Why a call failed; empty if it did not."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 (told, whatever it is)
        return f"{type(error).__name__}: {error}"
    return ""
