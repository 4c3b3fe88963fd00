"""``python -m tests.mutants [names]``: every mutant must fail a test; else exit 1."""

from __future__ import annotations

import sys
import time

from tests.mutants.catalogue import MUTANTS
from tests.mutants.run import survives


def main(names: list[str]) -> int:
    """Run the mutants of these names, or all; 0 if all were caught."""
    chosen = [m for m in MUTANTS if not names or m.name in names]
    alive = []
    for mutant in chosen:
        began = time.perf_counter()
        trouble = survives(mutant)
        seconds = time.perf_counter() - began
        print(
            f"{'SURVIVES' if trouble else 'caught':<9}{seconds:5.1f} s  "
            f"{mutant.name}: {mutant.why}",
            flush=True,
        )
        if trouble:
            alive.append(mutant)
            print(trouble, file=sys.stderr)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants were caught")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
