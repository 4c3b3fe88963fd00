"""A column of a file has an index only where Spark reads what the file stores."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.source.parquet.spark_json import declared_schema
from skipindex.source.parquet.stored import stored_schema
from tests.tables import build, kept, put, put_all

ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"


def decimals(digits: int, *values: str | None) -> pa.Array:
    dtype = pa.decimal128(digits, 2)
    return pa.array([None if v is None else Decimal(v) for v in values], dtype)


def with_types(table: pa.Table, **types: Any) -> pa.Table:
    """The table with row metadata, as Spark leaves it."""
    fields = [
        {"name": name, "type": dtype, "nullable": True, "metadata": {}}
        for name, dtype in types.items()
    ]
    text = json.dumps({"type": "struct", "fields": fields})
    return table.replace_schema_metadata({ROW_METADATA: text})


NARROWER: dict[str, tuple[pa.Array, pa.Array, pa.Array]] = {
    "smallint, int": (
        pa.array([1], pa.int16()),
        pa.array([70_000], pa.int32()),
        pa.array([300, None], pa.int32()),
    ),
    "tinyint, unsigned byte": (
        pa.array([1], pa.int8()),
        pa.array([200], pa.uint8()),
        pa.array([100, None], pa.uint8()),
    ),
    "int, unsigned int": (
        pa.array([1], pa.int32()),
        pa.array([3_000_000_000], pa.uint32()),
        pa.array([300, None], pa.uint32()),
    ),
    "decimal": (
        decimals(5, "1.25"),
        decimals(10, "12345678.90"),
        decimals(10, "300.50", None),
    ),
    "large decimal": (
        decimals(20, "1.25"),
        decimals(30, "1234567890123456789012.90"),
        decimals(30, "300.50", None),
    ),
}


@pytest.mark.parametrize("name", NARROWER)
def test_values_that_do_not_fit_the_type_of_the_table_prune_nothing(
    tmp_path: Path, name: str
) -> None:
    first, beyond, fitting = NARROWER[name]
    put_all(tmp_path, [{"v": first}, {"v": beyond}, {"v": fitting}])
    report = sx.build_indexes(tmp_path, {"v": ["bitmap", "bloom"]}, workers=1)
    assert len(report.notes) == 1
    assert "1.parquet" in report.notes[0]
    assert "does not fit" in report.notes[0]
    table = report.table
    assert kept(table, "v = 44") == ["1.parquet"]
    assert kept(table, "v < 0") == ["1.parquet"]
    assert kept(table, "v IS NULL") == ["1.parquet", "2.parquet"]
    assert kept(table, "v >= 100 AND v < 301") == ["1.parquet", "2.parquet"]
    assert table.plan("v IS NOT NULL").count_bounds == (2, 3)
    assert sx.build_indexes(tmp_path, {"v": ["bitmap", "bloom"]}).files == 0


def test_a_wider_type_of_the_table_lets_the_same_indexes_speak(tmp_path: Path) -> None:
    put_all(tmp_path, [{"v": decimals(5, "1.25")}, {"v": decimals(10, "12345678.90")}])
    table = build(tmp_path, {"v": "bitmap"})
    wide = sx.Table(table.state.typed(pa.schema({"v": pa.decimal128(10, 2)}), {}))
    assert kept(table, "v < 0") == ["1.parquet"]
    assert kept(wide, "v < 0") == []
    assert kept(wide, "v > 100") == ["1.parquet"]
    assert table.state.typed(table.schema, {}) is table.state


def test_without_statistics_it_is_not_known_whether_values_fit(tmp_path: Path) -> None:
    put_all(tmp_path, [{"v": pa.array([i], pa.int16())} for i in (1, 5)])
    put(tmp_path / "2.parquet", {"v": pa.array([70_000], pa.int32())})
    build(tmp_path, {"v": "bitmap"})
    table = sx.open_table(tmp_path).drop_indexes(kinds=["minmax"])
    assert len(kept(table, "v = 4464")) == 3


READ_AS: dict[str, tuple[pa.Array, str]] = {
    "string_view": (pa.array(["a", None], pa.string_view()), "v = 'b'"),
    "binary_view": (pa.array([b"a", None], pa.binary_view()), "v = X'62'"),
    "a view of few values": (pa.array(["a", "b"] * 500, pa.string_view()), "v = 'c'"),
    "nanoseconds as bigint": (pa.array([5, None], pa.timestamp("ns")), "v = 6"),
    "durations as bigint": (pa.array([5, None], pa.duration("us")), "v = 6"),
    "dates in ms": (pa.array([0, None], pa.date64()), "v = DATE '1970-01-02'"),
}
IS_NEW = hasattr(pa, "json_")
"""pyarrow 18 writes no views and knows no JSON."""
if IS_NEW:
    READ_AS["JSON"] = (pa.array(['{"a":1}', None], pa.json_()), "v = 'x'")
else:
    READ_AS = {name: case for name, case in READ_AS.items() if "view" not in name}


@pytest.mark.parametrize("name", READ_AS)
def test_arrow_types_that_spark_reads_as_plain_ones(tmp_path: Path, name: str) -> None:
    values, miss = READ_AS[name]
    put_all(tmp_path, [{"v": values}, {"v": values.slice(0, 1), "s": [{"v": 1}]}])
    table = build(tmp_path, {"v": ["bitmap", "bloom"]})
    assert table.state.index_gaps == {}
    assert kept(table, miss) == []
    assert kept(table, "v IS NOT NULL") == ["0.parquet", "1.parquet"]
    assert table.plan(miss).verify().is_right


@pytest.mark.skipif(not IS_NEW, reason="pyarrow 18 writes no views")
def test_views_inside_of_structs(tmp_path: Path) -> None:
    inner = pa.StructArray.from_arrays([pa.array(["a"], pa.string_view())], ["v"])
    put(tmp_path / "0.parquet", {"s": inner})
    assert kept(build(tmp_path, {"s.v": "bitmap"}), "s.v = 'b'") == []


def test_the_row_metadata_says_how_a_column_is_read(tmp_path: Path) -> None:
    """And not the Parquet type beneath it."""
    table = pa.table({"y": [24], "t": pa.array([0], pa.timestamp("us")), "n": [1]})
    typed = with_types(table, y="interval year", t="timestamp", n="integer", z="long")
    put(tmp_path / "0.parquet", typed)
    opened = build(tmp_path, {"*": "bitmap"})
    domains = {c.name: c.domain and c.domain.name for c in opened.columns}
    assert domains == {"y": None, "t": "timestamp", "n": "int", "z": "int"}
    assert kept(opened, "CAST(y AS INT) = 2") == ["0.parquet"]
    assert kept(opened, "z IS NULL") == ["0.parquet"]
    condition = "t >= TIMESTAMP '1970-01-01 00:00:00'"
    assert kept(opened, condition, timezone="+05:00") == ["0.parquet"]
    with pytest.raises(sx.UnsupportedTypeError, match="type interval year is not ord"):
        build(tmp_path, {"y": "minmax"})


def test_row_metadata_of_other_files_does_not_count(tmp_path: Path) -> None:
    """Spark types the table by one file, and the others have what they store."""
    put(tmp_path / "0.parquet", {"v": ["a"]})
    put(tmp_path / "1.parquet", with_types(pa.table({"v": ["b"]}), v="binary"))
    assert kept(build(tmp_path, {"v": "bitmap"}), "v = 'b'") == ["1.parquet"]


def test_row_metadata_of_spark_1_is_for_spark_alone(tmp_path: Path) -> None:
    old = {ROW_METADATA: "StructType(List(StructField(v,LongType,true)))"}
    put(tmp_path / "0.parquet", pa.table({"v": [1]}).replace_schema_metadata(old))
    assert kept(build(tmp_path, {"*": "bitmap"}), "v = 2") == ["0.parquet"]


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("decimal(5,2)", pa.decimal128(5, 2)),
        ("decimal(39,2)", None),
        ("decimal(5,-2)", None),
        ("varchar(3)", pa.string()),
        ("time(6)", None),
        ("variant", None),
        ({"type": "udt", "sqlType": "long"}, None),
        ({"type": "array", "elementType": "variant"}, pa.list_(pa.null())),
        (
            {"type": "map", "keyType": "string", "valueType": "long"},
            pa.map_(pa.string(), pa.int64()),
        ),
    ],
    ids=str,
)
def test_types_as_spark_spells_them(spelled: Any, expected: pa.DataType | None) -> None:
    text = json.dumps({"type": "struct", "fields": [{"name": "v", "type": spelled}]})
    found = declared_schema(text)
    assert found is not None
    schema, refused = found
    assert (schema.field("v").type == expected) == (expected is not None)
    assert ("v" in refused) == (expected is None)


def test_the_stored_types_are_those_of_parquet(tmp_path: Path) -> None:
    """Whatever the Arrow schema that the writer left beside them."""
    table = pa.table(
        {
            "l": pa.array([[{"t": 1}]]),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
            "u": pa.array([1], pa.uint16()),
            "w": pa.array(["x"]).dictionary_encode(),
        }
    )
    schema, refused = stored_schema(pq.ParquetFile(put(tmp_path / "f", table)))
    assert refused == {}
    assert [schema.field(name).type for name in "luw"] == [
        pa.list_(pa.struct({"t": pa.int64()})),
        pa.int32(),
        pa.string(),
    ]
    assert schema.field("m").type == pa.map_(pa.string(), pa.int32())


@pytest.fixture
def respelled(tmp_path: Path) -> Path:
    """A table whose files spell a column, and a field, in three ways."""
    for i, (a, s, x) in enumerate([("a", "s", "x"), ("A", "S", "x"), ("a", "s", "X")]):
        put(tmp_path / f"{i}.parquet", {a: [i, None], s: [{x: i}, {x: 9}]})
    put(tmp_path / "3.parquet", {"b": [1]})
    return tmp_path


KINDS = ["bitmap", "bloom"]


def test_a_column_that_files_spell_in_other_letters(respelled: Path) -> None:
    """Spark reads it, unless names are told apart by their capitals."""
    request = {"a": KINDS, "s.x": KINDS}
    table = build(respelled, request)
    assert kept(table, "A = 1") == ["1.parquet"]
    assert kept(table, "a = 5") == []
    assert kept(table, "s.x = 2") == ["2.parquet"]
    assert table.plan("a >= 0").count_bounds == (3, 3)
    exact = {"case_sensitive": True}
    assert kept(table, "a = 2", **exact) == ["1.parquet", "2.parquet"]
    assert kept(table, "s.x = 0", **exact) == [f"{i}.parquet" for i in range(3)]
    assert sx.build_indexes(respelled, request, workers=1).files == 0
    merged = sx.open_table(respelled).compact_indexes()
    assert kept(merged, "a = 1", without="minmax") == ["1.parquet"]
    assert kept(merged, "a = 1", **exact) == ["1.parquet"]


def test_indexes_of_all_spellings_are_dropped(respelled: Path) -> None:
    build(respelled, {"a": KINDS})
    table = sx.open_table(respelled).drop_indexes(columns=["a"])
    assert not {"a", "A"} & table.state.snapshot.manifest.stats.keys()
    assert table.state.snapshot.manifest.packs == ()


def test_a_file_in_other_letters_does_not_speak_for_two_columns(tmp_path: Path) -> None:
    put_all(tmp_path, [{"a": [1], "A": [2]}, {"A": [3]}])
    table = build(tmp_path, {"*": "minmax"})
    exact = {"case_sensitive": True}
    assert kept(table, "a = 3", **exact) == ["1.parquet"]
    assert kept(table, "A = 1", **exact) == []


def test_the_pack_before_a_column_in_other_letters_was_met(tmp_path: Path) -> None:
    """The files that came first have nothing in its blob, and keep their own."""
    names = ["a"] * 3 + ["A"] * 2 + ["a"]
    for i, name in enumerate(names):
        put(tmp_path / f"{i}.parquet", {name: [i, i + 100]})
    table = build(tmp_path, {"a": ["bitmap", "bit_sliced"]})
    for i in range(len(names)):
        for kind in ("bitmap", "bit_sliced", "minmax"):
            found = kept(table, f"a IN ({i}, {i + 100})", kinds=kind)
            assert f"{i}.parquet" in found
            assert (found == [f"{i}.parquet"]) == (kind != "minmax")
