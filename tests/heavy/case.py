"""The cases of one sweep in a process of their own.

``python -m tests.heavy.case kills --seed 1 --only 7`` runs one case, and
``python -m tests.heavy.case operators --seed 1 --part chain --count 20`` some of a part
of a sweep: a type, a form, a writer or the like.  Every second case caches what it
reads of indexes on disk, unless ``SKIPINDEX_CACHE_DIR`` says for all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import count, islice

from tests.heavy.catalogue import SWEEPS, Told

DIR_VARIABLE = "SKIPINDEX_CACHE_DIR"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases until the process is ended, or so many; 1 if one of them failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.heavy.case", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("name", choices=list(SWEEPS))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0, help="case to begin with")
    parser.add_argument("--count", type=int, help="cases; without an end if not given")
    parser.add_argument("--only", type=int, help="one case, by its number")
    parser.add_argument("--part", action="append", default=[], help="of the sweep")
    parser.add_argument("--json", action="store_true", help="a line for each case")
    given = parser.parse_args(arguments)
    # What a sweep prints, and the JVM, goes to the errors: lines here are cases.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    first, n_cases = given.first, given.count
    if given.only is not None:
        first, n_cases = given.only, 1
    sweep, failed = SWEEPS[given.name], False
    cases = islice(sweep.cases(given.seed, first, given.part), n_cases)
    for number, told in _with_caches(cases, first):
        line = f"case {number}: {told.n:,} {sweep.what} {told.failure or 'right'}"
        lines.write((json.dumps(asdict(told)) if given.json else line) + "\n")
        lines.flush()
        failed |= bool(told.failure)
    return int(failed)


def _with_caches(cases: Iterator[Told], first: int) -> Iterator[tuple[int, Told]]:
    """The cases by their numbers; a failure says if there was a cache on disk."""
    if DIR_VARIABLE in os.environ:
        yield from enumerate(cases, first)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number in count(first):
            os.environ[DIR_VARIABLE] = folder if number % 2 else ""
            told = next(cases, None)
            if told is None:
                return
            if told.failure and number % 2:
                told = replace(told, failure=f"{told.failure}\nwith {DIR_VARIABLE}")
            yield number, told


if __name__ == "__main__":
    sys.exit(main())
