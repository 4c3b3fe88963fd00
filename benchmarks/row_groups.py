"""What smaller row groups cost and buy: ``python -m benchmarks.row_groups``.

The flat lineorder of the Star Schema Benchmark is written along a Hilbert curve in
files of a million rows, with row groups of several sizes.  The orders of some customers
are looked up, of whom nearly every file has a few rows, and one query reads all rows.
All sizes take turns.  The figures are CPU seconds of the JVM, as medians of the rounds,
beside those of one row group a file.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.spark.writers.file_size import ROWS_PER_GROUP
from ssb.data.generate import find_or_generate
from ssb.progress import progress_lines
from ssb.session import local_session

SIZES: Final = (16_000, 64_000, 128_000)
WHOLE: Final = 10_000_000
ROWS_PER_FILE: Final = 1_000_000
ROUNDS: Final = 4
WARM_UP: Final = 2
BY: Final = ["lo_orderdate", "c_city", "s_city", "p_brand1"]
CUSTOMERS: Final = (7, 311, 1789, 4711)
ASKED: Final = (
    *("count(*)", "sum(lo_revenue)", "sum(lo_extendedprice)"),
    *("max(c_city)", "max(p_brand1)", "max(lo_shipmode)"),
)
MOST_BYTES: Final = 1.05
"""Times of the bytes that the default may take."""


def main() -> None:
    """Measure at ``BENCH_SCALE`` (0.3) on the data in ``BENCH_DATA``."""
    scale = float(os.environ.get("BENCH_SCALE", "0.3"))
    data = Path(os.environ.get("BENCH_DATA", f"data/ssb-{scale:g}"))
    spark = local_session(
        "bench row groups", memory="4g", conf={"spark.sql.session.timeZone": "UTC"}
    )
    dataset = find_or_generate(data, scale=scale, spark=spark, log=progress_lines())
    with tempfile.TemporaryDirectory(dir=dataset.path.parent) as folder:
        rows = spark.read.parquet(str(dataset.flat))
        title = f"row groups, at scale {dataset.scale:g}"
        show(title, list(measure(spark, rows, Path(folder))))


def measure(spark: SparkSession, rows: DataFrame, folder: Path) -> Iterator[Measure]:
    """The bytes, the look-ups and the whole of each size, to those of whole files."""
    tables = {n: written(rows, folder / str(n), n) for n in (WHOLE, *SIZES)}
    seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
    for _ in range(WARM_UP + ROUNDS):
        for n, table in tables.items():
            clock = _Clock(spark)
            for customer in CUSTOMERS:
                plan = table.plan(f"lo_custkey = {customer}")
                plan.read(spark).selectExpr(*ASKED).collect()
            seconds[n, "look-ups"].append(clock.passed())
            clock = _Clock(spark)
            spark.read.parquet(table.folder).selectExpr(*ASKED).collect()
            seconds[n, "all rows"].append(clock.passed())
    n_bytes = {n: sum(file.size for file in table.files) for n, table in tables.items()}
    for n in SIZES:
        limit = MOST_BYTES if n == ROWS_PER_GROUP else None
        ratio = n_bytes[n] / n_bytes[WHOLE]
        yield Measure(f"bytes, groups of {n:,} rows", ratio, "x", limit)
        for what in ("look-ups", "all rows"):
            one, whole = (
                statistics.median(seconds[size, what][WARM_UP:]) for size in (n, WHOLE)
            )
            note = f"{whole:.2f} s with one group a file"
            title = f"CPU of {what}, groups of {n:,} rows"
            yield Measure(title, one / whole, "x", note=note)


def written(rows: DataFrame, path: Path, rows_per_group: int) -> sx.Table:
    """The rows along the curve, indexed for the look-ups."""
    layout = sx.Clustering(
        by=BY, rows_per_file=ROWS_PER_FILE, rows_per_group=rows_per_group
    )
    return sx.write_table(rows, path, layout=layout, indexes={"lo_custkey": "bitmap"})


class _Clock:
    """The CPU seconds of the JVM since it was made."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 (no public name)
        self._stat = Path(f"/proc/{gateway.proc.pid}/stat")
        self._began = self._seconds()

    def passed(self) -> float:
        return self._seconds() - self._began

    def _seconds(self) -> float:
        user, system = self._stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
