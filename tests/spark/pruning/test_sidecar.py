"""Queries and statements whose tables have their indexes in a sidecar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import TableError
from skipindex.storage.file_system.sidecar import SIDECAR
from tests.api.test_removal import contents
from tests.tables import put

pytestmark = pytest.mark.spark


def make(folder: Path) -> Path:
    for i in range(4):
        put(folder / f"p={i // 2}" / f"{i}.parquet", {"x": [2 * i, 2 * i + 1]})
    return folder


@pytest.fixture
def sidecar(pruned: SparkSession, tmp_path: Path) -> Iterator[Path]:
    pruned.conf.set(SIDECAR, str(tmp_path / "side"))
    yield tmp_path / "side"
    pruned.conf.unset(SIDECAR)


def n_read(spark: SparkSession, folder: Path, where: str = "x = 3") -> int:
    assert spark.read.parquet(str(folder)).where(where).count() == 1
    plan = sx.last_plans(spark)[-1]
    assert plan.folder == str(folder)
    assert not plan.problem
    return plan.n_read


@pytest.mark.parametrize("name", ["t", "an été of 100% [x]", "n" * 90, ".t", "a+b&c"])
def test_the_driver_finds_the_folder_of_each_table(
    pruned: SparkSession, sidecar: Path, tmp_path: Path, name: str
) -> None:
    folder = make(tmp_path / "of" / name)
    before = contents(folder)
    sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1)
    plain = pruned.read.parquet(str(folder / "p=0" / "1.parquet").translate(ESCAPED))
    assert plain.where("x = 3").count() == 1
    frame = pruned.read.parquet(str(folder).translate(ESCAPED))
    assert frame.where("x = 3").count() == 1
    plan = sx.last_plans(pruned)[-1]
    assert (plan.folder, plan.n_read, plan.problem) == (str(folder), 1, "")
    put(folder / "p=1" / "4.parquet", {"x": [3]})
    pruned.catalog.refreshByPath(str(folder).translate(ESCAPED))
    frame = pruned.read.parquet(str(folder).translate(ESCAPED))
    assert frame.where("x = 3").count() == 2
    assert sx.last_plans(pruned)[-1].n_read == 2
    assert contents(folder).items() >= before.items()
    assert not (folder / "_skipindex").exists()


ESCAPED = str.maketrans({one: f"\\{one}" for one in "[]{}*?"})
"""Spark takes paths for patterns."""


def test_a_table_with_indexes_beside_its_data_is_pruned_by_these(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    sx.build_indexes(folder, {"x": "bitmap"}, workers=1)
    assert n_read(pruned, folder) == 1
    rows = pruned.sql(f"REFRESH INDEXES ON parquet.`{folder}`").collect()
    assert rows[0].files_unchanged == 4
    assert not sidecar.exists()


def test_without_the_setting_the_sidecar_is_unknown(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    table = sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1).table
    pruned.conf.unset(SIDECAR)
    assert pruned.read.parquet(str(folder)).where("x = 3").count() == 1
    assert "one table with indexes was not found" in str(sx.last_plans(pruned)[-1])
    sx.register(pruned, table)
    assert n_read(pruned, folder) == 1
    other = pruned.newSession()
    other.conf.set(SIDECAR, str(sidecar))
    assert n_read(other, folder, "x = 5") == 1
    assert sx.read(folder, "x = 3", spark=pruned, sidecar=sidecar).count() == 1


def test_a_log_of_another_table_prunes_nothing(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder, other = make(tmp_path / "t"), make(tmp_path / "u")
    for one in (folder, other):
        sx.build_indexes(one, {"x": "bitmap"}, sidecar=sidecar, workers=1)
    own, of_other = sorted(sidecar.iterdir())
    of_other.rename(tmp_path / "aside")
    own.rename(of_other)
    assert pruned.read.parquet(str(other)).where("x = 3").count() == 1
    assert "are of file://" in sx.last_plans(pruned)[-1].problem


def test_statements_keep_indexes_in_the_sidecar(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    before = contents(folder)
    pruned.sql(
        f"CREATE TABLE aside (x BIGINT, p INT) USING parquet PARTITIONED BY (p) "
        f"LOCATION 'file:{folder}'"
    )
    try:
        pruned.sql("MSCK REPAIR TABLE aside")
        for name in (f"parquet.`{folder}`", "aside"):
            pruned.sql(f"CREATE INDEX ON {name} (x) USING bitmap").collect()
            shown = pruned.sql(f"SHOW INDEXES ON {name}").collect()
            assert [row.kind for row in shown] == ["minmax", "bitmap"]
            found = pruned.sql(f"EXPLAIN SKIPPING SELECT * FROM {name} WHERE x = 3")
            assert "1 of 4 files" in found.collect()[0].plan
            assert pruned.table(name).where("x = 3 AND p = 0").count() == 1
            assert sx.last_plans(pruned)[-1].n_read == 1
            for text in (f"OPTIMIZE {name}", f"OPTIMIZE {name} FULL ZORDER BY (x)"):
                with pytest.raises(
                    AnalysisException, match="needs the indexes in the tab"
                ):
                    pruned.sql(text).collect()
            pruned.sql(f"DROP INDEX ON {name} (x) USING bitmap").collect()
            pruned.sql(f"VACUUM {name} RETAIN 0 HOURS").collect()
    finally:
        pruned.sql("DROP TABLE aside")
    assert contents(folder) == before
    assert len(list(sidecar.iterdir())) == 1


def test_writers_refuse_a_sidecar_before_they_write(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    table = sx.build_indexes(folder, {}, sidecar=tmp_path / "side", workers=1).table
    table = table.declare_layout(sx.Clustering(by=["x"]))
    before = contents(tmp_path)
    rows = spark.range(4).selectExpr("id AS x", "0 AS p")
    with pytest.raises(TableError, match="append needs the indexes in the table's"):
        sx.append(rows, table)
    with pytest.raises(TableError, match="optimize needs the indexes in the table's"):
        table.optimize(spark, in_place=True)
    assert contents(tmp_path) == before
    report = table.optimize(spark, into=tmp_path / "copy")
    assert report.table.plan("x = 3").count(spark) == 1
    assert (tmp_path / "copy" / "_skipindex").is_dir(), "a copy has its indexes itself"
