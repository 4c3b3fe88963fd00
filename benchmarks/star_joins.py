"""Two ways to skip files of a star join: ``python -m benchmarks.star_joins``.

The fact table of the Star Schema Benchmark is clustered by attributes of its
dimensions.  Two copies of the same files are indexed: one by the keys of the joins, for
which the conditions on the dimensions run first, and one by the attributes themselves,
which are looked up when the index is built.  The 13 queries run on both and, without
skipping, on the first; they take turns, and medians count.
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
from ssb.data.generate import Dataset, find_or_generate
from ssb.layouts import INDEXES
from ssb.progress import progress_lines
from ssb.queries import FACT, QUERIES, Query
from ssb.session import local_session
from ssb.star_form.run import (
    ATTRIBUTES,
    FACT_INDEXES,
    OWN_INDEXES,
    SWITCH,
    attribute,
    define_views,
    files_read,
    looked_up,
)

ROUNDS: Final = 5
NEAR: Final = 1.1
"""Times of what the attributes read or take, within which the keys are as good."""


@dataclass(frozen=True, slots=True)
class Way:
    """A copy of the fact table, and whether its files are skipped."""

    table: sx.Table
    skips: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """What a query has read of the fact table, and the seconds from text to rows."""

    files: int
    n_bytes: int
    seconds: float


def main() -> None:
    """Measure at ``BENCH_SCALE`` (0.3) on the data in ``BENCH_DATA``."""
    scale = float(os.environ.get("BENCH_SCALE", "0.3"))
    data = Path(os.environ.get("BENCH_DATA", f"data/ssb-{scale:g}"))
    conf = {"spark.sql.session.timeZone": "UTC"}
    spark = local_session("bench star joins", memory="4g", conf=conf)
    log = progress_lines()
    dataset = find_or_generate(data, scale=scale, spark=spark, log=log)
    fact = looked_up(spark, dataset)
    with tempfile.TemporaryDirectory(dir=dataset.path.parent) as folder:
        ways = indexed(spark, dataset, fact, Path(folder))
        sx.enable(spark)
        for query in QUERIES:
            costs = measure(spark, dataset, query, ways)
            show(f"{query.name}, at scale {dataset.scale:g}", list(told(costs)))
    size = {name: way.table.status().index_bytes for name, way in ways.items()}
    data_bytes = sum(file.size for file in ways["keys"].table.files)
    sizes = [
        Measure(what=f"indexes of the {name}", figure=n / 1e6, unit="MB",
                note=f"{n / data_bytes:.1%} of the data")
        for name, n in size.items() if name != "plain"
    ]  # fmt: skip
    show("bytes of the indexes", sizes)


def indexed(
    spark: SparkSession, dataset: Dataset, fact: Path, folder: Path
) -> Mapping[str, Way]:
    """The copies, by what they are indexed by."""
    copies = {name: folder / name / FACT for name in ("keys", "attributes")}
    for copy in copies.values():
        copy.mkdir(parents=True)
        for path in fact.glob("*.parquet"):
            os.link(path, copy / path.name)
    keys = sx.build_indexes(copies["keys"], FACT_INDEXES, spark=spark).table
    attributes = sx.build_indexes(
        copies["attributes"],
        {**OWN_INDEXES, **{name: INDEXES[name] for name in ATTRIBUTES}},
        associated={name: attribute(dataset, name) for name in ATTRIBUTES},
        spark=spark,
    ).table
    return {
        "plain": Way(keys, skips=False),
        "keys": Way(keys, skips=True),
        "attributes": Way(attributes, skips=True),
    }


def measure(
    spark: SparkSession, dataset: Dataset, query: Query, ways: Mapping[str, Way]
) -> dict[str, Cost]:
    """What a query costs in each way; a first round is not timed."""
    seconds: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, tuple[Any, int, int]] = {}
    for turn in range(-1, ROUNDS):
        for name, way in ways.items():
            define_views(spark, dataset, Path(way.table.folder))
            spark.conf.set(SWITCH, str(way.skips).lower())
            began = time.perf_counter()
            df = spark.sql(query.star_sql())
            rows = [tuple(row) for row in df.collect()]
            if turn >= 0:
                seconds[name].append(time.perf_counter() - began)
            n_files, n_bytes = (
                files_read(df, metric)[FACT] for metric in ("numFiles", "filesSize")
            )
            answers[name] = (rows, n_files, n_bytes)
    spark.conf.unset(SWITCH)
    if any(rows != answers["plain"][0] for rows, *_ in answers.values()):
        raise RuntimeError(f"{query.name}: skipping changed the answer")
    return {
        name: Cost(n_files, n_bytes, statistics.median(seconds[name]))
        for name, (_, n_files, n_bytes) in answers.items()
    }


def told(costs: Mapping[str, Cost]) -> Iterator[Measure]:
    """Files, bytes and seconds of both ways, beside what is read without skipping."""
    plain, attributes = costs["plain"], costs["attributes"]
    for name in ("keys", "attributes"):
        one = costs[name]
        limit = NEAR if name == "keys" else None
        for what, unit, figure, other, whole in (
            ("files", "", one.files, attributes.files, plain.files),
            ("bytes", "B", one.n_bytes, attributes.n_bytes, plain.n_bytes),
            ("time", "s", one.seconds, attributes.seconds, plain.seconds),
        ):
            yield Measure(
                what=f"{what} by {name}", figure=figure, unit=unit,
                limit=limit and limit * other, note=f"of {whole:,.4g} without skipping",
            )  # fmt: skip


if __name__ == "__main__":
    main()
