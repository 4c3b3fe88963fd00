"""Index builds on Spark: few large tasks that read with pyarrow.

A task reads whole files, so the order of its rows is that of the file.  Spark's own
reader would need a task a file and the row index as a column, which costs three to four
times as much.  The driver gets a piece of the manifest from each task.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from skipindex.build.runners import Progress
from skipindex.build.task import BuildTask
from skipindex.errors import BuildError, SkipIndexError
from skipindex.spark.ship import ship_package

_POLL_SECONDS = 0.2


class SparkRunner:
    """Runs build tasks on the executors of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def slots(self) -> int:
        """The cores of the cluster."""
        return self._spark.sparkContext.defaultParallelism

    def run(self, tasks: Sequence[BuildTask], progress: Progress | None) -> list[bytes]:
        """The result of every task; a task that Spark retries gives the same.

        Raises:
            BuildError: Spark gave a task up.
        """
        ship_package(self._spark)
        pickled = [pickle.dumps(task) for task in tasks]

        def build(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from skipindex.build.task import run_task  # noqa: PLC0415 (executor)

            for batch in batches:
                for i in batch.column(0).to_pylist():
                    piece = run_task(pickle.loads(pickled[i]))  # noqa: S301 (our own)
                    column = pa.array([piece], pa.binary())
                    yield pa.RecordBatch.from_arrays([column], names=["piece"])

        n = len(tasks)
        rows = self._spark.range(0, n, 1, n).mapInArrow(build, "piece binary")
        found: list[bytes] = []
        failure: list[BaseException] = []
        group = f"skipindex-build-{uuid.uuid4()}"
        context = self._spark.sparkContext

        def collect() -> None:
            context.setJobGroup(group, f"skipindex: index {n} groups of files")
            try:
                found.extend(bytes(row.piece) for row in rows.collect())
            except BaseException as error:  # noqa: BLE001 (raised below, in the caller)
                failure.append(error)

        thread = InheritableThread(target=collect, daemon=True)
        thread.start()
        try:
            self._watch(thread, group, n, progress)
        except BaseException:  # an interrupt, or the caller's own progress
            context.cancelJobGroup(group)
            raise
        if failure and isinstance(failure[0], Exception):
            raise BuildError(
                f"Spark could not index {tasks[0].location.full('')!r}: "
                f"{_reason(failure[0])}; no index was committed"
            ) from failure[0]
        if failure:
            raise failure[0]
        if progress is not None:
            progress(n, n)
        return found

    def _watch(
        self,
        thread: threading.Thread,
        group: str,
        n_tasks: int,
        progress: Progress | None,
    ) -> None:
        """Report completed tasks while the job runs; never all of them."""
        tracker = self._spark.sparkContext.statusTracker()
        reported = -1
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            if progress is None:
                continue
            done = 0
            for job in tracker.getJobIdsForGroup(group):
                info = tracker.getJobInfo(job)
                for stage_id in info.stageIds if info else ():
                    stage = tracker.getStageInfo(stage_id)
                    done += stage.numCompletedTasks if stage else 0
            if reported < done < n_tasks:
                reported = done
                progress(done, n_tasks)


def _reason(error: Exception) -> str:
    """One line of it: the error of ours that a worker raised, if it is one."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    ours = [line for line in lines if line.startswith(SkipIndexError.__module__)]
    return ours[-1].partition(": ")[2] if ours else lines[0]
