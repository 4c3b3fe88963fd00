"""What each reader sees of a table at each moment; the guide has the same table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.errors import LayoutError
from skipindex.source.folder.publish import Publisher
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import Killed, killed_in
from tests.rewrite.seen import NOW, listed
from tests.tables import build, put

pytestmark = pytest.mark.spark

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "readers.md"
Reader = Callable[[Path, SparkSession], Iterable[str]]
"""The name of the file of each row."""


def spark_names(rows: DataFrame) -> list[str]:
    found = rows.where("x >= 0").select(sf.input_file_name()).collect()
    return [path for (path,) in found]


def plain(folder: Path, spark: SparkSession) -> list[str]:
    spark.conf.set("skipindex.enabled", "false")
    try:
        return spark_names(spark.read.parquet(str(folder)))
    finally:
        spark.conf.unset("skipindex.enabled")


def enabled(folder: Path, spark: SparkSession) -> list[str]:
    """The files that Spark reads, once for each of their rows."""
    rows = spark.read.parquet(str(folder)).where("x >= 0")
    parts = rows._jdf.queryExecution().toRdd().partitions()
    found = [
        file.filePath().toPath().toUri().getPath()
        for part in parts
        for file in part.files()
    ]
    names = [path for path in found for _ in range(pq.read_metadata(path).num_rows)]
    assert len(names) == rows.count()
    return names


def of_pyarrow(folder: Path, _: SparkSession) -> list[str]:
    rows = ds.dataset(folder, partitioning="hive").to_table(columns=["__filename"])
    found: list[str] = rows["__filename"].to_pylist()
    return found


def of_pandas(folder: Path, spark: SparkSession) -> list[str]:
    names = of_pyarrow(folder, spark)
    assert len(pd.read_parquet(folder)) == len(names)
    return names


def of_duckdb(pattern: str) -> Reader:
    def read(folder: Path, _: SparkSession) -> list[str]:
        query = f"SELECT filename FROM read_parquet('{folder}{pattern}', filename=true)"
        return [path for (path,) in duckdb.connect().sql(query).fetchall()]

    return read


def of_polars(pattern: str) -> Reader:
    def read(folder: Path, _: SparkSession) -> list[str]:
        place = f"{folder}{pattern}"
        rows = pl.scan_parquet(place, include_file_paths="of").select("of").collect()
        return rows["of"].to_list()

    return read


READERS: dict[str, Reader] = {
    "`sx.read`, plans, statements": lambda folder, spark: spark_names(
        sx.read(folder, "x >= 0", spark=spark)
    ),
    "Spark after `enable`": enabled,
    "the same, with `input_file_name()`": lambda folder, spark: spark_names(
        spark.read.parquet(str(folder))
    ),
    "Spark": plain,
    "pyarrow, the folder": of_pyarrow,
    "pandas, the folder": of_pandas,
    "DuckDB, `folder/*/*.parquet`": of_duckdb("/*/*.parquet"),
    "DuckDB, `folder/**/*.parquet`": of_duckdb("/**/*.parquet"),
    "Polars, `folder/**/*.parquet`": of_polars("/**/*.parquet"),
    "Polars, the folder": of_polars(""),
}
ELSEWHERE = "Polars, the folder, with a sidecar"
MOMENTS = ("built", "appended", "optimized", "being vacuumed", "vacuumed")


def moments(folder: Path) -> Iterable[set[str]]:
    """The names of the files that were rewritten, at each moment."""
    for i in range(4):
        put(folder / f"p={i % 2}" / f"{i}.parquet", {"x": [i, 9 - i]})
    build(folder, {"x": "bitmap"})
    yield set()
    for i in range(4, 6):
        put(folder / f"p={i % 2}" / f"{i}.parquet", {"x": [i, 9 - i]})
    build(folder, {"x": "bitmap"})
    yield set()
    old = {Path(path).name for path in listed(folder)}
    optimized(folder, cluster_by=["x"])
    yield old
    with suppress(Killed), killed_in(Publisher, "_delete_old"):
        sx.open_table(folder).vacuum(retention=NOW)
    yield old
    sx.open_table(folder).vacuum(retention=NOW)
    yield old


def cell(
    read: Reader, folder: Path, spark: SparkSession, old: set[str], n_rows: int
) -> str:
    try:
        found = [Path(name).name for name in read(folder, spark)]
    except pl.exceptions.InvalidOperationError:
        return "refused"
    if len(found) == 2 * n_rows:
        return "rows twice"
    assert len(found) == n_rows
    if not old:
        return "right"
    return "right, old files" if set(found) <= old else "right, new files"


def test_the_guide_says_what_each_reader_sees(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows: dict[str, list[str]] = {name: [] for name in (*READERS, ELSEWHERE)}
    elsewhere = tmp_path / "elsewhere"
    folder = tmp_path / "t"
    sx.enable(spark)
    try:
        for moment, old in zip(MOMENTS, moments(folder), strict=True):
            n_rows = 8 if moment == "built" else 12
            spark.catalog.refreshByPath(str(folder))
            for name, read in READERS.items():
                rows[name].append(cell(read, folder, spark, old, n_rows))
            if old:  # what is hidden needs the indexes beside the data
                rows[ELSEWHERE].append("-")
                continue
            for path in listed(folder):
                put(elsewhere / path, pq.read_table(folder / path))
            asked = {"x": "bitmap"}
            sx.build_indexes(elsewhere, asked, sidecar=tmp_path / "side", workers=1)
            polars = of_polars("")
            rows[ELSEWHERE].append(cell(polars, elsewhere, spark, old, n_rows))
    finally:
        sx.disable(spark)
    lines = [f"| reader | {' | '.join(MOMENTS)} |", "|---" * 6 + "|"]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    table = "\n".join(lines)
    text = GUIDE.read_text()
    found = re.search(r"\| reader \|.*?(?=\n\n)", text, re.DOTALL)
    assert found, table
    assert found[0] == table


def test_published_files_are_what_every_reader_sees(
    spark: SparkSession, tmp_path: Path
) -> None:
    next(iter(moments(tmp_path)))
    table = sx.open_table(tmp_path)
    layout = sx.Clustering(by=["x"])
    report = table.optimize(spark, layout=layout, in_place=True, publish=True)
    assert report.table.paths == listed(tmp_path)
    assert len(report.table) == 2
    assert not list(tmp_path.rglob("_skipindex-*"))
    assert report.table.status().waiting == ""
    with pytest.raises(LayoutError, match="writes a copy that every reader sees"):
        table.optimize(spark, into=tmp_path / "copy", publish=True)


def test_what_waits_is_told(tmp_path: Path) -> None:
    *_, old = (old for _, old in zip(range(3), moments(tmp_path), strict=False))
    assert old
    table = sx.open_table(tmp_path)
    text = table.status().waiting
    assert re.fullmatch(
        r"2 rewritten files \(0\.0 MB\) are not visible to readers that list the "
        r"folder: vacuum publishes them from \d{4}-\d\d-\d\d \d\d:\d\d UTC on, "
        r"vacuum\(retention=timedelta\(0\)\) now",
        text,
    )
    assert text in str(table.status())
    for report in (table.vacuum(), table.vacuum(dry_run=True)):
        assert report.waiting == text
        assert text in str(report)
    assert table.vacuum(retention=NOW).waiting == ""
