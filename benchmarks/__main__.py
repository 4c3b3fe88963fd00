"""``python -m benchmarks [NAME …]``: run benchmarks, and name what missed a limit."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import benchmarks
from benchmarks import _report

_ALONE: Final = frozenset(
    {"build", "cold", "layout", "row_groups", "rows", "scale", "spark"}
)
"""What ``make bench-layout`` and its like run, as each takes long."""
_SERVERS: Final = frozenset({"moto_server", "proxy"})
"""What the benchmarks of stores begin, and is none."""


def names() -> list[str]:
    """The benchmarks: the modules of this package without a leading underscore."""
    found = {info.name for info in pkgutil.iter_modules(benchmarks.__path__)}
    return sorted(
        name for name in found - _ALONE - _SERVERS if not name.startswith("_")
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that are named, or all; 0 also if one was slow."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="SSB data; generated if missing"
    )
    parser.add_argument("--scale", type=float, metavar="S", help="of the SSB data")
    parsed = parser.parse_args(arguments)
    unknown = sorted(set(parsed.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r} (accepted: {', '.join(names())})")
    for option in ("data", "scale"):
        if getattr(parsed, option) is not None:
            os.environ[f"BENCH_{option.upper()}"] = str(getattr(parsed, option))
    for name in parsed.names or names():
        importlib.import_module(f"benchmarks.{name}").main()
    wrong = [f"missed: {line}" for line in _report.missed()]
    print("\n" + ("\n".join(wrong) or "no limit was missed"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
