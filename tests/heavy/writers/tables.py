"""Tables that are written at once: by threads of one process, or by two processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from tests.heavy.catalogue import Told, check_parts
from tests.heavy.writers.player import Turn
from tests.heavy.writers.rounds import Judge, begin, run

_ROUNDS: Final = 5
"""Of a table."""
_PLAYERS: Final = 2


class Player:
    """Another process that writes."""

    def __init__(self) -> None:
        """Start it."""
        command = [sys.executable, "-m", "tests.heavy.writers.player"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._answer() == "ready"

    def tell(self, path: Path, turns: Sequence[Turn]) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(path), turns]) + "\n")
        self._process.stdin.flush()

    def hear(self) -> list[str]:
        """Wait for what became of them."""
        outcomes: list[str] = json.loads(self._answer())
        return outcomes

    def stop(self) -> None:
        """End it."""
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A table that several write at once."""
    check_parts(parts)
    players = [Player() for _ in range(_PLAYERS)]
    try:
        for number in count(first):
            with tempfile.TemporaryDirectory() as folder:
                # Every other table is written by threads of one process alone.
                crew = players[: 1 if number % 2 else None]
                path, rng = Path(folder, "t"), Random(f"{seed} {number}")
                judge = _written(path, crew, _ROUNDS, rng)
            yield Told(sum(judge.outcomes.values()), "\n".join(judge.failures))
    finally:
        for player in players:
            player.stop()


def _written(path: Path, crew: list[Player], n_rounds: int, rng: Random) -> Judge:
    """Let a crew write one table."""

    def play(turns: Sequence[Turn]) -> list[str]:
        shares = [turns[i :: len(crew)] for i in range(len(crew))]
        for player, share in zip(crew, shares, strict=True):
            player.tell(path, share)
        heard = [player.hear() for player in crew]
        return [heard[i % len(crew)][i // len(crew)] for i in range(len(turns))]

    judge = Judge(path, {})
    by = begin(judge, play, rng)
    run(judge, play, n_rounds=n_rounds, rng=rng, by=by)
    return judge
