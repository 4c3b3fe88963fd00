"""Cases one after the other: tables for a while, a form and a text for each case."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from pyspark.sql import SparkSession

import skipindex as sx
from tests.heavy.catalogue import Told, check_parts
from tests.heavy.queries.judge import compared
from tests.heavy.queries.operators.cases import Case
from tests.heavy.queries.operators.forms import FORMS, Drawer, forms_here
from tests.heavy.queries.operators.player import HANGS, Player, Seen
from tests.heavy.queries.operators.watch import StuckError
from tests.heavy.queries.operators.world import Maker, World, forget
from tests.heavy.queries.sweep import CONF as QUERIES_CONF
from tests.heavy.queries.sweep import quiet_session
from tests.spark.pruning.costs import Cost, excess

CASES_OF_A_WORLD: Final = 40
_RUNS: Final = 3
"""Of a case that costs too much: which stage of a plan ends first is chance."""
_ENOUGH: Final = 300
"""Answers, of which a quarter must read fewer files."""
CONF: Final = {
    name: value for name, value in QUERIES_CONF.items() if "Rebase" not in name
} | {
    # Listing is no part of a query's cost, as the first of the two runs pays it.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
_MOST_SECONDS: Final = 60
"""Of making a failing case smaller."""

Runs = tuple[list[Seen], list[Seen]]
"""With skipping on, and plain."""


class Sweep:
    """Cases of one seed.

    Args:
        spark: the session.
        seed: of all that is drawn.
        work: a folder for the tables.
        forms: that are drawn; all of this version of Spark if there are none.
        seconds: that a query may take.
    """

    def __init__(
        self, spark: SparkSession, seed: int, work: Path, *,
        forms: Sequence[str] = (), seconds: float = 20,
    ) -> None:  # fmt: skip
        """Enable skipping."""
        self.spark = spark
        self.seed = seed
        self.work = work
        self.forms = [one for one in forms_here() if not forms or one in forms]
        self.seconds = seconds
        self.queries = 0
        self.n_answers = 0
        self.n_fewer = 0
        self.failures: list[int] = []
        self._world: World | None = None
        sx.enable(spark)

    def close(self) -> None:
        """End."""
        self._forget()
        sx.disable(self.spark)

    def _forget(self) -> None:
        if self._world is not None:
            forget(self._world, self.spark)
            self._world = None

    def world(self, number: int) -> World:
        """The tables of a case; those before are forgotten."""
        if self._world is None or self._world.number != number:
            self._forget()
            root = self.work / f"world{number}"
            self._world = Maker(number, self.seed, root, self.spark).make()
        return self._world

    def drawn(self, number: int) -> tuple[World, Case]:
        """The tables and the text of a case; which, depends on the seed alone."""
        world = self.world(number // CASES_OF_A_WORLD)
        rng = Random(f"{self.seed} operator {number}")
        weights = [FORMS[name][2] for name in self.forms]
        form = rng.choices(self.forms, weights)[0]
        return world, Drawer(rng, world).draw(form)

    def case(self, number: int, *, tell: bool = False, shrinks: bool = True) -> str:
        """Run one case; what is wrong, with a case made smaller."""
        world, case = self.drawn(number)
        player = Player(self.spark, world, self.seconds)
        told, runs = self._wrong(player, case)
        if tell:
            for step, on, off in zip(case.steps, *runs, strict=True):
                print(step.kind, step.sql())
                print(f"   on: {on}"[:500], f"\n   off: {off}"[:500])
        self._count(case, runs)
        if not told:
            return ""
        self.failures.append(number)
        if shrinks and HANGS not in told:
            smaller = self._smallest(player, case, told)
            told, case = f"{told}\n{case}\nsmaller:", smaller
        return f"{told}\n{case}\n{world}"

    def _wrong(self, player: Player, case: Case) -> tuple[str, Runs]:
        """What is wrong; that it costs too much only if it does each time."""
        on_costs: list[Cost | None] = [None] * len(case.steps)
        off_costs: list[Cost | None] = list(on_costs)
        told, runs = "", ([], [])
        for _ in range(_RUNS):
            played = {
                on: player.play(case, on=on)
                for on in (case.on_first, not case.on_first)
            }
            runs = played[True], played[False]
            told = _difference(case, runs)
            if told:
                break
            for i, (on, off) in enumerate(zip(*runs, strict=True)):
                on_costs[i] = _merged(on_costs[i], on.cost, least=True)
                off_costs[i] = _merged(off_costs[i], off.cost, least=False)
            told = _too_much(case, on_costs, off_costs)
            if not told:
                break
        return told, runs

    def _smallest(self, player: Player, case: Case, told: str) -> Case:
        """A simpler case with rows that differ, or one that costs too much."""
        until, found = time.monotonic() + _MOST_SECONDS, True
        while found and time.monotonic() < until:
            found = False
            for smaller in case.smaller():
                now, _ = self._wrong(player, smaller)
                if now and is_of_cost(now) == is_of_cost(told):
                    case, found = smaller, True
                    break
                if time.monotonic() > until:
                    break
        return case

    def _count(self, case: Case, runs: Runs) -> None:
        for on, off in zip(*runs, strict=True):
            if off.outcome.rows is not None:
                self.queries += 1
            if on.cost and off.cost and off.cost.files:
                self.n_answers += 1
                self.n_fewer += on.cost.files < off.cost.files

    def toothless(self) -> str:
        """Whether skipping skips too little for a mistake of it to show."""
        n, n_fewer = self.n_answers, self.n_fewer
        if n < _ENOUGH or 4 * n_fewer >= n:
            return ""
        return f"less than a quarter of the queries skip a file: {n_fewer} of {n}"


def is_of_cost(told: str) -> bool:
    """Whether rows are right, and cost too much."""
    return re.search(r"(jobs|exchanges|files) for \d", told) is not None


def _difference(case: Case, runs: Runs) -> str:
    for i, (step, on, off) in enumerate(zip(case.steps, *runs, strict=True)):
        if on.outcome.error == HANGS and off.outcome.error != HANGS:
            return f"step {i}: {HANGS} with skipping on, {on.outcome.told}"
        told = compared(on.outcome, off.outcome, limited=bool(step.within))
        if told:
            return f"step {i}: {told}"
        if off.outcome.error and step.kind != "ask":
            return ""  # what follows it stands on nothing
    return ""


def _too_much(
    case: Case, enabled: Sequence[Cost | None], plain: Sequence[Cost | None]
) -> str:
    """What costs too much."""
    told = []
    for i, (on, off) in enumerate(zip(enabled, plain, strict=True)):
        if on is None or off is None:
            continue
        if case.settings.get("skipindex.answers") == "true":
            # Answers from indexes are a branch, with an exchange and its job.
            more = max(0, on.exchanges - off.exchanges)
            off = replace(off, jobs=off.jobs + more, is_cut=True)  # noqa: PLW2901
        if case.form == "recursion":  # each step is planned with keys of its own
            off = replace(off, jobs=max(on.jobs, off.jobs))  # noqa: PLW2901
        # Equal scans with other keys are run each, over its own files, in its own job.
        more = max(0, off.reused - on.reused) if on.with_keys else 0
        if case.form == "overwrite" or more:
            off = replace(off, jobs=off.jobs + more, is_cut=True)  # noqa: PLW2901
        if problem := excess(on, off):
            told.append(f"step {i}: {problem}")
    return "; ".join(told)


def _merged(one: Cost | None, other: Cost | None, *, least: bool) -> Cost | None:
    if one is None or other is None:
        return other or one
    return one.least(other) if least else one.most(other)


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A query of a form a case; a part is a form."""
    check_parts(parts, forms_here())
    spark = quiet_session("operators", CONF)
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(spark, seed, Path(work), forms=parts)
        for case in count(first):
            before = sweep.queries
            try:
                failure = sweep.case(case, tell=True)
                if not parts:  # some forms skip less
                    failure = failure or sweep.toothless()
            except StuckError as error:
                yield Told(0, f"{error}\n{sweep.drawn(case)[1]}")
                return  # the session cannot be used any more
            yield Told(sweep.queries - before, failure)
