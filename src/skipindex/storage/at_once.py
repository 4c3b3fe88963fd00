"""Sending several requests to a store at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

from skipindex.storage.deadline import carried, checked
from skipindex.storage.file_system.location import Location

R = TypeVar("R")

_AT_ONCE: Final = 16
"""Calls that are under way at a time: a store answers each after some 30 ms."""


class _StoppedError(Exception):
    """A call that had not begun when another one failed, or Ctrl-C was pressed."""


def at_once(
    location: Location, call: Callable[..., R], *columns: Iterable[Any]
) -> list[R]:
    """What ``map`` with these arguments returns, as a list.

    Of a store several calls are under way at a time, in threads of their own; on a
    local disk one follows the other.  Once a call has raised, none begins.  The error
    of the first of them in the order of the items is raised when those that had begun
    have ended, so that no request is under way any more; also if Ctrl-C is pressed
    twice.

    >>> at_once(Location("/tmp"), max, [1, 2], [3, 1])
    [3, 2]
    """
    rows = list(zip(*columns, strict=True))
    if location.is_local or len(rows) < 2:
        return [call(*row) for row in checked(rows)]
    stop = threading.Event()
    stopping = carried(call)

    def begin(row: tuple[Any, ...]) -> R:
        if stop.is_set():
            raise _StoppedError
        try:
            return stopping(*row)
        except BaseException:
            stop.set()
            raise

    pool = ThreadPoolExecutor(min(len(rows), _AT_ONCE))
    calls: list[Future[R]] = []
    try:
        for row in rows:
            calls.append(pool.submit(begin, row))  # noqa: PERF401 (Ctrl-C between two)
        # Items begin in their order, so none before the first failure is stopped.
        return [result.result() for result in calls]
    finally:
        stop.set()
        pool.shutdown(wait=False)
        _wait_for_all(calls)


def _wait_for_all(calls: list[Future[R]]) -> None:
    """Wait until all have ended, whatever interrupts the waiting."""
    interrupted: KeyboardInterrupt | None = None
    while True:
        try:
            wait(calls)
            break
        except KeyboardInterrupt as again:
            interrupted = again
    if interrupted is not None:
        raise interrupted
