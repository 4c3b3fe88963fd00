"""Clustered DataFrames: the same rows, in files that follow the curve."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession, types
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError
from skipindex.spark.placement import cluster as cluster_module
from skipindex.spark.placement import place
from skipindex.spark.placement.cluster import apply_clustering, cluster, fit_clustering
from tests.spark.versions import since

pytestmark = pytest.mark.spark

N_ROWS = 6_000

SCHEMA = types.StructType(
    [
        types.StructField("id", types.LongType(), nullable=False),
        types.StructField("flag", types.BooleanType()),
        types.StructField("small", types.ShortType()),
        types.StructField("big", types.LongType(), metadata={"comment": "of the year"}),
        types.StructField("real", types.DoubleType()),
        types.StructField("price", types.DecimalType(9, 2)),
        types.StructField("fine", types.DecimalType(38, 10)),
        types.StructField("day", types.DateType()),
        types.StructField("at", types.TimestampType()),
        types.StructField("local", types.TimestampNTZType()),
        types.StructField("city", types.StringType()),
        types.StructField("blob", types.BinaryType()),
        types.StructField("tags", types.ArrayType(types.StringType())),
        types.StructField("more", types.MapType(types.StringType(), types.LongType())),
    ]
)
CLUSTERABLE = [field.name for field in SCHEMA.fields[1:12]]


def rows(n_rows: int = 600) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)

    def one(i: int) -> tuple[Any, ...]:
        v = int(rng.integers(0, 1000))
        values = (
            v % 2 == 0,
            v - 500,
            v * 10**12 - 10**14,
            float("nan") if v % 97 == 0 else -0.0 if v < 10 else v / 7,
            Decimal(v) / 100,
            Decimal(v) * 10**20,
            dt.date(1900, 1, 1) + dt.timedelta(days=v * 300),
            dt.datetime(1900, 1, 3) + dt.timedelta(days=v * 300, microseconds=v),
            dt.datetime(1900, 1, 3) + dt.timedelta(days=v * 300, hours=v),
            "é" * (v % 5) + str(v),
            bytes([v % 256, v // 256]),
            [str(v), None],
            {"k": v},
        )
        return (i, *(None if rng.random() < 0.1 else value for value in values))

    return [one(i) for i in range(n_rows)]


@pytest.fixture(scope="module")
def mixed(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(rows(), SCHEMA).repartition(3).cache()


@pytest.fixture(scope="module")
def points(spark: SparkSession) -> DataFrame:
    """6,000 points of a 1000 x 1000 square, and a value that half of them share."""
    return spark.range(0, N_ROWS, 1, 4).select(
        "id",
        (sf.xxhash64("id") % 1000).cast("int").alias("x"),
        (sf.xxhash64("id", sf.lit(1)) % 1000).cast("int").alias("y"),
        sf.when(sf.col("id") % 2 == 0, 0).otherwise(sf.col("id") % 7).alias("g"),
    )


def sort_key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    if isinstance(value, bytearray):  # before Spark 4.1
        return (1, bytes(value))
    return (1, value.encode() if isinstance(value, str) else value)


def contents(df: DataFrame) -> Counter[str]:
    """The multiset of rows; NaN and maps compare by how they print."""
    return Counter(map(repr, df.collect()))


def partitions(df: DataFrame) -> list[list[Row]]:
    return df.rdd.glom().collect()


def overlap(files: Sequence[Sequence[Row]], name: str) -> float:
    """The mean share of files whose min/max a value of the column hits."""
    bounds = [(min(r[name] for r in f), max(r[name] for r in f)) for f in files if f]
    values = range(-1000, 1000, 25)
    hits = [sum(low <= v <= high for low, high in bounds) for v in values]
    return float(np.mean(hits)) / len(files)


@pytest.fixture(params=["fallback", "newest"])  # a quick run has the first alone
def spark_api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run with what this Spark has, and with what Spark 3.5 has."""
    if request.param == "fallback":
        monkeypatch.setattr(place, "HAS_ARROW_UDF", False)
        monkeypatch.setattr(cluster_module, "HAS_PARTITION_IDS", False)
    return str(request.param)


@pytest.mark.few(1)
@pytest.mark.parametrize("curve", ["hilbert", "zorder", "linear"])
def test_rows_and_schema_stay_as_they_were(mixed: DataFrame, curve: str) -> None:
    found = cluster(mixed, by=["city", "real", "day"], curve=curve, n_files=5)
    assert found.schema == mixed.schema
    assert found.schema["big"].metadata == {"comment": "of the year"}
    assert not found.schema["id"].nullable
    assert found.rdd.getNumPartitions() == 5
    assert contents(found) == contents(mixed)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CLUSTERABLE)
def test_every_type_clusters_with_its_nulls(
    mixed: DataFrame, name: str, spark_api: str
) -> None:
    found = cluster(mixed, by=[name], curve="linear", n_files=4, n_rows=600)
    files = partitions(found.select("id", name))
    assert Counter(r["id"] for f in files for r in f) == Counter(range(600))
    assert all(files)
    nulls = [sum(r[name] is None for r in f) for f in files]
    assert sum(nulls) == sum(row[SCHEMA.names.index(name)] is None for row in rows())
    assert sum(nulls[1:]) == 0, "NULLs lie together, first"
    # 600 rows in up to 256 ranges: only neighbours may have changed places.
    at = [sort_key(r[name]) for f in files for r in f]
    rank = {key: i for i, key in enumerate(sorted(set(at)))}
    steps = [rank[b] - rank[a] for a, b in pairwise(at)]
    assert min(steps) >= -5


@pytest.mark.slow
def test_files_are_even_and_separated(points: DataFrame, spark_api: str) -> None:
    found = cluster(points, by=["x", "y"], n_files=16)
    files = partitions(found)
    sizes = [len(f) for f in files]
    assert len(sizes) == 16
    assert max(sizes) <= 1.5 * N_ROWS / 16
    assert min(sizes) >= 0.6 * N_ROWS / 16
    assert contents(found) == contents(points)
    for name in ("x", "y"):
        assert overlap(partitions(points), name) > 0.95, "nothing to begin with"
        assert overlap(files, name) <= 0.4, "a quarter, were it perfect"


@pytest.mark.slow
def test_older_and_newer_spark_write_the_same_files(
    points: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = partitions(cluster(points, by=["x", "g"], n_files=7))
    monkeypatch.setattr(place, "HAS_ARROW_UDF", False)
    monkeypatch.setattr(cluster_module, "HAS_PARTITION_IDS", False)
    fallback = partitions(cluster(points, by=["x", "g"], n_files=7))
    assert [Counter(f) for f in newest] == [Counter(f) for f in fallback]


@pytest.mark.few(1)
def test_check_06_a_constant_key_fills_all_files(
    points: DataFrame, spark_api: str
) -> None:
    constant = points.withColumn("k", sf.lit("same"))
    sizes = [len(f) for f in partitions(cluster(constant, by=["k"], n_files=6))]
    assert len(sizes) == 6
    assert max(sizes) <= 1.25 * min(sizes)


def test_a_skewed_key_overflows_into_its_own_files(points: DataFrame) -> None:
    files = partitions(cluster(points, by=["g"], n_files=8))
    assert max(map(len, files)) <= 1.6 * N_ROWS / 8
    only_zero = [f for f in files if {r["g"] for r in f} == {0}]
    assert len(only_zero) >= 3
    assert sum(any(r["g"] == 3 for r in f) for f in files) == 1


def test_a_repeated_task_sends_rows_to_the_same_files(points: DataFrame) -> None:
    clustering = fit_clustering(points, by=["g"], n_files=8, n_rows=N_ROWS)
    assert clustering.cuts.needs_salt
    once = partitions(apply_clustering(points, clustering))
    # Other batches and another order of rows, as after a lost shuffle.
    other = partitions(apply_clustering(points.repartition(3), clustering))
    assert [Counter(f) for f in once] == [Counter(f) for f in other]


def test_python_sees_each_row_once_and_nothing_is_sampled_twice(
    points: DataFrame,
) -> None:
    found = cluster(points, by=["x", "y"], n_files=4)
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1
    assert plan.count("Exchange") == 1
    assert "rangepartitioning" not in plan


@pytest.mark.slow
def test_rows_of_a_file_follow_the_curve_or_sort_within(points: DataFrame) -> None:
    along = partitions(cluster(points, by=["x"], curve="linear", n_files=4))
    xs = [r["x"] for f in along for r in f]
    assert sum(a > b for a, b in pairwise(xs)) < 0.5 * len(xs)
    inside = partitions(
        cluster(points, by=["x", "y"], n_files=4, sort_within=["y", "id"])
    )
    for file in inside:
        keys = [(r["y"], r["id"]) for r in file]
        assert keys == sorted(keys)


@pytest.mark.slow
def test_check_07_sorting_inside_files_does_not_change_their_bounds(
    points: DataFrame,
) -> None:
    plain = partitions(cluster(points, by=["x", "y"], n_files=9))
    inner = partitions(cluster(points, by=["x", "y"], n_files=9, sort_within=["y"]))
    assert [Counter(f) for f in plain] == [Counter(f) for f in inner]


def test_trap_c41_column_names_that_need_quotes(spark: SparkSession) -> None:
    odd = spark.range(200).select(
        sf.col("id").alias("a.b"),
        (sf.col("id") % 10).alias("c d"),
        (sf.col("id") % 3).alias("e`f"),
        sf.lit(1).alias("_place0"),
    )
    by = ["a.b", "c d", "e`f"]
    found = cluster(odd, by=by, n_files=3, sort_within=["a.b"])
    assert found.columns == ["a.b", "c d", "e`f", "_place0"]
    assert contents(found) == contents(odd)


def test_names_are_matched_as_spark_matches_them(points: DataFrame) -> None:
    found = cluster(points, by=["X"], n_files=2)
    assert found.columns == points.columns
    assert found.count() == N_ROWS
    twice = points.select("x", sf.col("y").alias("X"))
    with pytest.raises(LayoutError, match="'X': the name is ambiguous"):
        cluster(twice, by=["X"], n_files=2)
    # A doubled name that is not asked for does no harm, also where rows are salted.
    doubled = points.select("g", "x", sf.col("y").alias("x"))
    assert cluster(doubled, by=["g"], n_files=8).columns == ["g", "x", "x"]


@pytest.mark.slow
def test_written_files_are_the_partitions_in_order(
    points: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    cluster(points, by=["x"], curve="linear", n_files=5).write.parquet(str(path))
    files = sorted(path.glob("*.parquet"))
    assert len(files) == 5
    bounds = [
        (min(x), max(x)) for x in (pq.read_table(f)["x"].to_pylist() for f in files)
    ]
    for (_, high), (low, _) in pairwise(bounds):
        assert high <= low + 10


@pytest.mark.slow
def test_hive_partitions_are_in_few_files_each(
    points: DataFrame, tmp_path: Path
) -> None:
    parted = points.withColumn(
        "p",
        sf.when(sf.col("id") % 10 < 6, "big").otherwise(
            (sf.col("id") % 10).cast("string")
        ),
    )
    found = cluster(parted, by=["x", "y"], partition_by=["p"], n_files=10)
    assert contents(found) == contents(parted)
    found.write.partitionBy("p").parquet(str(tmp_path / "t"))
    n_files = {
        folder.name: len(list(folder.glob("*.parquet")))
        for folder in (tmp_path / "t").glob("p=*")
    }
    assert set(n_files) == {"p=big", "p=6", "p=7", "p=8", "p=9"}
    assert 5 <= n_files.pop("p=big") <= 7
    assert max(n_files.values()) == 1
    big = [f for f in partitions(found) if {r["p"] for r in f} == {"big"}]
    assert overlap(big, "x") <= 0.75


@pytest.mark.slow
def test_a_small_sample_still_gives_even_files(points: DataFrame) -> None:
    found = cluster(points, by=["x", "y"], n_files=6, sample_rows=600)
    sizes = [len(f) for f in partitions(found)]
    assert max(sizes) <= 1.7 * N_ROWS / 6
    assert min(sizes) >= 0.5 * N_ROWS / 6


def test_no_rows(points: DataFrame) -> None:
    nothing = cluster(points.limit(0), by=["x"], n_files=3)
    assert nothing.schema == points.schema
    assert nothing.count() == 0


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["z"]}, r"cannot cluster by 'z': no such column .columns: \['id'"),
        ({"by": ["x", "X"]}, "cannot cluster by 'x' twice"),
        ({"by": "x"}, "the string 'x' .accepted: a list"),
        ({"by": []}, "by no columns"),
        ({"by": ["x"], "n_files": 0}, "into 0 files"),
        ({"by": ["x"], "curve": "peano"}, "no curve is named 'peano'"),
        ({"by": ["x"], "partition_by": ["x"]}, "by partition column 'x'"),
        ({"by": ["x"], "partition_by": ["z"]}, "cannot partition by 'z'"),
        ({"by": ["x"], "sort_within": ["z"]}, "cannot sort within files by 'z'"),
    ],
)
def test_check_05_impossible_clusterings_are_refused_in_one_sentence(
    points: DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(LayoutError, match=message):
        cluster(points, **{"n_files": 2, **options})


@pytest.mark.parametrize("name", ["tags", "more", "pair"])
def test_types_without_order_are_refused_by_name(mixed: DataFrame, name: str) -> None:
    wide = mixed.withColumn("pair", sf.struct("id", "day"))
    with pytest.raises(LayoutError, match=f"'{name}': type (array|map|struct)<.* not"):
        cluster(wide, by=[name], n_files=2)


@since(4, 0, what="collations")
def test_trap_c11_collated_strings_are_refused(spark: SparkSession) -> None:
    folded = spark.sql("SELECT 'A' COLLATE UTF8_LCASE AS s")
    with pytest.raises(LayoutError, match="'s': type string collate UTF8_LCASE"):
        cluster(folded, by=["s"], n_files=2)


@pytest.mark.few(3)
@pytest.mark.parametrize("n_partitions", [1, 2, 7, 200])
def test_labels_are_sent_to_their_partition(
    spark: SparkSession, n_partitions: int, spark_api: str
) -> None:
    labels = cluster_module.labels(n_partitions)
    assert len(labels) == n_partitions
    df = spark.createDataFrame(
        [(p, int(label)) for p, label in enumerate(labels)], "p int, label int"
    )
    sent = cluster_module.by_number(df, n_partitions, sf.col("label"))
    found = sent.select("p", sf.spark_partition_id().alias("at")).collect()
    assert all(row["p"] == row["at"] for row in found)
    assert len(found) == n_partitions
