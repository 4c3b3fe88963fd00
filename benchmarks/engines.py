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
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.planner.rows.condition import condition_of
from ssb.data.generate import find_dataset, generate
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

Answer = tuple[Any, ...]
"""How many rows match, and the sum of a column; None of no rows."""
Engine = Callable[[str], Answer]


def main() -> None:
    """Measure at ``BENCH_SCALE`` on the data in ``BENCH_DATA``."""
    scale = float(os.environ.get("BENCH_SCALE", "0.1"))
    data = Path(os.environ.get("BENCH_DATA", f"data/ssb-{scale:g}"))
    dataset = find_dataset(data)
    if dataset is None:
        spark = local_session("engines", conf={"spark.sql.session.timeZone": "UTC"})
        dataset = generate(
            data, scale=scale, files=N_FILES, spark=spark, log=progress_lines()
        )
    title = f"look-ups of SSB at scale {dataset.scale:g} in other engines"
    with tempfile.TemporaryDirectory(dir=dataset.path.parent) as folder:
        linked(data_files(dataset.flat), Path(folder, "flat"))
        show(title, list(measure(Path(folder, "flat"))))


def measure(folder: Path) -> Iterator[Measure]:
    """A figure for each engine: all look-ups over the plan, beside all files."""
    table = sx.build_indexes(folder, INDEXES, workers=1).table
    kept = [len(table.plan(query.where).paths) for query in LOOKUPS]
    mean = statistics.mean(kept)
    yield Measure("files read of a look-up", mean, "", len(table), "the mean")
    wrong = 0
    for name, ways in engines(table).items():
        seconds: tuple[list[float], ...] = ([], [])
        for query in LOOKUPS:
            rounds: tuple[list[float], ...] = ([], [])
            answers = set()
            for _ in range(ROUNDS):
                for engine, taken in zip(ways, rounds, strict=True):
                    start = time.perf_counter()
                    row = engine(query.where)
                    answers.add((int(row[0]), int(row[1] or 0)))  # the sum of no rows
                    taken.append(time.perf_counter() - start)
            wrong += len(answers) - 1
            for found, taken in zip(seconds, rounds, strict=True):
                found.append(statistics.median(taken))
        alone, planned = (1e3 * statistics.mean(found) for found in seconds)
        what = f"{name}, a look-up over the plan"
        yield Measure(what, planned, "ms", alone, "over all files")
    yield Measure("answers that differ", wrong, limit=0)


def engines(table: sx.Table) -> Mapping[str, tuple[Engine, Engine]]:
    """Each engine over all files, by its own reader, and over what the plan gives."""
    files = table.plan("TRUE").files
    connection = duckdb.connect()

    def by_duckdb(rows: Any) -> Answer:
        return tuple(rows.aggregate(f"count(*), sum({SUM})").fetchall()[0])

    def by_polars(rows: Any) -> Answer:
        return tuple(rows.select(pl.len(), pl.sum(SUM)).collect().row(0))

    def by_arrow(rows: pa.Table) -> Answer:
        return len(rows), pc.sum(rows[SUM]).as_py()

    def by_pandas(rows: Any) -> Answer:
        return len(rows), rows[SUM].sum()

    def expression(where: str) -> pc.Expression:
        return condition_of(table.plan(where).tree, table.state, pc.unique)

    plan, columns = table.plan, [SUM]
    return {
        "DuckDB": (
            lambda where: by_duckdb(connection.read_parquet(files).filter(where)),
            lambda where: by_duckdb(plan(where).to_duckdb(connection)),
        ),
        "Polars": (
            lambda where: by_polars(pl.scan_parquet(files).filter(pl.sql_expr(where))),
            lambda where: by_polars(plan(where).to_polars()),
        ),
        "pyarrow": (
            lambda where: by_arrow(
                ds.dataset(files).to_table(columns, filter=expression(where))
            ),
            lambda where: by_arrow(plan(where).to_arrow().to_table(columns=columns)),
        ),
        "pandas": (
            lambda where: by_pandas(
                pd.read_parquet(files, columns=columns, filters=expression(where))
            ),
            lambda where: by_pandas(plan(where).to_pandas(columns=columns)),
        ),
    }
