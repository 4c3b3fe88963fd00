"""What a long command says while it works, and how long the rest may take."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean


def progress_lines() -> Callable[[str], None]:
    """A function that prints a line with the seconds since now.

    To standard error, so that a command's result can be piped on.
    """
    start = time.perf_counter()

    def log(line: str) -> None:
        elapsed = time.perf_counter() - start
        print(f"[{elapsed:6.1f} s] {line}", file=sys.stderr, flush=True)

    return log


class Steps:
    """The seconds that each step of a command took, in the order of their ends."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of the block to the step of this name."""
        began = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - began
            self._seconds[name] = self._seconds.get(name, 0.0) + elapsed

    def __str__(self) -> str:
        """One line with all steps."""
        parts = (f"{name} {seconds:,.1f} s" for name, seconds in self._seconds.items())
        return f"time of each step: {', '.join(parts)}"


class Progress:
    """Tells what is done, of how many steps, and the time left.

    The time left is the mean time of the finished steps of a kind, or of all where none
    of the kind is finished, times the steps that are to come.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        """Begin with no step.

        Args:
            log: told about every step.
        """
        self._log = log
        self._open: Counter[str] = Counter()
        self._total = 0
        self._seconds: dict[str, list[float]] = {}

    def expect(self, kind: str, n: int = 1) -> None:
        """More steps of a kind are to come."""
        self._open[kind] += n
        self._total += n

    @contextmanager
    def step(self, kind: str, what: str) -> Iterator[None]:
        """One of the expected steps."""
        number = self._total - self._open.total() + 1
        left = self.seconds_left()
        rest = "" if left is None else f", {duration(left)} left"
        self._log(f"{number} of {self._total}{rest}: {what}")
        began = time.perf_counter()
        yield
        self._open[kind] -= 1
        self._seconds.setdefault(kind, []).append(time.perf_counter() - began)

    def seconds_left(self) -> float | None:
        """An estimate; None before the first step is finished."""
        everything = [seconds for found in self._seconds.values() for seconds in found]
        if not everything:
            return None
        return sum(
            n * fmean(self._seconds.get(kind, everything))
            for kind, n in self._open.items()
        )


def duration(seconds: float) -> str:
    """Seconds in words, for people.

    >>> duration(42), duration(125), duration(7300)
    ('about 42 s', 'about 2 min', 'about 2.0 h')
    """
    if seconds < 60:
        return f"about {seconds:.0f} s"
    if seconds < 3600:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
