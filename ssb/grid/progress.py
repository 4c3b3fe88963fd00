"""How far a long run is, and how long the rest may take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ssb.data.generate import Log


class Progress:
    """Tells what is done, of how many steps, and the time left.

    The time left is the mean time of the finished steps of a kind, or of all where none
    of the kind is finished, times the steps that are to come.
    """

    def __init__(self, log: Log) -> None:
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
            n * _mean(self._seconds.get(kind, everything))
            for kind, n in self._open.items()
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


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
