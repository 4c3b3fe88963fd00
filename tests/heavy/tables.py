"""Tables that live, and what befalls them: killed writers, and versions of logs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from tests.delta.histories import DeltaHistory
from tests.heavy.catalogue import Told, check_parts, rounds
from tests.iceberg.histories import IcebergHistory
from tests.rewrite.kill_and_damage import WRITERS, sweep

_SHARES: Final = 12
"""What can befall the table of a killed writer is so many cases."""
_ACTS: Final = 25
"""Of a history."""


def kills(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Each step of a writer, killed there, and then a share of what can befall it."""
    writers = {name: name for name in WRITERS}
    for name, one, only in rounds(writers, seed, first, parts):
        start = (one - seed) % _SHARES
        with tempfile.TemporaryDirectory() as work:
            told = [*sweep(name, Path(work), stride=_SHARES, start=start)]
        wrong = "\n".join(f"{case}: {problem}" for case, problem in told if problem)
        yield Told(len(told), wrong, only)


def delta(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A random history of a Delta table, read by version."""
    return _histories(DeltaHistory, seed, first, parts)


def iceberg(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A random history of an Iceberg table, read by snapshot."""
    return _histories(IcebergHistory, seed, first, parts)


def _histories(
    kind: type[DeltaHistory | IcebergHistory],
    seed: int,
    first: int,
    parts: Sequence[str],
) -> Iterator[Told]:
    check_parts(parts)
    for case in count(first):
        with tempfile.TemporaryDirectory() as folder:
            history = kind(Path(folder, "t"), seed * 1_000_003 + case)
            done: list[str] = []
            failure = ""
            for act in history.steps(_ACTS):
                done.append(act)
                failure = failure or history.check() or history.check()
                if failure:
                    failure = f"{', '.join(done)}; {failure}"
                    break
            yield Told(history.n_checks, failure)
