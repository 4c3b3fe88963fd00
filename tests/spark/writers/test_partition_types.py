"""Every layout with partition columns of every type, through a table's whole life.

A table is written, appended to and optimized; after each step its files are read
without Spark, and hold the same rows in the folders that Spark's own writer makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.source.partitions.hive import partition_values
from tests.spark.reading.whole import rows

pytestmark = pytest.mark.spark

Row: TypeAlias = tuple[int, int | None, date, str | None]
"""The columns ``id``, ``price`` and ``day``, and the text of the partition ``p``."""


@dataclass(frozen=True)
class Kind:
    """A type of partition column: its values as SQL writes them, one that is asked for.

    ``texts`` are the values as folders have them, with no escape.
    """

    dtype: str
    texts: tuple[str | None, ...]
    asked: str
    text: str

    def frame(self, spark: SparkSession, first: int) -> tuple[DataFrame, list[Row]]:
        """Rows with some ids, and the same in Python."""
        made: list[Row] = []
        for i in range(first, first + N_ROWS):
            text = self.texts[i * 5 % 13 % len(self.texts)]
            price = None if i % 11 == 0 else i * 7919 % 100
            made.append((i, price, DAY + timedelta(i * 31 % 90), text))
        schema = "id bigint, price int, day date, p string"
        typed = sf.col("p").cast(self.dtype)
        known = [(*row[:3], row[3] or None) for row in made]
        return spark.createDataFrame(made, schema).withColumn("p", typed), known


N_ROWS = 120
DAY = date(2024, 1, 1)
KINDS = {
    "string": Kind(
        "string",
        ("b=c/d", "01", "é %41", None, "x:y*?[z]{}", "", "'q\"\\"),
        "'01'",
        "01",
    ),
    "int": Kind("int", ("10", "9", None, "-10"), "9", "9"),
    "bigint": Kind("bigint", ("5000000000", "-7", None), "5000000000", "5000000000"),
    "date": Kind(
        "date",
        ("2024-01-01", "1969-12-31", None, "2023-10-01"),
        "DATE '2024-01-01'",
        "2024-01-01",
    ),
    "boolean": Kind("boolean", ("true", None, "false"), "true", "true"),
    "decimal": Kind("decimal(10,2)", ("1.50", "-0.25", None, "10.00"), "1.50", "1.50"),
    "double": Kind("double", ("1.5", "-1.0E20", None, "NaN"), "1.5D", "1.5"),
    "float": Kind("float", ("0.1", "2.5", None, "-0.1"), "2.5", "2.5"),
    "wide": Kind("decimal(30,0)", ("1" + "0" * 25, "-3", None), "-3", "-3"),
    "timestamp": Kind(
        "timestamp",
        ("2024-01-01 00:00:00", "1969-12-31 23:59:59", None),
        "TIMESTAMP '2024-01-01 00:00:00'",
        "2024-01-01 00:00:00",
    ),
    "timestamp_ntz": Kind(
        "timestamp_ntz",
        ("2024-01-01 00:00:00", "1969-12-31 23:59:59", None),
        "TIMESTAMP_NTZ '2024-01-01 00:00:00'",
        "2024-01-01 00:00:00",
    ),
}
CURVES = ["linear", "zorder", "hilbert", "hash"]
METHODS = ["curve", "answers"]
KEYS = ["string", "int", "bigint"]
"""What rows can be looked up by in another table."""
QUICK = [("answers", "decimal"), ("hilbert", "string")]
"""One places rows by what was asked, the other by a curve, in folders of any letter."""
ALL = [
    *product(["none", *CURVES, *METHODS], KINDS),
    *(("looked up", kind) for kind in KEYS),
]
CONDITIONS: dict[str, Callable[[Row], Any]] = {
    "price < 20": lambda row: row[1] is not None and row[1] < 20,
    "day >= DATE '2024-03-01'": lambda row: row[2] >= date(2024, 3, 1),
    "p IS NULL": lambda row: row[3] is None,
    "p IS NOT NULL AND price BETWEEN 50 AND 60": lambda row: (
        row[3] is not None and row[1] is not None and 50 <= row[1] <= 60
    ),
}


def layout_of(name: str, kind: Kind, customers: Path) -> sx.Clustering:
    """The layout of that name, of files much smaller than the table."""
    by: Any = ["price", "day"]
    curve = {"curve": name} if name in CURVES else {}
    if name == "none":
        by = None
    elif name == "looked up":
        by = [sx.via("p", customers, "key", "region")]
    elif name in METHODS:
        told = [f"p = {kind.asked} AND price < 60", "p IS NULL AND price > 50"]
        by = sx.Workload([*CONDITIONS, *told], method=name)
    return sx.Clustering(by=by, rows_per_file=15, **curve)


def check(table: sx.Table, expected: list[Row], folders: set[str], kind: Kind) -> None:
    """The files hold these rows, below these folders, and no plan skips a match."""
    found: dict[str, list[Row]] = {}
    for path in table.paths:
        ((name, text),) = partition_values(path)
        assert name == "p"
        own = pq.read_table(table.state.location.full(path), partitioning=None)
        assert own.column_names == ["id", "price", "day"]
        values = (own[column].to_pylist() for column in own.column_names)
        found[path] = [(*row, text) for row in zip(*values, strict=True)]
    together = [row for own in found.values() for row in own]
    assert sorted(together, key=repr) == sorted(expected, key=repr)
    assert {path.split("/")[0] for path in table.paths} == folders
    asked = f"p = {kind.asked} AND price < 60"
    conditions = CONDITIONS | {
        asked: lambda row: row[3] == kind.text and row[1] is not None and row[1] < 60
    }
    for condition, holds in conditions.items():
        wanted = {path for path, own in found.items() if any(map(holds, own))}
        assert wanted, condition
        assert wanted <= set(table.plan(condition).paths), condition


def live(
    spark: SparkSession, path: Path, layout: str, kind: Kind, *, is_short: bool = False
) -> tuple[sx.Table, list[Row]]:
    """A table's life in one layout, with a partition column of one kind.

    The table and its rows are as they are in the end.  A short life ends before a run.
    """
    (df, known), (more, new), (last, others) = (
        kind.frame(spark, first) for first in (0, 1_000, 2_000)
    )
    df.write.partitionBy("p").parquet(str(path / "plain"))
    folders = {found.name for found in (path / "plain").glob("p=*")}
    place = path / "t"
    shape = layout_of(layout, kind, path / "customers")
    if layout == "looked up":
        customers = df.select(
            sf.col("p").alias("key"), sf.md5(sf.col("p").cast("string")).alias("region")
        )
        customers.distinct().write.parquet(str(path / "customers"))
    table = sx.write_table(
        df, place, layout=shape, partition_by=["p"], indexes={"price": "bitmap"}
    )
    check(table, known, folders, kind)
    if not is_short:
        known += new
        check(sx.append(more, table), known, folders, kind)
        table = sx.open_table(place).optimize(spark, cube_size=1).table
        check(table, known, folders, kind)
    # A reader of the table has the type that Spark infers, such as text for true.
    known += others
    text = last.withColumn("p", sf.col("p").cast("string"))
    table = sx.append(text, table)
    check(table, known, folders, kind)
    if is_short:
        return table, known
    report = sx.open_table(place).optimize(spark, mode="full")
    assert report.files_in > 0
    check(report.table, known, folders, kind)
    seen = spark.read.schema(df.schema).parquet(str(place)).select(*df.columns)
    given = df.union(more).union(last)
    p = sf.expr("CASE WHEN CAST(p AS STRING) <> '' THEN p END")  # Hive has no ''
    assert rows(seen) == rows(given.withColumn("p", p))
    condition = f"p = {kind.asked} AND price < 60"
    whole = spark.read.parquet(str(place))
    chosen = sx.read(report.table, condition, spark=spark)
    assert rows(chosen) == rows(whole.where(condition))
    return report.table, known


@pytest.mark.few(1)
@pytest.mark.parametrize(("layout", "kind"), QUICK)
def test_a_partition_column_of_every_type(
    spark: SparkSession, tmp_path: Path, layout: str, kind: str
) -> None:
    live(spark, tmp_path, layout, KINDS[kind], is_short=True)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "kind"), ALL)
def test_every_layout_with_every_type(
    spark: SparkSession, tmp_path: Path, layout: str, kind: str
) -> None:
    """Also in a copy, which is laid out anew by what the folders say."""
    table, known = live(spark, tmp_path, layout, KINDS[kind])
    copy = table.optimize(spark, into=tmp_path / "copy").table
    folders = {name.partition("/")[0] for name in table.paths}
    check(copy, known, folders, KINDS[kind])
