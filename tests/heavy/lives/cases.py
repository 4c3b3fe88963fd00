"""Lives of tables with the log of another format, with questions after each act."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.heavy.catalogue import Told, check_parts
from tests.heavy.lives.by_deltalake import DeltalakeWorld
from tests.heavy.lives.by_pyiceberg import PyicebergWorld
from tests.heavy.lives.delta import DeltaWorld
from tests.heavy.lives.folder import FolderWorld, LongFolderWorld
from tests.heavy.lives.iceberg import IcebergWorld
from tests.heavy.lives.questions import Round, allows, judged
from tests.heavy.lives.world import Moment, World

_DESCRIPTORS: Final = 256
_SELDOM: Final = 25
"""One of so many folders lives for long."""
_SHORT: Final = 20
"""Acts of a life that is played again without each of them if it fails."""
_COMPARED: Final = 0.3
"""How often another reader is asked too."""
Make = Callable[[Path, random.Random], World]


@dataclass(frozen=True, slots=True)
class Step:
    """What is done, and the seed of how, which does not depend on other steps."""

    act: str
    seed: int


def drawn(make: Make, seed: int) -> list[Step]:
    """The steps of a life."""
    rng = random.Random(seed)
    with TemporaryDirectory() as folder:
        world = make(Path(folder, "t"), random.Random(seed))
        names = [*world.acts]
        weights = [world.weights.get(name, 1) for name in names]
    acts = rng.choices(names, weights, k=world.n_acts)
    return [Step(act, rng.getrandbits(32)) for act in acts]


def play(make: Make, seed: int, steps: Sequence[Step]) -> tuple[int, str]:
    """How many answers were compared, and what is wrong; it stops there."""
    n, done = 0, []
    with TemporaryDirectory() as folder:
        world = make(Path(folder, "t"), random.Random(seed))
        changed: set[int] = set()
        for step in [Step("begin", seed), *steps]:
            done.append(step.act)
            world.rng = random.Random(step.seed)
            for what, wrong in _answers(world, step.act, changed):
                n += 1
                if wrong and not allows(world.allowed, wrong):
                    return n, f"{', '.join(done)}; {what}: {wrong}"
    return n, ""


def _answers(world: World, act: str, changed: set[int]) -> Iterator[tuple[str, str]]:
    """What is done and asked, each with what is wrong about it.

    ``changed`` are the numbers of the columns that an act changed last.
    """
    before = deepcopy(world.columns)
    if act in world.acts:
        yield act, judged(world.acts[act])
    if others := {one.number for one in world.columns if one not in before}:
        changed.clear()
        changed |= others
    is_compared = world.rng.random() < _COMPARED
    if is_compared and (wrong := judged(world.unlike_reader)):
        yield "another reader", f"the generator, or that reader, is wrong: {wrong}"
    opened: list[Moment] = []
    yield "open", (wrong := judged(lambda: opened.append(world.asked())))
    if not wrong:
        about = Round(world.rng, opened[0], str(world.folder), frozenset(changed))
        yield from about.ask()


def told(make: Make, seed: int) -> Told:
    """One life; of one that fails, the steps that it takes."""
    steps = drawn(make, seed)
    n, failure = play(make, seed, steps)
    if failure and len(steps) <= _SHORT:
        for step in steps[::-1]:
            fewer = [one for one in steps if one is not step]
            _, still = play(make, seed, fewer)
            if still:
                steps, failure = fewer, still
    return Told(n, failure)


def _cases(make: Make, seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    check_parts(parts)
    for case in count(first):
        yield told(make, seed * 1_000_003 + case)


foreign_delta = partial(_cases, DeltaWorld)
"""Tables of Delta whose logs are written by hand."""
foreign_iceberg = partial(_cases, IcebergWorld)
"""Tables of Iceberg whose metadata are written by hand."""
delta = partial(_cases, DeltalakeWorld)
"""Tables of Delta, read by version."""
iceberg = partial(_cases, PyicebergWorld)
"""Tables of Iceberg, read by snapshot."""


def folder(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Folders that others and skipindex write, with few descriptors; some for long."""
    check_parts(parts, ["long"])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, hard))
    for case in count(first):
        is_long = "long" in parts or case % _SELDOM == _SELDOM - 1
        make = LongFolderWorld if is_long else FolderWorld
        yield told(make, seed * 1_000_003 + case)
