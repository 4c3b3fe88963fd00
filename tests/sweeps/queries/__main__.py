"""Run random scripts with skipping on and off, and compare.

``python -m tests.sweeps.queries --count 2000 --seed 1``; one of them again:
``--seed 1 --only 77``.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ssb.session import local_session
from tests.spark.java.javac import write_missing
from tests.sweeps.queries.sweep import Sweep

CONF = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    "-XX:MaxJavaStackTraceDepth=40",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # as of Spark 4
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs, and figures; 1 if anything does, or nothing is skipped."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.queries")
    parser.add_argument("--count", type=int, default=2000, help="queries to compare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="case to begin with")
    parser.add_argument("--only", type=int, help="one case, by its number")
    parser.add_argument("--failures", type=int, default=10, help="to stop after")
    given = parser.parse_args(arguments)
    write_missing()
    spark = local_session("queries", cores=2, memory="2g", conf=CONF)
    spark.sparkContext.setLogLevel("OFF")
    logging.disable()  # PySpark tells each error that the judge compares
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(spark, given.seed, Path(work))
        case = given.first if given.only is None else given.only
        while sweep.tally.queries < given.count:
            failure = sweep.case(case, tell=given.only is not None)
            if failure:
                print(f"--seed {given.seed} --only {case}\n{failure}\n", flush=True)
            if given.only is not None or len(sweep.failures) >= given.failures:
                break
            case += 1
            if case % 50 == 0:
                seconds = time.perf_counter() - began
                print(f"{case} cases, {sweep.tally.queries} queries, {seconds:.0f} s",
                      flush=True)  # fmt: skip
        sweep.close()
    print(sweep.report(), f"{time.perf_counter() - began:.0f} s")
    toothless = given.only is None and 3 * sweep.tally.skipped < sweep.tally.filters
    if toothless:
        print("less than a third of the queries skip a file")
    return 1 if sweep.failures or toothless else 0


if __name__ == "__main__":
    sys.exit(main())
