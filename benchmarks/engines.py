"""Look-ups by DuckDB, Polars, pyarrow and pandas: over all files, and over the plan.

    python -m benchmarks engines --data data/ssb-1 --scale 1

The flat lineorder of the Star Schema Benchmark stands in 100 files.  Each engine
looks the keys of ``ssb.queries.LOOKUPS`` up alone, over all files by its own reader,
and over the plan, whose time counts.  Both take turns, and of three rounds the medians
count.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb
import pandas as pd
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset as ds

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.planner.rows.condition import condition_of
from ssb.data.generate import Dataset, find_dataset, generate
from ssb.files import data_files, linked
from ssb.progress import progress_lines
from ssb.queries import LOOKUPS
from ssb.session import local_session

N_FILES: Final = 100
ROUNDS: Final = 3
SUM: Final = "lo_revenue"
INDEXES: Final = {
    "lo_ordtotalprice": "bit_sliced",
    "lo_revenue": "bit_sliced",
    "lo_custkey": "bitmap",
    "c_city": "bitmap",
}

Answer = tuple[int, int]
"""How many rows match, and the sum of a column."""
Engine = Callable[[str], Answer]


def main() -> None:
    """Measure at ``BENCH_SCALE`` on the data in ``BENCH_DATA``."""
    scale = float(os.environ.get("BENCH_SCALE", "0.1"))
    data = Path(os.environ.get("BENCH_DATA", f"data/ssb-{scale:g}"))
    dataset = find_dataset(data) or generated(data, scale)
    title = f"look-ups of SSB at scale {dataset.scale:g} in other engines"
    with tempfile.TemporaryDirectory(dir=dataset.path.parent) as folder:
        linked(data_files(dataset.flat), Path(folder, "flat"))
        show(title, list(measure(Path(folder, "flat"))))


def generated(data: Path, scale: float) -> Dataset:
    """The data, which Spark makes."""
    log = progress_lines()
    spark = local_session("bench engines", conf={"spark.sql.session.timeZone": "UTC"})
    return generate(data, scale=scale, files=N_FILES, spark=spark, log=log)


def measure(folder: Path) -> Iterator[Measure]:
    """A figure for each engine: all look-ups over the plan, beside all files."""
    table = sx.build_indexes(folder, INDEXES, workers=1).table
    alone, planned = engines_alone(table), engines_planned(table)
    kept = [len(table.plan(query.where).paths) for query in LOOKUPS]
    yield Measure(
        what="files read of a look-up", figure=statistics.mean(kept),
        limit=len(table), note="the mean",
    )  # fmt: skip
    wrong = 0
    for name in alone:
        seconds: dict[str, list[float]] = {"alone": [], "planned": []}
        for query in LOOKUPS:
            rounds: dict[str, list[float]] = {"alone": [], "planned": []}
            answers = set()
            for _ in range(ROUNDS):
                for way, engine in (("alone", alone), ("planned", planned)):
                    start = time.perf_counter()
                    answers.add(engine[name](query.where))
                    rounds[way].append(time.perf_counter() - start)
            wrong += len(answers) - 1
            for way, found in rounds.items():
                seconds[way].append(statistics.median(found))
        yield Measure(
            what=f"{name}, a look-up over the plan",
            figure=1e3 * statistics.mean(seconds["planned"]),
            limit=1e3 * statistics.mean(seconds["alone"]),
            unit="ms",
            note="over all files",
        )
    yield Measure(what="answers that differ", figure=wrong, limit=0)


def engines_alone(table: sx.Table) -> Mapping[str, Engine]:
    """Each engine over all files, by its own reader."""
    files = table.plan("TRUE").files
    connection = duckdb.connect()

    def by_duckdb(where: str) -> Answer:
        rows: Any = connection.read_parquet(files).filter(where)
        return of_row(rows.aggregate(f"count(*), sum({SUM})").fetchall()[0])

    def by_polars(where: str) -> Answer:
        rows = pl.SQLContext(flat=pl.scan_parquet(files))
        text = f"SELECT count(*) AS n, sum({SUM}) AS total FROM flat WHERE {where}"  # noqa: S608 (own text)
        return of_row(rows.execute(text).collect().row(0))

    def by_arrow(where: str) -> Answer:
        rows = ds.dataset(files).to_table(columns=[SUM], filter=expression(where))
        return of_row((len(rows), pc.sum(rows[SUM]).as_py()))

    def by_pandas(where: str) -> Answer:
        rows = pd.read_parquet(files, columns=[SUM], filters=expression(where))
        return of_row((len(rows), rows[SUM].sum()))

    def expression(where: str) -> pc.Expression:
        return condition_of(table.plan(where).tree, table.state, pc.unique)

    return {
        "DuckDB": by_duckdb,
        "Polars": by_polars,
        "pyarrow": by_arrow,
        "pandas": by_pandas,
    }


def engines_planned(table: sx.Table) -> Mapping[str, Engine]:
    """Each engine over what the plan gives it."""
    connection = duckdb.connect()

    def by_duckdb(where: str) -> Answer:
        rows: Any = table.plan(where).to_duckdb(connection)
        return of_row(rows.aggregate(f"count(*), sum({SUM})").fetchall()[0])

    def by_polars(where: str) -> Answer:
        rows = table.plan(where).to_polars()
        return of_row(rows.select(pl.len(), pl.sum(SUM)).collect().row(0))

    def by_arrow(where: str) -> Answer:
        rows = table.plan(where).to_arrow().to_table(columns=[SUM])
        return of_row((len(rows), pc.sum(rows[SUM]).as_py()))

    def by_pandas(where: str) -> Answer:
        rows = table.plan(where).to_pandas(columns=[SUM])
        return of_row((len(rows), rows[SUM].sum()))

    return {
        "DuckDB": by_duckdb,
        "Polars": by_polars,
        "pyarrow": by_arrow,
        "pandas": by_pandas,
    }


def of_row(row: Any) -> Answer:
    """The answer in a row of two numbers; the sum of no rows is 0."""
    return int(row[0]), int(row[1] or 0)
