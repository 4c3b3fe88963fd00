"""Columns that only some files have: a given schema, and one that a footer names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.errors import PlanError, PredicateError
from skipindex.indexes import index_types
from tests.tables import build, kept, put

BOTH = pa.schema([("v", pa.int64()), ("w", pa.int64())])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "0.parquet", {"v": [1, 2]})
    put(tmp_path / "1.parquet", {"v": [3], "w": [5]})
    put(tmp_path / "2.parquet", {"v": [4, 5], "w": pa.array([None, 7], pa.int64())})
    return tmp_path


def test_without_a_schema_the_columns_are_those_of_one_footer(folder: Path) -> None:
    with pytest.raises(PredicateError, match="no column 'w'"):
        build(folder).plan("w = 5")


@pytest.mark.parametrize("kind", ["minmax", *sorted(index_types())])
def test_a_file_without_the_column_is_null_in_every_row(
    folder: Path, kind: str
) -> None:
    """Law 1 on both sides: certainly NULL, and never a value."""
    dtype = pa.string() if kind in {"ngram_bloom", "token_bloom"} else pa.int64()
    if dtype == pa.string():
        for i in (1, 2):
            values = pa.array(["five" if i == 1 else None], dtype)
            put(folder / f"{i}.parquet", {"v": [i], "w": values})
    opened = sx.open_table(folder, schema=pa.schema([("v", pa.int64()), ("w", dtype)]))
    report = sx.build_indexes(opened, {"w": kind}, workers=1)
    assert report.notes == ()
    table = report.table
    assert "0.parquet" not in kept(table, "w IS NOT NULL")
    plan = table.plan("w IS NULL")
    assert plan.row_counts.lower[0] == plan.row_counts.upper[0] == 2
    for condition in ("w = 5", "w <> 6", "NOT (w = 6)", "w IN (1, 5)", "w + 1 = 6"):
        text = condition if dtype == pa.int64() else "w = 'five'"
        assert "0.parquet" not in kept(table, text), condition
        assert "1.parquet" in kept(table, text), condition
    assert "0.parquet" in kept(table, "w <=> NULL AND v = 1")
    assert table.refresh().schema.names == ["v", "w"], "the schema stays"
    assert not plan.verify().violations


def test_no_index_is_needed_to_read_files_that_lack_the_column(folder: Path) -> None:
    table = sx.open_table(folder, schema=BOTH)
    assert len(kept(table, "w = 5")) == 3


def test_a_name_in_other_capitals_is_not_taken_for_a_missing_column(
    tmp_path: Path,
) -> None:
    """A session reads it, or NULL if it tells capitals apart."""
    put(tmp_path / "0.parquet", {"W": [5]})
    put(tmp_path / "1.parquet", {"w": [6]})
    table = build(tmp_path)
    opened = sx.open_table(tmp_path, schema=pa.schema([("w", pa.int64())]))
    built = sx.build_indexes(opened, {"w": "bitmap"}, workers=1).table
    assert table.columns[0].name == "W"
    assert kept(built, "w = 5") == ["0.parquet"]
    assert kept(built, "w IS NULL") == []
    assert kept(built, "w IS NULL", case_sensitive=True) == ["0.parquet"]
    assert kept(built, "w = 5", case_sensitive=True) == ["0.parquet"]


def test_partition_columns_take_the_types_of_a_given_schema(tmp_path: Path) -> None:
    put(tmp_path / "p=01" / "f.parquet", {"v": [1]})
    schema = pa.schema([("p", pa.string()), ("v", pa.int64()), ("w", pa.date32())])
    table = sx.open_table(tmp_path, schema=schema)
    assert [column.name for column in table.columns] == ["v", "w", "p"]
    assert kept(table, "p = '1'") == []
    assert kept(table, "p = '01'") == ["p=01/f.parquet"]


def row_metadata(*fields: dict[str, Any]) -> dict[bytes, bytes]:
    text = json.dumps({"type": "struct", "fields": list(fields)})
    return {b"org.apache.spark.sql.parquet.row.metadata": text.encode()}


def field(name: str, dtype: Any = "long", **metadata: str) -> dict[str, Any]:
    return {"name": name, "type": dtype, "nullable": True, "metadata": metadata}


def test_a_footer_may_name_a_column_that_its_file_lacks(tmp_path: Path) -> None:
    texts = {"type": "map", "keyType": "string", "valueType": "string"}
    metadata = row_metadata(
        field("c", "decimal(5,2)"),
        field("a"),
        field("m", {**texts, "valueContainsNull": True}),
    )
    put(tmp_path / "0.parquet", pa.table({"a": [1]}).replace_schema_metadata(metadata))
    table = build(tmp_path)
    assert [column.name for column in table.columns] == ["c", "a", "m"]
    assert kept(table, "c = 1") == kept(table, "a = 2") == []
    assert kept(table, "c IS NULL") == kept(table, "m IS NULL") == ["0.parquet"]


def test_spark_does_not_see_a_column_that_its_own_schema_lacks(tmp_path: Path) -> None:
    rows = pa.table({"a": [1], "b": [2]}).replace_schema_metadata(
        row_metadata(field("a"))
    )
    put(tmp_path / "0.parquet", rows)
    with pytest.raises(PredicateError, match="no column 'b'"):
        build(tmp_path).plan("b = 2")


@pytest.mark.parametrize("key", ["EXISTS_DEFAULT", "CURRENT_DEFAULT"])
def test_files_that_lack_a_column_with_a_default_are_kept(
    tmp_path: Path, key: str
) -> None:
    """They hold the default there, and no NULL."""
    metadata = row_metadata(field("a"), field("c", **{key: "7"}))
    put(tmp_path / "0.parquet", pa.table({"a": [1]}).replace_schema_metadata(metadata))
    put(tmp_path / "1.parquet", {"a": [2, 2], "c": [5, None]})
    put(tmp_path / "2.parquet", {"a": [3], "c": pa.array([None], pa.int64())})
    table = build(tmp_path)
    for condition, others in {
        "c = 7": [],
        "c = 5": ["1.parquet"],
        "c IS NULL": ["1.parquet"],
        "c IS NOT NULL": ["1.parquet"],
        "c <=> NULL": ["1.parquet"],
        "NOT c = 5": [],
        "c > a": ["1.parquet"],
        "c < a": [],
    }.items():
        assert kept(table, condition) == ["0.parquet", *others, "2.parquet"]
    assert kept(table, "c = 7 AND a = 2") == []
    with pytest.raises(PlanError, match="it lacks column 'c', whose DEFAULT Spark"):
        table.plan("a < 2").to_pandas()
    assert len(table.plan("a > 1").to_pandas()) == 3


def test_names_that_differ_in_capitals_are_indexed_by_their_spelling(
    tmp_path: Path,
) -> None:
    put(tmp_path / "0.parquet", {"Val": [1], "val": [5]})
    for wish in ({"Val": "bitmap"}, {"*": "bitmap"}):
        table = sx.build_indexes(tmp_path, wish, workers=1).table
        assert table.plan("Val = 5", case_sensitive=True).paths == []
        assert len(table.plan("Val = 1", case_sensitive=True).paths) == 1
    assert table.plan("val = 1", case_sensitive=True).paths == []
    with pytest.raises(PredicateError, match="ambiguous"):
        table.plan("val = 1")
    with pytest.raises(PredicateError, match="ambiguous"):
        sx.build_indexes(tmp_path, {"VAL": "bitmap"}, workers=1)
    assert sx.open_table(tmp_path).advise().columns
