"""Cases one after the other: a table for a while, a script for each case."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from ssb.session import local_session
from tests.heavy.catalogue import Told, check_parts
from tests.heavy.queries.aggregates import with_answers, with_rows
from tests.heavy.queries.judge import Runs, Tally, difference, drops_by_floats
from tests.heavy.queries.player import Player, Sessions
from tests.heavy.queries.scripts import Drawer, Script
from tests.heavy.queries.tables import Made, make
from tests.spark.java.javac import write_missing

CASES_OF_A_TABLE: Final = 30
_ENOUGH: Final = 300
"""Filters, of which a third must read fewer files."""
_MOST_STEPS: Final = 60
"""Of making a failing script smaller: each takes two runs."""
_VERSION: Final = tuple(map(int, pyspark.__version__.split(".")[:2]))
CONF: Final = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    "-XX:MaxJavaStackTraceDepth=40",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # as of Spark 4
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}


class Sweep:
    """Cases of one seed.

    Args:
        spark: the session.
        seed: of all that is drawn.
        work: a folder for the tables.
    """

    def __init__(self, spark: SparkSession, seed: int, work: Path) -> None:
        """Begin."""
        self.sessions = Sessions(spark)
        self.seed = seed
        self.work = work
        self.tally = Tally()
        self.failures: list[int] = []
        self._player: Player | None = None

    def table(self, number: int) -> Player:
        """The player of a table; the one before is forgotten."""
        if self._player is None or self._player.made.number != number:
            self._forget()
            root = self.work / f"table{number}"
            made = make(number, self.seed, root, self.sessions.home)
            self._player = Player(self.sessions, made, self.work)
        return self._player

    def _forget(self) -> None:
        if self._player is not None:
            self._player.close()
            shutil.rmtree(self._player.made.root)
            self._player = None

    def close(self) -> None:
        """End."""
        self._forget()
        self.sessions.close()

    def script(self, number: int, made: Made) -> Script:
        """The script of a case."""
        script = Drawer(Random(f"{self.seed} case {number}"), made, _VERSION).draw()
        script = with_answers(script, made, Random(f"{self.seed} answers {number}"))
        return with_rows(script, Random(f"{self.seed} rows {number}"))

    def case(self, number: int, *, tell: bool = False, shrinks: bool = True) -> str:
        """Run one case; what is wrong, with a script made smaller."""
        player = self.table(number // CASES_OF_A_TABLE)
        script = self.script(number, player.made)
        script, runs, told = self._compared(player, script)
        if tell:
            print(script)
            for step, on, off in zip(script.steps, *runs, strict=True):
                print(step.kind, step.name, "| on:", on.n_files, "files,", _short(on))
                print("   | off:", off.n_files, "files,", _short(off))
        if not told:
            self.tally.add(script, player.made, runs)
            return ""
        self.failures.append(number)
        made = player.made
        smaller = self._smallest(player, script) if shrinks else script
        return (
            f"{told}\ntable: {made.form}, indexes {made.fate}, int96 {made.int96}, "
            f"lacking {made.lacking}, narrow {made.narrow}\n{script}\nsmaller:\n"
            f"{smaller}"
        )

    def _compared(self, player: Player, script: Script) -> tuple[Script, Runs, str]:
        """What was run, what it gave, and what is not the same."""
        runs = self._runs(player, script)
        told = difference(script, runs)
        if told and drops_by_floats(runs, player.made):
            self.tally.n_by_floats += 1
            script = script.under("spark.sql.parquet.filterPushdown", "false")
            runs = self._runs(player, script)
            told = difference(script, runs)
        return script, runs, told

    def _runs(self, player: Player, script: Script) -> Runs:
        runs = {
            on: player.run(script, on=on)
            for on in (script.on_first, not script.on_first)
        }
        return runs[True], runs[False]

    def _smallest(self, player: Player, script: Script) -> Script:
        left = _MOST_STEPS
        found = True
        while found and left > 0:
            found = False
            for smaller in script.smaller():
                left -= 1
                if self._compared(player, smaller)[2]:
                    script, found = smaller, True
                    break
                if left <= 0:
                    break
        return script

    def toothless(self) -> str:
        """Whether skipping skips too little for a mistake of it to show."""
        n, n_fewer = self.tally.filters, self.tally.skipped
        if n < _ENOUGH or 3 * n_fewer >= n:
            return ""
        return f"less than a third of the queries skip a file: {n_fewer} of {n}"


def _short(outcome: object) -> str:
    return str(outcome)[:300]


def quiet_session(name: str, conf: Mapping[str, str]) -> SparkSession:
    """A session that tells no errors: the judge compares them."""
    write_missing()
    spark = local_session(name, cores=2, memory="2g", conf=conf)
    spark.sparkContext.setLogLevel("OFF")
    logging.disable()
    return spark


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A script a case."""
    check_parts(parts)
    spark = quiet_session("queries", CONF)
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(spark, seed, Path(work))
        for case in count(first):
            before = sweep.tally.queries
            failure = sweep.case(case, tell=True) or sweep.toothless()
            yield Told(sweep.tally.queries - before, failure)
