"""The rows of a plan in engines, from large files: ``python -m benchmarks.rows``.

Twelve files of a million rows (54 MB each) have an ``exact`` index on ``user``,
``status`` and ``city``.  Three columns are asked of no row, one row, and so on up to
all rows: by each engine alone, over all files with its own reader, and by the plan,
whose time counts.  Both take turns, and the least time of some rounds counts.  The
files have row groups of 122,880 rows, and then of a million.
"""

from __future__ import annotations

import os
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
import pyarrow.parquet as pq

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.planner.rows.condition import condition_of

FILES: Final = int(os.environ.get("BENCH_FILES", "12"))
ROWS: Final = int(os.environ.get("BENCH_ROWS", "1_000_000"))
ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "5"))
GROUPS: Final = (122_880, 1_000_000)
COLUMNS: Final = ["id", "amount", "payload"]
INDEXED: Final = ("user", "status", "city")
ALIKE: Final = 1.05
"""Of the time of the engine alone, if many rows match."""
FEW: Final = 40
"""Rows of a look-up, at most."""
LOOKUP: Final = {"DuckDB": 0.4, "Polars": 0.4, "pyarrow": 0.05, "pandas": 0.05}
"""Of the time of the engine alone, for a look-up."""
LEAST: Final = 10.0
"""Milliseconds that are never too many."""

Ways = Mapping[str, tuple[Callable[[], Any], Callable[[], Any]]]


def main() -> None:
    """Measure on tables below ``BENCH_DATA``, which are written if they are missing."""
    data = Path(os.environ.get("BENCH_DATA", "data/rows"))
    for rows_per_group in GROUPS:
        folder = data / f"{FILES}-{ROWS}-{rows_per_group}"
        if not (folder / "written").exists():
            write(folder, rows_per_group)
        title = f"rows of {FILES} files of {ROWS:,}, row groups of {rows_per_group:,}"
        show(title, list(measure(folder / "t")))


def write(folder: Path, rows_per_group: int) -> None:
    """Write the table, and build its indexes."""
    (folder / "t").mkdir(parents=True, exist_ok=True)
    for i in range(FILES):
        rows: Any = duckdb.sql(f"""
            SELECT {i}*{ROWS}+r AS id, (hash(r*7919+{i})%1000000)::bigint AS "user",
            timestamp '2026-01-01' + to_seconds({i}*{ROWS}+r) AS ts,
            'city'||(hash(r*31+{i}*17)%1000) AS city,
            (hash(r+{i}*3)%100000)/100.0::double AS amount,
            md5((r+{i}*{ROWS})::varchar) AS payload,
            (hash(r*5+{i})%50)::int AS status FROM range({ROWS}) g(r)""")  # noqa: S608 (numbers alone)
        pq.write_table(
            rows.to_arrow_table(),
            folder / "t" / f"part-{i:03d}.parquet",
            row_group_size=rows_per_group,
        )
    sx.build_indexes(folder / "t", dict.fromkeys(INDEXED, "exact"), workers=1)
    (folder / "written").touch()


def measure(folder: Path) -> Iterator[Measure]:
    """A figure for each engine and number of rows, beside the engine alone."""
    table = sx.open_table(folder)
    first = duckdb.read_parquet(f"{folder}/*.parquet").limit(1)
    user, city = first.project('"user", city').fetchall()[0]
    wrong = 0
    for where in (
        '"user" = -5',
        f"\"user\" = {user} AND city = '{city}'",
        f'"user" = {user}',
        *(f'"user" < {n}' for n in (25, 500, 10_000, 500_000)),
        "id >= 0",
    ):
        for engine, (alone, planned) in ways(table, where).items():
            name = engine.partition(",")[0]
            times: tuple[list[float], list[float]] = ([], [])
            answers = []
            for _ in range(ROUNDS):
                for call, taken in zip((alone, planned), times, strict=True):
                    start = time.perf_counter()
                    rows = call()
                    taken.append(1e3 * (time.perf_counter() - start))
                    answers.append((len(rows), int(_sum(rows["id"]))))
            wrong += len(set(answers)) - 1
            n, own = answers[0][0], min(times[0])
            share = LOOKUP[name] if 0 < n <= FEW else ALIKE
            yield Measure(
                f"{engine}: {n:,} rows",
                min(times[1]),
                "ms",
                max(share * own, LEAST),
                f"{min(times[1]) / own:.2f} of {own:.0f} ms alone",
            )
    yield Measure("answers that differ", wrong, limit=0)


def _sum(values: Any) -> int:
    result = pc.sum(values).as_py() if isinstance(values, pa.ChunkedArray) else None
    return (values.sum() if result is None and len(values) else result) or 0


def ways(table: sx.Table, where: str) -> Ways:
    """By engine: the matching rows alone, and by a plan."""
    files = table.plan("TRUE").files
    connection = duckdb.connect()
    spark_text = where.replace('"', "")
    expression = condition_of(table.plan(spark_text).tree, table.state, pc.unique)

    def plan() -> sx.Plan:
        return table.plan(spark_text)

    def by_duckdb() -> Any:
        rows = connection.read_parquet(files).filter(where)
        return rows.project(", ".join(COLUMNS)).to_arrow_table()

    def by_polars() -> Any:
        rows = pl.scan_parquet(files).filter(pl.sql_expr(where))
        return rows.select(COLUMNS).collect()

    def by_plan_of_duckdb() -> Any:
        rows = plan().to_duckdb(connection)
        return rows.project(", ".join(COLUMNS)).to_arrow_table()

    return {
        "DuckDB": (
            by_duckdb,
            lambda: plan().to_duckdb(connection, columns=COLUMNS).to_arrow_table(),
        ),
        "DuckDB, columns chosen later": (by_duckdb, by_plan_of_duckdb),
        "Polars": (by_polars, lambda: plan().to_polars(columns=COLUMNS).collect()),
        "Polars, columns chosen later": (
            by_polars,
            lambda: plan().to_polars().select(COLUMNS).collect(),
        ),
        "pyarrow": (
            lambda: ds.dataset(files).to_table(COLUMNS, filter=expression),
            lambda: plan().to_arrow().to_table(COLUMNS),
        ),
        "pandas": (
            lambda: pd.read_parquet(files, columns=COLUMNS, filters=expression),
            lambda: plan().to_pandas(columns=COLUMNS),
        ),
    }


if __name__ == "__main__":
    main()
