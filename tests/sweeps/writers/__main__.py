"""The sweep; exit code 1 if a row is lost: ``python -m tests.sweeps.writers``.

The writers of a round are threads of one process, or spread over three.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from itertools import count, islice
from pathlib import Path
from random import Random

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


def tables(
    seed: int, first: int, *, n_players: int = 3, n_rounds: int = ROUNDS_OF_A_TABLE
) -> Generator[Judge]:
    """What became of one table after the other, without an end.

    Args:
        seed: of all that is drawn.
        first: the number of the table to begin with.
        n_players: processes that write.
        n_rounds: of each table.
    """
    players = [Player() for _ in range(n_players)]
    try:
        for number in count(first):
            with tempfile.TemporaryDirectory() as folder:
                # Every other table is written by threads of one process alone.
                crew = players[: 1 if number % 2 else None]
                path, rng = Path(folder, "t"), Random(f"{seed} {number}")
                yield _written(path, crew, n_rounds, rng)
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


def main() -> int:
    """Play, and tell what became of the writers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="of all tables")
    parser.add_argument("--of-table", type=int, default=ROUNDS_OF_A_TABLE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one table, by its number")
    parser.add_argument("--players", type=int, default=3)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    began, found = time.perf_counter(), 0
    n_tables = -(-options.rounds // options.of_table)
    judges = tables(
        options.seed,
        options.only or 0,
        n_players=options.players,
        n_rounds=options.of_table,
    )
    for judge in islice(judges, n_tables if options.only is None else 1):
        total += judge.outcomes
        if judge.failures:
            print(*judge.failures, sep="\n")
            found = 1
            break
        print(f"{time.perf_counter() - began:.0f} s", flush=True)
    judges.close()
    for name, n in sorted(total.items()):
        print(f"{n:5} {name}")
    return found


if __name__ == "__main__":
    sys.exit(main())
