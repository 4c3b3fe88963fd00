"""Queries through Spark: ``python -m benchmarks.spark [--files N …]``.

How long a query takes from its text to its first task: the listing of the files,
Spark's own planning, skipping, and the partitions.  Three ways are compared, plain
Spark, ``plan.read`` and ``enable``, on a table that is new to the session and on one
that it has listed, for a query that can skip nothing and one that can skip all files
but one.  The tables are links to two small files, and their statistics are real.
One table has many columns: Spark tells the planner of each.

Times of a busy machine tell little, so each figure has a limit of the same run.
Whole queries are timed by ``make headlines``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.source import commit
from skipindex.storage.file_system.location import location_of
from ssb.progress import progress_lines
from ssb.session import local_session
from ssb.timing import SWITCH

COUNTS: Final = (100, 1_000, 10_000, 50_000)
MOST_MORE: Final = 1.1
"""Times of plain Spark that a query may take which can skip nothing."""
WARM_UP: Final = 4
"""Rounds that are not counted, as the JVM compiles what runs often."""
FIRST: Final = 40
"""Rounds on a table that is not told of: the JVM compiles for the first minute."""
CONDITIONS: Final = {
    "skips nothing": "key > -{}",
    "skips all but one": "key >= 1000 AND key < 1000 + {}",
}
"""With a number that is another one for each query, so that no verdict is known."""
WIDE: Final = 300
"""Columns of the table that has many."""

Ways = Mapping[str, Callable[[], DataFrame]]


def make_table(folder: Path, n_files: int, n_columns: int = 2) -> sx.Table:
    """A table of links to one file, and one other file; with statistics.

    Args:
        folder: of the table; it is made.
        n_files: of the table.
        n_columns: of the table; none of the third and later ones is asked for.
    """
    template = folder.with_name(f"{folder.name}-template")
    for place, keys in ((0, np.arange(30)), (1, np.arange(1000, 1030))):
        template.mkdir(exist_ok=True)
        others = {f"attribute_{i:03}": keys for i in range(n_columns - 2)}
        table = pa.table({"key": keys, "value": keys / 7, **others})
        pq.write_table(table, template / f"{place}.parquet")
    built = sx.build_indexes(template, {"*": "minmax"}, workers=1).table
    folder.mkdir()
    names = [f"part-{i:05}.parquet" for i in range(n_files)]
    for i, name in enumerate(names):
        os.link(template / f"{i == n_files - 1:d}.parquet", folder / name)
    places = built.state.snapshot.manifest.paths
    common, other = (places.index(f"{place}.parquet") for place in (0, 1))
    rows = pa.array([common] * (n_files - 1) + [other])

    def many(_: Snapshot) -> tuple[Manifest, TableProperties]:
        two = built.state.snapshot.manifest
        files = two.files.take(rows).set_column(
            0, two.files.schema.field(0), pa.array(names)
        )
        stats = {
            name: replace(column, values=column.values.take(rows))
            for name, column in two.stats.items()
        }
        manifest = replace(two, files=files, stats=stats)
        return manifest, built.state.snapshot.properties

    commit(location_of(folder), many, operation="benchmark")
    return sx.open_table(folder)


def seconds_to_first_task(make: Callable[[], DataFrame]) -> float:
    """From the text of a query until the partitions of its first task are known."""
    began = time.perf_counter()
    make()._jdf.queryExecution().toRdd().getNumPartitions()  # noqa: SLF001
    return time.perf_counter() - began


def ways_of(spark: SparkSession, table: sx.Table, condition: str) -> dict[str, Ways]:
    """The ways to define one query, on a new table and on one that is known.

    Args:
        spark: the session.
        table: as ``make_table`` makes it.
        condition: with a place for a number.
    """
    path = table.state.location.spark_path()
    schema = from_arrow_schema(table.schema)
    numbers = count(1)

    def listed() -> DataFrame:
        return spark.read.schema(schema).parquet(path)

    def switched(on: str, *, fresh: bool) -> Callable[[], DataFrame]:
        def make() -> DataFrame:
            spark.conf.set(SWITCH, on)
            if fresh:
                listed().createOrReplaceTempView("many")
            where = condition.format(next(numbers))
            return spark.sql(f"SELECT value FROM many WHERE {where}")  # noqa: S608

        return make

    def read(*, fresh: bool) -> Callable[[], DataFrame]:
        def make() -> DataFrame:
            opened = sx.open_table(path) if fresh else table
            where = condition.format(next(numbers))
            return opened.plan(where).read(spark).select("value")

        return make

    return {
        when: {
            "plain": switched("false", fresh=fresh),
            "plan.read": read(fresh=fresh),
            "enable": switched("true", fresh=fresh),
        }
        for when, fresh in (("new", True), ("listed", False))
    }


def first_task(
    spark: SparkSession, folder: Path, n_files: int, rounds: int, n_columns: int = 2
) -> list[Measure]:
    """Measure one table."""
    table = make_table(folder, n_files, n_columns)
    measures = []
    for what, condition in CONDITIONS.items():
        for when, ways in ways_of(spark, table, condition).items():
            timed: dict[str, list[float]] = {name: [] for name in ways}
            for turn in range(-WARM_UP, rounds):
                for name, make in ways.items():
                    seconds = seconds_to_first_task(make)
                    if turn >= 0:
                        timed[name].append(seconds * 1e3)
            medians = {name: median(found) for name, found in timed.items()}
            plain = medians["plain"]
            for name, figure in medians.items():
                # Skipping has a limit where it can do nothing.
                is_limited = what == "skips nothing" and name == "enable"
                limit = MOST_MORE * plain if is_limited else None
                note = f"{figure / plain:.2f} times plain Spark"
                title = f"{n_files:,} files, {when}, {what}: {name}"
                measures.append(Measure(title, figure, "ms", limit, note))
    shutil.rmtree(folder)
    return measures


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, nargs="*", default=list(COUNTS))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    log = progress_lines()
    spark = local_session("benchmarks", conf={"spark.sql.session.timeZone": "UTC"})
    sx.enable(spark)
    with tempfile.TemporaryDirectory() as work:
        first_task(spark, Path(work, "first"), 100, FIRST)
        for n_files in options.files:
            log(f"{n_files:,} files")
            folder = Path(work, f"many{n_files}")
            measures = first_task(spark, folder, n_files, options.rounds)
            show(f"Spark, {n_files:,} files: text to first task, medians", measures)
        measures = first_task(spark, Path(work, "wide"), 100, options.rounds, WIDE)
        show(f"Spark, {WIDE} columns: text to first task, medians", measures)
    spark.conf.unset(SWITCH)
    sx.disable(spark)


if __name__ == "__main__":
    main(sys.argv[1:])
