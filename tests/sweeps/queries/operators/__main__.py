"""Run random cases of every form, plain and with skipping on, and compare.

``python -m tests.sweeps.queries.operators --count 2000 --seed 1``; one of them again:
``--seed 1 --only 77``; some forms alone: ``--forms chain star`` (with ``--only`` too).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ssb.session import local_session
from tests.spark.java.javac import write_missing
from tests.sweeps.queries.operators.forms import FORMS
from tests.sweeps.queries.operators.sweep import Sweep
from tests.sweeps.queries.operators.watch import StuckError

CONF = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    "-XX:MaxJavaStackTraceDepth=40",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    # Listing is no part of a query's cost, as the first of the two runs pays it.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs, and figures; 1 if anything does, or nothing is skipped."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.queries.operators")
    parser.add_argument("--count", type=int, default=2000, help="queries to compare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="case to begin with")
    parser.add_argument("--only", type=int, help="one case, by its number")
    parser.add_argument("--forms", nargs="*", default=[], choices=list(FORMS))
    parser.add_argument("--seconds", type=float, default=20, help="of a query")
    parser.add_argument("--failures", type=int, default=10, help="to stop after")
    parser.add_argument("--as-drawn", action="store_true", help="make nothing smaller")
    given = parser.parse_args(arguments)
    write_missing()
    spark = local_session("operators", cores=2, memory="2g", conf=CONF)
    spark.sparkContext.setLogLevel("OFF")
    logging.disable()  # PySpark tells each error that the judge compares
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(
            spark, given.seed, Path(work), forms=given.forms, seconds=given.seconds
        )
        case = given.first if given.only is None else given.only
        again = f"--seed {given.seed} " + (
            f"--forms {' '.join(given.forms)} " if given.forms else ""
        )
        while sweep.queries < given.count:
            try:
                failure = sweep.case(
                    case, tell=given.only is not None, shrinks=not given.as_drawn
                )
            except StuckError as error:
                print(f"{again}--only {case}\n{error}\n{sweep.drawn(case)[1]}")
                print(sweep.report(), flush=True)
                os._exit(2)  # the JVM would wait for the query
            if failure:
                print(f"{again}--only {case}\n{failure}\n", flush=True)
            if given.only is not None or len(sweep.failures) >= given.failures:
                break
            case += 1
            if case % 50 == 0:
                seconds = time.perf_counter() - began
                print(f"{case} cases, {sweep.queries} queries, {seconds:.0f} s",
                      flush=True)  # fmt: skip
        sweep.close()
    print(sweep.report(), f"{time.perf_counter() - began:.0f} s")
    n, fewer = (sweep.counts[f"answers of {what}"] for what in ("files", "fewer files"))
    toothless = given.only is None and 4 * fewer < n
    if toothless:
        print("less than a quarter of the queries skip a file")
    return 1 if sweep.failures or toothless else 0


if __name__ == "__main__":
    sys.exit(main())
