"""Random histories of tables with a log, read by version."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from tests.delta.histories import History as OfDelta
from tests.iceberg.histories import History as OfIceberg
from tests.sweeps.catalogue import Told


def delta(seed: int, first: int) -> Iterator[Told]:
    """One history a case."""
    return _histories("delta", OfDelta, seed, first)


def iceberg(seed: int, first: int) -> Iterator[Told]:
    """One history a case."""
    return _histories("iceberg", OfIceberg, seed, first)


def _histories(
    name: str, kind: type[OfDelta | OfIceberg], seed: int, first: int
) -> Iterator[Told]:
    command = f"python -m tests.sweeps.worker {name} --seed {seed} --only"
    for case in count(first):
        with tempfile.TemporaryDirectory() as folder:
            history = kind(Path(folder, "t"), seed * 1_000_003 + case)
            done: list[str] = []
            failure = ""
            for act in history.steps(25):
                done.append(act)
                failure = failure or history.check() or history.check()
                if failure:
                    failure = f"{', '.join(done)}; {failure}"
                    break
            yield Told(history.n_checks, failure, f"{command} {case}")
