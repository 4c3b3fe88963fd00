"""A table by its name in the catalog of the session is the table of its folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import TableError
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.local import LocalFiles

pytestmark = pytest.mark.spark


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A table of the catalog, with a file for each year; its years are texts."""
    folder = tmp_path / "a folder"
    spark.sql(
        "CREATE TABLE events (id BIGINT, late INT, year STRING) USING parquet "
        f"PARTITIONED BY (year) LOCATION 'file:{folder}'"
    )
    try:
        spark.sql(
            "INSERT INTO events SELECT /*+ COALESCE(1) */ id, NULL, 2020 + id "
            "FROM range(4)"
        )
        spark.sql("CREATE VIEW seen AS SELECT * FROM events")
        spark.range(3).createOrReplaceTempView("passing")
        spark.sql("CREATE TABLE lines (id BIGINT) USING csv")
        yield folder
    finally:
        spark.catalog.dropTempView("passing")
        spark.sql("DROP VIEW IF EXISTS seen")
        spark.sql("DROP TABLE IF EXISTS lines")
        spark.sql("DROP TABLE events")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["events", "spark_catalog.default.events"])
def test_a_name_stands_for_the_folder(
    spark: SparkSession, events: Path, name: str
) -> None:
    table = sx.open_table(name)
    assert (table.folder, len(table)) == (str(events), 4)
    inferred = sx.open_table(str(events))
    kinds = [one.state.partitions[0].dtype for one in (table, inferred)]
    assert kinds == [pa.string(), pa.int32()]
    assert len(sx.plan_files(name, "year > '2021'").paths) == 2
    assert sx.read(name, "year > '2021'", spark=spark).count() == 2
    assert sx.build_indexes(name, {"id": "minmax"}, spark=spark).files == 4
    assert len(sx.plan_files(name, "id = 3").paths) == 1


def test_a_registered_name_is_pruned(spark: SparkSession, events: Path) -> None:
    sx.build_indexes(str(events), {"id": "minmax"}, workers=1)
    sx.register(spark, "events")
    try:
        assert spark.sql("SELECT id FROM events WHERE id = 3").collect() == [(3,)]
        assert sx.last_plans(spark)[-1].n_read == 1
    finally:
        sx.disable(spark)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "does not exist, neither as a folder nor as a table"),
        ("nowhere.nothing", "does not exist"),
        ("no name", "no name' does not exist"),
        ("seen", "'seen' is a view"),
        ("passing", "'passing' is a temporary view"),
        ("lines", "'lines' is a table of the format csv"),
    ],
)
@pytest.mark.usefixtures("events")
def test_other_names_are_refused(name: str, why: str) -> None:
    with pytest.raises(TableError, match=why):
        sx.open_table(name)


@pytest.mark.usefixtures("events")
def test_a_folder_comes_before_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.chdir(tmp_path)
    spark.range(2).coalesce(1).write.parquet(str(tmp_path / "events"))
    assert [column.name for column in sx.open_table("events").columns] == ["id"]


def test_only_the_partitions_of_the_catalog_count(
    spark: SparkSession, events: Path
) -> None:
    """As in Spark: a folder that the catalog does not have is not of the table."""
    shutil.copytree(events / "year=2021", events / "year=2031")
    table = sx.open_table("events")
    assert len(table) == 4
    assert table.plan("id = 1").read(spark).collect() == [(1, None, "2021")]
    assert sx.read("events", "id = 1", spark=spark).count() == 1
    assert spark.table("events").where("id = 1").count() == 1
    assert len(sx.open_table(str(events))) == 5
    spark.sql("ALTER TABLE events ADD PARTITION (year = '2031')")
    assert sx.read("events", "id = 1", spark=spark).count() == 2
    assert len(table.refresh()) == 5
    spark.sql("ALTER TABLE events DROP PARTITION (year = '2021')")
    assert len(table.refresh()) == 4
    built = sx.build_indexes("events", {"id": "minmax"}, spark=spark).table
    assert built.plan("id = 1").read(spark).collect() == [(1, None, "2031")]


def test_names_of_folders_may_have_escapes(spark: SparkSession, events: Path) -> None:
    spark.sql("INSERT INTO events VALUES (7, 0, 'a b'), (8, 0, 'c:d%20e'), (9, 0, 'ü')")
    assert sorted(map(str, events.glob("year=[!2]*"))) == [
        str(events / name) for name in ("year=a b", "year=c%3Ad%2520e", "year=ü")
    ]
    shutil.copytree(events / "year=2021", events / "year=a%20b")
    table = sx.open_table("events")
    found = table.plan("id > 0").read(spark)
    assert sorted(row.id for row in found.collect()) == [1, 2, 3, 7, 8, 9]
    assert len(table) == 7


def test_a_partition_in_another_place_leaves_the_folder_as_it_is(
    spark: SparkSession, events: Path
) -> None:
    shutil.copytree(events / "year=2021", events.parent / "elsewhere")
    spark.sql(
        "ALTER TABLE events PARTITION (year = '2021') SET LOCATION "
        f"'file:{events.parent / 'elsewhere'}'"
    )
    assert len(sx.open_table("events")) == 4


def test_a_catalog_without_the_folders_is_told(
    spark: SparkSession, events: Path
) -> None:
    for year in range(2020, 2024):
        shutil.copytree(events / f"year={year}", events / f"year={year + 10}")
        spark.sql(f"ALTER TABLE events DROP PARTITION (year = '{year}')")
    with pytest.raises(TableError, match="the catalog has none of the folders of"):
        sx.open_table("events")


def test_partitions_that_cannot_match_are_not_listed(
    spark: SparkSession, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog has the columns, and says what they are made of."""
    listed: list[str] = []
    below = LocalFiles.below

    def counted(files: LocalFiles, folder: str, *, links: bool) -> Iterator[FileInfo]:
        listed.append(folder)
        return below(files, folder, links=links)

    monkeypatch.setattr(LocalFiles, "below", counted)
    found = sx.read("events", "year = '2022' AND id < 9", spark=spark)
    assert listed == ["year=2022"]
    assert found.collect() == [(2, None, "2022")]
    spark.sql(
        "ALTER TABLE events SET TBLPROPERTIES "
        "('skipindex.derived.year' = 'cast(id + 2020 as string)')"
    )
    plan = sx.plan_files("events", "id IN (1, 3)")
    assert (len(plan.table), plan.table.n_unlisted) == (2, 2)
    assert plan.read(spark).count() == 2
    none = sx.read("events", "year = '1999'", spark=spark)
    assert (none.count(), none.columns) == (0, spark.table("events").columns)
