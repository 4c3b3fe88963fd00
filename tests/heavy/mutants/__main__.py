"""``python -m tests.heavy.mutants [functions]``: 1 unless each mutant fails a test.

``--by delta iceberg`` asks instead which sweep finds the mutants without being told of
them, each in some minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.heavy.catalogue import SWEEPS
from tests.heavy.mutants.catalogue import MUTANTS, of
from tests.heavy.mutants.mutant import Mutant
from tests.heavy.mutants.run import found_by, survives


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants of these functions, or all; 0 if all were caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.heavy.mutants")
    parser.add_argument(
        "names", nargs="*", help="functions, modules or mutants; all if there are none"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--by", nargs="+", choices=list(SWEEPS), help="sweeps")
    parser.add_argument("--minutes", type=float, default=3, help="of a sweep")
    parser.add_argument("--seed", type=int, default=1, help="of the sweeps")
    given = parser.parse_args(arguments)
    if missing := sorted(name for name in given.names if not of(name)):
        parser.error(f"there are no mutants of {', '.join(missing)}")
    chosen = [one for name in given.names for one in of(name)] or MUTANTS
    judge = _is_caught
    if given.by:
        seed, seconds = given.seed, 60 * given.minutes
        judge = partial(_is_found, sweeps=given.by, seed=seed, seconds=seconds)
    with ThreadPoolExecutor(given.jobs) as pool:
        n_caught = sum(pool.map(judge, chosen))
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


def _is_found(
    mutant: Mutant, *, sweeps: Sequence[str], seed: int, seconds: float
) -> bool:
    began = time.perf_counter()
    for sweep in sweeps:
        if found := found_by(mutant, sweep, seed=seed, seconds=seconds):
            took = time.perf_counter() - began
            print(f"{took:5.1f} s  {mutant.name}: {mutant.why}: {sweep} {found[:300]}")
            return True
    print(f"SURVIVES {', '.join(sweeps)}: {mutant.name}: {mutant.why}", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
