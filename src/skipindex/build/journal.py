"""What worker processes report to the waiting caller, and how they are stopped.

Workers append lines to one file: a dot for a file that is done, and the path of a file
that is about to be written.  So it is known what a worker that is killed has written.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from types import FrameType
from typing import Final

from skipindex.storage.telling import listener, tell_from_now_on

_STOP: Final = signal.SIGURG
"""The signal that stops a task: one that ends no process which does not know it yet."""
_DOT: Final = b"."


class StoppedError(BaseException):
    """The task was stopped; it is no ``Exception``, as no task goes on after it."""


class Journal:
    """The file that workers write, read from where it was read last.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.n_done = 0
        self._at = 0

    @classmethod
    def new(cls) -> Journal:
        """An empty one, in the folder for temporary files."""
        descriptor, path = tempfile.mkstemp(prefix="skipindex-")
        os.close(descriptor)
        return cls(path)

    def delete(self) -> None:
        """Delete the file."""
        Path(self.path).unlink(missing_ok=True)

    def look(self) -> None:
        """Count what is done, and pass on what is written, since the last look."""
        tell = listener()
        with Path(self.path).open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # the rest comes with the next look
        self._at += len(whole)
        for line in whole.splitlines():
            if line == _DOT:
                self.n_done += 1
            elif tell is not None:
                tell(line.decode())


class _Worker:
    """What a worker process knows of itself."""

    is_at_work = False
    is_stopped = False


def begin_worker(path: str) -> None:
    """Let this process, a worker, write the journal at ``path``, and be stopped."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)

    def write(line: bytes) -> None:
        os.write(descriptor, line + b"\n")

    def done() -> None:
        write(_DOT)
        if _Worker.is_stopped:  # and foreign code has caught what said so
            raise StoppedError

    tell_from_now_on(made=lambda made: write(made.encode()), done=done)
    signal.signal(_STOP, _on_stop)


def _on_stop(_signal: int, _frame: FrameType | None) -> None:
    _Worker.is_stopped = True
    if _Worker.is_at_work:
        _Worker.is_at_work = False
        raise StoppedError


@contextmanager
def at_work() -> Iterator[None]:
    """What a worker does in here ends when the worker is stopped.

    Raises:
        StoppedError: it is.
    """
    if _Worker.is_stopped:
        raise StoppedError
    _Worker.is_at_work = True
    try:
        yield
    finally:
        _Worker.is_at_work = False


def stop_worker(process: int) -> None:
    """Let a worker stop; it may be gone."""
    try:
        os.kill(process, _STOP)
    except ProcessLookupError:
        return


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Processes and threads that are started in here get no Ctrl-C."""
    ensure_running()  # which would let them through at its first start
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
