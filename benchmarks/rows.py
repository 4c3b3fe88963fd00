"""The rows of a plan in engines, from large files: ``python -m benchmarks.rows``.

Twelve files of a million rows (54 MB each) have an ``exact`` index on ``user``,
``status`` and ``city``.  Three columns are asked of no row, one row, and so on up to
all rows: by each engine alone, over all files with its own reader, and by the plan,
whose time counts.  Both take turns, and the medians of some rounds count, in seconds
and in seconds of all cores.  Spark after ``enable`` is compared with Spark alone;
``plan.read`` and Lance answer the look-ups.  Engines may be missing.  The files have
row groups of 122,880 rows, and then of a million.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

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
ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "7"))
SECONDS: Final = 4.0
"""Seconds of rounds after which no other begins."""
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

OF_LANCE: Final = 15
"""Times that of Lance, for a look-up."""
OF_SPARK: Final = 1.3
"""Times that of a query of Spark that is left with no file."""

Ways = Mapping[str, tuple[Callable[[], Any], Callable[[], Any]]]


class Median(NamedTuple):
    """Milliseconds of a call, and those of all cores in this process."""

    wall: float
    cpu: float


def main() -> None:
    """Measure on tables below ``BENCH_DATA``, which are written if they are missing."""
    data = Path(os.environ.get("BENCH_DATA", "data/rows"))
    with ExitStack() as stack:
        try:
            session = importlib.import_module("ssb.session").local_session
            spark = stack.enter_context(session("rows"))
            sx.enable(spark)
        except (ImportError, sx.SkipIndexError) as error:
            spark = None
            print(f"Spark is left out: {error}")
        for rows_per_group in GROUPS:
            folder = data / f"{FILES}-{ROWS}-{rows_per_group}"
            write(folder, rows_per_group)
            title = f"rows of {FILES} files of {ROWS:,}, {rows_per_group:,} in a group"
            show(title, list(measure(folder / "t", spark)))


def write(
    folder: Path, rows_per_group: int, n_files: int = FILES, n_rows: int = ROWS
) -> None:
    """Write the table if it is missing, and build the indexes that are missing."""
    (folder / "t").mkdir(parents=True, exist_ok=True)
    for i in range(0 if (folder / "written").exists() else n_files):
        rows: Any = duckdb.sql(f"""
            SELECT {i}*{n_rows}+r AS id, (hash(r*7919+{i})%1000000)::bigint AS "user",
            timestamp '2026-01-01' + to_seconds({i}*{n_rows}+r) AS ts,
            'city'||(hash(r*31+{i}*17)%1000) AS city,
            (hash(r+{i}*3)%100000)/100.0::double AS amount,
            md5((r+{i}*{n_rows})::varchar) AS payload,
            (hash(r*5+{i})%50)::int AS status FROM range({n_rows}) g(r)""")  # noqa: S608 (numbers alone)
        pq.write_table(
            rows.to_arrow_table(),
            folder / "t" / f"part-{i:03d}.parquet",
            row_group_size=rows_per_group,
        )
    (folder / "written").touch()
    sx.build_indexes(folder / "t", dict.fromkeys(INDEXED, "exact"), workers=1)


def measure(folder: Path, spark: Any) -> Iterator[Measure]:
    """A figure for each engine and number of rows, beside the engine alone."""
    table = sx.open_table(folder)
    # A row in the middle: the least key of all is in few row groups by their bounds.
    row = duckdb.read_parquet(f"{folder}/*.parquet").filter(f"id = {ROWS // 2}")
    user, city = row.project('"user", city').fetchall()[0]
    wrong, of_nothing = 0, 0.0
    lance = lance_of(folder)
    for where in (
        '"user" = -5',
        f"\"user\" = {user} AND city = '{city}'",
        f'"user" = {user}',
        *(f'"user" < {n}' for n in (25, 500, 10_000, 500_000)),
        "id >= 0",
    ):
        least, n = float("inf"), 0
        for engine, (alone, planned) in ways(table, where).items():
            own, mine, answers = pairs(alone, planned)
            wrong += len(answers) - 1
            ((n, _), *_) = answers
            share = LOOKUP[engine.partition(",")[0]] if 0 < n <= FEW else ALIKE
            least = min(least, mine.wall)
            yield Measure(
                f"{engine}: {n:,} rows",
                mine.wall,
                "ms",
                max(share * own.wall, LEAST),
                f"{mine.wall / own.wall:.2f} of {own.wall:.0f} ms alone; "
                f"{mine.cpu:.0f} of {own.cpu:.0f} ms of all cores",
            )
        if lance is not None and 0 < n <= FEW:
            look = partial(lance, where)
            own, _, answers = pairs(look, look)
            wrong += answers != {answer_of(ways(table, where)["pyarrow"][1]())}
            note = f"{least / own.wall:.1f} times {own.wall:.1f} ms of Lance's B-tree"
            name = f"the quickest engine beside Lance: {n:,} rows"
            yield Measure(name, least, "ms", OF_LANCE * own.wall, note)
        for name, calls in by_spark(table, where, spark, n).items():
            if n > FEW and name != "Spark":
                continue
            own, mine, answers = pairs(*calls)
            wrong += len(answers) - 1
            if name != "Spark":
                limit = None
            elif n <= FEW:
                limit = OF_SPARK * of_nothing if n else None
                of_nothing = of_nothing if n else mine.wall
            else:
                limit = ALIKE * own.wall
            note = f"{mine.wall / own.wall:.2f} of {own.wall:.0f} ms alone"
            yield Measure(f"{name}: {n:,} rows", mine.wall, "ms", limit, note)
    yield Measure("answers that differ", wrong, limit=0)


def pairs(
    alone: Callable[[], Any], planned: Callable[[], Any]
) -> tuple[Median, Median, set[tuple[int, int]]]:
    """The medians of two calls that take turns, and their answers."""
    times: tuple[list[Median], list[Median]] = ([], [])
    answers = set()
    began = time.perf_counter()
    while len(times[0]) < ROUNDS and time.perf_counter() - began < SECONDS:
        for call, taken in zip((alone, planned), times, strict=True):
            start, cpu = time.perf_counter(), time.process_time()
            rows = call()
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            taken.append(Median(1e3 * wall, 1e3 * cpu))
            answers.add(answer_of(rows))
    own, mine = (Median(*map(median, zip(*some, strict=True))) for some in times)
    return own, mine, answers


def answer_of(rows: Any) -> tuple[int, int]:
    """How many rows there are, and the sum of their numbers."""
    if isinstance(rows, tuple):
        return rows
    if isinstance(rows, list):
        return len(rows), sum(row["id"] for row in rows)
    return len(rows), int(_sum(rows["id"]))


def by_spark(table: sx.Table, where: str, spark: Any | None, n: int) -> Ways:
    """The ``n`` matching rows by Spark alone, and after ``enable``, or by a plan.

    Many rows are added up: the driver would collect them for a long time.
    """
    if spark is None:
        return {}
    text, folder = where.replace('"', ""), table.state.folder

    def rows(frame: Any) -> Any:
        found = frame.select(COLUMNS)
        if n <= FEW:
            return found.collect()
        added = ("count(*)", "sum(id)", "sum(amount)", "max(payload)")
        return tuple(found.selectExpr(*added).first()[:2])

    def switched(on: str) -> Any:
        spark.conf.set("skipindex.enabled", on)
        return rows(spark.read.parquet(folder).where(text))

    return {
        "Spark": (partial(switched, "false"), partial(switched, "true")),
        "Spark, plan.read": (
            partial(switched, "false"),
            lambda: rows(table.plan(text).read(spark)),
        ),
    }


def lance_of(folder: Path) -> Callable[[str], Any] | None:
    """What looks rows up in a copy of a table with a B-tree on ``user``."""
    try:
        lance: Any = importlib.import_module("lance")
    except ImportError:
        print("Lance is left out: it is not installed (type: pip install pylance)")
        return None
    to = str(folder.parent / "lance")
    if not Path(to).exists():
        rows = ds.dataset(folder, exclude_invalid_files=True).scanner().to_reader()
        lance.write_dataset(rows, to).create_scalar_index("user", "BTREE")
    dataset = lance.dataset(to)
    return lambda where: dataset.to_table(
        columns=COLUMNS, filter=where.replace('"', "`")
    )


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
