"""The source broken on purpose, and the rules of publication."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.model.search import CASTS, DEEP, search
from tests.mutants.catalogue import MUTANTS
from tests.mutants.run import survives
from tests.sweeps.catalogue import Told, rounds

_DEPTH: Final = 24


def mutants(seed: int, first: int) -> Iterator[Told]:
    """A mutant, whose tests must fail."""
    for mutant, _ in rounds(MUTANTS, seed, first):
        again = f"python -m tests.mutants {mutant.name}"
        yield Told(1, survives(mutant), again)


def model(seed: int, first: int) -> Iterator[Told]:
    """All that the parties of a cast can do."""
    for (name, cast), _ in rounds([*{**CASTS, **DEEP}.items()], seed, first):
        found = search(cast, depth=_DEPTH)
        failure = f"{name}: {found}" if found.problem else ""
        again = f"python -m tests.model.search {_DEPTH}"
        yield Told(found.n_states, failure, again)
