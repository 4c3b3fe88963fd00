"""Partition columns that are computed when a table is written, and declared with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.errors import LayoutError, PredicateError, TableError
from tests.rewrite.seen import everything
from tests.spark.pruning.scans import with_and_without
from tests.spark.reading.whole import ZONE, settings

pytestmark = pytest.mark.spark

PARTS = {"year": "year(dt)", "month": "month(dt)"}
LATE = "dt >= '2022-03-01'"


@pytest.fixture(autouse=True)
def _utc(spark: SparkSession) -> Iterator[None]:
    with settings(spark, {ZONE: "UTC"}):
        yield


def rows(spark: SparkSession, first: int = 0) -> DataFrame:
    """A row for each of four months from January 2022 on, at their ends in UTC."""
    return spark.sql(
        f"SELECT id, timestamp'2022-01-31 23:30:00' + make_interval(0, id) AS dt "
        f"FROM range({first}, {first + 4}, 1, 1)"
    )


def n_read(spark: SparkSession, table: sx.Table, where: str = LATE) -> tuple[int, int]:
    sx.enable(spark)
    try:
        _, some, everything = with_and_without(
            spark, lambda: spark.read.parquet(table.folder).where(where)
        )
    finally:
        sx.disable(spark)
        spark.conf.unset("skipindex.enabled")
    return some, everything


def test_folders_are_computed_and_declared(spark: SparkSession, tmp_path: Path) -> None:
    table = sx.write_table(
        rows(spark),
        tmp_path / "t",
        partition_by=PARTS,
        indexes={"*": None, "id": "minmax"},
    )
    assert table.status().derived == PARTS
    assert table.state.derived.timezone == "UTC"
    expected = rows(spark).selectExpr("*", "year(dt) AS year", "month(dt) AS month")
    found = spark.read.parquet(table.folder)
    assert sorted(found.collect()) == sorted(expected.collect())
    assert n_read(spark, table) == (2, 4)
    table = sx.append(rows(spark, 4), table)
    assert n_read(spark, table) == (6, 8)


@pytest.mark.slow
def test_what_is_rewritten_keeps_computed_folders(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = sx.write_table(rows(spark, 0), tmp_path / "t", partition_by=PARTS)
    table = sx.append(rows(spark, 4), table)
    expected = rows(spark).selectExpr("*", "year(dt) AS year", "month(dt) AS month")
    table = sx.append(expected.withColumn("id", expected.id + 20), table)
    assert len(table) == 12
    report = table.optimize(spark, layout=sx.Clustering(by=["id"]))
    assert report.table.status().derived == PARTS
    kept = report.table.plan(LATE, timezone="UTC").paths
    assert {Path(path).parts[1] for path in kept} == {f"month={n}" for n in range(3, 9)}
    copied = report.table.optimize(spark, into=tmp_path / "copy").table
    assert (copied.status().derived, copied.state.derived.timezone) == (PARTS, "UTC")


@pytest.mark.slow
def test_an_overwritten_table_has_its_own_declaration(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    sx.write_table(rows(spark), path, partition_by=PARTS, indexes={"*": None})
    other = rows(spark).selectExpr("*", "2022 - id AS year")
    table = sx.write_table(
        other, path, partition_by=["year"], indexes={"*": None}, overwrite=True
    )
    assert not table.status().derived
    assert n_read(spark, table) == (4, 4)


def test_another_time_zone_computes_what_was_declared(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Half past eleven in UTC is another month in Tokyo."""
    parts = {**PARTS, "day": "day(plain)"}
    both = rows(spark).selectExpr("*", "to_timestamp_ntz(dt) AS plain")
    table = sx.write_table(
        both, tmp_path / "t", partition_by=parts, indexes={"*": None}
    )
    given = both.selectExpr("*", "2022 AS year", "1 AS month", "'31' AS day")
    with settings(spark, {ZONE: "Asia/Tokyo"}):
        appended = sx.append(both, table)
        assert len(appended) == 2 * len(table)
        folders = {Path(path).parent for path in table.paths}
        assert {Path(path).parent for path in appended.paths} == folders
        assert len(sx.append(given.where("id = 0"), table)) == len(appended) + 1
    unknown = table.declare_derived(parts)  # in no zone that is known
    with pytest.raises(
        TableError, match=r"'month' as 'month\(dt\)'.*for the time zone"
    ):
        sx.append(both, unknown)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"month": "2"}, "'month' is 2 where month(dt) is 1"),
        ({"month": "2", "year": "2022"}, "'month' is 2 where month(dt) is 1"),
        ({"month": "'01'"}, "'month' is 01 where month(dt) is 1"),
        ({"month": "CAST(NULL AS INT)"}, "'month' is NULL where month(dt) is 1"),
        ({"month": "'NULL'", "dt": "CAST(NULL AS TIMESTAMP)"}, "is NULL where"),
        ({"month": "1", "year": "2021L"}, "'year' is 2021 where year(dt) is 2022"),
    ],
    ids=str,
)
@pytest.mark.few(1)
def test_a_row_that_contradicts_its_folder_is_refused(
    spark: SparkSession, tmp_path: Path, given: dict[str, str], shown: str
) -> None:
    """No condition on the column that was declared would find it."""
    one = rows(spark).where("id = 0")
    table = sx.write_table(one, tmp_path / "t", partition_by=PARTS, indexes={"*": None})
    before = everything(tmp_path / "t")
    columns = {name: sf.expr(text) for name, text in given.items()}
    with pytest.raises(TableError, match=re.escape(shown)) as error:
        sx.append(one.withColumns(columns), table)
    assert str(error.value).startswith("cannot append a row whose partition column '")
    assert everything(tmp_path / "t") == before


def test_a_contradiction_is_told_where_rows_are_clustered(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A sample of them is read before they are written."""
    layout = sx.Clustering(by=["id", "dt"])
    table = sx.write_table(
        rows(spark), tmp_path / "t", layout=layout, partition_by=PARTS
    )
    with pytest.raises(TableError, match="'month' is 2 where month"):
        sx.append(rows(spark).selectExpr("*", "2 AS month"), table)


def test_rows_with_the_declared_folder_are_taken(
    spark: SparkSession, tmp_path: Path
) -> None:
    nothing = rows(spark).selectExpr("9 AS id", "CAST(NULL AS TIMESTAMP) AS dt")
    both = rows(spark).union(nothing)
    table = sx.write_table(
        both, tmp_path / "t", partition_by=PARTS, indexes={"*": None}
    )
    folders = both.selectExpr("*", "CAST(month(dt) AS STRING) month", "year(dt) year")
    assert len(sx.append(folders, table)) == 2 * len(table)


@pytest.mark.parametrize(
    "term",
    [
        pytest.param("date_format(dt, 'yyyy-MM')", marks=pytest.mark.slow),
        "year(to_date(dt, 'yyyy-MM-dd'))",
    ],
)
def test_what_sparks_old_formatter_makes_is_not_computed(
    spark: SparkSession, tmp_path: Path, term: str
) -> None:
    """It shows years before Christ without a sign, and reads texts of other forms."""
    parts = {"p": term}
    text = rows(spark).selectExpr("id", "left(dt, 10) AS dt")
    some = rows(spark) if "date_format" in term else text
    table = sx.write_table(
        some, tmp_path / "t", partition_by=parts, indexes={"*": None}
    )
    with settings(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
        for write in (
            lambda: sx.append(some, table),
            lambda: sx.write_table(some, tmp_path / "u", partition_by=parts),
        ):
            with pytest.raises(TableError, match="timeParserPolicy=LEGACY"):
                write()
        sx.write_table(rows(spark), tmp_path / "v", partition_by=PARTS)


@pytest.mark.parametrize(
    ("parts", "error", "why"),
    [
        ({"dt": "year(dt)"}, LayoutError, "'dt': the rows have a column 'dt'"),
        ({"ID": "year(dt)"}, LayoutError, "'ID': the rows have a column 'id'"),
        ({"year": "rand()"}, PredicateError, "cannot derive a partition by 'rand"),
        ({"year": "year(other)"}, PredicateError, "other"),
        ({"year": "year("}, PredicateError, "year"),
        ({"year": "2022"}, PredicateError, "expected a function of one column"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_what_cannot_be_derived_is_refused(
    spark: SparkSession, tmp_path: Path, parts: dict[str, str], error: type, why: str
) -> None:
    with pytest.raises(error, match=why):
        sx.write_table(rows(spark), tmp_path / "t", partition_by=parts)
    assert not (tmp_path / "t").exists()
