"""The cases of one sweep in a process of their own, each told as a line of JSON.

``python -m tests.sweeps.worker kills --seed 1 --only 7`` runs one case.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice

from tests.sweeps.catalogue import SWEEPS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases until the process is ended, or one; 1 if that one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.worker")
    parser.add_argument("name", choices=list(SWEEPS))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0, help="case to begin with")
    parser.add_argument("--only", type=int, help="one case, by its number")
    given = parser.parse_args(arguments)
    # What a sweep prints, and the JVM, goes to the errors: lines here are cases.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    first = given.first if given.only is None else given.only
    failed = False
    cases = SWEEPS[given.name].cases(given.seed, first)
    for told in islice(cases, None if given.only is None else 1):
        lines.write(json.dumps(asdict(told)) + "\n")
        lines.flush()
        failed |= bool(told.failure)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
