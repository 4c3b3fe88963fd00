"""Tables whose writer is killed, and what befalls them then."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.heavy.catalogue import Told, rounds
from tests.rewrite.kill_and_damage import WRITERS, sweep

_SHARES: Final = 12
"""What can befall the table of a killed writer is so many cases."""


def kills(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Each step of a writer, killed there, and then a share of what can befall it."""
    writers = {name: name for name in WRITERS}
    for name, one, only in rounds(writers, seed, first, parts):
        start = (one - seed) % _SHARES
        with tempfile.TemporaryDirectory() as work:
            told = [*sweep(name, Path(work), stride=_SHARES, start=start)]
        wrong = "\n".join(f"{case}: {problem}" for case, problem in told if problem)
        yield Told(len(told), wrong, only)
