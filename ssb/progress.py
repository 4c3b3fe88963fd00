"""What a long command says while it works."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
