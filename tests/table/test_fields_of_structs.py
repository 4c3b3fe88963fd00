"""Fields of structs: ``a.b.c`` is a column like any other, and NULL where ``a`` is."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from tests.tables import build, kept, put, put_all

KINDS = ["bitmap", "bit_sliced", "range_bitmap"]
INNER = pa.struct([("c", pa.int64()), ("t", pa.string())])
OUTER = pa.struct([("b", INNER), ("n", pa.int32()), ("x.y", pa.int32())])


def rows_of(*values: int | None) -> pa.Array:
    """A row for every value; a struct around it is NULL for None."""
    rows: list[Any] = []
    for value in values:
        deep = {"b": {"c": value, "t": f"t{value}"}, "n": value, "x.y": value}
        rows.append(None if value is None else deep)
    return pa.array(rows, OUTER)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    half = pa.array([{"b": None, "n": 8, "x.y": None}, {"b": {"c": None}}], OUTER)
    files = [rows_of(1, 2, None), rows_of(11, 12), half, rows_of(None, None)]
    return put_all(tmp_path, [{"a": own, "i": list(range(len(own)))} for own in files])


@pytest.mark.parametrize("kind", ["minmax", *KINDS])
def test_fields_prune_by_every_kind(folder: Path, kind: str) -> None:
    table = build(folder, {"a.b.c": kind, "A.N": kind, "a.b.t": kind, "a.`x.y`": kind})
    for text in ("a.b.c = 2", "a.n = 2", "A.B.C <= 3", "a.`x.y` = 2", "a.b.t = 't2'"):
        assert kept(table, text) == ["0.parquet"], text
    assert kept(table, "a.b.c IS NULL") == ["0.parquet", "2.parquet", "3.parquet"]
    assert kept(table, "a.n IS NOT NULL") == [*("0.parquet", "1.parquet", "2.parquet")]
    assert kept(table, "a.b.c != 5") == ["0.parquet", "1.parquet"]
    assert kept(table, sx.col("a.b.c") > 11) == ["1.parquet"]
    assert kept(table, "i = 1 AND a.b.c = 12") == ["1.parquet"]


def test_counts_are_those_of_the_rows(folder: Path) -> None:
    table = build(folder, {"a.b.c": "bitmap", "a.n": "bit_sliced"})
    for text, n in [
        ("a.b.c IS NULL", 1 + 2 + 2),
        ("a.n IS NULL", 1 + 1 + 2),
        ("a.b.c > 1", 3),
        ("NOT (a.b.c > 1)", 1),
        ("a.n = 8 OR a.b.c = 12", 2),
    ]:
        assert table.plan(text).count_bounds == (n, n), text


def test_statistics_of_all_columns_reach_into_structs(folder: Path) -> None:
    table = build(folder)
    assert [leaf.name for leaf in table.state.leaves] == [
        *("a.b.c", "a.b.t", "a.n", "a.`x.y`", "i")
    ]
    assert kept(table, "a.b.t LIKE 't2%'") == ["0.parquet"]
    dropped = table.drop_indexes(columns=["a.b.t"])
    assert len(kept(dropped, "a.b.t LIKE 't2%'")) == 4
    assert kept(dropped, "a.b.c = 12") == ["1.parquet"]


def test_a_field_that_a_file_lacks_is_null_there(folder: Path) -> None:
    """Schema evolution: so Spark reads it."""
    put(folder / "9.parquet", {"a": pa.array([{"n": 1}]), "i": [1]})
    table = build(folder, {"a.b.c": "bitmap"})
    assert kept(table, "a.b.c = 2") == ["0.parquet"]
    assert "9.parquet" in kept(table, "a.b.c IS NULL")
    put(folder / "9.parquet", {"a": pa.array([{"B": {"C": 2}}]), "i": [1]})
    table = build(folder, {"a.b.c": "bitmap"})
    assert kept(table, "a.b.c = 2") == ["0.parquet", "9.parquet"]
    assert kept(table, "a.b.c = 1") == ["0.parquet"]
    assert "9.parquet" in kept(table, "a.b.c = 1", case_sensitive=True)


def test_trap_c41_dots_in_names_are_not_paths(tmp_path: Path) -> None:
    """apache/datafusion 5708 took one for the other and pruned everything."""
    columns = {"a.b": [1, 2], "a": [{"b": 7, "c": 3}, {"b": 8, "c": 4}]}
    put_all(tmp_path, [columns, {"a.b": [5], "a": [{"b": 1, "c": 9}]}])
    table = build(tmp_path)
    assert kept(table, "`a.b` = 2") == ["0.parquet"]
    assert kept(table, "a.c = 9") == ["1.parquet"]
    assert kept(table, "a.b = 8") == ["0.parquet"]
    assert kept(table, "a.b = 5") == [], "a value of the other"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a.z = 1", "no field 'z' of column 'a' .fields: b, n, x.y."),
        ("a.b.c.d = 1", "column 'a.b.c' is not a struct"),
        ("i.z = 1", "column 'i' is not a struct"),
    ],
)
def test_a_field_that_is_not_there(folder: Path, text: str, problem: str) -> None:
    with pytest.raises(sx.PredicateError, match=problem):
        sx.plan_files(text, table=folder)
    with pytest.raises(sx.PredicateError, match=problem):
        sx.build_indexes(folder, {text.partition(" ")[0]: "bitmap"}, workers=1)


def test_fields_that_differ_in_capitals_are_told_apart(tmp_path: Path) -> None:
    put_all(tmp_path, [{"a": [{"b": 1, "B": 5}]}, {"a": [{"b": 5, "B": 1}]}])
    table = build(tmp_path, {"a.b": "bitmap", "a.B": "bitmap"})
    assert kept(table, "a.b = 5", case_sensitive=True) == ["1.parquet"]
    assert kept(table, "a.B = 5", case_sensitive=True) == ["0.parquet"]


@pytest.mark.parametrize(
    "dtype",
    [pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()), pa.struct([("x", INNER)])],
    ids=["list", "map", "struct"],
)
def test_what_is_repeated_is_refused_and_never_prunes(
    tmp_path: Path, dtype: pa.DataType
) -> None:
    put_all(tmp_path, [{"m": pa.nulls(2, dtype), "i": [1, 2]}] * 2)
    with pytest.raises(sx.UnsupportedTypeError, match="accepted: "):
        build(tmp_path, {"m": "bitmap"})
    table = build(tmp_path)
    for text in ("m IS NULL", "m IS NOT NULL"):
        assert len(kept(table, text)) == 2
    if not pa.types.is_struct(dtype):
        assert len(kept(table, "m.key = 1")) == 2


def test_structs_inside_of_lists_are_refused(tmp_path: Path) -> None:
    put_all(tmp_path, [{"l": [[{"b": 1}]]}, {"l": [[{"b": 2}]]}])
    table = build(tmp_path)
    assert len(kept(table, "l.b = 1")) == 2
    with pytest.raises(sx.PredicateError):
        build(tmp_path, {"l.b": "bitmap"})


def test_int96_inside_of_a_struct_is_an_instant(tmp_path: Path) -> None:
    moments = [datetime(2020, 1, day) for day in (1, 2, 3)]
    for i, moment in enumerate(moments):
        deep = pa.array([{"t": moment, "l": [moment]}])
        table = pa.table({"l": [[moment]], "a": deep, "t": [moment]})
        pq.write_table(
            table, tmp_path / f"{i}.parquet", use_deprecated_int96_timestamps=True
        )
    table = build(tmp_path)
    domains = {
        leaf.name: leaf.domain and leaf.domain.name for leaf in table.state.leaves
    }
    assert domains == {"l": None, "a.t": "timestamp", "a.l": None, "t": "timestamp"}
    text = "a.t = TIMESTAMP '2020-01-02 00:00:00'"
    assert kept(table, text, timezone="UTC") == ["1.parquet"]
    assert len(kept(table, text)) == 3, "not without the session's zone"


@pytest.mark.parametrize("char", ["char(3)", "struct<b:char(3)>"])
def test_char_inside_of_a_struct_is_not_indexed(tmp_path: Path, char: str) -> None:
    spark = (
        '{"type":"struct","fields":[{"name":"a","type":{"type":"struct","fields":'
        '[{"name":"b","type":"string","nullable":true,"metadata":{}}]},'
        f'"nullable":true,"metadata":{{"__CHAR_VARCHAR_TYPE_STRING":"{char}"}}}}]}}'
    )
    key = "org.apache.spark.sql.parquet.row.metadata"
    table = pa.table({"a": [{"b": "x  "}]}).replace_schema_metadata({key: spark})
    put(tmp_path / "0.parquet", table)
    assert len(kept(build(tmp_path), "a.b = 'x'")) == 1
