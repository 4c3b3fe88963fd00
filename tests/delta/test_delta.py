"""Delta tables: read by their log, indexed beside it, and never written."""

from __future__ import annotations

import json
import shutil
import string
import struct
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap

import skipindex as sx
from benchmarks.moto_server import moto_server
from skipindex.cli import main
from skipindex.errors import TableError
from tests.table.test_formats import CALLS

_Z85 = (
    string.digits + string.ascii_lowercase + string.ascii_uppercase
) + ".-:+=^!/*?&<>()[]{}@%$#"


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

_ONE_MICRO = datetime(2024, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("dtype", "values", "holds", "lacks"),
    [
        (pa.int64(), [3, 9, None], ["c = 9", "c < 4", "c IS NULL"], ["c > 9"]),
        (pa.int8(), [3, 9], ["c = 3"], ["c IS NULL", "c < 3"]),
        (pa.int64(), [2**53 + 1], [f"c = {2**53 + 1}"], [f"c = {2**53}"]),
        (pa.date32(), [date(2024, 5, 1)], ["c = DATE '2024-05-01'"],
         ["c > DATE '2024-05-01'"]),
        (pa.string(), ["Oslo", "Rom"], ["c = 'Oslo'"], ["c = 'A'", "c > 'S'"]),
        (pa.string(), ["x" * 60], [f"c = '{'x' * 60}'", "c > 'y'"], []),
        (pa.string(), ["\ufffd"], ["c > 'a'", "c < 'a'"], []),
        (pa.float64(), [1.0, float("nan")], ["c > 5", "c < 0"], ["c IS NULL"]),
        (pa.decimal128(20, 2), [Decimal("1.5")], ["c = 1.5", "c > 9"], []),
        (pa.timestamp("us", "UTC"), [_ONE_MICRO],
         ["c = TIMESTAMP '2024-01-01 12:00:00.999999'"],
         ["c > TIMESTAMP '2024-01-01 12:00:02'"]),
        (pa.int64(), [None, None], ["c IS NULL"], ["c = 1", "c IS NOT NULL"]),
    ],
)  # fmt: skip
def test_statistics_of_the_log_rule_out_files_without_an_index(
    tmp_path: Path, dtype: pa.DataType, values: list[Any], holds: list[str],
    lacks: list[str],
) -> None:  # fmt: skip
    path = str(tmp_path / "s")
    write_deltalake(path, pa.table({"c": pa.array(values, dtype)}))
    table = sx.open_table(path)
    for where in holds:
        assert len(table.plan(where, timezone="UTC").paths) == 1, where
    for where in lacks:
        assert len(table.plan(where, timezone="UTC").paths) == 0, where


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
    if name == "declare_layout":
        with pytest.raises(TableError, match="Delta table"):
            table.declare_layout(sx.Clustering(by=["a"]))
    else:
        CALLS[name](table)
    assert held(delta) == before
    assert DeltaTable(delta).to_pyarrow_table().num_rows == 39


def test_the_log_of_skipindex_never_stands_for_that_of_delta(delta: str) -> None:
    table = sx.build_indexes(delta, {"a": "exact"}, workers=1).table
    with pytest.raises(TableError, match="log of a Delta table"):
        table.declare_exclusive()
    with pytest.raises(TableError, match="cannot be opened from its log"):
        sx.open_table(delta, trust="log")


@pytest.mark.spark
def test_spark_reads_a_version_and_writes_none(
    delta: str, spark: Any, tmp_path: Path
) -> None:
    sx.build_indexes(delta, {"a": "exact"}, workers=1)
    assert sx.read(delta, "a IN (24, 25)", spark=spark).count() == 1
    old = sx.open_table(delta, version=1).plan("a IN (24, 25)")
    assert old.read(spark).count() == 2
    table = sx.open_table(delta)
    before = sorted(Path(delta).rglob("*"))
    rows = spark.range(3).selectExpr("id AS a", "'a' AS s")
    for write in (
        lambda: sx.append(rows, delta),
        lambda: sx.write_table(rows, delta, overwrite=True),
        lambda: table.optimize(spark, in_place=True),
        lambda: table.optimize(spark, into=tmp_path / "copy"),
    ):
        with pytest.raises(TableError, match="Delta table"):
            write()
    assert sorted(Path(delta).rglob("*")) == before


# -- what is not read is refused -------------------------------------------------------


def commit(path: str, *actions: dict[str, Any]) -> None:
    """One more commit of the log, as another writer would write it."""
    name = f"{DeltaTable(path).version() + 1:020}.json"
    text = "".join(json.dumps(action) + "\n" for action in actions)
    Path(path, "_delta_log", name).write_text(text)


def protocol(*features: str) -> dict[str, Any]:
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": list(features),
        }
    }


def actions_of(path: str, kind: str) -> list[dict[str, Any]]:
    lines = [
        json.loads(line)
        for file in sorted(Path(path, "_delta_log").glob("*.json"))
        for line in file.read_text().splitlines()
    ]
    return [line[kind] for line in lines if kind in line]


def test_a_feature_that_is_not_known_is_refused_by_name(delta: str) -> None:
    commit(delta, protocol("timestampNtz", "typeWidening"))
    with pytest.raises(TableError, match="typeWidening"):
        sx.open_table(delta)
    assert len(sx.open_table(delta, version=2)) == 2


def test_files_with_other_names_of_columns_are_refused(delta: str) -> None:
    (metadata,) = actions_of(delta, "metaData")
    metadata["configuration"] = {
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "2",
    }
    schema = json.loads(metadata["schemaString"])
    for i, field in enumerate(schema["fields"]):
        field["metadata"] = {
            "delta.columnMapping.id": i + 1,
            "delta.columnMapping.physicalName": f"col-{i}",
        }
    metadata["schemaString"] = json.dumps(schema)
    commit(delta, protocol("columnMapping"), {"metaData": metadata})
    with pytest.raises(TableError, match="other names of columns"):
        sx.open_table(delta)


def inline_vector(rows: list[int]) -> dict[str, Any]:
    """A deletion vector that stands in the log, by Delta's protocol."""
    bitmap = BitMap(rows).serialize()
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    size = len(data)
    data += b"\0" * (-size % 4)
    text = ""
    for (number,) in struct.iter_unpack(">I", data):
        digits = [number // 85**i % 85 for i in range(4, -1, -1)]
        text += "".join(_Z85[digit] for digit in digits)
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": size,
        "cardinality": len(rows),
    }


def test_rows_that_vectors_delete_are_refused(delta: str) -> None:
    commit(delta, protocol("deletionVectors"))
    assert len(sx.open_table(delta)) == 2
    live = {Path(uri).name for uri in DeltaTable(delta).file_uris()}
    add = next(one for one in actions_of(delta, "add") if one["path"] in live)
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    vector = inline_vector([0, 3])
    commit(delta, {"remove": remove}, {"add": {**add, "deletionVector": vector}})
    with pytest.raises(TableError, match="deletion vectors"):
        sx.open_table(delta)


def test_folders_that_mean_other_values_are_refused(tmp_path: Path) -> None:
    """Readers of folders take ``%C3%BC`` for two characters."""
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1], "p": ["ü"]}), partition_by=["p"])
    with pytest.raises(TableError, match="other partition values"):
        sx.open_table(path)


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
def test_on_a_store(scheme: str) -> None:
    with moto_server() as server:
        bucket, options = server.new_bucket(), dict(server.options)
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
