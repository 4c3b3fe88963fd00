"""Tasks on Spark's executors: few large ones, which read with pyarrow.

A task reads whole files, so the order of its rows is that of the file.  Spark's own
reader would need a task a file and the row index as a column, which costs three to four
times as much.  The driver gets a piece of the manifest from each task.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from skipindex.build.runners import Progress, Task
from skipindex.errors import BuildError, SkipIndexError
from skipindex.spark.ship import has_driver, ship_package

_POLL_SECONDS: Final = 0.2
_END_SECONDS: Final = 5.0
"""Seconds for jobs that were cancelled to end, before their files are deleted."""
T = TypeVar("T")
_MANY: Final = 1 << 16
"""Numbers of a range that has no empty partition."""


class SparkRunner:
    """Runs tasks on the executors of a session, also one of Spark Connect."""

    def __init__(self, spark: SparkSession) -> None:
        ship_package(spark)
        self._spark = spark

    @cached_property
    def slots(self) -> int:
        """The cores of the cluster."""
        if has_driver(self._spark):
            return self._spark.sparkContext.defaultParallelism
        # A range has as many partitions as Spark would run at a time.
        numbers = self._spark.range(_MANY).select(sf.spark_partition_id().alias("p"))
        return int(numbers.agg(sf.max("p")).collect()[0][0]) + 1

    def run(self, tasks: Sequence[Task[T]], progress: Progress | None) -> list[T]:
        """The result of every task; a task that Spark retries gives the same.

        Raises:
            BuildError: Spark gave a task up.
        """
        pickled = [pickle.dumps(task) for task in tasks]

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for i in batch.column(0).to_pylist():
                    piece = pickle.loads(pickled[i]).run()  # noqa: S301 (our own)
                    column = pa.array([pickle.dumps(piece)], pa.binary())
                    yield pa.RecordBatch.from_arrays([column], names=["piece"])

        n = len(tasks)
        rows = self._spark.range(0, n, 1, n).mapInArrow(run, "piece binary")
        collect = _collect if has_driver(self._spark) else _collect_from_server
        try:
            result = collect(rows, n, progress or (lambda _done, _of: None))
        except SparkFailedError as failed:
            error = failed.reason
            raise BuildError(
                f"Spark gave up a task that would have {tasks[0].done}: "
                f"{_reason(error)}; nothing was committed"
            ) from error
        if progress is not None:
            progress(n, n)
        return [pickle.loads(row.piece) for row in result]  # noqa: S301 (as above)


class SparkFailedError(Exception):
    """The job failed, and nothing that the caller passed."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def _collect(rows: DataFrame, n_tasks: int, progress: Progress) -> list[Row]:
    """The rows, while tasks are reported; ``SparkFailedError`` if the job fails."""
    reported = -1

    def report(done: int, _known: int) -> None:
        nonlocal reported
        if reported < done < n_tasks:
            reported = done
            progress(done, n_tasks)

    what = f"{n_tasks} groups of files"
    return watched(rows.sparkSession, rows.collect, report, what)


def watched(
    spark: SparkSession, action: Callable[[], T], report: Progress, what: str
) -> T:
    """The result of an action of a classic session, in another thread.

    Meanwhile this one reports how many tasks are done, of those that Spark knows by
    then.  What ends the reports, as an interrupt, cancels the jobs.

    Raises:
        SparkFailedError: the action raised an error.
    """
    result: list[T] = []
    failure: list[BaseException] = []
    context, tracker = spark.sparkContext, spark.sparkContext.statusTracker()
    # The caller's group stays, as what is cancelled by its name.
    own = context.getLocalProperty("spark.jobGroup.id")
    group = own or f"skipindex-{uuid.uuid4()}"
    before = set(tracker.getJobIdsForGroup(group))

    def act() -> None:
        if not own:
            context.setJobGroup(group, f"skipindex: {what}")
        try:
            result.append(action())
        except BaseException as error:  # noqa: BLE001 (raised below, in the caller)
            failure.append(error)

    thread = InheritableThread(target=act, daemon=True)
    thread.start()
    total = 0
    try:
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            new = set(tracker.getJobIdsForGroup(group)) - before
            jobs = map(tracker.getJobInfo, new)
            stages = (stage for job in jobs if job for stage in job.stageIds)
            known = [one for one in map(tracker.getStageInfo, stages) if one]
            done = sum(stage.numCompletedTasks for stage in known)
            total = sum(stage.numTasks for stage in known)
            if known:
                report(done, total)
    except BaseException:  # an interrupt, or the caller's own progress
        context.cancelJobGroup(group)
        thread.join(_END_SECONDS)
        raise
    if failure and isinstance(failure[0], Exception):
        raise SparkFailedError(failure[0])
    if failure:
        raise failure[0]
    if total:  # what Spark tells of the last tasks may come later
        report(total, total)
    return result[0]


def _collect_from_server(
    rows: DataFrame, n_tasks: int, progress: Progress
) -> list[Row]:
    """The same with Spark Connect, whose client reports what its server tells."""
    spark: Any = rows.sparkSession
    caller = threading.get_ident()
    reported = -1
    interrupt: list[BaseException] = []

    def report(stages: Iterable[Any] | None, *_: object, **__: object) -> None:
        nonlocal reported
        done = sum(stage.num_completed_tasks for stage in stages or ())
        if threading.get_ident() != caller or not reported < done < n_tasks:
            return
        reported = done
        try:
            progress(done, n_tasks)
        except BaseException as error:
            interrupt.append(error)
            raise

    tag = f"skipindex-{uuid.uuid4()}"
    spark.addTag(tag)
    spark.registerProgressHandler(report)
    try:
        return rows.collect()
    except BaseException as error:
        if isinstance(error, Exception) and error not in interrupt:
            raise SparkFailedError(error) from error
        spark.interruptTag(tag)
        raise
    finally:
        spark.removeProgressHandler(report)
        spark.removeTag(tag)


def _reason(error: Exception) -> str:
    """One line of it: the error of skipindex that a worker raised, if it is one."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    ours = [line for line in lines if line.startswith(SkipIndexError.__module__)]
    if ours:
        return ours[-1].partition(": ")[2]
    missing = [line for line in lines if line.startswith(ModuleNotFoundError.__name__)]
    if missing:
        return (
            f"{missing[-1]} in the Python of the workers (install skipindex there, or "
            "set PYSPARK_PYTHON to a Python that has it before the session starts)"
        )
    return lines[0]
