"""Iceberg tables: read by their metadata, and indexed beside it."""

from __future__ import annotations

import shutil
import sys
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

import skipindex as sx
from benchmarks.moto_server import S3
from skipindex.api.functions import _of_iceberg_catalog
from skipindex.cli import main
from skipindex.errors import PlanError, TableError
from tests.iceberg.catalogs import sql_catalog
from tests.iceberg.deletes import delete_positions
from tests.source.test_formats import CALLS
from tests.tables import LOGGED, check_logged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return sql_catalog(tmp_path)


def made(catalog: SqlCatalog, *parts: pa.Table, name: str = "t") -> Table:
    table = catalog.create_table(f"db.{name}", schema=parts[0].schema)
    for part in parts:
        table.append(part)
    return table


@pytest.fixture
def ice(catalog: SqlCatalog) -> Table:
    """``a`` is from 0 to 39, in two files."""
    return made(
        catalog,
        *[
            pa.table({"a": range(low, low + 20), "s": ["a", "b"] * 10})
            for low in (0, 20)
        ],
    )


def folder_of(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def kept(table: Any, where: str, **how: Any) -> int:
    return len(sx.open_table(table, **how).plan(where).paths)


def task_with(table: Table, value: int) -> Any:
    """The task of the file that has a value of ``a``."""
    for task in table.scan().plan_files():
        values = pq.read_table(task.file.file_path.removeprefix("file://"))["a"]
        if value in values.to_pylist():
            return task
    raise AssertionError


def test_the_rows_are_those_of_a_snapshot(ice: Table) -> None:
    first = ice.history()[0].snapshot_id
    assert kept(ice, "a = 25") == 1  # by the bounds in the manifests
    assert kept(ice, "a = 99") == 0
    table = sx.open_table(ice)
    assert table.build_indexes({"a": "exact"}, workers=1).files == 2
    assert kept(ice, "a = 25") == 1
    assert kept(ice, "a = 25", version=first) == 0
    ice.delete("a = 25")
    assert kept(ice, "a = 25") == 1  # in a new file, without an index
    assert sx.open_table(ice).refresh_indexes(workers=1).files == 1
    assert kept(ice, "a = 25") == 0
    assert sx.open_table(ice).plan("a >= 0").count() == 39
    assert table.plan("a = 25").to_pandas()["a"].tolist() == [25]
    with pytest.raises(TableError, match="no snapshot 5"):
        sx.open_table(ice, version=5)


def test_a_name_in_a_catalog_of_pyiceberg_is_a_table(
    ice: Table, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = f"{catalog.name}.db.t"
    for key, value in {"type": "sql", **catalog.properties}.items():
        monkeypatch.setenv(
            f"PYICEBERG_CATALOG__{catalog.name.upper()}__{key.upper()}", str(value)
        )
    monkeypatch.chdir(tmp_path)
    assert kept(name, "a = 25") == 1
    with pytest.raises(TableError, match=r"cannot load 'db\.none'"):
        sx.open_table(f"{catalog.name}.db.none")
    with pytest.raises(TableError, match="does not exist"):
        sx.open_table("other.db.t")
    pq.write_table(pa.table({"a": [25]}), Path(name))
    assert not isinstance(_of_iceberg_catalog(name), Table), "a path comes first"


def test_a_file_of_metadata_is_a_table(
    ice: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ice.metadata_location
    sx.build_indexes(path, {"a": "exact"}, workers=1)
    for place in (path, path.removeprefix("file://")):
        assert len(sx.plan_files("a = 25", table=place).paths) == 1
        assert main(["plan", place, "a = 25"]) == 0
        assert "1 of 2 files" in capsys.readouterr().out
    first = ice.history()[0].snapshot_id
    assert kept(path, "a = 25", version=first) == 0
    with pytest.raises(TableError, match="or a table of pyiceberg"):
        sx.open_table(folder_of(ice))
    assert len(sx.open_table(folder_of(ice) / "data", plain=True)) == 2


def test_a_table_without_rows(catalog: SqlCatalog) -> None:
    table = catalog.create_table("db.e", schema=pa.schema({"a": pa.int64()}))
    assert kept(table, "a = 1") == 0
    assert sx.open_table(table).plan("a = 1").to_arrow().to_table().num_rows == 0
    assert sx.open_table(table).build_indexes({"a": "exact"}).files == 0
    table.append(pa.table({"a": [1]}))
    table.delete("a = 1")
    assert kept(table, "a = 1") == 0


def add_file(table: Table, uri: str, partition: Any, **details: Any) -> None:
    """Add a data file of which the manifest says this."""
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=uri,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=len(table.io.new_input(uri)),
        **details,
    )
    file._spec_id = table.spec().spec_id
    transaction = table.transaction()
    with transaction.update_snapshot().fast_append() as update:
        update.append_data_file(file)
    transaction.commit_transaction()


# -- columns ---------------------------------------------------------------------------


def test_columns_keep_their_index_under_another_name(ice: Table) -> None:
    sx.open_table(ice).build_indexes({"a": "exact"}, workers=1)
    with ice.update_schema() as update:
        update.rename_column("a", "b")
    with ice.update_schema() as update:
        update.rename_column("s", "a")
    table = sx.open_table(ice)
    assert [column.name for column in table.columns] == ["b", "a"]
    assert [one.name for one in table.status().columns] == ["b", "a"]
    assert table.refresh_indexes(workers=1).files == 0
    plan = table.plan("b = 25 AND a = 'b'")
    assert len(plan.paths) == 1
    assert plan.to_pandas().to_dict("list") == {"b": [25], "a": ["b"]}
    assert plan.verify().is_right
    assert "b = 25" in plan.explain()
    assert [one.column for one in plan.conditions] == ["b", "a"]


def test_a_column_that_was_dropped_and_added_again_has_no_index(ice: Table) -> None:
    sx.open_table(ice).build_indexes({"a": "exact"}, workers=1)
    with ice.update_schema() as update:
        update.delete_column("a")
    with ice.update_schema() as update:
        update.add_column("a", LongType())
    table = sx.open_table(ice)
    assert len(table.plan("a IS NULL").paths) == 2
    assert table.plan("a IS NULL").to_arrow().count_rows() == 40
    table.refresh_indexes(workers=1)
    assert len(sx.open_table(ice).plan("a = 25").paths) == 0
    assert len(sx.open_table(ice).plan("a IS NULL").paths) == 2


def test_fields_of_structs(catalog: SqlCatalog) -> None:
    rows = pa.table({"o": [{"x": 1, "y": {"z": "a"}}, None, {"x": 3, "y": None}]})
    table = made(catalog, rows)
    sx.open_table(table).build_indexes({"o.x": "exact", "o.y.z": "exact"}, workers=1)
    with table.update_schema() as update:
        update.rename_column("o.x", "w")
        update.rename_column("o", "p")
    assert [kept(table, f"p.w = {n}") for n in (1, 2, 3)] == [1, 0, 1]
    assert kept(table, "p.y.z = 'b'") == 0
    plan = sx.open_table(table).plan("p.y.z = 'a'")
    assert plan.to_arrow().to_table().to_pylist() == [{"p": {"w": 1, "y": {"z": "a"}}}]


def test_files_without_field_ids_go_by_the_mapping_of_names(
    catalog: SqlCatalog, tmp_path: Path
) -> None:
    rows = pa.table({"a": pa.array([1, 2]), "s": ["x", "y"]})
    table = made(catalog, rows)
    added = folder_of(table) / "data" / "added.parquet"
    pq.write_table(pa.table({"a": [7, 8], "s": ["x", "y"]}), added)
    table.add_files([f"file://{added}"])
    with table.update_schema() as update:
        update.rename_column("a", "b")
    opened = sx.open_table(table)
    opened.build_indexes({"b": "exact"}, workers=1)
    opened = sx.open_table(table)
    assert [len(opened.plan(f"b = {n}").paths) for n in (1, 7, 9)] == [1, 1, 0]
    assert opened.plan("b = 7").to_pandas()["s"].tolist() == ["x"]
    # Without the mapping nothing is known of the file, and its rows cannot be read.
    with table.transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")
    shutil.rmtree(folder_of(table) / "_skipindex")
    opened = sx.open_table(table)
    opened.build_indexes({"b": "exact"}, workers=1)
    plan = sx.open_table(table).plan("b IS NOT NULL")
    assert len(plan.paths) == 2
    assert "no field ids" in "; ".join(plan.notes)


def test_columns_of_partitions_that_a_file_lacks(
    catalog: SqlCatalog,
) -> None:
    """Iceberg reads the partition's value in a file that lacks the column."""
    rows = pa.table({"a": pa.array([1, 2]), "p": ["x", "x"]})
    table = catalog.create_table("db.t", schema=rows.schema)
    with table.update_spec() as update:
        update.add_field("p", IdentityTransform(), "p")
    table.append(rows)
    (task,) = table.scan().plan_files()
    added = f"{table.location()}/data/p=x/added.parquet"
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(
        pa.table([[3, 4]], schema=pa.schema([field])), added.removeprefix("file://")
    )
    add_file(table, added, task.file.partition, record_count=2)
    assert len(sx.open_table(table).plan("p = 'x'").paths) == 2
    opened = sx.open_table(table)
    opened.build_indexes({"p": "exact", "a": "exact"}, workers=1)
    opened = sx.open_table(table)
    assert len(opened.plan("p = 'x'").paths) == 2
    rows = opened.plan("p = 'x'").to_arrow().to_table()
    assert sorted(rows["a"].to_pylist()) == [1, 2, 3, 4]


def test_fields_of_partitions_that_a_file_lacks(catalog: SqlCatalog) -> None:
    rows = pa.table({"o": [{"p": "x", "q": 1}]})
    table = catalog.create_table("db.t", schema=rows.schema)
    with table.update_spec() as update:
        update.add_field("o.p", IdentityTransform(), "p")
    number = table.schema().find_field("o.q").field_id
    q = pa.field("q", pa.int64(), metadata={"PARQUET:field_id": str(number)})
    o = pa.field("o", pa.struct([q]), metadata={"PARQUET:field_id": "1"})
    uri = f"{table.location()}/data/added.parquet"
    Path(uri.removeprefix("file://")).parent.mkdir(parents=True)
    stored = pa.table([pa.array([{"q": 1}], o.type)], schema=pa.schema([o]))
    pq.write_table(stored, uri.removeprefix("file://"))
    add_file(table, uri, Record("x"), record_count=1)
    opened = sx.open_table(table)
    opened.build_indexes({"o.p": "exact"}, workers=1)
    assert kept(table, "o.p = 'x'") == 1


# -- deletes ---------------------------------------------------------------------------


def test_rows_that_are_deleted_by_position(ice: Table) -> None:
    sx.open_table(ice).build_indexes({"a": "exact"}, workers=1)
    task = task_with(ice, 25)
    delete_positions(ice, task, [5, 6])
    delete_positions(ice, task_with(ice, 25), [5])
    table = sx.open_table(ice)
    plan = table.plan("a >= 24")
    left = [24, *range(27, 40)]
    assert sorted(plan.to_arrow().to_table()["a"].to_pylist()) == left
    assert sorted(plan.to_pandas()["a"].tolist()) == left
    assert sorted(plan.to_polars().collect()["a"].to_list()) == left
    assert sorted(n for (n,) in plan.to_duckdb().project("a").fetchall()) == left
    assert plan.count_bounds == (13, 16)
    assert len(table.plan("a = 25").paths) == 1
    assert table.plan("a = 25").to_pandas().empty
    assert table.plan("a < 20").count() == 20
    assert len(table.plan("a >= 0", limit=18).paths) == 1
    assert len(table.plan("a >= 20", limit=18).paths) == 1
    assert table.plan("a >= 20", limit=18).to_pandas()["a"].size == 18
    assert table.plan("a = 25").verify().is_right
    scan = ArrowScan(ice.metadata, ice.io, ice.schema(), AlwaysTrue())
    assert scan.to_table(plan.to_iceberg_scan()).num_rows == 18
    located = table.locate([24, 3, 25], "a")
    places = {(one["key"], one["row"]) for one in located.read_all().to_pylist()}
    assert places == {(3, 3), (None, None)}
    assert located.read(["a"])["a"].to_pylist() == [24, 3]


def test_equality_deletes_are_refused(ice: Table) -> None:
    kind = DataFileContent.EQUALITY_DELETES
    delete_positions(ice, task_with(ice, 25), [5], kind)
    with pytest.raises(TableError, match="equality deletes"):
        sx.open_table(ice)


# -- what the manifests say ------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "values", "holds", "lacks"),
    [
        *LOGGED,
        (pa.string(), ["x" * 60, "y" * 60], [f"c = '{'x' * 60}'"], ["c > 'z'"]),
        (pa.string(), ["\uff5e", "\U0001f600"], ["c = '\uff5e'", "c >= '\uff5e'"], []),
    ],
)
def test_statistics_of_manifests_rule_out_files_without_an_index(
    catalog: SqlCatalog, dtype: pa.DataType, values: list[Any], holds: list[str],
    lacks: list[str],
) -> None:  # fmt: skip
    table = made(catalog, pa.table({"c": pa.array(values, dtype)}))
    check_logged(sx.open_table(table), holds, lacks)


def test_bounds_of_texts_in_the_order_of_utf16(catalog: SqlCatalog) -> None:
    """In that of UTF-8, the second text is the greatest one."""
    texts = ["a", "\U0001f600", "\uff5e"]
    table = made(catalog, pa.table({"c": ["a"]}))
    (task,) = table.scan().plan_files()
    field = pa.field("c", pa.string(), metadata={"PARQUET:field_id": "1"})
    uri = f"{table.location()}/data/added.parquet"
    rows = pa.table([texts], schema=pa.schema([field]))
    pq.write_table(rows, uri.removeprefix("file://"))
    low, high = texts[0].encode(), texts[-1].encode()
    bounds = {"lower_bounds": {1: low}, "upper_bounds": {1: high}}
    add_file(table, uri, task.file.partition, record_count=3, **bounds)
    assert [kept(table, f"c = '{text}'") for text in texts] == [2, 1, 1]


def test_bounds_of_dates_that_became_times(catalog: SqlCatalog) -> None:
    """The bounds of older files are days, in four bytes."""
    at = datetime(2024, 1, 1)
    table = made(catalog, pa.table({"c": pa.array([at], pa.timestamp("us"))}))
    (task,) = table.scan().plan_files()
    days = (at.date() - date(1970, 1, 1)).days.to_bytes(4, "little")
    field = pa.field("c", pa.date32(), metadata={"PARQUET:field_id": "1"})
    uri = f"{table.location()}/data/added.parquet"
    rows = pa.table([[at.date()]], schema=pa.schema([field]))
    pq.write_table(rows, uri.removeprefix("file://"))
    bounds = {"lower_bounds": {1: days}, "upper_bounds": {1: days}}
    add_file(table, uri, task.file.partition, record_count=1, **bounds)
    late = "c >= TIMESTAMP_NTZ '2023-12-31 00:00:00'"
    assert len(sx.open_table(table).plan(late, timezone="UTC").paths) == 2


def test_a_type_that_became_wider(catalog: SqlCatalog) -> None:
    table = made(catalog, pa.table({"c": pa.array([-3, 9], pa.int32())}))
    sx.open_table(table).build_indexes({"c": "exact"}, workers=1)
    with table.update_schema() as update:
        update.update_column("c", LongType())
    table.append(pa.table({"c": pa.array([1 << 40])}))
    assert [kept(table, f"c = {n}") for n in (-3, 9, 1 << 40, 5)] == [1, 1, 1, 0]
    rows = sx.open_table(table).plan("c < 0").to_arrow().to_table()
    assert rows["c"].to_pylist() == [-3]


# -- what is refused -------------------------------------------------------------------


def held(table: Table) -> dict[Path, bytes]:
    """The files of the table and of its metadata, without the indexes."""
    every = folder_of(table).rglob("*")
    files = [path for path in every if path.is_file()]
    return {path: path.read_bytes() for path in files if "_skipindex" not in str(path)}


@pytest.mark.few(8)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_no_call_changes_the_files_or_the_metadata(ice: Table, name: str) -> None:
    table = sx.open_table(ice).build_indexes({"a": "exact"}, workers=1).table
    before = held(ice)
    CALLS[name](table)
    assert held(ice) == before


def test_without_the_library(ice: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(TableError, match=r"pip install 'skipindex\[iceberg\]'"):
        sx.open_table(ice.metadata_location)


def test_metadata_that_cannot_be_read(ice: Table, tmp_path: Path) -> None:
    path = Path(ice.metadata_location.removeprefix("file://"))
    path.write_text("{")
    with pytest.raises(TableError, match="pyiceberg cannot read"):
        sx.open_table(str(path))


def test_files_elsewhere_are_refused(ice: Table, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder_of(ice), copy)
    name = Path(ice.metadata_location).name
    with pytest.raises(TableError, match="not in its folder"):
        sx.open_table(copy / "metadata" / name)
    file = next(folder_of(ice).rglob("*.parquet"))
    file.unlink()
    with pytest.raises(TableError, match="is gone"):
        sx.open_table(ice)


def test_indexes_in_a_sidecar(ice: Table, tmp_path: Path) -> None:
    place = {"sidecar": str(tmp_path / "beside")}
    sx.open_table(ice, **place).build_indexes({"a": "exact"}, workers=1)
    assert kept(ice, "s = 'c'", **place) == 0
    assert not (folder_of(ice) / "_skipindex").exists()


def test_a_plan_of_a_plain_folder_has_no_tasks(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "0.parquet")
    with pytest.raises(PlanError, match="no Iceberg table"):
        sx.open_table(tmp_path).plan("a = 1").to_iceberg_scan()


@pytest.mark.spark
def test_spark_does_not_read_columns_by_their_names(
    ice: Table, spark: SparkSession
) -> None:
    with pytest.raises(PlanError, match="known by field ids"):
        sx.open_table(ice).plan("a = 25").read(spark)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_on_a_store(tmp_path: Path, s3: S3, scheme: str) -> None:
    options = dict(s3.options)
    catalog = SqlCatalog(
        "c",
        **{
            "uri": f"sqlite:///{tmp_path}/c.db",
            "warehouse": f"{scheme}://{s3.new_bucket()}/w",
            "s3.endpoint": options["endpoint"],
            "s3.access-key-id": options["access_key_id"],
            "s3.secret-access-key": options["secret_access_key"],
            "s3.region": options["region"],
        },
    )
    catalog.create_namespace("db")
    parts = [pa.table({"a": range(low, low + 20)}) for low in (0, 20)]
    table = made(catalog, *parts)
    place = {"storage_options": options}
    sx.open_table(table, **place).build_indexes({"a": "exact"}, workers=1)
    table.delete("a = 25")
    for each in (table, table.metadata_location):
        assert kept(each, "a = 5", **place) == 1
        assert kept(each, "a = 99", **place) == 0
    delete_positions(table, next(iter(table.scan().plan_files())), [0])
    plan = sx.open_table(table, **place).plan("a >= 0")
    assert plan.to_arrow().count_rows() == 38
