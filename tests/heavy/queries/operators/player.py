"""Plays a case on a session: what every step gave, and what it cost."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.storage.file_system.sidecar import SIDECAR
from tests.heavy.queries.operators.cases import Case, Step
from tests.heavy.queries.operators.watch import at_most
from tests.heavy.queries.operators.world import World
from tests.heavy.queries.player import Outcome, name_of, rows_of
from tests.spark.pruning.costs import SWITCH, Cost, cost_of_run, jobs_since, n_jobs

HANGS: Final = "does not end"
_copies = itertools.count()


@dataclass(frozen=True)
class Seen:
    """What became of a step, and what it cost; None if that is not known."""

    outcome: Outcome
    cost: Cost | None = None


class Player:
    """Plays cases on one world.

    Args:
        spark: an enabled session.
        world: the tables.
        seconds: that a step may take.
    """

    def __init__(self, spark: SparkSession, world: World, seconds: float) -> None:
        """Begin with no frame."""
        self.spark = spark
        self.world = world
        self.seconds = seconds
        self.frames: dict[str, DataFrame] = {}
        self.copy: Path | None = None

    def play(self, case: Case, *, on: bool) -> list[Seen]:
        """What every step gives, with skipping or plain."""
        side = self.world.root / "side"
        more = {SWITCH: str(on).lower(), SIDECAR: str(side)}
        with self._settings({**case.settings, **more}):
            sidecar = side if len(case.steps) % 2 else None
            copy = self._copied(case.copied, sidecar) if case.copied else None
            self.copy = copy
            try:
                return [self.step(step, on=on) for step in case.steps]
            finally:
                self._undo(copy)

    @contextmanager
    def _settings(self, settings: dict[str, str]) -> Iterator[None]:
        conf = self.spark.conf
        before = {name: conf.get(name, None) for name in settings}
        for name, value in settings.items():
            conf.set(name, value)
        # What a catalog table was resolved to before stays, though settings change it.
        self.spark._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    conf.unset(name)
                else:
                    conf.set(name, value)

    def _copied(self, name: str, sidecar: Path | None) -> Path:
        """A table ``copied`` of the catalog, in folders, with indexes."""
        source = next(one for one in self.world.chain if one.name == name)
        path = self.world.root / f"copy{next(_copies)}"
        shutil.copytree(
            source.path, path if source.folders else path / "p=0",
            ignore=shutil.ignore_patterns("_skipindex"),
        )  # fmt: skip
        asked = dict.fromkeys(("id", "k", "g"), "bitmap")
        sx.build_indexes(path, asked, workers=1, sidecar=sidecar)
        self.spark.sql(
            "CREATE TABLE copied (id BIGINT, k BIGINT, g INT, s STRING, d DATE, v INT, "
            f"pad STRING, p INT) USING parquet PARTITIONED BY (p) LOCATION '{path}'"
        )
        self.spark.sql("MSCK REPAIR TABLE copied")
        return path

    def _undo(self, copy: Path | None) -> None:
        self.frames.clear()
        self.spark.catalog.clearCache()
        for name in ("x", "batch", "older", "newer", "asked"):
            self.spark.catalog.dropTempView(name)
        with suppress(PySparkException):
            self.spark.sql("DROP TEMPORARY FUNCTION IF EXISTS of_key")
        if copy is not None:
            self.spark.sql("DROP TABLE IF EXISTS copied")
            shutil.rmtree(copy, ignore_errors=True)

    def step(self, step: Step, *, on: bool) -> Seen:
        """Take one step, for so long as it may take."""
        if (
            step.kind in ("again", "cache", "replan", "where")
            and step.name not in self.frames
        ) or (step.kind == "asof" and not {"x", "older"} <= set(self.frames)):
            return Seen(Outcome(error="no such frame"))
        with at_most(self.spark, self.seconds) as watch:
            try:
                seen = self._step(step)
            except (PySparkException, Py4JJavaError, OverflowError) as error:
                at_run = not isinstance(error, AnalysisException | ParseException)
                outcome = Outcome(
                    error=name_of(error), told=str(error)[:600], at_run=at_run
                )
                seen = Seen(outcome)
        if watch.fired:
            self.spark.conf.set(SWITCH, str(on).lower())
            told = f"cancelled after {self.seconds:g} s"
            return Seen(Outcome(error=HANGS, told=told, at_run=True))
        return seen

    def _step(self, step: Step) -> Seen:
        match step.kind:
            case "ask":
                before = n_jobs(self.spark)
                seen = self._answer(self.spark.sql(step.sql()), step, before)
                if step.within:
                    among = self.spark.sql(step.sql(step.within))
                    seen.outcome.among = rows_of(among)
                return seen
            case "again":
                return self._answer(self.frames[step.name], step, n_jobs(self.spark))
            case "do":
                self.spark.sql(step.sql())
            case "frame":
                self._frame(step.name, self.spark.sql(step.sql()))
            case "asof":
                self._frame(step.name, self._as_of(*step.text.split()))
            case "where" if step.text:
                self._frame(step.name, self.frames[step.name].where(step.text))
            case "cache":
                self.frames[step.name].cache()
            case "replan":
                self._frame(step.name, self._of_optimized(self.frames[step.name]))
            case "list" | "bare" | "grow":
                self._change(step)
            case "stream":
                return Seen(Outcome(self._stream(step)))
        return Seen(Outcome())

    def _change(self, step: Step) -> None:
        """What another process does to the copied table, and a listing of it."""
        if self.copy is None:
            return
        match step.kind:
            case "bare":
                shutil.rmtree(self.copy / "_skipindex", ignore_errors=True)
            case "grow":
                more = next(one for one in self.world.chain if one.name == step.name)
                folder = next(self.copy.glob("p=*"))
                for i, path in enumerate(sorted(more.path.rglob("f*.parquet"))):
                    shutil.copy(path, folder / f"new{i:02}.parquet")
            case "list":
                self._frame(step.name, self.spark.read.parquet(str(self.copy)))

    def _answer(self, df: DataFrame, step: Step, before: int) -> Seen:
        rows = rows_of(df)
        jobs = jobs_since(self.spark, before)
        if not step.ordered:
            rows.sort()
        # How many jobs look for the rows of a LIMIT depends on where they are, and a
        # script runs more plans than the last.
        is_script = step.text.startswith("BEGIN")
        cost = cost_of_run(df, 0 if step.within or is_script else jobs)
        return Seen(Outcome(rows, n_files=cost.files), cost)

    def _frame(self, name: str, df: DataFrame) -> None:
        self.frames[name] = df
        df.createOrReplaceTempView(name)

    def _as_of(self, how: str, direction: str, *on: str) -> DataFrame:
        """What pandas on Spark makes of ``merge_asof``."""
        left, right = self.frames["x"], self.frames["older"]
        condition = left[on[0]] == right[on[1]] if on else None
        return left._joinAsOf(
            right, left["id"], right["y"], on=condition, how=how, direction=direction
        )

    def _of_optimized(self, df: DataFrame) -> DataFrame:
        """A DataFrame of the plan that the optimizer has made of another one."""
        sql = self.spark._jvm.org.apache.spark.sql
        datasets = sql if self.spark.version < "4" else sql.classic
        session, plan = self.spark._jsparkSession, df._jdf.queryExecution()
        return DataFrame(
            datasets.Dataset.ofRows(session, plan.optimizedPlan()), self.spark
        )

    def _stream(self, step: Step) -> list[str]:
        """The rows of all batches, one file each."""
        schema = self.spark.read.parquet(str(self._arrivals)).schema
        arriving = (
            self.spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._arrivals))
        )
        is_static = step.name == "static"
        if is_static:  # else the batch is joined as it comes
            arriving.createOrReplaceTempView("batch")
            arriving = self.spark.sql(step.sql())
        rows: list[str] = []

        def take(batch: DataFrame, _: Any) -> None:
            if not is_static:
                batch.createOrReplaceTempView("batch")
                batch = batch.sparkSession.sql(step.sql())
            rows.extend(rows_of(batch))

        query = arriving.writeStream.foreachBatch(take).trigger(availableNow=True)
        running = query.start()
        try:
            running.awaitTermination(self.seconds)
        finally:
            running.stop()
        return sorted(rows)

    @property
    def _arrivals(self) -> Path:
        return self.world.others["arrivals"].path
