"""Rounds of writers at once, and the judge of what they leave."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

import skipindex as sx
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.names import is_data_file
from tests.heavy.writers.player import FAULTS, Turn

Play = Callable[[Sequence[Turn]], Sequence[str]]
"""All turns at once; what became of each."""

ROUNDS_OF_A_TABLE: Final = 20


@dataclass
class Judge:
    """What the table must hold.

    Args:
        path: of the table.
        expected: rows by the tag of their writer.
        outcomes: how often what became of which kind of writer.
        failures: what was wrong.
    """

    path: Path
    expected: dict[int, int]
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def learn(self, turn: Turn, outcome: str) -> None:
        """Take note of what a writer says of itself."""
        name = "ok" if outcome == "ok" else outcome.partition(":")[0]
        self.outcomes[f"{turn['kind']} {turn['fault']}: {name}"] += 1
        if turn["kind"] in ("append", "create", "plain"):
            self.expected[turn["tag"]] = turn["n_rows"] if outcome == "ok" else 0
        must = turn["fault"] not in ("always", "cancel")
        conflict = outcome.startswith("CommitConflictError")
        rewrites = turn["kind"] in ("optimize", "join")
        if outcome != "ok" and must and not (rewrites and conflict):
            self.failures.append(f"{turn}: {outcome}")

    def look(self) -> None:
        """Count the rows of every writer, as both kinds of readers see them."""
        listed = [
            str(file.relative_to(self.path))
            for file in self.path.rglob("*.parquet")
            if is_data_file(str(file.relative_to(self.path)))
        ]
        for who, paths in (
            ("who lists the folder", listed),
            ("of commits", sx.open_table(self.path).paths),
        ):
            found: Counter[int] = Counter()
            distinct: set[tuple[int, int]] = set()
            for name in paths:
                read = pq.ParquetFile(self.path / name).read(["tag", "id"])
                tags = read["tag"].to_pylist()
                found.update(tags)
                distinct.update(zip(tags, read["id"].to_pylist(), strict=True))
            for tag in found.keys() | self.expected.keys():
                wanted = self.expected.get(tag, 0)
                unlike = sum(1 for known, _ in distinct if known == tag)
                if (found[tag], unlike) != (wanted, wanted):
                    self.failures.append(
                        f"a reader {who}: {found[tag]} rows ({unlike} distinct) of "
                        f"writer {tag}, expected {wanted}"
                    )


def begin(judge: Judge, play: Play, rng: random.Random) -> list[str]:
    """Let one writer create the table; its partition columns."""
    by = rng.choice([[], [], ["k"]])
    turn: Turn = {"kind": "create", "tag": 0, "n_rows": 200, "fault": "none"}
    turn |= {"seed": rng.randrange(2**31), "by": by}
    judge.learn(turn, *play([turn]))
    judge.look()
    return by


def turns_of(rng: random.Random, first_tag: int, by: list[str]) -> list[Turn]:
    """Two to four writers, no more than one of them plain Spark's."""
    kinds = ["append", rng.choice(["append", "append", "optimize", "join", "plain"])]
    kinds += rng.choices(["append", "optimize", "join"], k=rng.randint(0, 2))
    return [
        {
            "kind": kind,
            "tag": first_tag + i,
            "n_rows": rng.randint(1, 300),
            "fault": rng.choice(FAULTS) if kind == "append" else "none",
            "seed": rng.randrange(2**31),
            "by": by,
        }
        for i, kind in enumerate(kinds)
    ]


def run(
    judge: Judge, play: Play, *, n_rounds: int, rng: random.Random, by: list[str]
) -> None:
    """Play rounds on one table, and look after each."""
    for _ in range(n_rounds):
        turns = turns_of(rng, max(judge.expected) + 1, by)
        for turn, outcome in zip(turns, play(turns), strict=True):
            judge.learn(turn, outcome)
        if judge.failures:
            return
        judge.look()
        if rng.random() < 0.2:
            vacuum(judge.path, retention=timedelta(0))
            judge.look()
