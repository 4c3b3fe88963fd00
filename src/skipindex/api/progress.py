"""Progress of a call, for a callback, a terminal, a log, and ``logging``.

``progress=True`` draws a bar on stderr where that is a terminal and rich is installed,
and writes plain lines elsewhere.  A function gets a ``Progress`` whenever it is another
one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, TypeAlias

from skipindex.api.calls import LOG
from skipindex.build.runners import Progress as Count
from skipindex.errors import BuildError, kind_of
from skipindex.storage.telling import telling

_LINE_SECONDS: Final = 10.0
"""How often a file or a pipe gets a line."""
_LOG_SECONDS: Final = 30.0
"""How often ``logging`` gets one, at INFO."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of one part of a call.

    Args:
        what: the work, such as ``indexing``.
        unit: the counted units, such as ``files``.
        done: the number of finished units.
        total: the number of all units.
        seconds: seconds since this part began.
    """

    what: str
    unit: str
    done: int
    total: int
    seconds: float

    @property
    def rate(self) -> float | None:
        """Finished units per second; None if none is finished yet."""
        return self.done / self.seconds if self.done and self.seconds > 0 else None

    @property
    def left(self) -> float | None:
        """The estimated remaining seconds; None if not known."""
        return None if self.rate is None else (self.total - self.done) / self.rate

    def __str__(self) -> str:
        text = (
            f"{self.what}: {self.done:,} of {self.total:,} {self.unit}, "
            f"{self.seconds:.0f} s"
        )
        if self.rate is None or self.left is None or self.done == self.total:
            return text
        return f"{text}, {self.rate:.1f} {self.unit}/s, {self.left:.0f} s left"


ProgressLike: TypeAlias = bool | Callable[[Progress], None]
"""True for a bar or plain lines on stderr, or a function that is called with each."""


def check_progress(progress: object) -> None:
    """Raise ``BuildError`` unless it is True, False or None, or can be called."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise BuildError(
            f"progress={kind_of(progress)} cannot be called (accepted: True, or a "
            "function of a skipindex.api.types.Progress)"
        )


@contextmanager
def followed(
    progress: ProgressLike | None, what: str = "indexing", unit: str = "files"
) -> Iterator[Count]:
    """What is to be called with the number of units done and of all, of a call.

    Other parts of the work report themselves, by ``storage.telling.part``.

    Raises:
        BuildError: it is no progress.
    """
    check_progress(progress)
    with _listener(progress, what) as listen:
        teller = _Teller(listen)
        with telling(parts=teller.tell):
            yield lambda done, total: teller.tell(what, unit, done, total)


class _Teller:
    """Tells a caller and the log, each in its own time."""

    def __init__(self, listen: Callable[[Progress], None]) -> None:
        self._listen = listen
        self._last: tuple[str, int, int] | None = None
        self._began = time.monotonic()
        self._logged = self._began

    def tell(self, what: str, unit: str, done: int, total: int) -> None:
        """Tell it, if it is not what was told last."""
        now = time.monotonic()
        if self._last is None or self._last[0] != what:
            self._began = now
        if self._last == (what, done, total):
            return
        self._last = (what, done, total)
        value = Progress(what, unit, done, total, now - self._began)
        if now - self._logged > _LOG_SECONDS:
            self._logged = now
            LOG.info("%s", value)
        self._listen(value)


@contextmanager
def _listener(
    progress: ProgressLike | None, what: str
) -> Iterator[Callable[[Progress], None]]:
    if progress is None or progress is False:
        yield lambda _value: None
    elif progress is not True:
        yield progress
    elif sys.stderr.isatty() and find_spec("rich") is not None:
        with _bar(what) as draw:
            yield draw
    else:
        yield _Lines()


class _Lines:
    """Lines for a file or a pipe: the first, the last, and some between."""

    def __init__(self) -> None:
        self._what = ""
        self._next = 0.0

    def __call__(self, value: Progress) -> None:
        """Write one, unless that was just done."""
        now = time.monotonic()
        if value.what == self._what and now < self._next and value.done < value.total:
            return
        self._what, self._next = value.what, now + _LINE_SECONDS
        sys.stderr.write(f"skipindex: {value}\n")
        sys.stderr.flush()


@contextmanager
def _bar(what: str) -> Iterator[Callable[[Progress], None]]:
    """A bar that is there from the beginning, and gone at the end."""
    from rich import progress as rich  # noqa: PLC0415 (seldom needed, and may be missing)
    from rich.console import Console  # noqa: PLC0415

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=20),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[told]}"),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(
        *columns, console=Console(file=sys.stderr), transient=True
    ) as drawn:
        task = drawn.add_task(what, total=None, told="")

        def draw(value: Progress) -> None:
            told = value.unit
            if value.rate is not None and value.left is not None:
                told = f"{value.unit}, {value.rate:.1f}/s, {value.left:.0f} s left"
            drawn.update(
                task,
                description=value.what,
                completed=value.done,
                total=value.total,
                told=told,
            )

        yield draw
