"""Every long sweep as one endless row of cases, of which each is drawn by its number.

A case takes some seconds, a few a minute: a run that is stopped loses the case that it
was at, and the next one begins with that.  A sweep that has an end begins anew behind
it, with other choices where it has any.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a case.

    Args:
        n: how many things it compared.
        failure: what is wrong; empty if nothing is.
        again: the command that runs this case alone.
    """

    n: int
    failure: str
    again: str


Cases = Callable[[int, int], Iterator[Told]]
"""Gives, for a seed, the cases from a number on."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep.

    Args:
        what: is counted.
        function: its cases: a module below ``tests.sweeps.cases``, and a name in it.
    """

    what: str
    function: str

    @property
    def cases(self) -> Cases:
        """The cases; a sweep is imported only where it runs."""
        module, name = self.function.split(".")
        found: Cases = getattr(
            importlib.import_module(f"tests.sweeps.cases.{module}"), name
        )
        return found


def rounds(all_of: Sequence[T], seed: int, first: int) -> Iterator[tuple[T, int]]:
    """The parts of a sweep again and again, each time with another seed."""
    for case in count(first):
        yield all_of[case % len(all_of)], seed + case // len(all_of)


SWEEPS: Final[Mapping[str, Sweep]] = {
    "queries": Sweep("queries", "queries.queries"),
    "operators": Sweep("queries", "operators.operators"),
    "soundness": Sweep("verdicts", "soundness.by_oracle"),
    "soundness-spark": Sweep("verdicts", "soundness.by_spark"),
    "soundness-foreign": Sweep("verdicts", "soundness.of_foreign"),
    "soundness-large": Sweep("verdicts", "soundness.of_large"),
    "delta": Sweep("plans", "with_log.delta"),
    "iceberg": Sweep("plans", "with_log.iceberg"),
    "mutants": Sweep("mutants", "rules.mutants"),
    "kills": Sweep("tables", "tables.kills"),
    "hostile": Sweep("tables", "tables.hostile"),
    "concurrent": Sweep("writes", "tables.concurrent"),
    "model": Sweep("states", "rules.model"),
    "months": Sweep("builds", "tables.months"),
}
"""By name."""
