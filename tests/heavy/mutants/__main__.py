"""``python -m tests.heavy.mutants [functions]``: 1 unless each mutant fails a test."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.heavy.mutants.catalogue import MUTANTS, of
from tests.heavy.mutants.mutant import Mutant
from tests.heavy.mutants.run import survives


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants of these functions, or all; 0 if all were caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.heavy.mutants")
    parser.add_argument(
        "names", nargs="*", help="functions, modules or mutants; all if there are none"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    given = parser.parse_args(arguments)
    if missing := sorted(name for name in given.names if not of(name)):
        parser.error(f"there are no mutants of {', '.join(missing)}")
    chosen = [one for name in given.names for one in of(name)] or MUTANTS
    with ThreadPoolExecutor(given.jobs) as pool:
        n_caught = sum(pool.map(_is_caught, chosen))
    print(f"{n_caught} of {len(chosen)} mutants were caught")
    return int(n_caught < len(chosen))


def _is_caught(mutant: Mutant) -> bool:
    began = time.perf_counter()
    trouble = survives(mutant)
    seconds = time.perf_counter() - began
    verdict = "SURVIVES" if trouble else "caught"
    print(f"{verdict:<9}{seconds:5.1f} s  {mutant.name}: {mutant.why}", flush=True)
    if trouble:
        print(trouble, file=sys.stderr, flush=True)
    return not trouble


if __name__ == "__main__":
    sys.exit(main())
