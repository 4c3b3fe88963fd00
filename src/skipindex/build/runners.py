"""Runners of tasks: this process, or a pool of processes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from skipindex.errors import BuildError, first_line
from skipindex.storage.telling import tell_from_now_on, telling

LOG: Final = logging.getLogger("skipindex")

ALONE_BYTES: Final = 32 << 20
"""Data files of fewer bytes in all are indexed by one process, unless workers are asked
for: those take a second to start.  By ``benchmarks.small_builds`` two workers are as
fast at 38 MB with two kinds on every column, and at 150 MB with three indexes."""

_LEAST_BYTES: Final = 1 << 20
"""What a data file counts as: opening it takes some requests, however small it is."""

TASKS_PER_SLOT: Final = 4
"""Tasks of a worker, at most, so that slow ones are made up for."""

_LOOK_SECONDS: Final = 0.2
"""How often it is looked how far the workers are."""

Progress = Callable[[int, int], None]
"""Called with the number of units done and of all of them; on Spark, of tasks."""


def n_cores() -> int:
    """The cores that this process may use."""
    from loky import cpu_count  # noqa: PLC0415 (plans are made without it)

    return int(cpu_count())


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Task(Protocol[T_co]):
    """Work for one worker; in another process it is pickled, and so is its result.

    A task that runs twice, or at two places, leaves what one run leaves.  It
    calls ``tell_done`` once for each of its units.
    """

    @property
    def n_units(self) -> int:
        """How many data files, or indexes, it is about."""

    @property
    def done(self) -> str:
        """What it has done at its end, such as ``indexed '/data/events'``."""

    def run(self) -> T_co:
        """Do it."""


class Runner(Protocol):
    """Where tasks run: this process, a process pool, or Spark's executors."""

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""

    def run(self, tasks: Sequence[Task[T]], progress: Progress | None) -> list[T]:
        """The result of every task, in their order."""


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Runs tasks on this machine.

    Args:
        workers: processes; 1 runs the tasks in this one.
        alone_bytes: data files of fewer bytes are indexed in this one all the same.
    """

    workers: int
    alone_bytes: int = 0

    @classmethod
    def default(cls) -> LocalRunner:
        """One for every core that this process may use, where that pays."""
        return cls(n_cores(), ALONE_BYTES)

    def sized(self, sizes: Iterable[int]) -> LocalRunner:
        """The runner for data files of this size in bytes: this process for few."""
        n_bytes = sum(max(size, _LEAST_BYTES) for size in sizes)
        return LocalRunner(1) if n_bytes < self.alone_bytes else self

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""
        return self.workers

    def run(self, tasks: Sequence[Task[T]], progress: Progress | None) -> list[T]:
        """The result of every task, in their order.

        Where no process can be started, as in a worker of Celery, this one does it.
        An interrupt, or an error of a task, ends the others within a second.

        Raises:
            BuildError: a worker process was killed.
        """
        report = _Report(sum(task.n_units for task in tasks), progress)
        n_processes = min(self.workers, len(tasks))
        if n_processes > 1:
            with _pool(n_processes) as started:
                if started is not None:
                    return _run_all(*started, tasks, report)
        with telling(done=report.one_more):
            return [task.run() for task in tasks]


class _Report:
    """Tells how many units of all are done, whenever that is another number."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._told = -1
        self.tell(0)

    def tell(self, n_done: int) -> None:
        """Tell that so many are."""
        if self._progress is not None and self._told < n_done <= self._total:
            self._told = n_done
            self._progress(n_done, self._total)

    def one_more(self) -> None:
        """Tell that one more is."""
        self.tell(self._told + 1)


@contextmanager
def _pool(n_processes: int) -> Iterator[tuple[Executor, Path] | None]:
    """Processes, and a file with a byte for each unit done; None if none can begin."""
    from loky import ProcessPoolExecutor  # noqa: PLC0415 (plans are made without it)

    # Loky's workers, unlike those of multiprocessing, neither fork a process
    # that has threads nor need an ``if __name__ == "__main__"``.
    pool: Any = None
    counted: Path | None = None
    try:
        try:
            descriptor, path = tempfile.mkstemp(prefix="skipindex-")
            os.close(descriptor)
            counted = Path(path)
            environment = _environment()
            with _without_interrupts():
                pool = ProcessPoolExecutor(
                    n_processes,
                    initializer=_begin_worker,
                    initargs=(path,),
                    env=environment,
                )
                first = pool.submit(os.getpid)
            first.result()
        except Exception as error:  # noqa: BLE001 (daemons, limits of the system, sandboxes)
            LOG.warning(
                "one process builds, because no workers can be started: %s: %s",
                type(error).__name__,
                first_line(error),
            )
            if pool is not None:  # some may have been started before the error
                for process in list(pool._processes.values()):  # noqa: SLF001
                    process.terminate()
            yield None
            return
        yield pool, counted
        pool.shutdown()
    except BaseException:
        if pool is not None:
            pool.shutdown(kill_workers=True)
        raise
    finally:
        if counted is not None:
            counted.unlink(missing_ok=True)


def _begin_worker(path: str) -> None:
    """Let this process, a worker, write a byte to a file for each unit."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    tell_from_now_on(lambda: os.write(descriptor, b"."))


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes and threads that are started in here get no Ctrl-C."""
    resource_tracker.ensure_running()  # which lets them through at its first start
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _environment() -> Mapping[str, str]:
    """What keeps workers from modules of the working folder, unless we import them."""
    # ``-m`` and ``-c``, by which processes start, put that folder first on their path.
    is_ours = not {"", str(Path.cwd())}.isdisjoint(sys.path[:1])
    if is_ours or "PYTHONSAFEPATH" in os.environ:
        return {}
    from loky.backend import resource_tracker as of_loky  # noqa: PLC0415 (as above)

    safe = {"PYTHONSAFEPATH": "1"}
    os.environ.update(safe)  # the processes that workers share take it from here alone
    try:
        resource_tracker.ensure_running()
        of_loky.ensure_running()
    finally:
        del os.environ["PYTHONSAFEPATH"]
    return safe


def _run_all(
    pool: Executor, counted: Path, tasks: Sequence[Task[T]], report: _Report
) -> list[T]:
    from loky.process_executor import BrokenProcessPool  # noqa: PLC0415 (as above)

    futures = [pool.submit(task.run) for task in tasks]
    waiting = set(futures)
    try:
        while waiting:
            done, waiting = wait(
                waiting, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED
            )
            for future in done:
                future.result()
            report.tell(counted.stat().st_size)
        return [future.result() for future in futures]
    except BrokenProcessPool as error:
        raise BuildError(
            f"a worker process was killed while it {tasks[0].done}; nothing "
            "was committed (if memory is short, pass fewer workers)"
        ) from error
