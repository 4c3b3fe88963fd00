"""What a call tells of its work while it is at it: files made, and files done.

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


@contextmanager
def telling(
    *,
    made: Callable[[str], None] | None = None,
    done: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Within this, ``made`` gets the paths of new files, and ``done`` is called.

    Each goes on as before where it is None.
    """
    of_made = _MADE.set(_MADE.get() if made is None else made)
    of_done = _DONE.set(_DONE.get() if done is None else done)
    try:
        yield
    finally:
        _MADE.reset(of_made)
        _DONE.reset(of_done)


def tell_from_now_on(*, made: Callable[[str], None], done: Callable[[], None]) -> None:
    """Like ``telling``, for the rest of this process."""
    _MADE.set(made)
    _DONE.set(done)


def listener() -> Callable[[str], None] | None:
    """What is to be told the path of a new file before it is written."""
    return _MADE.get()


def tell_done() -> None:
    """Tell that one more data file, or one more pack, is done."""
    done = _DONE.get()
    if done is not None:
        done()
