"""Runners of tasks: this process, or a pool of processes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from skipindex.errors import BuildError, first_line

LOG: Final = logging.getLogger("skipindex")

ALONE_BYTES: Final = 32 << 20
"""Data files of fewer bytes in all are indexed by one process, unless workers are asked
for: those take a second to start.  By ``benchmarks.small_builds`` two workers are as
fast at 38 MB with two kinds on every column, and at 150 MB with three indexes."""

_LEAST_BYTES: Final = 1 << 20
"""What a data file counts as: opening it takes some requests, however small it is."""

Progress = Callable[[int, int], None]
"""Called with the number of tasks done and of all tasks."""


def n_cores() -> int:
    """The cores that this process may use."""
    from loky import cpu_count  # noqa: PLC0415 (plans are made without it)

    return int(cpu_count())


class Task(Protocol):
    """Work for one worker, which gets it pickled.

    A task that runs twice, or at two places at once, leaves what one run leaves.
    """

    @property
    def done(self) -> str:
        """What it has done at its end, such as ``indexed '/data/events'``."""

    def run(self) -> bytes:
        """Do it."""


class Runner(Protocol):
    """Where tasks run: this process, a process pool, or Spark's executors."""

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""

    def run(self, tasks: Sequence[Task], progress: Progress | None) -> list[bytes]:
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
        """The runner for data files of so many bytes each: this process for few."""
        n_bytes = sum(max(size, _LEAST_BYTES) for size in sizes)
        return LocalRunner(1) if n_bytes < self.alone_bytes else self

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""
        return self.workers

    def run(self, tasks: Sequence[Task], progress: Progress | None) -> list[bytes]:
        """The result of every task, in their order.

        Where no process can be started, as in a worker of Celery, this one does it.

        Raises:
            BuildError: a worker process was killed.
        """
        report = progress or (lambda _done, _of: None)
        with _pool(min(self.workers, len(tasks))) as pool:
            if pool is not None:
                return _run_all(pool, tasks, report)
        pieces = []
        for task in tasks:
            pieces.append(task.run())
            report(len(pieces), len(tasks))
        return pieces


@contextmanager
def _pool(n_processes: int) -> Iterator[Executor | None]:
    """A pool of processes, of which one has answered; None if there are none."""
    if n_processes <= 1:
        yield None
        return
    from loky import ProcessPoolExecutor  # noqa: PLC0415 (as above)

    # Loky's workers, unlike those of multiprocessing, neither fork a process
    # that has threads nor need an ``if __name__ == "__main__"``.
    pool: Any = None
    try:
        pool = ProcessPoolExecutor(n_processes)
        pool.submit(os.getpid).result()
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
    else:
        with pool:
            yield pool


def _run_all(pool: Executor, tasks: Sequence[Task], report: Progress) -> list[bytes]:
    from loky.process_executor import BrokenProcessPool  # noqa: PLC0415 (as above)

    futures = [pool.submit(_run, task) for task in tasks]
    for n_done, _ in enumerate(as_completed(futures), start=1):
        report(n_done, len(tasks))
    try:
        return [future.result() for future in futures]
    except BrokenProcessPool as error:
        raise BuildError(
            f"a worker process was killed while it {tasks[0].done}; nothing "
            "was committed (where memory is short, pass fewer workers)"
        ) from error


def _run(task: Task) -> bytes:
    return task.run()
