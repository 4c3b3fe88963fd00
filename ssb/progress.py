"""What a long command says while it works."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def progress_lines() -> Callable[[str], None]:
    """A function that prints a line with the seconds since now.

    To standard error, so that a command's result can be piped on.
    """
    start = time.perf_counter()

    def log(line: str) -> None:
        elapsed = time.perf_counter() - start
        print(f"[{elapsed:6.1f} s] {line}", file=sys.stderr, flush=True)

    return log
