"""What loading skipindex costs: ``python -m benchmarks.imports``.

Beside it stand pyarrow and numpy.  Every figure is the least of some runs in fresh
processes, without the time that Python itself takes to start.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks._report import Measure, best_seconds, show

_MOST: Final = 1.5
"""How much longer ``import skipindex`` may take than pyarrow and numpy."""
_FLOOR: Final = "import pyarrow, numpy"
_PLANNING: Final = "import skipindex; skipindex.plan_files"


def least_seconds(code: str, *, rounds: int) -> float:
    """The least wall time of fresh processes that run ``code``."""
    command = [sys.executable, "-c", code]
    return best_seconds(lambda: subprocess.run(command, check=True), rounds=rounds)  # noqa: S603 (ours)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, and print the table; the first figure has a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args(arguments).rounds
    empty, *loaded = (
        least_seconds(code, rounds=rounds)
        for code in ("pass", _FLOOR, "import skipindex", _PLANNING)
    )
    floor, alone, planning = (seconds - empty for seconds in loaded)
    limit, note = _MOST * floor, f"{_MOST:g} times pyarrow and numpy"
    ready = f"{planning / floor:.1f} times pyarrow and numpy"
    measures = [
        Measure("import skipindex", alone, "s", limit, note),
        Measure("import, until plan_files can be called", planning, "s", note=ready),
    ]
    show("imports, in fresh processes", measures)


if __name__ == "__main__":
    main(sys.argv[1:])
