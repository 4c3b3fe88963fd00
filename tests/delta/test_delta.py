"""Delta tables: read by their log, and indexed beside it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import skipindex as sx
from benchmarks.moto_server import S3
from skipindex.cli import main
from skipindex.errors import (
    PlanError,
    PredicateError,
    TableError,
    UnsupportedTypeError,
)
from skipindex.source.field_ids import field_id_name
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.tables import Tables
from tests.delta.logs import actions_of, commit, delete_rows, protocol
from tests.source.test_formats import CALLS
from tests.spark.pruning.questions import equal, skipped
from tests.tables import LOGGED, check_logged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def delta(tmp_path: Path) -> str:
    """Version 1 has ``a`` from 0 to 39 in two files, and version 2 no 25."""
    path = str(tmp_path / "t")
    for low in (0, 20):
        rows = pa.table({"a": range(low, low + 20), "s": ["a", "b"] * 10})
        write_deltalake(path, rows, mode="append")
    DeltaTable(path).delete("a = 25")
    return path


def kept(path: str, where: str, **how: Any) -> int:
    return len(sx.open_table(path, **how).plan(where).paths)


def test_the_rows_are_those_of_a_version(delta: str) -> None:
    assert kept(delta, "a = 25") == 1  # by the statistics of Delta's log
    table = sx.build_indexes(delta, {"a": "exact"}, workers=1).table
    assert len(table) == 2
    assert kept(delta, "a = 25") == 0
    assert kept(delta, "a = 26") == 1
    assert sx.open_table(delta).plan("a >= 0").count() == 39
    # The index of a file serves each version that has it.
    assert kept(delta, "a = 3", version=0) == 1
    assert kept(delta, "a = 30", version=0) == 0
    old = sx.open_table(delta, version=1)
    assert old.plan("a = 25").to_arrow().to_table()["a"].to_pylist() == [25]
    assert old.build_indexes({"a": "exact"}, workers=1).files == 1
    assert len(sx.open_table(delta, version=1).plan("a = 25").paths) == 1
    assert len(sx.open_table(delta, version=1).plan("a = 99").paths) == 0
    assert kept(delta, "a = 25") == 0


def test_engines_read_files_that_say_all_themselves(delta: str) -> None:
    """As those of a folder, and with the same checks."""
    table = sx.build_indexes(delta, {"a": "exact"}, workers=1).table
    plan = table.plan("a > 30")
    assert "PARQUET_SCAN" in plan.to_duckdb(duckdb.connect()).explain()
    assert plan.to_polars().explain().startswith("Parquet SCAN")
    assert len(plan.to_duckdb(duckdb.connect()).fetchall()) == 9
    assert plan.to_polars().collect().height == 9
    (path,) = plan.files
    os.utime(path, (1, 1))
    with pytest.raises(PlanError, match="changed since it was opened"):
        plan.to_duckdb(duckdb.connect())


def test_a_table_that_is_open_follows_the_log_and_a_version_does_not(
    delta: str,
) -> None:
    newest, first = sx.open_table(delta), sx.open_table(delta, version=0)
    write_deltalake(delta, pa.table({"a": [50], "s": ["c"]}), mode="append")
    assert len(newest.refresh()) == len(newest) + 1
    assert len(first.refresh()) == len(first) == 1


def test_a_table_of_deltalake_is_its_version(delta: str) -> None:
    table = sx.open_table(DeltaTable(delta, version=0))
    assert len(table) == 1
    with pytest.raises(TableError, match="has its version"):
        sx.open_table(DeltaTable(delta), version=0)


def test_each_call_opens_a_table_in_all_ways(delta: str, tmp_path: Path) -> None:
    """A library's table, a version and columns, not by ``open_table`` alone."""
    report = sx.build_indexes(DeltaTable(delta), {"a": "exact"}, workers=1)
    assert report.files == 2
    assert len(sx.plan_files("a = 25", table=DeltaTable(delta)).paths) == 0
    assert len(sx.plan_files(delta, "a = 25", version=1).paths) == 1
    with pytest.raises(TableError, match="not a version: -1"):
        sx.plan_files(delta, "a = 25", version=-1)
    folder = tmp_path / "plain"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "0.parquet")
    schema = pa.schema({"a": pa.int64(), "later": pa.string()})
    built = sx.build_indexes(folder, {"later": "exact"}, schema=schema, workers=1)
    assert built.table.plan("later = 'x'").paths == []
    with pytest.raises(TableError, match=r"is open and keeps its schema .accepted: a"):
        sx.plan_files(built.table, "later = 'x'", schema=schema)
    with pytest.raises(TableError, match="is open and keeps its version"):
        sx.plan_files(report.table, "a = 25", version=0)


def test_a_vacuum_of_delta_leaves_the_indexes(delta: str) -> None:
    sx.build_indexes(delta, {"a": "exact"}, workers=1)
    DeltaTable(delta).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert kept(delta, "a = 25") == 0
    with pytest.raises(TableError, match="is gone, which the table's own log names"):
        sx.open_table(delta, version=1)
    sx.open_table(delta).vacuum()
    assert sx.open_table(delta).plan("a >= 0").count() == 39
    assert DeltaTable(delta).to_pyarrow_table().num_rows == 39


def test_a_table_without_rows(delta: str) -> None:
    DeltaTable(delta).delete()
    assert sx.open_table(delta).plan("a = 1").paths == []
    assert sx.build_indexes(delta, {"a": "exact"}, workers=1).files == 0
    assert [column.name for column in sx.open_table(delta).columns] == ["a", "s"]


def test_columns_are_those_of_the_log(delta: str) -> None:
    more = pa.table({"a": [7], "s": ["z"], "n": pa.array([1], pa.int32())})
    write_deltalake(delta, more, mode="append", schema_mode="merge")
    sx.build_indexes(delta, {"n": "exact"}, workers=1)
    assert kept(delta, "n = 1") == 1
    assert kept(delta, "n IS NULL") == 2
    with pytest.raises(TableError, match="takes its columns from its log"):
        sx.open_table(delta, schema=pa.schema([("a", pa.int32())]))


# -- what the log says of files --------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "values", "holds", "lacks"),
    [
        *LOGGED,
        (pa.int8(), [3, 9], ["c = 3"], ["c IS NULL", "c < 3"]),
        (pa.string(), ["x" * 60], [f"c = '{'x' * 60}'", "c > 'y'"], []),
        (pa.string(), ["\ufffd"], ["c > 'a'", "c < 'a'"], []),
    ],
)
def test_statistics_of_the_log_rule_out_files_without_an_index(
    tmp_path: Path, dtype: pa.DataType, values: list[Any], holds: list[str],
    lacks: list[str],
) -> None:  # fmt: skip
    path = str(tmp_path / "s")
    write_deltalake(path, pa.table({"c": pa.array(values, dtype)}))
    check_logged(sx.open_table(path), holds, lacks)


def test_an_index_counts_before_the_statistics_of_the_log(delta: str) -> None:
    """The log may say what it likes of a file that was read."""
    sx.build_indexes(delta, {"a": "minmax"}, workers=1)
    (log,) = Path(delta, "_delta_log").glob(f"{0:020}.json")
    text = log.read_text()
    assert '\\"a\\":19' in text
    log.write_text(text.replace('\\"a\\":19', '\\"a\\":5'))
    assert kept(delta, "a = 19") == 1


# -- nothing is written past the log ---------------------------------------------------


def held(path: str) -> dict[Path, bytes]:
    """The files of the table and of its log, without the indexes."""
    files = Path(path).rglob("*")
    return {
        file: file.read_bytes()
        for file in files
        if file.is_file() and "_skipindex" not in file.parts
    }


@pytest.mark.few(8)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_no_call_changes_the_files_or_the_log(delta: str, name: str) -> None:
    table = sx.build_indexes(delta, {"a": "exact"}, workers=1).table
    before = held(delta)
    CALLS[name](table)
    assert held(delta) == before
    assert DeltaTable(delta).to_pyarrow_table().num_rows == 39


def test_a_writer_of_plain_files_is_refused(delta: str) -> None:
    """It is what ``append`` asks before it writes."""
    with pytest.raises(TableError, match=r"append to .* skipindex does not write its"):
        sx.open_table(delta).state.require_appendable()


def test_the_log_of_skipindex_never_stands_for_that_of_delta(delta: str) -> None:
    table = sx.build_indexes(delta, {"a": "exact"}, workers=1).table
    with pytest.raises(TableError, match="log of a Delta table"):
        table.declare_exclusive()
    with pytest.raises(TableError, match="cannot be opened from its log"):
        sx.open_table(delta, trust="log")


@pytest.mark.spark
def test_spark_reads_a_version_and_writes_none(delta: str, spark: Any) -> None:
    sx.build_indexes(delta, {"a": "exact"}, workers=1)
    assert sx.read(delta, "a IN (24, 25)", spark=spark).count() == 1
    assert sx.read(delta, "a IN (24, 25)", spark=spark, version=1).count() == 2
    old = sx.open_table(delta, version=1).plan("a IN (24, 25)")
    assert old.read(spark).count() == 2
    before = sorted(Path(delta).rglob("*"))
    rows = spark.range(3).selectExpr("id AS a", "'a' AS s")
    for write in (
        lambda: sx.append(rows, delta),
        lambda: sx.write_table(rows, delta, overwrite=True),
    ):
        with pytest.raises(TableError, match="Delta table"):
            write()
    assert sorted(Path(delta).rglob("*")) == before


# -- what is not read is refused -------------------------------------------------------


def test_a_feature_that_is_not_known_is_refused_by_name(delta: str) -> None:
    commit(delta, protocol("timestampNtz", "typeWidening"))
    with pytest.raises(TableError, match="typeWidening"):
        sx.open_table(delta)
    assert len(sx.open_table(delta, version=2)) == 2


_PHYSICAL = "delta.columnMapping.physicalName"


def mapped(
    delta: str,
    mode: str,
    names: tuple[str, str] = ("b", "s"),
    inner: tuple[str, str] = ("", ""),
) -> None:
    """Give the columns ``a`` and ``s`` of the files other names in the table."""
    (metadata,) = actions_of(delta, "metaData")
    metadata["configuration"] = {
        "delta.columnMapping.mode": mode,
        "delta.columnMapping.maxColumnId": "2",
    }
    schema = json.loads(metadata["schemaString"])
    for i, field in enumerate(schema["fields"]):
        field["metadata"] = {
            "delta.columnMapping.id": i + 1,
            _PHYSICAL: field["name"],
        }
    for field, name in zip(schema["fields"], names, strict=True):
        field["name"] = name
        if inner[0]:
            note = {"delta.columnMapping.id": 9, _PHYSICAL: inner[0]}
            for one in field["type"]["fields"] if name == names[0] else ():
                one["name"], one["metadata"] = inner[1], note
    parts = metadata["partitionColumns"]
    metadata["partitionColumns"] = [names[1]] if parts else []
    metadata["schemaString"] = json.dumps(schema)
    commit(delta, protocol("columnMapping"), {"metaData": metadata})


def test_columns_that_were_renamed_keep_their_index(delta: str) -> None:
    sx.build_indexes(delta, {"a": "exact"}, workers=1)
    before = set(Path(delta, "_skipindex").rglob("*"))
    mapped(delta, "name")
    table = sx.open_table(delta)
    assert [column.name for column in table.columns] == ["b", "s"]
    assert len(table.plan("b = 25").paths) == 0
    assert len(table.plan("b = 26").paths) == 1
    rows = table.plan("b IN (3, 26)").to_arrow().to_table()
    assert sorted(rows["b"].to_pylist()) == [3, 26]
    assert rows.schema.names == ["b", "s"]
    assert table.plan("b > 30").to_duckdb().aggregate("count(*)").fetchall() == [(9,)]
    assert table.plan("b > 30").to_polars().collect().height == 9
    located = table.locate([26, 25, 3], "b")
    assert sorted(located.read_all()["key"].to_pylist()) == [3, 26]
    assert located.read()["b"].to_pylist() == [26, 3]
    assert located.read(["s"]).num_rows == 2
    assert table.refresh_indexes(workers=1).files == 0
    assert set(Path(delta, "_skipindex").rglob("*")) == before
    assert len(sx.open_table(delta, version=2).plan("a = 25").paths) == 0
    with pytest.raises(PredicateError, match="no column 'a'"):
        table.plan("a = 25")


def test_columns_that_changed_their_names(delta: str) -> None:
    """No index of one is ever taken for one of the other."""
    sx.build_indexes(delta, {"a": "exact", "s": "exact"}, workers=1)
    mapped(delta, "name", ("s", "a"))
    table = sx.open_table(delta)
    assert [column.name for column in table.columns] == ["s", "a"]
    assert all("name that files have" in column.reason for column in table.columns)
    plan = table.plan("s = 25 OR s = 26 OR a = 'c'")
    assert len(plan.paths) == 2
    assert plan.to_pandas()["s"].tolist() == [26]
    assert len(table.plan("a = 'a'").paths) == 2


def test_columns_of_one_type_that_changed_their_names(tmp_path: Path) -> None:
    """Neither are their statistics in the log."""
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2], "s": [8, 9]}))
    mapped(path, "name", ("s", "a"))
    assert kept(path, "s = 1") == 1
    assert kept(path, "a = 9") == 1
    sx.build_indexes(path, workers=1)
    assert kept(path, "s = 1") == 1
    assert kept(path, "a = 9") == 1
    assert sx.open_table(path).plan("a = 9").to_pandas().to_dict("list") == {
        "s": [2],
        "a": [9],
    }


def test_partition_columns_that_were_renamed(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"a": [1, 2, 3], "s": ["x", "y", None]})
    write_deltalake(path, rows, partition_by=["s"])
    mapped(path, "name", ("a", "p"))
    plan = sx.open_table(path).plan("p = 'y' OR p IS NULL")
    assert len(plan.paths) == 2
    rows = plan.to_arrow().to_table().sort_by("a")
    assert rows.to_pylist() == [{"a": 2, "p": "y"}, {"a": 3, "p": None}]


def test_fields_of_structs_that_were_renamed(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"a": [{"x": 1}, None, {"x": 3}], "s": [1, 2, 3]})
    write_deltalake(path, rows)
    mapped(path, "name", ("b", "t"), inner=("x", "y"))
    table = sx.build_indexes(path, {"b.y": "exact"}, workers=1).table
    assert [len(table.plan(f"b.y = {n}").paths) for n in (1, 2, 3)] == [1, 0, 1]
    rows = table.plan("b.y = 3 OR b IS NULL").to_arrow().to_table()
    assert rows.to_pylist() == [{"b": None, "t": 2}, {"b": {"y": 3}, "t": 3}]


def test_columns_that_are_known_by_a_number(tmp_path: Path) -> None:
    """A file may call a column as it likes; one without numbers has no index."""
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2], "s": ["x", "y"]}))
    mapped(path, "id")
    (file,) = Path(path).glob("*.parquet")
    fields = [
        pa.field("other", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("b", pa.string(), metadata={"PARQUET:field_id": "2"}),
    ]
    table = pa.table([[7, 8], ["x", "y"]], schema=pa.schema(fields))
    pa.parquet.write_table(table, file)
    (log,) = Path(path, "_delta_log").glob(f"{0:020}.json")
    (add,) = actions_of(path, "add")
    size = file.stat().st_size
    log.write_text(log.read_text().replace(f'"size":{add["size"]}', f'"size":{size}'))
    sx.build_indexes(path, {"b": "exact"}, workers=1)
    opened = sx.open_table(path)
    assert kept(path, "b = 7") == 1
    assert kept(path, "b = 1") == 0
    assert opened.plan("b = 7").to_arrow().to_table().to_pylist() == [
        {"b": 7, "s": "x"}
    ]
    assert opened.plan("b = 7 AND s = 'x'").verify().is_right
    # A file without numbers, of the same size or not, is read by nobody here.
    pa.parquet.write_table(pa.table({"a": [1, 2], "s": ["x", "y"]}), file)
    sized = log.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}')
    log.write_text(sized)
    table = sx.build_indexes(path, {"b": "exact"}, workers=1).table
    assert kept(path, "b IS NOT NULL") == 1
    assert "no field ids" in "; ".join(table.plan("b = 1").notes)
    with pytest.raises(TableError, match="no field ids"):
        table.plan("b = 1").to_arrow()


def test_names_like_field_ids(tmp_path: Path) -> None:
    """A plain table must not take the index of the column with this number."""
    name = field_id_name(1)
    pa.parquet.write_table(pa.table({name: [1]}), tmp_path / "0.parquet")
    table = sx.open_table(tmp_path)
    assert "field id" in table.columns[0].reason
    with pytest.raises(UnsupportedTypeError, match="field id"):
        table.build_indexes({name: "exact"})


def test_rows_that_vectors_delete(delta: str) -> None:
    commit(delta, protocol("deletionVectors"))
    sx.build_indexes(delta, {"a": "exact"}, workers=1)
    whole = sx.open_table(delta).plan("a >= 0").to_pandas()["a"].tolist()
    name = delete_rows(delta, [0, 3])
    table = sx.open_table(delta)
    first = min(pa.parquet.read_table(Path(delta, name))["a"].to_pylist())
    gone = {first, first + 3}
    left = sorted(set(whole) - gone)
    plan = table.plan("a >= 0")
    assert plan.count() == len(left)
    assert sorted(plan.to_arrow().to_table()["a"].to_pylist()) == left
    assert sorted(plan.to_pandas()["a"].tolist()) == left
    assert sorted(plan.to_polars().collect()["a"].to_list()) == left
    assert sorted(n for (n,) in plan.to_duckdb().project("a").fetchall()) == left
    one = table.plan(f"a = {first}")
    assert len(one.paths) == 1
    assert one.count_bounds == (0, 1)
    assert one.to_arrow().to_table().num_rows == 0
    assert one.verify().is_right
    assert table.plan(f"a = {first + 1}", limit=1).to_pandas()["a"].tolist() == [
        first + 1
    ]
    located = table.locate(whole, "a")
    assert sorted(located.read_all()["key"].to_pylist()) == left
    assert located.read()["a"].to_pylist() == [one for one in whole if one in left]
    assert table.plan("a < 0", limit=0).paths == []
    # A file of which nothing is deleted is read as before.
    other = "a < 20" if first >= 20 else "a >= 20"
    assert table.plan(other).count() == len(table.plan(other).to_pandas())
    old = sx.open_table(delta, version=DeltaTable(delta).version() - 1)
    assert old.plan("a >= 0").count() == len(whole)


def test_columns_in_other_capitals_are_not_taken_for_missing(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2], "s": ["x", "y"]}))
    commit(path, protocol("deletionVectors"))
    (file,) = Path(path).glob("*.parquet")
    size = file.stat().st_size
    pa.parquet.write_table(pa.table({"A": [1, 2], "s": ["x", "y"]}), file)
    (log,) = Path(path, "_delta_log").glob(f"{0:020}.json")
    sized = log.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}')
    log.write_text(sized)
    delete_rows(path, [0])
    with pytest.raises(TableError, match=r"spells column 'a' as \['A'\]"):
        sx.open_table(path).plan("a = 2").to_arrow()


@pytest.mark.spark
def test_spark_does_not_read_files_with_deleted_rows(
    delta: str, spark: SparkSession
) -> None:
    commit(delta, protocol("deletionVectors"))
    delete_rows(delta, [0])
    table = sx.open_table(delta)
    with pytest.raises(PlanError, match="Spark cannot read the rows of the Delta"):
        table.plan("a >= 0").read(spark)
    with pytest.raises(PlanError, match=r"to_arrow\(\)"):
        sx.read(delta, "a >= 0", spark=spark)


def test_partition_values_are_those_of_the_log(tmp_path: Path) -> None:
    """Readers of folders take ``%C3%BC`` for two characters."""
    path = str(tmp_path / "t")
    rows = pa.table({"a": [1, 2, 3], "p": ["ü", "x", None]})
    write_deltalake(path, rows, partition_by=["p"])
    table = sx.build_indexes(path, {"a": "exact"}, workers=1).table
    assert len(table.plan("p = 'ü'").paths) == 1
    assert table.plan("p = 'ü' OR p IS NULL").to_arrow().to_table().to_pylist() == [
        {"a": 1, "p": "ü"},
        {"a": 3, "p": None},
    ]
    assert table.plan("p = 'x'").to_pandas()["a"].tolist() == [2]
    with pytest.raises(PlanError, match="does not have its partition values"):
        table.state.require_plain_rows(table.state.paths, "Spark")


def test_spark_takes_the_partition_values_of_plain_files_from_their_folders(
    tmp_path: Path,
) -> None:
    """A session that is enabled skips no file by what the log says of them."""
    path = tmp_path / "t"
    kinds = pa.schema({"id": pa.int64(), "month": pa.int32()})
    rows = pa.table({"id": [1, 2], "month": [1, 2]}, schema=kinds)
    write_deltalake(path, rows, partition_by=["month"])
    (log,) = path.glob("_delta_log/*.json")
    log.write_text(log.read_text().replace('{"month":"1"}', '{"month":"7"}'))
    sx.build_indexes(path, {"id": "exact"}, workers=1)
    planner = QueryPlanner(Tables())
    assert skipped(planner, path, equal("month", 1)) == []
    (other,) = skipped(planner, path, equal("id", 1))
    assert other.startswith("month=2/")


def test_partitions_of_times_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    at = pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    write_deltalake(path, pa.table({"a": [1], "at": at}), partition_by=["at"])
    with pytest.raises(TableError, match="of type datetime"):
        sx.open_table(path)


def test_a_file_of_another_size_is_refused(delta: str) -> None:
    file = next(Path(uri) for uri in DeltaTable(delta).file_uris())
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(TableError, match="never overwritten"):
        sx.open_table(delta)


def test_a_log_that_cannot_be_read(tmp_path: Path, delta: str) -> None:
    with pytest.raises(TableError, match="at version 99"):
        sx.open_table(delta, version=99)
    Path(delta, "_delta_log", f"{3:020}.json").write_text("{")
    with pytest.raises(TableError, match="its log cannot be read"):
        sx.open_table(delta)
    assert len(sx.open_table(delta, plain=True)) > 2


def test_without_the_library(delta: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(TableError, match=r"pip install 'skipindex\[delta\]'"):
        sx.open_table(delta)


@pytest.mark.parametrize("name", ["a b", "a#b?c=d&e", "ü"])
def test_vectors_in_folders_of_any_name(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    rows = pa.table({"a": [1, 2], "p": ["x y", "x y"]})
    write_deltalake(Path(path), rows, partition_by=["p"])
    commit(path, protocol("deletionVectors"))
    delete_rows(path, [0])
    assert sx.open_table(path).plan("a > 0").to_pandas()["a"].tolist() == [2]


@pytest.mark.parametrize("name", ["a b", "a#b?c=d&e", "ü"])
def test_names_of_folders(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    for low in (0, 10):
        rows = pa.table({"a": range(low, low + 10)})
        write_deltalake(Path(path), rows, mode="append")
    assert Path(path, "_delta_log").exists()
    assert kept(path, "a = 12") == 1
    assert kept(path, "a = 12", version=0) == 0
    table = sx.open_table(DeltaTable(Path(path), version=0))
    assert len(table.plan("a = 2").paths) == 1
    shutil.copytree(path, tmp_path / "a%20b")
    with pytest.raises(TableError, match="a path without %"):
        sx.open_table(tmp_path / "a%20b")


def test_fields_of_structs_have_no_statistics_of_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    columns = {"a.b": [1], "a": [{"b": 5}]}
    write_deltalake(path, pa.table(columns))
    assert kept(path, "a.b = 5") == 1
    assert kept(path, "`a.b` = 1") == 1
    assert kept(path, "`a.b` = 5") == 0


def test_a_plain_folder_has_no_versions(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    pa.parquet.write_table(pa.table({"a": [1]}), tmp_path / "p/0.parquet")
    with pytest.raises(TableError, match="no table of Delta"):
        sx.open_table(tmp_path / "p", version=0)
    with pytest.raises(TableError, match="reads no log"):
        sx.open_table(tmp_path / "p", version=0, plain=True)


def test_the_command_line_takes_a_delta_table(
    delta: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", delta, "--index", "a=exact"]) == 0
    assert main(["plan", delta, "a = 25"]) == 0
    assert "0 of 2 files" in capsys.readouterr().out


# -- elsewhere -------------------------------------------------------------------------


def test_indexes_in_a_sidecar(delta: str, tmp_path: Path) -> None:
    place = {"sidecar": str(tmp_path / "beside")}
    before = held(delta)
    sx.build_indexes(delta, {"a": "exact"}, workers=1, **place)
    assert kept(delta, "a = 25", **place) == 0
    assert held(delta) == before
    assert not Path(delta, "_skipindex").exists()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_on_a_store(s3: S3, scheme: str) -> None:
    bucket, options = s3.new_bucket(), dict(s3.options)
    how = {**options, "allow_http": "true"}
    for low in (0, 20):
        rows = pa.table({"a": range(low, low + 20)})
        url = f"s3://{bucket}/t"
        write_deltalake(url, rows, mode="append", storage_options=how)
    DeltaTable(url, storage_options=how).delete("a = 25")
    uri = f"{scheme}://{bucket}/t"
    sx.build_indexes(uri, {"a": "exact"}, workers=1, storage_options=options)
    assert kept(uri, "a = 25", storage_options=options) == 0
    assert kept(uri, "a = 26", storage_options=options) == 1
    assert kept(uri, "a = 25", storage_options=options, version=1) == 1


def test_status_and_plans_name_the_source(delta: str, tmp_path: Path) -> None:
    table = sx.open_table(delta)
    assert table.status().source == "version 2 of Delta"
    assert "the files are those of version 2 of Delta" in str(table.status())
    assert (
        "1 of 2 files of version 2 of Delta for: a = 26"
        in table.plan("a = 26").explain()
    )
    plain = tmp_path / "plain"
    plain.mkdir()
    pq.write_table(pa.table({"a": [1]}), plain / "a.parquet")
    status = sx.open_table(plain).status()
    assert status.source == "a listing"
    assert "the files are those of" not in str(status)
