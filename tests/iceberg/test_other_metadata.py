"""Metadata of Iceberg as other writers make them: valid, and unlike pyiceberg's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, StringType

import skipindex as sx
from skipindex.errors import TableError
from tests.iceberg.catalogs import sql_catalog

MAPPING = "schema.name-mapping.default"


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return sql_catalog(tmp_path)


def without_ids(catalog: SqlCatalog, names: Sequence[str] = ("a", "b")) -> Table:
    """A table of one file without field ids: ``a`` from 1 to 3, ``b`` from 7 to 9."""
    schema = pa.schema([(name, pa.int64()) for name in names])
    table = catalog.create_table("db.t", schema=schema)
    file = Path(table.location().removeprefix("file://"), "data", "old.parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        pq.write_table(pa.table({"a": [1, 2, 3], "b": [7, 8, 9]}), file)
    table.add_files([f"file://{file}"])
    return table


def check(table: Table, *where: str) -> None:
    """Compare the rows and their number with those of a scan of the whole table."""
    rows = table.scan().to_arrow()  # noqa: F841 (DuckDB finds it by its name)
    opened = sx.open_table(table)
    for one in where:
        ((n,),) = duckdb.sql(f"SELECT count(*) FROM rows WHERE {one}").fetchall()
        plan = opened.plan(one)
        assert plan.to_arrow().count_rows() == n, one
        least, most = plan.count_bounds
        assert least <= n, one
        assert most is None or n <= most, one


# -- names that come to mean other columns ---------------------------------------------


def rename_and_add(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("a", "c")
    with table.update_schema() as update:
        update.add_column("a", LongType())


def test_columns_that_no_name_is_mapped_to_are_each_their_own(
    catalog: SqlCatalog,
) -> None:
    """A file without field ids has none of them, whatever their types."""
    table = without_ids(catalog)
    with table.update_schema() as update:
        update.add_column("x", LongType())
        update.add_column("y", StringType())
    mapped = [{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b"]}]
    with table.transaction() as change:
        change.set_properties({MAPPING: json.dumps(mapped)})
    report = sx.open_table(table).build_indexes({"*": "exact"}, workers=1)
    assert report.notes == ()
    assert sx.open_table(table).refresh_indexes(workers=1).files == 0
    check(table, "x IS NULL", "y IS NULL", "x = 1", "y = 'a'", "a = 1")
    assert sx.open_table(table).plan("x = 1 OR y = 'a'").paths == []


def test_an_index_outlives_a_column_that_is_renamed_beside_its_own(
    catalog: SqlCatalog,
) -> None:
    table = without_ids(catalog)
    sx.open_table(table).build_indexes({"*": "exact"}, workers=1)
    rename_and_add(table)
    assert sx.open_table(table).plan("b = 99").paths == []
    assert len(sx.open_table(table).plan("b = 7").paths) == 1
    report = sx.open_table(table).refresh_indexes(workers=1)
    assert report.files == 1
    assert sx.open_table(table).plan("c = 99").paths == []


def test_a_table_that_is_made_again_maps_its_own_names(catalog: SqlCatalog) -> None:
    table = without_ids(catalog)
    sx.open_table(table).build_indexes({"*": "exact"}, workers=1)
    catalog.drop_table("db.t")
    again = without_ids(catalog, ("b", "a"))
    assert again.schema().find_field("a").field_id == 2
    check(again, "a = 1", "b = 7", "a = 7", "b = 1")
    assert sx.open_table(again).plan("a = 99").paths == []


# -- files with some field ids ---------------------------------------------------------


def field(name: str, dtype: pa.DataType, number: int | None = None) -> pa.Field:
    notes = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(name, dtype, metadata=notes)


def append_file(table: Table, path: Path) -> None:
    """Commit a file, of which the manifest says nothing but its rows and bytes."""
    details: dict[str, Any] = {
        "content": DataFileContent.DATA,
        "file_path": f"file://{path}",
        "file_format": FileFormat.PARQUET,
        "partition": Record(),
        "record_count": pq.read_metadata(path).num_rows,
        "file_size_in_bytes": path.stat().st_size,
    }
    file = DataFile.from_args(**details)
    file._spec_id = 0
    with table.transaction() as change, change.update_snapshot().fast_append() as more:
        more.append_data_file(file)


INNER = pa.struct([("x", pa.int64())])
STRUCTS = [{"x": 1}, None, {"x": 3}]
PARTIAL: dict[str, list[tuple[pa.Field, list[Any]]]] = {
    "one": [(field("a", pa.int64(), 1), [1, 2, 3]), (field("s", INNER), STRUCTS)],
    "outer": [(field("a", pa.int64(), 1), [1, 2, 3]), (field("s", INNER, 2), STRUCTS)],
    "wrong": [(field("a", pa.int64(), 3), [1, 2, 3]), (field("s", INNER), STRUCTS)],
}


@pytest.mark.parametrize("name", PARTIAL)
def test_files_with_some_field_ids_have_no_index(
    catalog: SqlCatalog, name: str
) -> None:
    """pyiceberg goes by the mapping then, and Iceberg's Java by the ids."""
    schema = pa.schema([("a", pa.int64()), ("s", INNER)])
    table = catalog.create_table("db.t", schema=schema)
    file = Path(table.location().removeprefix("file://"), "data", "f.parquet")
    file.parent.mkdir(parents=True)
    fields, values = zip(*PARTIAL[name], strict=True)
    arrays = [pa.array(v, f.type) for f, v in zip(fields, values, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), file)
    mapped = [
        {"field-id": 1, "names": ["a"]},
        {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["x"]}]},
    ]
    with table.transaction() as change:
        change.set_properties({MAPPING: json.dumps(mapped)})
    append_file(table, file)
    report = sx.open_table(table).build_indexes({"*": "exact"}, workers=1)
    assert "only some of its columns have field ids" in report.notes[0]
    check(table, "a = 1", "s.x = 3", "s.x IS NULL", "a IS NOT NULL")


# -- files twice, vectors --------------------------------------------------------------


def test_a_file_that_is_named_twice_is_refused(catalog: SqlCatalog) -> None:
    table = without_ids(catalog)
    (task,) = table.scan().plan_files()
    table.add_files([task.file.file_path], check_duplicate_files=False)
    with pytest.raises(TableError, match=r"names 'data/old.parquet' 2 times"):
        sx.open_table(table)
