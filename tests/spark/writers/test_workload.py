"""Tables that are laid out for a workload, and rows appended to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.errors import LayoutError, TableError
from skipindex.spark.columns import row_size
from skipindex.spark.placement import cluster as cluster_module
from skipindex.spark.placement import place
from skipindex.spark.placement.cluster import (
    apply_clustering,
    cluster,
    fit_clustering,
    fit_workload,
)
from tests.spark.reading.whole import columns, rows

pytestmark = pytest.mark.spark

N_ROWS = 3_000
QUERIES = [
    "region = 'ASIA' AND price < 20",
    "day >= DATE '2024-03-01' AND region = 'EUROPE'",
    "price BETWEEN 80 AND 90 AND flag = true",
]


def facts(spark: SparkSession, first: int = 0) -> DataFrame:
    made = spark.range(first, first + N_ROWS, 1, 3).select(
        "id",
        sf.element_at(
            sf.array(*map(sf.lit, ("AFRICA", "ASIA", "EUROPE"))),
            (sf.abs(sf.xxhash64("id")) % 3 + 1).cast("int"),
        ).alias("region"),
        sf.expr("CASE WHEN id % 50 = 0 THEN NULL ELSE id * 7919 % 100 END").alias(
            "price"
        ),
        sf.expr("date_add(DATE '2024-01-01', cast(id * 31 % 120 AS int))").alias("day"),
        sf.expr("id % 3 = 0").alias("flag"),
        sf.expr("array(id)").alias("tags"),
    )
    return made.cache()


def counts(df: DataFrame, queries: Sequence[str]) -> tuple[int, ...]:
    """How many rows each query finds, of one Spark job."""
    (row,) = df.select(*(sf.count_if(sf.expr(query)) for query in queries)).collect()
    return tuple(row)


@pytest.mark.slow
@pytest.mark.parametrize(
    "api", ["newest", pytest.param("fallback", marks=pytest.mark.slow)]
)
def test_a_table_for_a_workload_has_the_same_rows_and_skips_more(
    spark: SparkSession, tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if api == "fallback":  # what Spark 3.5 has
        monkeypatch.setattr(place, "HAS_ARROW_UDF", False)
        monkeypatch.setattr(cluster_module, "HAS_PARTITION_IDS", False)
    df = facts(spark)
    table = sx.write_table(
        df,
        tmp_path / "t",
        layout=sx.Clustering(by=sx.Workload(QUERIES), rows_per_file=150),
    )
    written = spark.read.parquet(str(tmp_path / "t"))
    assert columns(written) == columns(df)
    assert rows(written) == rows(df)
    assert len(table) == 20
    layout = table.state.snapshot.properties.to_json()["layout"]
    assert layout["workload"]["queries"] == QUERIES
    assert layout["files_read_on_sample"]["curve"] <= 20
    kept = [len(table.plan(query).paths) for query in QUERIES]
    assert sum(kept) <= 20
    for query, n in zip(QUERIES, counts(df, QUERIES), strict=True):
        assert table.plan(query).read(spark).count() == n


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "is_copy"),
    [
        pytest.param([], False, marks=pytest.mark.slow),
        (["region"], True),
        pytest.param(["region"], False, marks=pytest.mark.slow),
    ],
)
def test_optimize_lays_a_table_of_others_out_for_a_workload(
    spark: SparkSession, tmp_path: Path, parts: list[str], is_copy: bool
) -> None:
    df = facts(spark)
    path = tmp_path / "t"
    df.write.partitionBy(*parts).parquet(str(path))
    request = sx.Clustering(by=sx.Workload(QUERIES), rows_per_file=150)
    report = sx.open_table(path).optimize(
        spark,
        layout=request,
        in_place=not is_copy,
        into=tmp_path / "copy" if is_copy else None,
    )
    table = report.table
    layout = table.state.snapshot.properties.to_json()["layout"]
    assert layout["workload"]["queries"] == QUERIES
    assert layout["rows_per_file"] == 150
    n_read = [len(table.plan(query).paths) for query in QUERIES]
    assert sum(n_read) / len(n_read) < 0.5 * report.files_out
    found = table.plan("TRUE").read(spark).select(*df.columns)
    assert rows(found) == rows(df)
    for query, n in zip(QUERIES, counts(df, QUERIES), strict=True):
        assert table.plan(query).read(spark).count() == n
    assert table.optimize(spark).files_in == 0


def test_a_workload_chooses_its_curve_and_reads_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(10).write.parquet(str(tmp_path / "t"))
    table, asked = sx.open_table(tmp_path / "t"), sx.Workload(["id < 3"])
    with pytest.raises(LayoutError, match="a workload chooses its curve"):
        table.optimize(
            spark, layout=sx.Clustering(by=asked, curve="zorder"), in_place=True
        )
    with pytest.raises(TableError, match="was not written by skipindex"):
        table.optimize(spark, layout=asked)
    with monkeypatch.context() as patched:
        patched.setattr("skipindex.spark.writers.optimize.fit_workload", None)
        for wrong in ({"mode": "half"}, {"budget": "much"}):
            with pytest.raises(LayoutError, match=r"half|much"):
                table.optimize(spark, layout=asked, in_place=True, **wrong)
    with pytest.raises(LayoutError, match="declare_layout cannot choose columns"):
        table.declare_layout(sx.Clustering(by=asked))
    where = sx.Clustering(by=asked)
    with pytest.raises(LayoutError, match="without where"):
        table.optimize(spark, layout=where, predicate="TRUE", into=tmp_path / "copy")


@pytest.mark.slow
def test_appended_rows_are_laid_out_for_the_workload(
    spark: SparkSession, tmp_path: Path
) -> None:
    df, more = facts(spark), facts(spark, first=10_000)
    path = tmp_path / "t"
    sx.write_table(
        df,
        path,
        layout=sx.Clustering(by=sx.Workload(QUERIES), rows_per_file=150),
        indexes={"region": "bitmap", "price": ["bit_sliced", "bloom"], "day": []},
    )
    before = {entry.path: entry for entry in sx.open_table(path).files}
    table = sx.append(more.select(*reversed(more.columns)), path)
    after = {entry.path: entry for entry in table.files}
    assert {name: after[name] for name in before} == before
    assert len(after) == 40
    written = spark.read.parquet(str(path))
    assert columns(written) == columns(df)
    assert rows(written) == rows(df.union(more))
    assert not table.state.index_gaps
    for query, n in zip(QUERIES, counts(df.union(more), QUERIES), strict=True):
        plan = table.plan(query)
        old = [name for name in plan.paths if name in before]
        assert len(plan.paths) <= 2 * len(old) + 2
        assert plan.read(spark).count() == n
    kinds = {
        use.entry.meta.kind for use in table.state.blobs(table.state.resolve("price"))
    }
    assert kinds == {"bit_sliced", "bloom"}


@pytest.mark.slow
@pytest.mark.parametrize("parts", [[], ["flag"]])
def test_answers_stay_together_in_appends_and_rewrites(
    spark: SparkSession, tmp_path: Path, parts: list[str]
) -> None:
    df, more = facts(spark), facts(spark, first=10_000)
    path = tmp_path / "t"
    asked = [*QUERIES, "price >= 0", "sin(price) > 2"]
    table = sx.write_table(
        df,
        path,
        layout=sx.Clustering(
            by=sx.Workload(asked, method="answers"), rows_per_file=150
        ),
        partition_by=parts,
        indexes=dict.fromkeys({"region", "price", "flag"} - {*parts}, "bitmap"),
    )
    stored = table.state.snapshot.properties.to_json()["layout"]["answers"]
    assert len(stored["conditions"]) == 2
    assert len(stored["left_out"]) == 3 + len(parts)
    assert not {*parts} & {own["column"] for own in stored["steps"]}

    def kept(now: sx.Table) -> int:
        return sum(len(now.plan(query).paths) for query in QUERIES[::2])

    assert kept(table) <= 8 + 4 * len(parts)
    table = sx.append(more.select(*reversed(more.columns)), path)
    assert kept(table) <= 2 * (8 + 4 * len(parts))
    report = table.optimize(spark, mode="full")
    assert report.files_in > 0
    after = sx.open_table(path)
    assert after.state.snapshot.properties.to_json()["layout"]["answers"] == stored
    assert kept(after) <= 12 + 4 * len(parts)
    found = spark.read.schema(df.schema).parquet(str(path)).select(*df.columns)
    assert rows(found) == rows(df.union(more))
    for query, n in zip(asked, counts(df.union(more), asked), strict=True):
        assert after.plan(query).read(spark).count() == n


@pytest.mark.slow
@pytest.mark.parametrize(
    "by", [["price", "day"], pytest.param(None, marks=pytest.mark.slow)]
)
def test_append_follows_other_layouts_too(
    spark: SparkSession, tmp_path: Path, by: list[str] | None
) -> None:
    df, more = facts(spark), facts(spark, first=10_000)
    path = tmp_path / "t"
    shape = sx.Clustering(by=by, rows_per_file=500, sort_within=["id"])
    sx.write_table(df, path, layout=shape, partition_by=["region"])
    table = sx.append(more, path)
    assert rows(spark.read.parquet(str(path)).select(*df.columns)) == rows(
        df.union(more)
    )
    assert not table.state.index_gaps


def test_a_table_without_a_layout_takes_no_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = facts(spark)
    df.write.parquet(str(tmp_path / "foreign"))
    with pytest.raises(LayoutError, match="no layout of its own"):
        sx.append(df, tmp_path / "foreign")


@pytest.mark.slow
def test_what_cannot_be_appended_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = facts(spark)
    sx.write_table(df, tmp_path / "ours")
    with pytest.raises(TableError, match="cannot append columns"):
        sx.append(df.drop("day"), tmp_path / "ours")


def test_check_28_more_than_four_columns_are_advised_against(
    spark: SparkSession,
) -> None:
    five = ["region", "price", "day", "flag", "id"]
    with pytest.warns(UserWarning, match="two to 4 work best"):
        fit_clustering(facts(spark), by=five, n_files=2)


@pytest.mark.parametrize(
    "by",
    [
        ["id"],
        pytest.param(sx.Workload(["id < 900", "flag"]), marks=pytest.mark.slow),
    ],
)
def test_check_19_files_can_be_balanced_by_the_size_of_rows(
    spark: SparkSession, by: list[str] | sx.Workload
) -> None:
    long = sf.expr("repeat('x', CASE WHEN id < 600 THEN 1000 ELSE 10 END)")
    df = facts(spark).withColumn("text", long)

    def clustered_by(balance: str) -> DataFrame:
        if isinstance(by, list):
            return cluster(df, by=by, n_files=10, balance=balance)
        found = fit_workload(df, by, n_files=10, balance=balance)
        return apply_clustering(df, found.layout)

    def spread(balance: str) -> float:
        clustered = clustered_by(balance)
        assert clustered.schema == df.schema, "no key is left"
        sizes = clustered.groupBy(sf.spark_partition_id()).agg(
            sf.sum(row_size(df.schema)).alias("size")
        )
        found = [row["size"] for row in sizes.collect()]
        assert len(found) == 10
        return max(found) / min(found)

    assert spread("bytes") < 4 < 8 < spread("rows")
    with pytest.raises(LayoutError, match="cannot balance 'files'"):
        clustered_by("files")
