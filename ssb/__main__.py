"""``python -m ssb COMMAND …``: the Star Schema Benchmark from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import SkipIndexError
from ssb import SsbError
from ssb.data.generate import (
    DEFAULT_SEED,
    Dataset,
    Log,
    check_request,
    find_or_generate,
    generate,
)
from ssb.data.scale import Sizes
from ssb.headlines.command import add_headlines
from ssb.layouts import CURVE, INDEXES, LAYOUTS, layouts
from ssb.progress import Steps, progress_lines
from ssb.queries import LOOKUPS, QUERIES
from ssb.report.text import (
    BuildCost,
    gain_of,
    star_table_of,
    star_verdict_of,
    table_of,
    verdict_of,
)
from ssb.run import Outcome, run_layout
from ssb.session import scaled_session
from ssb.star_form import FACT_INDEXES, StarOutcome, fact_layouts, run_star


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; 2 is a wrong question."""
    parser = argparse.ArgumentParser(prog="python -m ssb", description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_generate(commands)
    add_run(commands)
    add_headlines(commands)
    parsed = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = parsed.command
    try:
        return command(parsed)
    except SkipIndexError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def add_generate(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``generate``, which writes the data and nothing else."""
    parser = commands.add_parser("generate", help="write SSB tables as Parquet")
    add_data_options(parser)
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the data set at DIR"
    )
    parser.set_defaults(command=run_generate)


def add_run(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``run``, the benchmark itself."""
    parser = commands.add_parser(
        "run", help="cluster, index, plan and read; compare with the unpruned answers"
    )
    add_data_options(parser)
    parser.add_argument(
        "--repeat", type=int, default=2, metavar="N",
        help="times that each query runs; the fastest counts (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--form", choices=["flat", "star"], default="flat",
        help="one flat table, or unchanged SQL over five tables (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--layout", choices=LAYOUTS, default=CURVE,
        help="what unordered data are compared with (default: %(default)s)",
    )  # fmt: skip
    parser.set_defaults(command=run_benchmark)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which data, for every command that needs data."""
    parser.add_argument(
        "--scale", type=float, required=True, metavar="S",
        help="scale factor: 1 is 6 million rows, 0.1 is 600,000",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the data"
    )
    parser.add_argument(
        "--seed", type=int, default=DEFAULT_SEED, metavar="N",
        help="of the draws that TPC-H does not make (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--files", type=int, metavar="N",
        help="files of lineorder_flat (default: one for 60,000 rows, at least 10)",
    )  # fmt: skip
    parser.add_argument(
        "--memory", metavar="M",
        help="heap of Spark, such as 6g (default: 4g, above scale 1 8g)",
    )  # fmt: skip


def run_generate(parsed: argparse.Namespace) -> int:
    """Generate the data, with progress on standard error."""
    log = progress_lines()
    request = {
        "scale": parsed.scale,
        "seed": parsed.seed,
        "files": parsed.files,
        "overwrite": parsed.overwrite,
    }
    check_request(parsed.out, **request)  # before the seconds that Spark takes
    log("starting Spark")
    generate(
        parsed.out,
        **request,
        spark=scaled_session("ssb generate", scale=parsed.scale, memory=parsed.memory),
        log=log,
    )
    return 0


def run_benchmark(parsed: argparse.Namespace) -> int:
    """Run everything and print one table a layout; 1 if any answer is wrong."""
    if parsed.repeat < 1:
        raise SsbError(
            f"cannot run queries {parsed.repeat} times: accepted is 1 or more"
        )
    Sizes.of(parsed.scale)  # refuses a bad scale before the seconds that Spark takes
    log = progress_lines()
    spark = scaled_session("ssb run", scale=parsed.scale, memory=parsed.memory)
    steps = Steps()
    with steps.step("generate"):
        dataset = find_or_generate(
            parsed.out,
            scale=parsed.scale,
            seed=parsed.seed,
            files=parsed.files,
            spark=spark,
            log=log,
        )
    with steps.step("cluster"):
        tables = layouts(dataset, spark, log=log, other=parsed.layout)
    if parsed.form == "flat":
        exit_code = run_flat(spark, tables, parsed.repeat, log, steps)
    else:
        exit_code = run_star_form(spark, dataset, tables, parsed.repeat, log, steps)
    print(steps)
    return exit_code


def run_flat(
    spark: SparkSession,
    tables: Mapping[str, sx.Table],
    repeat: int,
    log: Log,
    steps: Steps,
) -> int:
    """Run the flat form; 0 if all is right and tight."""
    outcomes: dict[str, list[Outcome]] = {}
    costs: dict[str, BuildCost] = {}
    reports = []
    for name, plain in tables.items():
        log(f"indexing the {name} layout")
        with steps.step("index"):
            built = sx.build_indexes(plain, INDEXES, spark=spark)
        log(str(built))
        table = built.table
        costs[name] = BuildCost(
            seconds=built.seconds if built.files else 0.0,
            n_bytes=sum(info.n_bytes for info in table.indexes),
            data_bytes=int(table.state.sizes.sum()),
        )
        with steps.step("query"):
            outcomes[name] = run_layout(
                spark, table, (*QUERIES, *LOOKUPS), repeat=repeat, log=log
            )
        reports.append(table_of(name, outcomes[name]))
    found = [outcome for each in outcomes.values() for outcome in each]
    print("\n\n".join([*reports, verdict_of(found), gain_of(outcomes, costs)]))
    return 0 if all(o.is_right and o.is_tight for o in found) else 1


def run_star_form(
    spark: SparkSession,
    dataset: Dataset,
    tables: Mapping[str, sx.Table],
    repeat: int,
    log: Log,
    steps: Steps,
) -> int:
    """Run the star form; 0 if all is right."""
    outcomes: list[StarOutcome] = []
    reports = []
    with steps.step("cluster"):
        *_, clustered = tables.values()
        facts = fact_layouts(spark, dataset, clustered)
    for name, fact in facts.items():
        log(f"indexing the layout: {name}")
        with steps.step("index"):
            built = sx.build_indexes(fact, FACT_INDEXES, spark=spark)
        log(str(built))
        with steps.step("query"):
            found = run_star(spark, dataset, fact, QUERIES, repeat=repeat, log=log)
        outcomes += found
        reports.append(star_table_of(name, found))
    print("\n\n".join([*reports, star_verdict_of(outcomes)]))
    return 0 if all(o.is_right for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
