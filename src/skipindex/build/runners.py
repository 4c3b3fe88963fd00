"""Runners of tasks: this process, or a pool of processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Protocol

from skipindex.errors import BuildError

Progress = Callable[[int, int], None]
"""Called with the number of tasks done and of all tasks."""


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
    """

    workers: int

    @classmethod
    def default(cls) -> LocalRunner:
        """One process for every core that this process may use."""
        from loky import cpu_count  # noqa: PLC0415 (plans are made without it)

        return cls(cpu_count())

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""
        return self.workers

    def run(self, tasks: Sequence[Task], progress: Progress | None) -> list[bytes]:
        """The result of every task, in their order.

        Raises:
            BuildError: a worker process was killed.
        """
        report = progress or (lambda _done, _of: None)
        if min(self.workers, len(tasks)) <= 1:
            pieces = []
            for task in tasks:
                pieces.append(task.run())
                report(len(pieces), len(tasks))
            return pieces
        from loky import ProcessPoolExecutor  # noqa: PLC0415 (as above)
        from loky.process_executor import BrokenProcessPool  # noqa: PLC0415

        # Loky's workers, unlike those of multiprocessing, neither fork a process
        # that has threads nor need an ``if __name__ == "__main__"``.
        with ProcessPoolExecutor(min(self.workers, len(tasks))) as pool:
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
