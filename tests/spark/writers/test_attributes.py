"""Tables clustered by attributes of joined tables, which are not stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.api.types import JoinedAttribute
from skipindex.errors import LayoutError
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.source import commit
from tests.spark.reading.whole import columns, rows

pytestmark = pytest.mark.spark

N_ROWS = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Customers whose regions have nothing to do with the order of their keys."""
    folder = tmp_path_factory.mktemp("star")
    keys = list(range(50))
    customers = {
        "c_custkey": pa.array([*keys, None, 7], pa.int32()),
        "region": [*(f"r{key * 7 % 10}" for key in keys), "r0", "r9"],
        "size": [*(key * 3 % 5 for key in keys), 0, None],
    }
    (folder / "customer").mkdir()
    pq.write_table(pa.table(customers), folder / "customer" / "0.parquet")
    return folder


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    """Orders with NULL keys, and keys that no customer has."""
    made = spark.range(N_ROWS).selectExpr(
        "id",
        "CASE WHEN id % 11 = 0 THEN NULL ELSE id * 7919 % 55 END AS `the.key`",
        "array(id) AS tags",
        "id % 2 AS p",
    )
    return made.cache()


def region(folder: Path) -> JoinedAttribute:
    return sx.via("the.key", folder / "customer", "c_custkey", "region")


def size(folder: Path) -> JoinedAttribute:
    return sx.via("the.key", folder / "customer", "c_custkey", "size")


def regions_of_files(table: sx.Table, folder: Path) -> list[int]:
    """How many regions the rows of each file have."""
    customer = pq.read_table(folder / "customer").to_pylist()
    known = {c["c_custkey"]: c["region"] for c in customer[:50]}
    found = []
    for path in table.paths:
        keys = pq.read_table(table.state.location.full(path), partitioning=None)[
            "the.key"
        ]
        found.append(len({known.get(key) for key in keys.to_pylist()}))
    return found


@pytest.mark.slow
def test_rows_are_clustered_by_what_is_looked_up(
    spark: SparkSession, df: DataFrame, folder: Path, tmp_path: Path
) -> None:
    layout = sx.Clustering(by=[region(folder)], curve="linear", rows_per_file=50)
    plain = {"id": "minmax"}
    table = sx.write_table(df, tmp_path / "t", layout=layout, indexes=plain)
    written = spark.read.parquet(str(tmp_path / "t"))
    assert columns(written) == columns(df)
    assert rows(written) == rows(df)
    assert max(regions_of_files(table, folder)) <= 4
    recorded = table.state.snapshot.properties.layout or {}
    assert recorded["cluster_by"] == ["region via the.key"]
    assert recorded["via"]["region via the.key"]["attribute"] == "region"
    more = sx.append(df.limit(100), tmp_path / "t")
    assert len(more) > len(table)
    assert columns(spark.read.parquet(str(tmp_path / "t"))) == columns(df)


def optimized(
    spark: SparkSession, df: DataFrame, folder: Path, tmp_path: Path
) -> sx.Table:
    """A table that is clustered by regions, which a second run leaves as it is."""
    shutil.copytree(folder / "customer", tmp_path / "customer")
    table = sx.write_table(
        df, tmp_path / "t", partition_by=["p"], indexes={"id": "minmax"}
    )
    assert max(regions_of_files(table, folder)) == 11
    small = sx.Clustering(
        by=[region(tmp_path)], curve="linear", rows_per_file=50, sort_within=["id"]
    )
    report = table.optimize(spark, layout=small, mode="full")
    assert report.files_out >= 8
    assert max(regions_of_files(report.table, folder)) <= 5
    assert report.overlap_after == {"region via the.key": None}
    again = report.table.optimize(spark)
    assert again.files_in == 0
    return report.table


@pytest.mark.slow
def test_a_second_run_clusters_by_the_same(
    spark: SparkSession, df: DataFrame, folder: Path, tmp_path: Path
) -> None:
    assert len(optimized(spark, df, folder, tmp_path)) >= 8


@pytest.mark.slow
def test_a_copy_is_clustered_by_the_same(
    spark: SparkSession, df: DataFrame, folder: Path, tmp_path: Path
) -> None:
    """And by more, with columns of its own."""
    layout = sx.Clustering(by=[region(tmp_path), size(tmp_path), "id"])
    table = optimized(spark, df, folder, tmp_path)
    copy = table.optimize(spark, into=tmp_path / "copy").table
    assert max(regions_of_files(copy, folder)) <= 5
    both = copy.optimize(spark, layout=layout, mode="full").table
    assert (both.state.snapshot.properties.layout or {})["cluster_by"] == [
        *("region via the.key", "size via the.key", "id")
    ]
    everything = spark.read.parquet(
        *(both.state.location.full(path) for path in both.paths)
    )
    assert everything.count() == N_ROWS


def test_what_cannot_be_looked_up_is_refused(
    spark: SparkSession, df: DataFrame, folder: Path, tmp_path: Path
) -> None:
    def write(*by: str | JoinedAttribute) -> None:
        layout = sx.Clustering(by=list(by), rows_per_file=50)
        sx.write_table(df, tmp_path / "t", layout=layout, indexes={})

    customer = folder / "customer"
    with pytest.raises(LayoutError, match="no column 'no' to lay out by"):
        write(sx.via("no", customer, "c_custkey", "region"))
    with pytest.raises(LayoutError, match="cannot look up 'no' in"):
        write(sx.via("id", customer, "c_custkey", "no"))
    with pytest.raises(LayoutError, match="cannot look up 'region' in"):
        write(sx.via("id", tmp_path / "nowhere", "c_custkey", "region"))
    with pytest.raises(LayoutError, match="of two tables is looked up by 'id'"):
        write(
            sx.via("id", customer, "c_custkey", "region"),
            sx.via("id", customer, "size", "region"),
        )
    texts = pa.table({"key": ["1", "01"], "region": ["r1", "r2"]})
    (tmp_path / "texts").mkdir()
    pq.write_table(texts, tmp_path / "texts" / "0.parquet")
    with pytest.raises(LayoutError, match="they are bigint and string"):
        write(sx.via("id", tmp_path / "texts", "key", "region"))
    assert not (tmp_path / "t").exists()


def test_a_record_that_fails_its_check_is_no_layout(
    df: DataFrame, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another writer may commit it; ours refuses."""
    monkeypatch.setattr("skipindex.log.commits._require_readable", str)
    layout = sx.Clustering(by=[region(folder)], rows_per_file=200)
    table = sx.write_table(df, tmp_path / "t", layout=layout, indexes={})
    recorded = dict(table.state.snapshot.properties.layout or {})
    for wrong in ([], {"a": None}, {"a": {"key": "id"}}, {"a": {"key": 3}}):

        def change(
            base: Snapshot, via: object = wrong
        ) -> tuple[Manifest, TableProperties]:
            properties = TableProperties(layout={**recorded, "via": via})
            return base.manifest, base.properties | properties

        commit(table.state.location, change, operation="test")
        now = sx.open_table(tmp_path / "t")
        assert any("'layout' ignored" in note for note in now.notes)
        assert len(now) == len(table)
