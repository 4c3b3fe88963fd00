"""``python -m tests.soundness``: check the whole matrix, print it, exit 1 if wrong."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ssb.session import local_session
from tests.soundness.by_spark import SparkResult, sweep_with_spark
from tests.soundness.foreign import ForeignResult, sweep_foreign
from tests.soundness.large import sweep_large
from tests.soundness.matrix import sweep
from tests.soundness.pools import OTHER_ZONES, Pool, pools
from tests.soundness.report import Sweep, matrix, page


def main(arguments: list[str]) -> int:
    """Run the sweep that ``arguments`` ask for; 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soundness")
    add = parser.add_argument
    add("--seed", type=int, default=1, help="of all choices")
    add("--each", type=int, default=1, help="predicates of each form, type and kind")
    add("--files", type=int, default=10, help="random files beside those of each shape")
    add("--spark", type=int, default=100, help="conditions a type for Spark; 0: none")
    add("--large", type=int, default=150, help="conditions on files of many rows")
    add("--foreign", type=int, default=100, help="conditions on files of others")
    add("--settings", type=int, default=2, help="of Spark, for each table of others")
    add("--types", nargs="*", help="only these column types")
    add("--out", type=Path, help="where to write the page")
    add("--matrix", type=Path, help="where to write every figure")
    options = parser.parse_args(arguments)
    chosen = pools()
    if options.types:
        chosen = [p for p in pools(*OTHER_ZONES) if p.name in options.types]
    done = Sweep()
    result, large = done.by_oracle, done.by_numpy
    for pool in chosen:
        began, before = time.perf_counter(), result.total.verdicts
        sweep(
            pool,
            each=options.each,
            random_files=options.files,
            seed=options.seed,
            result=result,
        )
        verdicts = result.total.verdicts - before
        _say(pool.name, verdicts, began, result.failures)
    began = time.perf_counter()
    if options.large:
        sweep_large(n=options.large, seed=options.seed, result=large)
        _say("files of many rows", large.total.verdicts, began, large.failures)
    if options.spark or options.foreign:
        _ask_spark(chosen, options, done.by_spark, done.foreign)
    shown = f", seed {options.seed}" if options.out else f" {' '.join(arguments)}"
    text = page(done, arguments=shown)
    if options.out:
        options.out.write_text(text)
    if options.matrix:
        options.matrix.parent.mkdir(parents=True, exist_ok=True)
        options.matrix.write_text(matrix(done, arguments=shown))
    print(text)
    return int(bool(done.failures))


def _ask_spark(
    chosen: list[Pool],
    options: argparse.Namespace,
    result: SparkResult,
    foreign: ForeignResult,
) -> None:
    spark = local_session(
        "soundness", cores=2, memory="2g", conf={"spark.sql.shuffle.partitions": "2"}
    )
    n, seed = options.spark, options.seed
    for pool in chosen if n else ():
        began, before = time.perf_counter(), result.verdicts
        sweep_with_spark(spark, pool, n=n, kinds=2, seed=seed, result=result)
        _say(f"{pool.name}, Spark", result.verdicts - before, began, result.failures)
    for pool in chosen if options.foreign else ():
        began, before = time.perf_counter(), foreign.total.verdicts
        sweep_foreign(
            spark,
            pool,
            n=options.foreign,
            n_files=48,
            n_settings=options.settings,
            seed=seed,
            result=foreign,
        )
        verdicts = foreign.total.verdicts - before
        _say(f"{pool.name}, files of others", verdicts, began, foreign.failures)
    spark.stop()


def _say(name: str, verdicts: int, began: float, failures: list[str]) -> None:
    seconds = time.perf_counter() - began
    print(
        f"{name}: {verdicts:,} verdicts in {seconds:.0f} s, {len(failures)} breaches",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
