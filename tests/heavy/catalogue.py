"""Every long sweep as one endless row of cases, of which each is drawn by its number.

A case takes some seconds, a few a minute: a run that is stopped loses the case that it
was at, and the next one begins with that.  A sweep that has an end begins anew behind
it, with other choices where it has any.
"""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Final, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a case.

    Args:
        n: how many things it compared.
        failure: what is wrong; empty if nothing is.
        only: the options that draw it alone; empty if its number does.
    """

    n: int
    failure: str
    only: str = ""


Cases = Callable[[int, int, Sequence[str]], Iterator[Told]]
"""Gives, for a seed, the cases from a number on: of some parts of the sweep, or all."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep.

    Args:
        what: is counted.
        function: its cases: a module below ``tests.heavy``, and a name in it.
        patience: seconds for one case, after which it hangs.
        needs: a variable of the environment without which it cannot run, if any.
    """

    what: str
    function: str
    patience: float = inf
    needs: str = ""

    @property
    def can_run(self) -> bool:
        """Whether what it needs is here."""
        return not self.needs or self.needs in os.environ

    @property
    def cases(self) -> Cases:
        """The cases; a sweep is imported only where it runs."""
        module, _, name = self.function.rpartition(".")
        cases: Cases = getattr(importlib.import_module(f"tests.heavy.{module}"), name)
        return cases


def check_parts(parts: Sequence[str], known: Iterable[str] = ()) -> None:
    """Refuse parts that a sweep does not have.

    Raises:
        SystemExit: there is no such part.
    """
    if unknown := sorted({*parts} - {*known}):
        raise SystemExit(
            f"no part {', '.join(unknown)} (known: {', '.join(known) or 'none'})"
        )


def rounds(
    all_of: Mapping[str, T], seed: int, first: int, parts: Sequence[str] = ()
) -> Iterator[tuple[T, int, str]]:
    """The parts of a sweep again and again, each time with another seed.

    With each part its seed, and the options that draw it alone, whatever parts there
    are beside it.

    Raises:
        SystemExit: there is no such part.
    """
    check_parts(parts, all_of)
    names = list(parts or all_of)
    for case in count(first):
        number, at = divmod(case, len(names))
        only = shlex.join([f"--part={names[at]}", f"--only={number}"])
        yield all_of[names[at]], seed + number, only


SWEEPS: Final[Mapping[str, Sweep]] = {
    "queries": Sweep("queries", "queries.sweep.cases"),
    "operators": Sweep("queries", "queries.operators.sweep.cases"),
    "conditions": Sweep("answers", "conditions.cases"),
    "soundness": Sweep("verdicts", "soundness.cases.by_oracle"),
    "soundness-spark": Sweep("verdicts", "soundness.cases.by_spark"),
    "soundness-foreign": Sweep("verdicts", "soundness.cases.of_foreign"),
    "soundness-large": Sweep("verdicts", "soundness.cases.of_large"),
    "delta": Sweep("answers", "lives.cases.delta"),
    "iceberg": Sweep("answers", "lives.cases.iceberg"),
    "foreign-delta": Sweep("answers", "lives.cases.foreign_delta"),
    "foreign-iceberg": Sweep("answers", "lives.cases.foreign_iceberg"),
    "iceberg-sql": Sweep("queries", "iceberg_sql.cases", needs="SKIPINDEX_ICEBERG_JAR"),
    "mutants": Sweep("mutants", "mutants.run.cases"),
    "kills": Sweep("tables", "tables.kills"),
    "cached": Sweep("plans", "cached.cases"),
    "hostile": Sweep("tables", "hostile.judge.cases", patience=120),
    "concurrent": Sweep("writes", "writers.tables.cases"),
    "model": Sweep("states", "model.search.cases"),
    "folder": Sweep("answers", "lives.cases.folder", patience=300),
    "rows": Sweep("selections", "rows.cases", patience=120),
}
"""By name."""
