"""Star joins by the keys of their dimensions: ``python -m benchmarks.star_joins``.

The fact table of the Star Schema Benchmark is clustered by attributes of its dimensions
and indexed by the keys of the joins.  The 13 queries run with and without skipping in
turns, and medians count.  The planner reads the dimensions cold once, and then has them
in memory.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from skipindex.spark.pruning.dimensions import Dimensions
from ssb.data.generate import Dataset, find_or_generate
from ssb.files import data_files, linked
from ssb.progress import progress_lines
from ssb.queries import FACT, QUERIES, Query
from ssb.session import local_session
from ssb.star_form import FACT_INDEXES, define_views, looked_up
from ssb.timing import SWITCH, files_read

ROUNDS: Final = 5
KEYS: Final = Dimensions.keys
MOST: Final = 1.05
"""Times of what a query takes without skipping."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a query has read, and the seconds from text to rows.

    Args:
        files: of the fact table.
        n_bytes: of these.
        seconds: median.
        keys: that dimensions left.
        cold: seconds that reading the dimensions took the first time.
        warm: the same later, median.
    """

    files: int
    n_bytes: int
    seconds: float
    keys: int = 0
    cold: float = 0.0
    warm: float = 0.0


def main() -> None:
    """Measure at ``BENCH_SCALE`` (0.3) on the data in ``BENCH_DATA``."""
    scale = float(os.environ.get("BENCH_SCALE", "0.3"))
    data = Path(os.environ.get("BENCH_DATA", f"data/ssb-{scale:g}"))
    conf = {"spark.sql.session.timeZone": "UTC"}
    spark = local_session("bench star joins", memory="4g", conf=conf)
    log = progress_lines()
    dataset = find_or_generate(data, scale=scale, spark=spark, log=log)
    fact = looked_up(spark, dataset)
    totals: dict[bool, float] = defaultdict(float)
    with tempfile.TemporaryDirectory(dir=dataset.path.parent) as folder:
        table = indexed(spark, fact, Path(folder))
        sx.enable(spark)
        for query in QUERIES:
            costs = measure(spark, dataset, query, table)
            show(f"{query.name}, at scale {dataset.scale:g}", list(told(costs)))
            for skips, cost in costs.items():
                totals[skips] += cost.seconds
    data_bytes = sum(file.size for file in table.files)
    n_bytes = table.status().index_bytes
    show("all 13 queries", [
        Measure(what="time", figure=totals[True], unit="s", limit=totals[False],
                note=f"of {totals[False]:.4g} without skipping"),
        Measure(what="indexes of the keys", figure=n_bytes / 1e6, unit="MB",
                note=f"{n_bytes / data_bytes:.1%} of the data"),
    ])  # fmt: skip


def indexed(spark: SparkSession, fact: Path, folder: Path) -> sx.Table:
    """A copy of the fact table with indexes of the keys."""
    linked(data_files(fact), folder / FACT)
    return sx.build_indexes(folder / FACT, FACT_INDEXES, spark=spark).table


def timed_dimensions() -> list[float]:
    """The seconds that reading dimensions takes from now on, question by question.

    A record of a plan has not those of the question that was asked ahead of it.
    """
    spent: list[float] = []

    def keys(self: Dimensions, joins: Any, session: Any) -> Any:
        began = time.perf_counter()
        result = KEYS(self, joins, session)
        spent.append(time.perf_counter() - began)
        return result

    Dimensions.keys = keys  # type: ignore[method-assign]
    return spent


def measure(
    spark: SparkSession, dataset: Dataset, query: Query, table: sx.Table
) -> dict[bool, Cost]:
    """What a query costs, by whether files are skipped; a first round is not timed."""
    seconds: dict[bool, list[float]] = defaultdict(list)
    read: list[tuple[int, float]] = []
    answers: dict[bool, tuple[Any, int, int]] = {}
    define_views(spark, dataset, Path(table.folder))
    DEFAULT_SESSION.clear()
    spent = timed_dimensions()
    for turn in range(-1, ROUNDS):
        for skips in (False, True):
            spark.conf.set(SWITCH, str(skips).lower())
            began = time.perf_counter()
            df = spark.sql(query.star_sql())
            rows = [tuple(row) for row in df.collect()]
            if turn >= 0:
                seconds[skips].append(time.perf_counter() - began)
            n_files, n_bytes = (
                files_read(df, metric)[FACT] for metric in ("numFiles", "filesSize")
            )
            answers[skips] = (rows, n_files, n_bytes)
        # A question that is asked ahead has read what the scan's own one has then.
        plans = [plan for plan in sx.last_plans(spark) if plan.dimensions]
        read.append((sum(one.n_keys or 0 for one in plans[-1].dimensions), sum(spent)))
        spent.clear()
    spark.conf.unset(SWITCH)
    if answers[True][0] != answers[False][0]:
        raise RuntimeError(f"{query.name}: skipping changed the answer")
    (keys, cold), *later = read
    return {
        skips: Cost(
            n_files,
            n_bytes,
            statistics.median(seconds[skips]),
            *((keys, cold, statistics.median(s for _, s in later)) if skips else ()),
        )
        for skips, (_, n_files, n_bytes) in answers.items()
    }


def told(costs: Mapping[bool, Cost]) -> Iterator[Measure]:
    """Keys, files, bytes and seconds, beside what is read without skipping."""
    plain, one = costs[False], costs[True]
    yield Measure(what="keys", figure=one.keys, unit="")
    yield Measure(what="dimensions, cold", figure=1000 * one.cold, unit="ms")
    yield Measure(what="dimensions, warm", figure=1000 * one.warm, unit="ms")
    for what, unit, figure, whole, most in (
        ("files", "", one.files, plain.files, 1.0),
        ("bytes", "B", one.n_bytes, plain.n_bytes, 1.0),
        ("time", "s", one.seconds, plain.seconds, MOST),
    ):
        yield Measure(
            what=what, figure=figure, unit=unit, limit=most * whole,
            note=f"of {whole:,.4g} without skipping",
        )  # fmt: skip


if __name__ == "__main__":
    main()
