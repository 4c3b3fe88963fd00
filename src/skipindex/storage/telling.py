"""Reporting progress while a call runs, from where the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_DONE: Final[ContextVar[Callable[[], object] | None]] = ContextVar("done", default=None)
_PARTS: Final[ContextVar[Callable[[str, str, int, int], None] | None]] = ContextVar(
    "parts", default=None
)


@contextmanager
def telling(
    *,
    done: Callable[[], object] | None = None,
    parts: Callable[[str, str, int, int], None] | None = None,
) -> Iterator[None]:
    """Within this, these are told; where one is None, it goes on as before.

    Args:
        done: is called when one more file, or index, is done.
        parts: gets what a ``part`` of the work does, what is counted, how many are
            done, and how many there are.
    """
    of_done = _DONE.set(_DONE.get() if done is None else done)
    of_parts = _PARTS.set(_PARTS.get() if parts is None else parts)
    try:
        yield
    finally:
        _DONE.reset(of_done)
        _PARTS.reset(of_parts)


def tell_from_now_on(done: Callable[[], object]) -> None:
    """Like ``telling``, for the rest of this process."""
    _DONE.set(done)


def tell_done() -> None:
    """Tell that one more data file, or one more index, is done."""
    done = _DONE.get()
    if done is not None:
        done()


def part(what: str, unit: str, total: int) -> Callable[[int], None]:
    """Tell that a part of the work begins; what is to be told how many are done."""
    tell = growing_part(what, unit)
    tell(0, total)
    return lambda done: tell(done, total)


def growing_part(what: str, unit: str) -> Callable[[int, int], None]:
    """What is to be told how many are done, of how many that are known by then."""
    tell = _PARTS.get()
    if tell is None:
        return lambda _done, _total: None
    return lambda done, total: tell(what, unit, done, total)
