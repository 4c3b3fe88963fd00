"""Reporting progress while a call runs: created files and finished units.

A call that is interrupted takes back the files that no commit names, and one that takes
long says how far it is.  Both are told where the work is done, in this process or in a
worker, which passes it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_MADE: Final[ContextVar[Callable[[str], None] | None]] = ContextVar(
    "made", default=None
)
_DONE: Final[ContextVar[Callable[[], None] | None]] = ContextVar("done", default=None)
_PARTS: Final[ContextVar[Callable[[str, str, int, int], None] | None]] = ContextVar(
    "parts", default=None
)


@contextmanager
def telling(
    *,
    made: Callable[[str], None] | None = None,
    done: Callable[[], None] | None = None,
    parts: Callable[[str, str, int, int], None] | None = None,
) -> Iterator[None]:
    """Within this, these are told; where one is None, it goes on as before.

    Args:
        made: gets the paths of new files, before they are written.
        done: is called when one more file, or index, is done.
        parts: gets what a ``part`` of the work does, what is counted, how many are
            done, and how many there are.
    """
    of_made = _MADE.set(_MADE.get() if made is None else made)
    of_done = _DONE.set(_DONE.get() if done is None else done)
    of_parts = _PARTS.set(_PARTS.get() if parts is None else parts)
    try:
        yield
    finally:
        _MADE.reset(of_made)
        _DONE.reset(of_done)
        _PARTS.reset(of_parts)


def tell_from_now_on(*, made: Callable[[str], None], done: Callable[[], None]) -> None:
    """Like ``telling``, for the rest of this process."""
    _MADE.set(made)
    _DONE.set(done)


def listener() -> Callable[[str], None] | None:
    """What is to be told the path of a new file before it is written."""
    return _MADE.get()


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
