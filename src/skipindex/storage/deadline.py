"""Stopping work that no query waits for any more.

The caller of a plan gives it a ``Deadline``.  What takes long asks ``check`` between
two steps, so the plan ends with ``PlanCancelledError`` soon after the deadline: between
two values, leaves, files or reads of a store, not within one.  Without a deadline
nothing changes.

    >>> deadline = Deadline(seconds=60)
    >>> with running_until(deadline):
    ...     total = sum(checked(range(5)))
    >>> deadline.cancel()
    >>> with running_until(deadline):
    ...     total = sum(checked(range(5)))
    Traceback (most recent call last):
        ...
    skipindex.storage.deadline.PlanCancelledError: the plan was cancelled
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class PlanCancelledError(BaseException):
    """The plan was stopped, and nothing that it found so far counts.

    It is no ``Exception``.  An index that cannot be read is an ``Exception`` that plans
    catch and work around, and so is whatever an index kind of another package raises: a
    plan that was stopped must not go on as if an index were damaged.
    """


class Deadline:
    """When work is to stop: after a time, or when it is cancelled.

    Safe to share by threads, and by several plans.  What was over stays over.

    ``seconds`` count from now on; None has no end but ``cancel``.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._reason = ""

    def cancel(self) -> None:
        """Stop the work at its next check; any thread may call it."""
        self._reason = self._reason or "the plan was cancelled"

    @property
    def is_over(self) -> bool:
        """Whether work stops."""
        if not self._reason and self._end is not None:
            if time.monotonic() < self._end:
                return False
            self._reason = "the plan took longer than it may"
        return bool(self._reason)

    @property
    def seconds_left(self) -> float | None:
        """The time that is left, 0 or more; None if there is no end."""
        if self.is_over:
            return 0.0
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise ``PlanCancelledError`` if work is to stop."""
        if self._reason or (self._end is not None and self.is_over):
            raise PlanCancelledError(self._reason)


_current: Final[ContextVar[tuple[Deadline, ...]]] = ContextVar("deadlines", default=())
"""The deadlines of this thread's work; within one, an earlier one counts as well."""


@contextmanager
def running_until(deadline: Deadline) -> Iterator[None]:
    """Let what runs here, and in pools that it uses, stop at a deadline."""
    token = _current.set((*_current.get(), deadline))
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Raise ``PlanCancelledError`` if the work of this thread is to stop."""
    for deadline in _current.get():
        deadline.check()


def checked(items: Iterable[T]) -> Iterable[T]:
    """The items as they are; before each of them the work may stop."""
    deadlines = _current.get()
    return _each(items, deadlines) if deadlines else items


def _each(items: Iterable[T], deadlines: tuple[Deadline, ...]) -> Iterator[T]:
    for item in items:
        for deadline in deadlines:
            deadline.check()
        yield item


def carried(call: Callable[P, R]) -> Callable[P, R]:
    """``call`` for the threads of a pool: each call stops when the work here does."""
    deadlines = _current.get()

    def stopping(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _current.set(deadlines)
        try:
            check()
            return call(*args, **kwargs)
        finally:
            _current.reset(token)

    return stopping if deadlines else call


def seconds_left() -> float | None:
    """The time that is left for the work of this thread; None if there is no end."""
    result = (deadline.seconds_left for deadline in _current.get())
    return min((one for one in result if one is not None), default=None)
