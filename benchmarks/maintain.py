"""Thirty days of appends, with a workload that shifts: ``maintain`` and its peers.

::

    python -m benchmarks.maintain [--rows N] [--days N] [--out FOLDER] [--picture SVG]

Each day Spark appends the rows of the day, in columns like those of SSB's lineorder, to
three tables.  One is maintained, one is left as it is, and one is clustered as a whole,
with layout and indexes chosen for the queries of the last days.  Then queries are
planned, and recorded.  In the second half they ask for other columns.  The table at the
end has the files that a query reads, on average, and the bytes that were rewritten.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex import api
from skipindex.table.queries import flush
from ssb.session import local_session

N_QUERIES: Final = 30
WINDOW: Final = 3  # days whose queries count


def rows_of(spark: SparkSession, day: int, n_rows: int) -> DataFrame:
    """The rows of a day; customer and part are uniform."""
    columns = (
        f"CAST({day} AS INT) AS day",
        f"CAST(pmod(hash(id, {day}, 1), 3000) AS INT) AS customer",
        f"CAST(pmod(hash(id, {day}, 2), 20000) AS INT) AS part",
        f"CAST(pmod(hash(id, {day}, 3), 1000) AS INT) AS supplier",
        f"CAST(pmod(hash(id, {day}, 4), 50) AS INT) AS quantity",
        "id",
    )
    return spark.range(n_rows).selectExpr(*columns)


def queries_of(day: int, shift: int, chooser: random.Random) -> list[str]:
    """The queries of a day."""
    result = []
    for _ in range(N_QUERIES):
        low = chooser.randrange(3000)
        if day < shift:
            texts = (
                f"customer BETWEEN {low} AND {low + 30}",
                f"customer = {low} AND quantity < {chooser.randrange(5, 50)}",
            )
        else:
            part = chooser.randrange(20000)
            texts = (
                f"part BETWEEN {part} AND {part + 200}",
                f"part = {part} AND supplier > {chooser.randrange(1000)}",
            )
        result.append(chooser.choice(texts))
    return result


class Life:
    """One of the tables, and what was done to it."""

    def __init__(self, spark: SparkSession, kind: str, folder: Path) -> None:
        self.spark, self.kind, self.path = spark, kind, str(folder / kind)
        self.rewritten, self.seconds, self.reads = 0, 0.0, list[float]()
        self.steps: Counter[str] = Counter()

    def begin(self, rows: DataFrame, queries: list[str], rows_per_file: int) -> None:
        layout = sx.Clustering(by=sx.Workload(queries), rows_per_file=rows_per_file)
        sx.write_table(rows, self.path, layout=layout, indexes={"*": "minmax"})
        sx.build_indexes(self.path, queries=queries, workers=1)

    def tend(self, queries: list[str], since: float) -> None:
        """What is done after the append of a day; ``since`` is the window's begin."""
        began = time.perf_counter()
        table = sx.open_table(self.path)
        if self.kind == "maintain":
            policy = {"days": (time.time() - since) / 86400}
            report = sx.maintain(table, policy=policy, spark=self.spark, workers=1)
            done = [one for one in report.steps if one.done]
            self.steps.update(one.step for one in done)
            self.rewritten += sum(s.n_bytes // 2 for s in done if s.step == "cluster")
        elif self.kind == "everything":
            layout = sx.Workload(queries)
            full = table.optimize(self.spark, layout=layout, mode="full")
            self.rewritten += full.bytes_in
            full.table.build_indexes(queries=queries, workers=1)
        self.seconds += time.perf_counter() - began

    def ask(self, queries: list[str]) -> None:
        table = sx.open_table(self.path)
        api.record_queries()
        plans = [table.plan(where, timezone="UTC") for where in queries]
        api.record_queries(None)
        flush()
        self.reads.append(sum(len(plan.paths) for plan in plans) / len(plans))


def picture(lives: list[Life]) -> str:
    """The files that a query reads, day by day."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    from ssb.report.charts import style, svg  # noqa: PLC0415 (it needs the extra)

    with style():
        figure = Figure(figsize=(9, 3.4))
        axes = figure.add_subplot()
        for life in lives:
            axes.plot(range(len(life.reads)), life.reads, marker="o", label=life.kind)
        axes.set_yscale("log")
        axes.set_xlabel("day")
        axes.set_ylabel("files a query reads")
        axes.legend()
        return svg(figure)


def main(arguments: Sequence[str] = ()) -> None:
    """Live the days, and print what was read and rewritten."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("data/maintain"))
    parser.add_argument("--picture", type=Path, metavar="SVG")
    options = parser.parse_args(arguments)
    shutil.rmtree(options.out, ignore_errors=True)
    spark, chooser = local_session("maintain"), random.Random(1)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    lives = [
        Life(spark, kind, options.out) for kind in ("maintain", "nothing", "everything")
    ]
    shift, window = options.days // 2, deque[tuple[float, list[str]]](maxlen=WINDOW)
    for day in range(options.days):
        rows = rows_of(spark, day, options.rows)
        known = [one for _, texts in window for one in texts]
        for life in lives:
            if day:
                sx.append(rows, life.path)
                life.tend(known, window[0][0])
            else:
                life.begin(rows, queries_of(0, shift, chooser), options.rows // 5)
        asked = queries_of(day, shift, chooser)
        window.append((time.time(), asked))
        for life in lives:
            life.ask(asked)
        read = ", ".join(f"{life.kind} {life.reads[-1]:.1f}" for life in lives)
        print(f"day {day}: files a query reads: {read}", flush=True)
    print("| table | files a query reads | last week | bytes rewritten | seconds |")
    print("|---|---|---|---|---|")
    for life in lives:
        last = life.reads[-7:]
        print(
            f"| {life.kind} | {sum(life.reads) / len(life.reads):.1f} | "
            f"{sum(last) / len(last):.1f} | {life.rewritten / 1e6:.1f} MB | "
            f"{life.seconds:.0f} |"
        )
    print(f"steps of maintain: {dict(lives[0].steps)}")
    if options.picture:
        options.picture.write_text(picture(lives), "utf-8")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
