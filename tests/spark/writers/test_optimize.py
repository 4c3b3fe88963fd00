"""Optimize on Spark: the same rows, schema and folders, in better files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.api.types import OptimizeReport
from skipindex.errors import LayoutError, PlanError, TableError
from skipindex.rewrite.selection import target
from skipindex.rewrite.selection.cubes import runs_of
from skipindex.rewrite.vacuum import vacuum
from tests.rewrite.seen import everything, listed
from tests.spark.reading.whole import columns, rows
from tests.spark.reading.whole import settings as session_settings

pytestmark = pytest.mark.spark

NOW = timedelta(0)
N_ROWS = 600


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    made = spark.range(N_ROWS).selectExpr(
        "id",
        "id * 7919 % 400 AS a",
        "CASE WHEN id % 10 = 0 THEN NULL ELSE id * 104729 % 100 END AS b",
        "CASE id % 7 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D ELSE id / 3D END AS d",
        "concat('city ', id % 5) AS city",
        "CAST(id / 8 AS DECIMAL(30, 3)) AS price",
        "timestamp_micros(id * 1000003) AS at",
        "named_struct('x', id, 'y', array(id, NULL)) AS nested",
        "CASE WHEN id % 9 = 0 THEN NULL ELSE id % 3 END AS p",
    )
    noted = made.withColumn("b", sf.col("b").alias("b", metadata={"comment": "kept"}))
    return noted.cache()


def foreign(df: DataFrame, path: Path, n_files: int = 6, *by: str) -> Path:
    """A table as Spark writes it, in no order."""
    writer = df.repartition(n_files).write.mode("append")
    (writer.partitionBy(*by) if by else writer).parquet(str(path))
    return path


def both(spark: SparkSession, path: Path) -> tuple[list[str], list[str]]:
    """The rows through our reader and through Spark's."""
    ours = sx.read(sx.open_table(path), "true", spark=spark)
    return rows(ours), rows(spark.read.parquet(str(path)))


def test_copies_and_workloads_keep_the_number_of_files_too(
    spark: SparkSession,
    df: DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target, "_LEAST_BYTES", 100)
    table = sx.open_table(foreign(df, tmp_path / "t"))
    request: Any = {"a": "minmax"}
    by_a = sx.Clustering(by=["a"])
    copy = table.optimize(spark, layout=by_a, into=tmp_path / "u", indexes=request)
    assert (copy.files_in, copy.files_out) == (6, 6)
    asked = sx.Workload(["a = 5", "a BETWEEN 10 AND 20"])
    report = table.optimize(spark, layout=asked, in_place=True, indexes=request)
    assert (report.files_in, report.files_out) == (6, 6)
    assert report.table.status().layout["cluster_by"] == ["a"]


@pytest.mark.slow
def test_rows_schema_and_metadata_are_unchanged(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = foreign(df, tmp_path / "t")
    sx.build_indexes(path, {"a": "bitmap", "b": ["bit_sliced", "bloom"]}, workers=1)
    before = spark.read.parquet(str(path))
    expected, schema = rows(before), before.schema
    report = sx.open_table(path).optimize(
        spark, layout=sx.Clustering(by=["a", "b"], rows_per_file=100), in_place=True
    )
    assert (report.files_in, report.n_rows) == (6, N_ROWS)
    assert 5 <= report.files_out <= 7
    assert both(spark, path) == (expected, expected)
    assert len(report.table.plan("a < 20 AND b < 20").paths) < report.files_out
    kinds = {
        blob.entry.meta.kind for blob in report.table.state.blobs(column(report, "b"))
    }
    assert kinds == {"bit_sliced", "bloom"}
    found = sx.read(
        report.table, "a BETWEEN 10 AND 30 AND city = 'city 3'", spark=spark
    )
    assert rows(found) == rows(df.where("a BETWEEN 10 AND 30 AND city = 'city 3'"))
    assert found.schema == schema

    published = vacuum(path, retention=NOW).published
    assert published == len(sx.open_table(path))
    after = spark.read.parquet(str(path))
    assert after.schema == schema
    assert after.schema["b"].metadata == {"comment": "kept"}
    assert both(spark, path) == (expected, expected)
    assert listed(path) == sx.open_table(path).paths
    assert sx.open_table(path).state.index_gaps == {}


def column(report: OptimizeReport, name: str) -> Any:
    return report.table.state.resolve(name)


@pytest.mark.slow
def test_twice_rewrites_nothing_and_what_is_appended_is_clustered(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path, df = tmp_path / "t", df.select("id", "a", "b")
    layout = sx.Clustering(by=["a", "b"], rows_per_file=100)
    sx.write_table(df, path, layout=layout, indexes={"a": [], "b": []})
    for mode in ("incremental", "full"):
        again = sx.open_table(path).optimize(spark, mode=mode)
        assert (again.files_in, again.bytes_out) == (0, 0), "it was written clustered"
    sealed = sx.open_table(path).optimize(spark, mode="full", cube_size=1000)
    assert sealed.sealed > 0
    foreign(df.limit(60), path, 2)
    third = sx.open_table(path).optimize(spark, cube_size=1000)
    assert third.files_in == 2
    expected = rows(spark.read.parquet(str(path)))
    assert both(spark, path)[0] == expected
    assert (
        sx.open_table(path).optimize(spark, mode="full", cube_size=10**9).files_in > 2
    )


def test_partitions_keep_their_folders(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    """Also those that Spark would spell otherwise: 01 is the number 1."""
    path = tmp_path / "t"
    for name in ("p=01", "p=2", "p=__HIVE_DEFAULT_PARTITION__"):
        foreign(df.drop("p").where("id < 200"), path / name / "q=a%3Ab c", 3)
    before = spark.read.parquet(str(path))
    expected, shape = rows(before), columns(before)
    report = sx.open_table(path).optimize(
        spark,
        layout=sx.Clustering(by=["a"], rows_per_file=100),
        predicate="p = 1 OR p IS NULL",
        in_place=True,
    )
    assert report.files_in == 6
    assert both(spark, path) == (expected, expected)
    condition = "p = 1 AND a < 20 AND q = 'a:b c'"
    found = sx.read(report.table, condition, spark=spark)
    assert columns(found) == shape
    assert rows(found) == rows(before.where(condition))
    assert found.count() > 0
    vacuum(path, retention=NOW)
    assert both(spark, path) == (expected, expected)
    assert {name.rpartition("/")[0] for name in listed(path)} == {
        "p=01/q=a%3Ab c",
        "p=2/q=a%3Ab c",
        "p=__HIVE_DEFAULT_PARTITION__/q=a%3Ab c",
    }


@pytest.mark.slow
def test_a_partition_alone_is_rewritten(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = foreign(df, tmp_path / "t", 3, "p")
    expected = rows(spark.read.parquet(str(path)))
    layout = sx.Clustering(by=["a", "b"], curve="zorder")
    with pytest.raises(TableError, match="was not written by skipindex"):
        sx.open_table(path).optimize(spark, layout=layout)
    report = sx.open_table(path).optimize(
        spark, layout=layout, predicate="p = 1", mode="full", in_place=True
    )
    assert report.files_in == 3
    runs = runs_of(report.table.state.snapshot.properties).values()
    assert [how.shape["curve"] for how in runs] == ["zorder"]
    told = vacuum(path, retention=NOW, dry_run=True)
    done = vacuum(path, retention=NOW)
    assert told.published == done.published == report.files_out
    assert {f for f in told.deleted if f.startswith("p=")} <= set(done.deleted)
    assert both(spark, path) == (expected, expected)


def test_small_files_are_joined(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = foreign(df, tmp_path / "t", 4, "p")
    expected = rows(spark.read.parquet(str(path)))
    report = sx.open_table(path).optimize(
        spark, layout=sx.Clustering(rows_per_file=10_000), in_place=True
    )
    assert report.files_in == 16
    assert report.files_out == 4
    assert both(spark, path) == (expected, expected)
    assert (
        sx.open_table(path)
        .optimize(spark, layout=sx.Clustering(rows_per_file=10_000))
        .files_in
        == 0
    )
    assert report.table.plan("a < 10").paths == report.table.paths, (
        "check 14: joining alone skips nothing"
    )


@pytest.mark.slow
def test_check_06_one_constant_key_fills_all_files(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = foreign(df.withColumn("k", sf.lit(1)), tmp_path / "t")
    report = sx.open_table(path).optimize(
        spark,
        layout=sx.Clustering(by=["k"], rows_per_file=100),
        in_place=True,
        indexes={"k": []},
    )
    assert report.files_out == 6
    assert min(report.table.state.n_rows.or_else(-1)) > 50


@pytest.mark.slow
def test_check_07_sorting_inside_changes_no_bounds(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    found = []
    few = df.select("id", "a", "b", "city").orderBy("id")
    for i, inner in enumerate([None, ["city", "id"]]):
        path = foreign(few, tmp_path / str(i))
        layout = sx.Clustering(by=["a", "b"], rows_per_file=100, sort_within=inner)
        report = sx.open_table(path).optimize(spark, layout=layout, in_place=True)
        table = report.table
        stats = [table.state.stats(table.state.resolve(name)) for name in ("a", "b")]
        found.append([(list(s.low), list(s.high)) for s in stats])
        if inner:
            for name in table.paths:
                read = pq.ParquetFile(path / name).read(["city", "id"]).to_pydict()
                pairs = list(zip(read["city"], read["id"], strict=True))
                assert pairs == sorted(pairs)
    assert found[0] == found[1]


@pytest.mark.slow
def test_into_leaves_the_table_alone(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = foreign(df, tmp_path / "t", 3, "p")
    sx.build_indexes(path, {"a": "bitmap", "b": [], "*": None}, workers=1)
    files, expected = everything(path), rows(spark.read.parquet(str(path)))
    report = sx.open_table(path).optimize(
        spark,
        layout=sx.Clustering(by=["a"], bytes_per_file=10_000),
        into=tmp_path / "new",
    )
    assert everything(path) == files
    assert both(spark, tmp_path / "new") == (expected, expected)
    assert set(report.table.state.snapshot.manifest.stats) == {"a", "b"}
    assert report.table.state.location.root == str(tmp_path / "new")
    before, after = report.overlap_before["a"], report.overlap_after["a"]
    assert before is not None
    assert after is not None
    assert before.mean > after.mean
    with pytest.raises(LayoutError, match="copy of the whole table"):
        sx.open_table(path).optimize(spark, into=tmp_path / "3", predicate="p = 1")
    with pytest.raises(LayoutError, match="copy of the whole table"):
        sx.open_table(path).optimize(spark, into=tmp_path / "3", budget="1GB")
    with pytest.raises(TableError, match="is not empty"):
        sx.open_table(path).optimize(
            spark, layout=sx.Clustering(by=["a"]), into=tmp_path / "new"
        )


def test_a_session_that_changes_values_is_refused(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = foreign(df, tmp_path / "t", 1)
    changes = {"spark.sql.parquet.int96TimestampConversion": "true"}
    with session_settings(spark, changes), pytest.raises(PlanError, match="int96"):
        sx.open_table(path).optimize(
            spark, layout=sx.Clustering(by=["a"]), in_place=True
        )


def test_a_damaged_file_fails_the_run_whatever_the_session_ignores(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = foreign(df, tmp_path / "t", 2)
    name = next(path.glob("part-*.parquet"))
    data = bytearray(name.read_bytes())
    data[4:2000] = bytes(1996)
    name.write_bytes(bytes(data))
    (path / f".{name.name}.crc").unlink()
    files = everything(path)
    with (
        session_settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}),
        pytest.raises(Exception, match=r"(?i)parquet"),
    ):
        sx.open_table(path).optimize(
            spark, layout=sx.Clustering(by=["a"]), in_place=True
        )
    assert everything(path) == files


@pytest.mark.slow
def test_bins_of_small_files_become_files_of_their_own(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    """Spark 4.3 would make one partition of a union of single ones."""
    path = foreign(df, tmp_path / "t", 12)
    report = sx.open_table(path).optimize(
        spark,
        layout=sx.Clustering(by=[], rows_per_file=120),
        in_place=True,
        indexes={"*": "minmax"},
    )
    assert report.files_in == 12
    assert report.files_out == 6
    assert max(report.table.state.n_rows.or_else(-1)) <= 120


@pytest.mark.slow
def test_an_order_alone_stays_the_layout(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    few = df.select("id", "a")
    layout = sx.Clustering(sort_within=["a", "id"], rows_per_file=300)
    sx.write_table(few, tmp_path / "t", layout=layout, indexes={"*": "minmax"})
    for _ in range(2):
        sx.append(few.limit(50).coalesce(1), tmp_path / "t")
    report = sx.open_table(tmp_path / "t").optimize(spark)
    assert (report.files_in, report.files_out) == (2, 1)
    assert report.table.state.snapshot.properties.to_json()["layout"][
        "sort_within"
    ] == [
        "a",
        "id",
    ]
    for name in report.table.paths:
        read = pq.ParquetFile(tmp_path / "t" / name).read(["a", "id"]).to_pydict()
        pairs = list(zip(read["a"], read["id"], strict=True))
        assert pairs == sorted(pairs)


@pytest.mark.slow
def test_a_size_in_bytes_stays_the_target(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    few = df.select("id", "a")
    sx.write_table(
        few,
        tmp_path / "t",
        layout=sx.Clustering(by=["a"], rows_per_file=300),
        indexes={"a": []},
    )
    report = sx.open_table(tmp_path / "t").optimize(
        spark, layout=sx.Clustering(bytes_per_file=3000), mode="full"
    )
    n_files = len(report.table)
    table = sx.append(few, tmp_path / "t")
    assert n_files <= len(table) - n_files <= 2 * n_files
    assert table.state.snapshot.properties.to_json()["layout"]["bytes_per_file"] == 3000
    assert spark.read.parquet(str(tmp_path / "t")).count() == 2 * N_ROWS


values = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(),
        "s": st.none() | st.text("ab\U0001f33c'", max_size=3),
        "p": st.none() | st.sampled_from(["x", "y z", "a=b"]),
    }
)


drawn = {
    "batch": st.lists(values, min_size=1, max_size=30),
    "by": st.sampled_from([["i"], ["f"], ["s"], ["s", "i", "f"]]),
    "curve": st.sampled_from(["hilbert", "zorder", "linear"]),
    "rows_per_file": st.integers(1, 20),
}
ODD = {"i": -(2**63), "f": -0.0, "s": "\U0001f33c'", "p": "y z"}
BATCH: list[dict[str, Any]] = [
    *({"i": i, "f": i / 2, "s": "ab"[i % 2], "p": "a=b"} for i in range(9)),
    *(ODD | change for change in ({}, {"f": float("nan")}, {"p": None})),
    dict.fromkeys("ifsp"),
]


@pytest.mark.slow
def test_rewriting_odd_rows_changes_none(spark: SparkSession, tmp_path: Path) -> None:
    by = ["s", "i", "f"]
    check_rewriting(
        spark, tmp_path / "t", batch=BATCH, by=by, curve="hilbert", rows_per_file=3
    )


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(**drawn)
def test_rewriting_changes_no_row(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, **given: Any
) -> None:
    check_rewriting(spark, tmp_path_factory.mktemp("t") / "t", **given)


def check_rewriting(
    spark: SparkSession,
    path: Path,
    *,
    batch: list[dict[str, Any]],
    by: list[str],
    curve: str,
    rows_per_file: int,
) -> None:
    made = spark.createDataFrame(
        [(r["i"], r["f"], r["s"], r["p"]) for r in batch],
        "i bigint, f double, s string, p string",
    )
    foreign(made, path, 2, "p")
    before = spark.read.parquet(str(path))
    expected, schema = Counter(rows(before)), before.schema
    layout = sx.Clustering(by=by, curve=curve, rows_per_file=rows_per_file)
    sx.open_table(path).optimize(spark, layout=layout, in_place=True)
    assert tuple(map(Counter, both(spark, path))) == (expected, expected)
    again = sx.open_table(path).optimize(spark, layout=layout, in_place=True)
    assert again.files_in == 0
    vacuum(path, retention=NOW)
    assert tuple(map(Counter, both(spark, path))) == (expected, expected)
    assert spark.read.parquet(str(path)).schema == schema


KILLED = """
import os, sys
from skipindex.storage.file_system.location import Location
import skipindex as sx
from ssb.session import local_session

name, n = sys.argv[2], int(sys.argv[3])
original = getattr(Location, name)
calls = []

def mortal(*args):
    calls.append(name)
    if len(calls) == n:
        os._exit(42)
    return original(*args)

setattr(Location, name, mortal)
spark = local_session(cores=1, memory="1g")
layout = sx.Clustering(by=["a"], rows_per_file=100)
sx.open_table(sys.argv[1]).optimize(spark, layout=layout, in_place=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n"), [("move", 3), ("write_new", 1)])
def test_a_process_that_is_killed(
    spark: SparkSession, df: DataFrame, tmp_path: Path, name: str, n: int
) -> None:
    path = foreign(df, tmp_path / "t")
    expected = rows(spark.read.parquet(str(path)))
    command = [sys.executable, "-c", KILLED, str(path), name, str(n)]
    done = subprocess.run(command, env=dict(os.environ), check=False)
    assert done.returncode == 42
    assert both(spark, path) == (expected, expected)
    assert len(everything(path)) > len(listed(path)) + 10
    vacuum(path, retention=NOW)
    assert both(spark, path) == (expected, expected)
    assert not [
        f for f in everything(path) if f.startswith("_skipindex") and "/log" not in f
    ]
