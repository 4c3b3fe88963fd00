"""Imports: what loading skipindex costs beside the two packages that it stands on.

python -m benchmarks.imports [--rounds 10]

Every figure is the least of some runs in fresh processes, without the time that
Python itself takes to start.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
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


def heavy_modules(code: str) -> list[str]:
    """Which of the large packages a fresh process has loaded after ``code``."""
    names = "('pandas', 'loky', 'sqlglot', 'pyspark', 'pyarrow', 'numpy')"
    ask = f"{code}; import sys; print(*(m for m in {names} if m in sys.modules))"
    command = [sys.executable, "-c", ask]
    done = subprocess.run(  # noqa: S603 (ours)
        command, check=True, capture_output=True, text=True
    )
    return done.stdout.split()


def measures(rounds: int = 10) -> list[Measure]:
    """The figures; the first one has a limit."""
    empty = least_seconds("pass", rounds=rounds)
    floor = least_seconds(_FLOOR, rounds=rounds) - empty
    alone = least_seconds("import skipindex", rounds=rounds) - empty
    planning = least_seconds(_PLANNING, rounds=rounds) - empty
    loaded = heavy_modules("import skipindex")
    return [
        Measure(
            what="import skipindex",
            figure=alone,
            unit="s",
            limit=_MOST * floor,
            note=f"{_MOST:g} times pyarrow and numpy",
        ),
        Measure(
            what="import skipindex, until plan_files can be called",
            figure=planning,
            unit="s",
            note=f"{planning / floor:.1f} times pyarrow and numpy",
        ),
        Measure(
            what="large packages that import skipindex loads",
            figure=len(loaded),
            limit=0,
            note=", ".join(loaded),
        ),
    ]


def main(rounds: int = 10) -> None:
    """Measure, and print the table."""
    show("imports, in fresh processes", measures(rounds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    main(parser.parse_args().rounds)
