"""The sweep; exit code 1 if a row is lost: ``python -m tests.sweeps.writers``.

The writers of a round are threads of one process, or spread over three.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.sweeps.writers.player import Turn
from tests.sweeps.writers.rounds import ROUNDS_OF_A_TABLE, Judge, begin, run


class Player:
    """Another process that writes."""

    def __init__(self) -> None:
        """Start it."""
        command = [sys.executable, "-m", "tests.sweeps.writers.player"]
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


def main() -> int:
    """Play, and tell what became of the writers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--players", type=int, default=3)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    players = [Player() for _ in range(options.players)]
    total: Counter[str] = Counter()
    played, began = 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        while played < options.rounds:
            path = Path(folder, str(played))
            # Every other table is written by threads of one process alone.
            crew = players[: 1 if played // ROUNDS_OF_A_TABLE % 2 else None]

            def play(
                turns: Sequence[Turn], crew: list[Player] = crew, path: Path = path
            ) -> list[str]:
                shares = [turns[i :: len(crew)] for i in range(len(crew))]
                for player, share in zip(crew, shares, strict=True):
                    player.tell(path, share)
                heard = [player.hear() for player in crew]
                return [heard[i % len(crew)][i // len(crew)] for i in range(len(turns))]

            judge = Judge(path, {})
            n_rounds = min(ROUNDS_OF_A_TABLE, options.rounds - played)
            by = begin(judge, play, rng)
            run(judge, play, n_rounds=n_rounds, rng=rng, by=by)
            played += n_rounds
            total += judge.outcomes
            if judge.failures:
                print(*judge.failures, sep="\n")
                return 1
            print(f"{played} rounds, {time.perf_counter() - began:.0f} s", flush=True)
    for player in players:
        player.stop()
    for name, n in sorted(total.items()):
        print(f"{n:5} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
