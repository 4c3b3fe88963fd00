"""Random histories of Delta tables, read by version."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from tests.delta.histories import History
from tests.sweeps.catalogue import Told


def histories(seed: int, first: int) -> Iterator[Told]:
    """One history a case."""
    command = f"python -m tests.sweeps.worker delta --seed {seed} --only"
    for case in count(first):
        with tempfile.TemporaryDirectory() as folder:
            history = History(Path(folder, "t"), seed * 1_000_003 + case)
            done: list[str] = []
            failure = ""
            for act in history.steps(25):
                done.append(act)
                failure = failure or history.check() or history.check()
                if failure:
                    failure = f"{', '.join(done)}; {failure}"
                    break
            yield Told(history.n_checks, failure, f"{command} {case}")
