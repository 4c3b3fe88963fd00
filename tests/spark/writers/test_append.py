"""Appends: what is refused before a byte is written, and rows that are whole."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.errors import SkipIndexError, TableError
from tests.heavy.writers.player import Turn, play
from tests.heavy.writers.rounds import Judge, begin
from tests.rewrite.seen import everything, listed
from tests.spark.reading.whole import rows, settings

pytestmark = pytest.mark.spark

STATISTICS: Mapping[str, Any] = {"*": "minmax"}


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    return spark.range(100).selectExpr(
        "id",
        "CAST(id % 3 AS INT) AS k",
        "named_struct('x', id, 'y', id) AS s",
        "CAST(id AS DECIMAL(9, 2)) AS d",
        "CAST(id AS STRING) AS t",
    )


@pytest.fixture(scope="module")
def written(df: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that is in no order, so that appends cost one job."""
    folder = tmp_path_factory.mktemp("written") / "t"
    sx.write_table(df.coalesce(1), folder, indexes=STATISTICS)
    return folder


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    """A copy of that table."""
    return Path(shutil.copytree(written, tmp_path / "t"))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"id": "CAST(id AS STRING)"}, "column 'id' of type string to bigint"),
        ({"id": "CAST(id AS DOUBLE)"}, "column 'id' of type double to bigint"),
        ({"k": "CAST(k AS BIGINT)"}, "column 'k' of type bigint to int"),
        ({"d": "id"}, "column 'd' of type bigint to decimal"),
        ({"d": "CAST(d AS DECIMAL(10, 2))"}, "column 'd' of type decimal"),
        ({"s": "named_struct('x', id, 'z', id)"}, "column 's' of type struct"),
        ({"s": "named_struct('y', id, 'x', id)"}, "column 's' of type struct"),
        ({"id": None, "ID": "id"}, "'ID' is 'id' in the table"),
        ({"id": None}, r"missing: \['id'\]"),
        ({"more": "id"}, r"not in the table: \['more'\]"),
    ],
    ids=str,
)
def test_what_the_table_cannot_hold_is_refused(
    df: DataFrame, path: Path, change: dict[str, str | None], text: str
) -> None:
    files = everything(path)
    columns = {name: name for name in df.columns} | change
    other = df.selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items() if sql))
    with pytest.raises(TableError, match=f"cannot append .*{text}") as error:
        sx.append(other, path)
    assert "\n" not in str(error.value)
    assert everything(path) == files


def test_narrower_types_and_another_order_are_taken(
    spark: SparkSession, df: DataFrame, path: Path
) -> None:
    before = spark.read.parquet(str(path))
    narrow = df.selectExpr(
        "NULL AS t",
        "CAST(id AS SMALLINT) AS d",
        "named_struct('x', CAST(id AS INT), 'y', id) AS s",
        "CAST(k AS TINYINT) AS k",
        "CAST(id AS INT) AS id",
    )
    sx.append(narrow, path)
    after = spark.read.parquet(str(path))
    assert after.schema == before.schema
    same = df.withColumn("t", sf.lit(None).cast("string"))
    assert rows(after) == sorted(rows(df) + rows(same))


@pytest.mark.parametrize(
    "indexes", [{"nosuch": "bitmap"}, {"x": "ngram_bloom"}, {"*": "nokind"}], ids=str
)
def test_indexes_that_cannot_be_built_are_refused_before_a_row(
    df: DataFrame, path: Path, indexes: dict[str, str]
) -> None:
    files = everything(path)
    with pytest.raises(SkipIndexError):
        sx.append(df, path, indexes=indexes)
    with pytest.raises(SkipIndexError):
        sx.write_table(df.limit(1), path, indexes=indexes, overwrite=True)
    with pytest.raises(SkipIndexError):
        sx.write_table(df, path.parent / "new", indexes=indexes)
    assert everything(path) == files
    assert not (path.parent / "new").exists()


def test_a_table_of_another_format_is_refused(df: DataFrame, path: Path) -> None:
    (path / "_delta_log").mkdir()
    (path / "_delta_log" / "00000000000000000000.json").write_bytes(b"{}")
    files = everything(path)
    with pytest.raises(TableError, match="is a Delta table"):
        sx.append(df, path)
    with pytest.raises(TableError, match="_delta_log"):
        sx.write_table(df, path, overwrite=True)
    assert everything(path) == files


def test_names_that_differ_by_case_alone(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        made = spark.range(10).selectExpr("id AS a", "-id AS A")
        sx.write_table(made, tmp_path / "t", indexes=STATISTICS)
        table = sx.append(made, tmp_path / "t")
        found = spark.read.parquet(str(tmp_path / "t"))
        assert rows(found) == sorted(2 * rows(made))
        assert set(table.state.snapshot.manifest.stats) == {"a", "A"}


def test_no_rows_change_nothing(df: DataFrame, path: Path) -> None:
    files = everything(path)
    sx.append(df.where("false"), path)
    assert everything(path) == files


def test_a_failed_append_leaves_nothing(df: DataFrame, path: Path) -> None:
    files = everything(path)
    failing = df.withColumn("id", sf.expr("IF(id = 99, raise_error('no'), id)"))
    with pytest.raises(Exception, match="no"):
        sx.append(failing.select(df.columns), path)
    assert everything(path) == files


@pytest.mark.few(1)
@pytest.mark.parametrize(("adaptive", "by"), [("true", []), ("false", ["id"])], ids=str)
def test_a_table_overwritten_with_its_own_rows(
    spark: SparkSession, df: DataFrame, path: Path, adaptive: str, by: list[str]
) -> None:
    with settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        own = sx.read(path, "id >= 90", spark=spark)
        sx.write_table(
            own, path, layout=sx.Clustering(by=by), indexes=STATISTICS, overwrite=True
        )
    expected = rows(df.where("id >= 90"))
    assert rows(spark.read.parquet(str(path))) == expected
    assert rows(sx.read(path, "true", spark=spark)) == expected


def test_no_rows_and_partitions_leave_the_old_rows(
    spark: SparkSession, df: DataFrame, path: Path
) -> None:
    nothing = df.where("false")
    with pytest.raises(TableError, match="with partition_by"):
        sx.write_table(nothing, path, partition_by=["k"], overwrite=True)
    assert spark.read.parquet(str(path)).count() == 100
    with pytest.raises(TableError, match="with partition_by"):
        sx.write_table(nothing, path.parent / "new", partition_by=["k"])
    assert not (path.parent / "new").exists()


def test_every_file_of_a_partition_is_sorted(df: DataFrame, tmp_path: Path) -> None:
    mixed = df.orderBy(sf.rand(3))
    layout = sx.Clustering(sort_within=["id"])
    options: dict[str, Any] = {"layout": layout, "indexes": STATISTICS}
    sx.write_table(mixed, tmp_path / "t", partition_by=["k"], **options)
    sx.append(mixed, tmp_path / "t")
    names = listed(tmp_path / "t")
    assert len(names) == 6
    for name in names:
        ids = pq.ParquetFile(tmp_path / "t" / name).read(["id"])["id"].to_pylist()
        assert ids == sorted(ids)


@pytest.mark.slow
def test_options_of_the_caller_win(df: DataFrame, tmp_path: Path) -> None:
    options = {"maxRecordsPerFile": "40", "compression": "zstd"}
    made = {"indexes": STATISTICS, "options": options}
    sx.write_table(df.coalesce(1), tmp_path / "t", **made)
    table = sx.append(df.coalesce(1), tmp_path / "t", options=options)
    assert sorted(table.state.n_rows.or_else(-1)) == [20, 20, 40, 40, 40, 40]
    codecs = {
        pq.read_metadata(tmp_path / "t" / name).row_group(0).column(0).compression
        for name in table.paths
    }
    assert codecs == {"ZSTD"}


@pytest.mark.slow
def test_writers_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """A small part of ``make concurrent``."""
    rng = random.Random(5)
    judge = Judge(tmp_path / "t", {})

    def threads(turns: list[Turn]) -> list[str]:
        return play(spark, str(judge.path), list(turns))

    by = begin(judge, threads, rng)
    for kinds in (("append", "append", "plain"), ("append", "optimize", "append")):
        turns = [
            {"kind": kind, "tag": max(judge.expected) + i, "fault": "none", "by": by}
            | {"n_rows": 50 + i, "seed": i}
            for i, kind in enumerate(kinds, 1)
        ]
        for turn, outcome in zip(turns, threads(turns), strict=True):
            judge.learn(turn, outcome)
        judge.look()
    assert judge.failures == []
    assert judge.outcomes.total() == 7


@pytest.mark.slow
def test_what_is_appended_along_the_curve_is_not_clustered_alone(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    layout = sx.Clustering(by=["id"], rows_per_file=50)
    sx.write_table(df.where("id < 50"), path, layout=layout, indexes=STATISTICS)
    table = sx.append(df.where("id >= 50"), path)
    files = everything(path)
    report = table.optimize(spark)
    assert (report.files_in, report.files_left) == (0, 2)
    assert everything(path) == files, "not even a commit"
    table = sx.append(df.where("id >= 50"), path)
    assert table.optimize(spark).files_in == 2, "but with what lies where it does"
    df.coalesce(1).write.mode("append").parquet(str(path))
    told = table.optimize(spark, budget="10B")
    assert (told.files_in, told.least is not None) == (0, True)
    report = table.optimize(spark, budget="1GB")
    assert report.files_in > 1, "what another writer appends is in no order"
