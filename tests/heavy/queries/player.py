"""Plays a script on a session: what every step gave, and which files it read."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.heavy.queries import frames
from tests.heavy.queries.scripts import Script, Step
from tests.heavy.queries.tables import Made, change
from tests.heavy.queries.texts import ARRIVALS, Draft
from tests.spark.pruning.scans import scans

SWITCH: Final = "skipindex.enabled"
CARRIED: Final = (
    *("spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage"),
    *("spark.sql.session.timeZone", "spark.sql.parquet.datetimeRebaseModeInRead"),
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.parquet.int96RebaseModeInWrite",
)
"""Settings that a new session takes from the first one."""
_DRAWN: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""In the names of files that Spark writes."""
_OF_FRAMES: Final = ("collect", "count", "explain", "cache", "write")
"""Steps that need a frame which an earlier step has defined."""
LATE: Final = "an error of a row"
"""What a query has that fails as it runs, beside others."""
_copies = itertools.count()


@dataclass
class Outcome:
    """What became of a step.

    Args:
        rows: of the answer, as text; None where there is none.
        error: its class or condition, empty if there is none.
        told: its message.
        at_run: whether it came up as the query ran, and not when it was understood.
        n_files: that the scans read.
        among: the rows that LIMIT may choose among.
        filters: that Spark's reader of Parquet has itself.
    """

    rows: list[str] | None = None
    error: str = ""
    told: str = ""
    at_run: bool = False
    n_files: int = 0
    among: list[str] | None = None
    filters: str = ""


class Sessions:
    """The sessions that scripts run on."""

    def __init__(self, home: SparkSession) -> None:
        """Enable skipping on those that have it."""
        self.home = home
        self.new = home.newSession()
        self.never = home.newSession()
        for session in (self.new, self.never):
            for name in CARRIED:
                session.conf.set(name, str(home.conf.get(name)))
        sx.enable(home)
        sx.enable(self.new)
        inner = home._jsparkSession.cloneSession()
        self.clone = SparkSession(home.sparkContext, inner)

    def close(self) -> None:
        """Undo it."""
        sx.disable(self.home)  # for all of them

    @contextmanager
    def of(self, script: Script, *, on: bool) -> Iterator[SparkSession]:
        """The session of a run, with skipping on or off."""
        spark: SparkSession = getattr(self, script.session)
        if not on and script.reference == "never":
            spark = self.never
        disabled = not on and script.reference != "setting"
        if disabled:
            sx.disable(self.home)
        spark.conf.set(SWITCH, str(on or disabled).lower())
        try:
            yield spark
        finally:
            spark.conf.unset(SWITCH)
            if disabled:
                sx.enable(self.home)


class Player:
    """Plays scripts on one table."""

    def __init__(self, sessions: Sessions, made: Made, work: Path) -> None:
        """Make the table known to the catalog."""
        self.sessions = sessions
        self.made = made
        self.work = work
        self.name = f"t{made.number}"
        self._create(sessions.home, self.name, made.root)

    def close(self) -> None:
        """Forget the table."""
        self.sessions.home.sql(f"DROP TABLE IF EXISTS {self.name}")

    def _create(self, spark: SparkSession, name: str, root: Path) -> None:
        for statement in self.made.ddl:
            spark.sql(statement.format(name=name, root=root))

    def run(self, script: Script, *, on: bool) -> list[Outcome]:
        """What every step gives, with skipping on or off."""
        name, root = self.name, self.made.root
        with self.sessions.of(script, on=on) as spark:
            if script.copied:
                number = next(_copies)
                name, root = f"c{number}", self.work / f"copy{number}"
                shutil.copytree(self.made.root, root)
                self._create(spark, name, root)
            if script.registers and on:
                with suppress(sx.TableError):  # folders that are no table by themselves
                    sx.register(spark, str(root / "t"))
            run = _Run(spark, script, self.made, root, name, on=on)
            try:
                return run.play()
            finally:
                run.undo()
                if script.copied:
                    for what in (f"TABLE {name}", f"TABLE {name}_c", f"VIEW {name}_w"):
                        kind, of = what.split()
                        spark.sql(f"DROP {kind} IF EXISTS {of}")
                    shutil.rmtree(root, ignore_errors=True)


class _Run:
    """One run of a script."""

    def __init__(
        self, spark: SparkSession, script: Script, made: Made, root: Path, name: str,
        *, on: bool,
    ) -> None:  # fmt: skip
        self.spark = spark
        self.script = script
        # What is drawn on the way must not change what later cases draw.
        self.made = replace(made, samples={}, n_rows=ARRIVALS)
        self.known = made
        self.root = root
        self.name = name
        self.on = on
        self.frames: dict[str, DataFrame] = {}
        self.before: dict[str, str | None] = {}

    def play(self) -> list[Outcome]:
        """All steps, one after the other."""
        for name, value in self.script.settings.items():
            self.set(name, value)
        # What a catalog table was resolved to before stays, though settings change it.
        self.spark._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
        if self.script.passed == "variables":
            for name, text in self.script.variables.items():
                self.spark.sql(f"DECLARE OR REPLACE VARIABLE {name} = {text}")
        return [self.outcome(step) for step in self.script.steps]

    def undo(self) -> None:
        """Leave the session as it was."""
        for frame in self.frames.values():
            frame.unpersist()
        self.spark.catalog.clearCache()
        for name in ("v", "w", "f"):
            self.spark.catalog.dropTempView(name)
        for name, value in self.before.items():
            if value is None:
                self.spark.conf.unset(name)
            else:
                self.spark.conf.set(name, value)

    def set(self, name: str, value: str) -> None:
        """Set what may have been set before."""
        self.before.setdefault(name, self.spark.conf.get(name, None))
        self.spark.conf.set(name, value)

    def outcome(self, step: Step) -> Outcome:
        """What a step gives."""
        wanted = "v" if step.kind in ("frame", "write") else step.name
        needs = step.kind in _OF_FRAMES or (step.kind == "frame" and step.name != "v")
        if needs and wanted not in self.frames:
            return Outcome(error="no such frame")
        try:
            return self.step(step)
        except (PySparkException, Py4JError, OverflowError) as error:
            understood = not isinstance(error, AnalysisException | ParseException)
            return Outcome(
                error=name_of(error), told=str(error)[:600], at_run=understood
            )

    def step(self, step: Step) -> Outcome:
        """Take one step."""
        match step.kind:
            case "sql":
                return self.ask(step.draft)
            case "collect":
                return self.answer(self.frames[step.name])
            case "count":
                df = self.frames[step.name]
                return Outcome([str(df.count())], filters=filters(df))
            case "explain":
                with redirect_stdout(StringIO()):
                    self.frames[step.name].explain("formatted")
            case "do":
                df = self.sql(self.text(step.draft, step.draft.text))
                return Outcome(n_files=n_files(df))
            case "set":
                self.set(step.name, step.value)
            case "frame":
                self.frames[step.name] = self.frame(step)
                self.frames[step.name].createOrReplaceTempView(step.name)
            case "cache":
                self.frames[step.name].cache()
            case "change":
                change(self.made, self.root, Random(step.seed), step.value)
            case "write":
                self.write(step)
            case "together":
                return self.together(step)
        return Outcome()

    def frame(self, step: Step) -> DataFrame:
        """Define a frame."""
        if step.name == "v":
            return frames.read(self.spark, step.value, self.made, self.root, self.name)
        return frames.derive(
            self.frames["v"], step.value, step.draft, self.known, step.seed
        )

    def ask(self, draft: Draft) -> Outcome:
        """The rows of a query of text."""
        outcome = self.answer(self.sql(self.text(draft, draft.text)), draft)
        if draft.within:
            outcome.among = rows_of(self.sql(self.text(draft, draft.within)))
        return outcome

    def answer(self, df: DataFrame, draft: Draft | None = None) -> Outcome:
        """The rows of a frame."""
        rows = rows_of(df)
        if draft is None or not draft.ordered:
            rows.sort()
        return Outcome(rows, n_files=n_files(df), filters=filters(df))

    def text(self, draft: Draft, text: str) -> str:
        """The query as SQL, with the names of this run."""
        text = draft.sql(text)
        for name, value in self.script.variables.items():
            marks = {"parameters": f":{name}", "variables": name}
            text = text.replace(f"§{name}§", marks.get(self.script.passed, value))
        for name, value in (
            ("{t}", self.name),
            ("{path}", str(self.root / "t")),
            ("{root}", str(self.root)),
        ):
            text = text.replace(name, value)
        return text

    def sql(self, text: str) -> DataFrame:
        """A query of text, with its parameters."""
        if self.script.passed != "parameters":
            return self.spark.sql(text)
        values = {
            name: _literal(self.spark, value)
            for name, value in self.script.variables.items()
        }
        return self.spark.sql(text, args=values)

    def write(self, step: Step) -> None:
        """Write rows of the table into it, or into another folder."""
        rows = self.frames["v"].where(step.draft.conditions[0].sql())
        mode = step.value.partition(" ")[0]
        writer = rows.write.mode(mode).partitionBy(*self.made.partitions)
        if mode == "overwrite":
            writer = writer.option("partitionOverwriteMode", "dynamic")
        writer.parquet(str(self.root / ("o" if "other" in step.value else "t")))

    def together(self, step: Step) -> Outcome:
        """The rows of several queries, from as many threads where skipping is on."""
        found: list[Outcome] = [Outcome() for _ in step.drafts]

        def run(i: int, draft: Draft) -> None:
            found[i] = self.outcome(Step("sql", replace(draft, within="")))

        if self.on:
            threads = [Thread(target=run, args=one) for one in enumerate(step.drafts)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        else:
            for i, draft in enumerate(step.drafts):
                run(i, draft)
        rows = [
            f"{i}: {row}"
            for i, (one, draft) in enumerate(zip(found, step.drafts, strict=True))
            for row in _comparable(one, draft)
        ]
        return Outcome(
            rows,
            n_files=sum(one.n_files for one in found),
            filters=" ".join(one.filters for one in found),
        )


def _comparable(outcome: Outcome, draft: Draft) -> list[str]:
    if outcome.rows is None:
        return [LATE if outcome.at_run else outcome.error]
    return [str(len(outcome.rows))] if draft.within else outcome.rows


def _literal(spark: SparkSession, text: str) -> Any:
    """The Python value of a literal."""
    return spark.sql(f"SELECT {text}").first()[0]  # type: ignore[index]


def rows_of(df: DataFrame) -> list[str]:
    """The rows as text, NaN equal to itself, without what Spark draws by chance."""
    return [_DRAWN.sub("", repr(tuple(row))) for row in df.collect()]


def name_of(error: BaseException) -> str:
    """What an error is: its condition, or the class of its first cause."""
    for method in ("getCondition", "getErrorClass"):
        found: Callable[[], str | None] | None = getattr(error, method, None)
        if found is not None and (name := found()):
            return name
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        return str(cause.getClass().getSimpleName())
    return type(error).__name__


def n_files(df: DataFrame) -> int:
    """How many files the scans of a query have read, by Spark's own metrics."""
    return sum(scan.metrics().apply("numFiles").value() for scan in scans(df))


def filters(df: DataFrame) -> str:
    """What Spark's reader of Parquet leaves out rows by, as the plan shows it.

    A side that gave no row is not in the plan that ran.
    """
    first = df._jdf.queryExecution().sparkPlan()
    found = scans(df) + scans(df, first)
    parts = [scan.metadata().get("PushedFilters") for scan in found]
    return " ".join(part.get() for part in parts if part.isDefined())
