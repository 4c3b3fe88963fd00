"""Go round all long sweeps for some minutes, from where the last run ended.

``python -m tests.heavy --minutes 15``; some of them alone: ``--only queries kills``.
What was run is kept in ``build/sweeps.json``: no case is drawn twice, and a sweep that
was stopped goes on with the case that it was at.  A failure is printed with the command
that repeats it, and the next run begins with it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Final

from tests.heavy.catalogue import SWEEPS
from tests.heavy.slices import run_slice
from tests.heavy.totals import Totals

_LEAST_SECONDS: Final = 200.0
"""Of a slice: in less, some sweeps end no case."""
_STATE: Final = Path("build/sweeps.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run slices until the time is over; 1 if a case failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.heavy", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--only", nargs="*", default=[], choices=list(SWEEPS))
    parser.add_argument("--jobs", type=int, default=2, help="sweeps at a time")
    parser.add_argument("--seed", type=int, help="of a new state; else by the clock")
    parser.add_argument("--state", type=Path, default=_STATE)
    parser.add_argument("--page", type=Path, help="whose table of totals is written")
    given = parser.parse_args(arguments)
    end = time.monotonic() + 60 * given.minutes
    totals = Totals.read(given.state, seed=given.seed)
    for told in totals.again(end):
        print(told, flush=True)
    known = [name for name, one in SWEEPS.items() if one.can_run]
    names = totals.in_turn(given.only or known)
    room = 60 * given.minutes * given.jobs
    n_slices = max(1, min(len(names), int(room / _LEAST_SECONDS)))
    share = room / n_slices
    lock = Lock()
    failed = False

    def go(name: str) -> None:
        nonlocal failed
        until = min(end, time.monotonic() + share)
        if until - time.monotonic() < 1:
            return
        with lock:
            seed, first = totals.next_case(name)
        done = run_slice(name, seed, first, until)
        with lock:
            totals.add(name, done)
            totals.write(given.state)
            print(totals.line(name, done), flush=True)
            for failure in done.failures:
                print(f"{failure.again}\n{failure.failure}\n", flush=True)
        failed |= bool(done.failures)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(go, names[:n_slices]))
    if given.page is not None:
        totals.write_page(given.page)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
