"""Plans read by pyarrow, DuckDB, Polars and pandas: odd files, and refusals."""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import EngineError, PlanError
from skipindex.planner.plan import plan_files
from skipindex.planner.rows import dataset
from skipindex.source import DataFile
from tests.rewrite.arrow_writer import optimized
from tests.storage.s3_server import s3_server
from tests.table.test_encrypted import encrypt, rows
from tests.tables import build, put, put_all

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")

READERS: dict[str, Callable[[sx.Plan], list[dict[str, Any]]]] = {
    "arrow": lambda plan: plan.to_arrow().to_table().to_pylist(),
    "duckdb": lambda plan: (
        plan.to_duckdb(duckdb.connect()).to_arrow_table().to_pylist()
    ),
    "polars": lambda plan: plan.to_polars().collect().to_dicts(),
    "pandas": lambda plan: plan.to_pandas().to_dict("records"),
}


@pytest.fixture(params=READERS)
def read(request: pytest.FixtureRequest) -> Callable[[sx.Plan], list[dict[str, Any]]]:
    return READERS[request.param]


def column(plan: sx.Plan, name: str) -> list[Any]:
    """A column of the matching rows, which all engines agree on."""
    found = [[row[name] for row in read(plan)] for read in READERS.values()]
    assert all(map(found[0].__eq__, found[1:])), found
    return found[0]


def test_no_file_is_left(tmp_path: Path, read: Callable[[sx.Plan], list[Any]]) -> None:
    put_all(tmp_path, [{"x": [1, 2]}, {"x": [3]}])
    plan = build(tmp_path).plan("x > 5")
    assert plan.paths == []
    assert read(plan) == []
    assert plan.to_polars().collect().columns == ["x"]
    assert plan.to_duckdb().columns == ["x"]
    assert list(plan.to_pandas().columns) == ["x"]


def test_the_zone_that_a_file_notes_is_no_type(tmp_path: Path) -> None:
    moments = pa.array([0, 1], pa.timestamp("us", "Europe/Berlin"))
    put(tmp_path / "0.parquet", pa.table({"x": [1, 2], "t": moments}))
    plan = build(tmp_path).plan("x > 0")
    assert str(plan.to_pandas()["t"].dtype) == "datetime64[us, UTC]"
    assert plan.to_arrow().schema.field("t").type == pa.timestamp("us", "UTC")
    assert plan.to_polars().collect_schema()["t"] == pl.Datetime("us", "UTC")


def test_a_column_that_files_lack_is_null(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1], "y": [None]}, {"x": [2], "y": ["a"]}])
    put(tmp_path / "2.parquet", {"x": [3]})
    table = sx.open_table(
        tmp_path, schema=pa.schema({"x": pa.int64(), "y": pa.string()})
    )
    assert column(table.plan("y IS NULL"), "x") == [1, 3]
    assert column(table.plan("x > 1"), "y") == ["a", None]
    assert column(table.plan("NOT (y = 'a')"), "x") == []


def test_types_are_widened(tmp_path: Path) -> None:
    put(
        tmp_path / "0.parquet",
        pa.table(
            {
                "i": pa.array([1, 2], pa.int32()),
                "f": pa.array([0.5, math.nan], pa.float32()),
                "u": pa.array([1, 2**32 - 1], pa.uint32()),
            }
        ),
    )
    put(
        tmp_path / "1.parquet",
        pa.table(
            {
                "i": pa.array([2**40, -1]),
                "f": pa.array([1e300, -0.0]),
                "u": pa.array([3, 4], pa.int64()),
            }
        ),
    )
    schema = pa.schema({"i": pa.int64(), "f": pa.float64(), "u": pa.int64()})
    table = sx.open_table(tmp_path, schema=schema)
    assert column(table.plan("i > 1"), "i") == [2, 2**40]
    assert column(table.plan("f > 1"), "i") == [2, 2**40]
    assert column(table.plan("f = 0"), "i") == [-1]
    assert column(table.plan("f IN (0, 0.5D)"), "i") == [1, -1]
    assert column(table.plan("u = 4294967295"), "i") == [2]


def test_folders_are_columns_of_the_types_of_spark(tmp_path: Path) -> None:
    names = ["n=1/d=2024-01-01", "n=__HIVE_DEFAULT_PARTITION__/d=2024-01-02"]
    for i, name in enumerate([*names, "n=-7/d=__HIVE_DEFAULT_PARTITION__"]):
        put(tmp_path / name / "a.parquet", {"x": [i], "n": ["own"]})
    table = build(tmp_path)
    plan = table.plan("x >= 0")
    dataset = plan.to_arrow()
    assert dataset.schema.names == ["x", "n", "d"]
    assert dataset.schema.field("n").type == pa.int32()
    assert dataset.to_table()["n"].to_pylist() == [-7, 1, None]
    assert dataset.to_table()["d"].to_pylist() == [
        None,
        date(2024, 1, 1),
        date(2024, 1, 2),
    ]
    assert column(table.plan("n IS NULL OR n < 0"), "x") == [2, 1]
    assert column(table.plan("NOT (n = 1)"), "x") == [2]
    assert column(table.plan("d > '2024-01-01'"), "x") == [1]


@pytest.mark.parametrize(
    ("folders", "where", "expected"),
    [
        (["p=NaN", "p=1.5"], "p > 2", [0]),
        (["p=NaN", "p=1.5"], "p < 2", [1]),
        (["p=99999999999999999999", "p=5"], "p > 5", [0]),
        (["p=a%20b", "p=c%3Dd", "p=é"], "p = 'c=d'", [1]),
        (["p=a%20b", "p=c%3Dd", "p=é"], "p > 'b'", [1, 2]),
    ],
)
def test_values_of_folders_are_compared_as_spark_does(
    tmp_path: Path, folders: list[str], where: str, expected: list[int]
) -> None:
    for i, name in enumerate(folders):
        put(tmp_path / name / "a.parquet", {"x": [i]})
    assert sorted(column(sx.open_table(tmp_path).plan(where), "x")) == expected


def test_folders_without_a_time_need_no_zone(tmp_path: Path) -> None:
    put(tmp_path / "t=__HIVE_DEFAULT_PARTITION__" / "a.parquet", {"x": [1]})
    types = {"t": pa.timestamp("us", "UTC")}
    table = sx.open_table(tmp_path, partition_types=types)
    expected = [{"x": 1, "t": None}]
    assert table.plan("x = 1").to_arrow().to_table().to_pylist() == expected
    assert table.locate([1], "x").read().to_pylist() == expected


def test_times_of_folders_are_those_of_the_zone(tmp_path: Path) -> None:
    put(tmp_path / "t=2024-01-01 12%3A00%3A00" / "a.parquet", {"x": [1]})
    table = sx.open_table(tmp_path)
    with pytest.raises(PlanError, match=r"none was given .*timezone="):
        table.plan("x = 1").to_arrow()
    with pytest.raises(PlanError, match="'Mars' is not known"):
        plan_files("x = 1", table=table.state, timezone="Mars").to_arrow()
    for zone, hour in (("UTC", 12), ("+02:00", 10), ("Europe/Rome", 11)):
        (row,) = table.plan("x = 1", timezone=zone).to_arrow().to_table().to_pylist()
        assert row["t"] == datetime.fromisoformat(f"2024-01-01 {hour}:00+00:00")


def test_a_folder_whose_type_is_not_known_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "p=0x1p3" / "a.parquet", {"x": [1]})
    with pytest.raises(PlanError, match=r"'p' .*partition_types"):
        sx.open_table(tmp_path).plan("x = 1").to_pandas()
    table = sx.open_table(tmp_path, partition_types={"p": pa.string()})
    assert table.plan("x = 1").to_pandas()["p"].tolist() == ["0x1p3"]


@pytest.mark.parametrize(
    "name", ["a b.parquet", "[1]*?.parquet", "é%20#.parquet", "x{1,2}'\".parquet"]
)
def test_names_are_no_patterns(tmp_path: Path, name: str) -> None:
    put(tmp_path / name, {"x": [1]})
    put(tmp_path / "1.parquet", {"x": [1]})
    assert column(build(tmp_path).plan("x = 1"), "x") == [1, 1]


def test_fields_of_structs_and_deep_types(tmp_path: Path) -> None:
    rows = [
        {"s": {"a": 1, "t": {"q": "u"}}, "l": [[1], None], "m": [("k", 1)]},
        {"s": {"a": None, "t": None}, "l": [], "m": []},
        {"s": None, "l": None, "m": None},
    ]
    inner = pa.struct({"a": pa.int64(), "t": pa.struct({"q": pa.string()})})
    types = {"s": inner, "l": pa.list_(pa.list_(pa.int64()))}
    schema = pa.schema({**types, "m": pa.map_(pa.string(), pa.int64())})
    put(tmp_path / "0.parquet", pa.Table.from_pylist(rows, schema))
    table = build(tmp_path)
    for where, expected in (
        ("s.a = 1", rows[:1]),
        ("s.a IS NULL", rows[1:]),
        ("s.t.q = 'u'", rows[:1]),
        ("s.t.q IS NULL", rows[1:]),
    ):
        assert table.plan(where).to_arrow().to_table().to_pylist() == expected
        assert len(table.plan(where).to_polars().collect()) == len(expected)
        assert len(table.plan(where).to_duckdb().fetchall()) == len(expected)


def test_a_struct_whose_fields_grew(tmp_path: Path) -> None:
    put_all(tmp_path, [{"s": [{"a": 1}]}, {"s": [{"b": "x", "a": 2}]}])
    inner = pa.struct({"a": pa.int64(), "b": pa.string()})
    table = sx.open_table(tmp_path, schema=pa.schema({"s": inner}))
    found = table.plan("s.b IS NULL OR s.a = 2").to_arrow().to_table().to_pylist()
    assert found == [{"s": {"a": 1, "b": None}}, {"s": {"a": 2, "b": "x"}}]
    assert table.plan("s.b = 'x'").to_pandas()["s"].tolist() == [{"a": 2, "b": "x"}]


def test_null_of_lists_maps_and_structs(tmp_path: Path) -> None:
    """Against the rows one by one, of row groups with statistics of the elements."""
    inner = pa.struct({"a": pa.int64(), "l": pa.list_(pa.int64())})
    schema = pa.schema(
        {
            "tags": pa.list_(pa.string()),
            "deep": pa.list_(pa.struct({"a": pa.int64()})),
            "m": pa.map_(pa.string(), pa.int64()),
            "s": pa.struct({"t": inner, "a": pa.int64()}),
        }
    )
    values: dict[str, list[Any]] = {
        "tags": [None, [], [None], ["a", None]],
        "deep": [None, [], [None], [{"a": None}]],
        "m": [None, [], [("k", None)]],
        "s": [None, {}, {"t": {}}, {"t": {"a": 1}}, {"t": {"l": []}}, {"a": 2}],
    }
    drawn = random.Random(3)
    rows = [
        {name: drawn.choice(some) for name, some in values.items()} for _ in range(60)
    ]
    for i in range(3):
        whole = pa.Table.from_pylist(rows[20 * i : 20 * i + 20], schema)
        whole = whole.append_column("x", pa.array(range(20 * i, 20 * i + 20)))
        put(tmp_path / f"{i}.parquet", whole, row_group_size=1 + 6 * i)
    put(tmp_path / "3.parquet", {"x": [60]})  # it lacks them all
    rows.append(dict.fromkeys(values))
    schema = schema.append(pa.field("x", pa.int64()))
    table = sx.open_table(tmp_path, schema=schema)

    def at(row: dict[str, Any], path: str) -> Any:
        found: Any = row
        for name in path.split("."):
            found = None if found is None else found.get(name)
        return found

    for path in (*values, "s.t", "s.t.a", "s.t.l"):
        nulls = [i for i, row in enumerate(rows) if at(row, path) is None]
        others = sorted({*range(61)} - {*nulls})
        for where, expected in (
            (f"{path} IS NULL", nulls),
            (f"{path} IS NOT NULL", others),
            (f"NOT ({path} IS NULL) AND x > 7", [i for i in others if i > 7]),
            (f"{path} <=> NULL OR x = 7", sorted({*nulls, 7})),
        ):
            plan = table.plan(where)
            found = plan.to_arrow().to_table(columns=["x"])["x"].to_pylist()
            assert sorted(found) == expected, where
        assert sorted(column(plan, "x")) == expected


OTHER = pa.map_(pa.string(), pa.struct({"A": pa.int64()}))


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"TAGS": [[1]]}, "'tags' is spelled 'TAGS' in this file"),
        ({"deep": [[{"A": 1}]]}, "'a' is spelled 'A' in this file"),
        (
            {"m": pa.array([[("k", {"A": 1})]], OTHER)},
            "'a' is spelled 'A' in this file",
        ),
        ({"deep": [[{"b": 1}]]}, "'element' has none of the table's fields"),
        ({"s": [{"b": 1}]}, "'s' has none of the table's fields"),
    ],
)
def test_names_that_arrow_would_read_as_null_are_refused(
    tmp_path: Path, stored: dict[str, Any], message: str
) -> None:
    """Spark 3.5 and 4.0 read NULL for a struct without one of the wanted fields."""
    record = pa.struct({"a": pa.int64()})
    types = {
        "x": pa.int64(),
        "tags": pa.list_(pa.int64()),
        "s": record,
        "deep": pa.list_(record),
        "m": pa.map_("string", record),
    }
    put(tmp_path / "0.parquet", {"x": [1], **stored})
    table = sx.open_table(tmp_path, schema=pa.schema(types))
    with pytest.raises(PlanError, match=f"0.parquet.* column .*{message}"):
        table.plan("tags IS NULL").to_arrow()
    if "TAGS" in stored:
        assert column(table.plan("x = 1", case_sensitive=True), "tags") == [None]


def test_text_is_compared_by_its_bytes(tmp_path: Path) -> None:
    texts = ["a", "B", "a\x00", "é", "\U0001f33c", "\uffff", "a%b", "Ab\nc", None]
    put(tmp_path / "0.parquet", {"s": texts, "x": list(range(len(texts)))})
    table = build(tmp_path)
    assert column(table.plan("s > 'a'"), "x") == [2, 3, 4, 5, 6]
    assert column(table.plan("s < '\U0001f33c' AND s > 'é'"), "x") == [5]
    assert column(table.plan("s LIKE 'a%'"), "x") == [0, 2, 6]
    assert column(table.plan("s LIKE '_b%c'"), "x") == [7]
    assert column(table.plan("s LIKE '%\\%%'"), "x") == [6]
    assert column(table.plan("s NOT LIKE '%b%'"), "x") == [0, 1, 2, 3, 4, 5]
    assert column(table.plan("s LIKE '%b'"), "x") == [6]
    assert column(table.plan(f"s LIKE '_{'a' * 2000}_'"), "x") == []


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    raw = pa.array([b"\xff", b"a\xffb", b"", None], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 4, raw.buffers(), raw.null_count)
    put(tmp_path / "0.parquet", pa.table({"b": raw, "s": text, "x": [0, 1, 2, 3]}))
    table = build(tmp_path)
    for where, expected in (
        ("b > X'61'", [0, 1]),
        ("b = X'FF' OR b = X''", [0, 2]),
        ("s > 'b'", [0]),
        ("s <= 'b'", [1, 2]),
        ("s LIKE '%b'", [1]),
        ("s LIKE 'a%'", [1]),
    ):
        found = table.plan(where).to_arrow().to_table(columns=["x"])["x"]
        assert found.to_pylist() == expected, where


def test_functions_of_a_column(tmp_path: Path) -> None:
    put_all(tmp_path, [{"s": ["ab", None], "x": [1, 2]}, {"s": ["Abc"], "x": [-3]}])
    table = build(tmp_path)
    assert column(table.plan("upper(s) = 'AB'"), "x") == [1]
    assert column(table.plan("length(s) > 2 OR s IS NULL"), "x") == [2, -3]
    assert column(table.plan("coalesce(s, 'z') = 'z'"), "x") == [2]
    assert column(table.plan("x % 2 = 0"), "x") == [2]
    assert column(table.plan("abs(x) = 3"), "x") == [-3]


def test_nan_is_found_where_statistics_leave_it_out(tmp_path: Path) -> None:
    """Arrow takes least and greatest for bounds of all values; NaN is beyond them."""
    for i, f in enumerate(
        [[0.5, math.nan], [math.nan, math.nan], [0.5, 7.0, math.nan]]
    ):
        put(
            tmp_path / f"{i}.parquet",
            {"f": f, "x": [10 * i + k for k in range(len(f))]},
        )
    table = sx.open_table(tmp_path)
    for where, expected in (
        ("f > 1", [1, 10, 11, 21, 22]),
        ("f <> 0.5", [1, 10, 11, 21, 22]),
        ("f NOT IN (0.5D, 7D)", [1, 10, 11, 22]),
        ("f = double('NaN')", [1, 10, 11, 22]),
        ("f >= 0.5", [0, 1, 10, 11, 20, 21, 22]),
        ("f <= 7", [0, 20, 21]),
        ("f = 0.5", [0, 20]),
        ("f IN (0.5D, 7D)", [0, 20, 21]),
    ):
        plan = table.plan(where)
        assert column(plan, "x") == expected, where
        assert plan.to_arrow().count_rows() == len(expected), where


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_compared_as_arrow_does(
    tmp_path: Path, zone: str | None
) -> None:
    """As DuckDB 2 does too; pandas writes such columns by default."""
    moments = pa.array([5, 10**9, 10**9 + 1, -1, None], pa.timestamp("ns", zone))
    put(tmp_path / "0.parquet", pa.table({"t": moments, "x": [0, 1, 2, 3, 4]}))
    table = build(tmp_path)
    for where, expected in (
        ("t > '1970-01-01 00:00:01'", [2]),
        ("t >= '1970-01-01 00:00:01'", [1, 2]),
        ("t < '1970-01-01'", [3]),
        ("t <= timestamp'1970-01-01 00:00:01'", [0, 1, 3]),
        ("t = '1970-01-01 00:00:01'", [1]),
        ("NOT (t = '1970-01-01 00:00:01') OR t IS NULL", [0, 2, 3, 4]),
        (
            "t IN (timestamp'1970-01-01 00:00:01', timestamp'1970-01-01 00:00:00')",
            [1],
        ),
        ("date(t) = '1970-01-01'", None),
    ):
        plan = table.plan(where, timezone="UTC")
        if expected is None:
            with pytest.raises(PlanError, match="cannot be evaluated without Spark"):
                plan.to_arrow()
        else:
            assert column(plan, "x") == expected, where


def test_nanoseconds_are_numbers_as_in_spark(tmp_path: Path) -> None:
    moments = pa.array([5, 1_000_000_001, None], pa.timestamp("ns"))
    put(tmp_path / "0.parquet", pa.table({"t": moments, "x": [0, 1, 2]}))
    table = build(tmp_path)
    found = table.plan("t > 5").to_arrow().to_table()
    assert found["x"].to_pylist() == [1]
    assert found.schema.field("t").type == pa.timestamp("ns")


def test_int96_is_an_instant(tmp_path: Path) -> None:
    moments = [datetime(2024, 1, 1), datetime(1600, 1, 1), None]
    put(
        tmp_path / "0.parquet",
        pa.table({"t": pa.array(moments, pa.timestamp("us")), "x": [0, 1, 2]}),
        use_deprecated_int96_timestamps=True,
    )
    table = build(tmp_path)
    plan = table.plan("t < '2000-01-01'", timezone="UTC")
    assert column(plan, "x") == [1]
    with pytest.raises(PlanError, match=r"t < .*without Spark: .*accepted"):
        table.plan("t < '2000-01-01'").to_pandas()


def test_limit_and_order(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1, 2, 3]}, {"x": [4]}])
    table = build(tmp_path)
    plan = table.plan("x > 1", limit=2)
    assert len(plan.to_pandas()) == 2
    assert len(plan.to_polars().collect()) == 2
    assert len(plan.to_duckdb().fetchall()) == 2
    assert len(table.plan("x > 1", limit=0).to_pandas()) == 0
    with pytest.raises(PlanError, match=r"first 2 rows .*rows='files'"):
        plan.to_arrow()
    ordered = table.plan("x > 1", limit=1, order_by="x DESC")
    for method in (ordered.to_pandas, ordered.to_polars, ordered.to_duckdb):
        with pytest.raises(PlanError, match=r"no order .*rows='files'"):
            method()
    assert ordered.to_pandas(rows="files")["x"].tolist() == [4]


INTEGERS = {
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.uint8(): "UInt8",
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.int64(): "Int64",
    pa.uint64(): "UInt64",
}


def plain(value: Any) -> Any:
    """A value of pandas with lists for arrays, and None for a missing value."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if value is pd.NA:
        return None
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize("limit", [None, 8])
def test_integers_beside_null_are_exact_in_pandas(
    tmp_path: Path, limit: int | None
) -> None:
    """Pandas makes floats of them, which round above 2 ** 53."""
    drawn = random.Random(5)
    columns: dict[str, pa.Array] = {}
    for dtype in INTEGERS:
        ends = np.iinfo(dtype.to_pandas_dtype())
        least, most = int(ends.min), int(ends.max)
        values = [least, most, None, *(drawn.randint(least, most) for _ in range(5))]
        flat, inner = pa.array(values, dtype), pa.list_(dtype)
        record = pa.struct({"a": dtype, "b": inner})
        columns |= {
            f"{dtype}": flat,
            f"all {dtype}": flat.fill_null(7),
            f"list {dtype}": pa.array([[v, None] for v in values], inner),
            f"struct {dtype}": pa.array(
                [{"a": v, "b": [v, None]} for v in values], record
            ),
            f"map {dtype}": pa.array(
                [[("k", v)] for v in values], pa.map_("string", dtype)
            ),
        }
    columns["flag"] = pa.array([True, None, False, *[None] * 5])
    columns["day"] = pa.array([date(9999, 12, 31), *[None] * 7])
    rows = pa.table({"x": [1] * 8, **columns})
    put(tmp_path / "0.parquet", rows)
    plan = sx.open_table(tmp_path, schema=rows.schema).plan("x = 1", limit=limit)
    frame = plan.to_pandas()
    for name, column in columns.items():
        assert [plain(value) for value in frame[name]] == column.to_pylist(), name
    for dtype, name in INTEGERS.items():
        assert frame[str(dtype)].dtype == name
        assert frame[f"all {dtype}"].dtype == name.lower()
    assert frame["flag"].dtype == "boolean"
    assert len(plan.to_pandas(columns=[])) == 8


def test_some_columns_for_pandas(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1, 2], "y": [3, 4], "z": [5, 6]}])
    table = build(tmp_path)
    plan = table.plan("x = 2")
    assert plan.to_pandas(columns=["z", "y"]).to_dict("list") == {"z": [6], "y": [4]}
    assert table.plan("x > 0", limit=1).to_pandas(columns=["z"]).columns == ["z"]
    with pytest.raises(PlanError, match=r"no column 'a' .*columns: x, y, z"):
        plan.to_pandas(columns=["a"])
    with pytest.raises(PlanError, match=r"accepted: \['z'\]"):
        plan.to_pandas(columns="z")


def test_what_spark_alone_can_judge_is_refused(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1, 2], "y": [1, 3]}, {"x": [3], "y": [3]}])
    table = build(tmp_path)
    plan = table.plan("x + y = 6 AND x > 2")
    with pytest.raises(
        PlanError, match=r"\(x \+ y\) = 6 cannot be .* plan.read\(spark\)"
    ):
        plan.to_polars()
    assert plan.to_polars(rows="files").collect()["x"].to_list() == [3]
    with pytest.raises(PlanError, match="no rows='all'"):
        plan.to_polars(rows="all")


def test_filters_on_top_keep_nan(tmp_path: Path) -> None:
    """Arrow, to which engines hand filters, has another NaN than they."""
    put(tmp_path / "0.parquet", {"f": [1.0, math.nan, None], "x": [1, 2, 3]})
    plan = build(tmp_path).plan("x > 0")
    above = plan.to_polars().filter(pl.col("f") > 5).select("x").collect()
    assert above.rows() == [(2,)]
    assert plan.to_duckdb().filter("f > 5").project("x").fetchall() == [(2,)]


def test_other_capitals_are_another_column_to_arrow(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1]}, {"X": [1]}, {"x": [2]}])
    schema = pa.schema({"x": pa.int64()})
    table = sx.open_table(tmp_path, schema=schema)
    with pytest.raises(PlanError, match=r"1.parquet.* 'x' is spelled 'X'"):
        table.plan("x = 1").to_arrow()
    assert column(table.plan("x = 1", case_sensitive=True), "x") == [1]


def test_other_types_are_refused(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1]}, {"x": ["1"]}])
    table = sx.open_table(tmp_path, schema=pa.schema({"x": pa.int64()}))
    with pytest.raises(PlanError, match=r"1.parquet.* 'x' has type string"):
        table.plan("x = 1").to_arrow(rows="files")


def test_a_file_that_is_gone_or_damaged(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1]}, {"x": [1]}])
    plan = sx.open_table(tmp_path).plan("x = 1")
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(PlanError, match=r"changed since .*0.parquet' is gone"):
        plan.to_arrow()
    put(tmp_path / "0.parquet", {"x": [1]})
    with pytest.raises(PlanError, match=r"changed since .*0.parquet' was replaced"):
        plan.to_arrow()
    (tmp_path / "0.parquet").write_bytes(b"PAR1 but no more")
    table = sx.open_table(tmp_path, schema=pa.schema({"x": pa.int64()}))
    with pytest.raises(PlanError, match="not a readable Parquet file"):
        table.plan("x = 1").to_arrow()


def test_of_files_with_equal_columns_one_footer_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(tmp_path, [{"x": [i], "y": [2]} for i in range(20)])
    frame = pd.DataFrame({"x": [20, 21, 22], "y": [2, 2, 2]})
    for i in (1, 2, 3):  # pandas notes the number of rows
        frame[:i].to_parquet(tmp_path / f"p{i}.parquet")
    plan = build(tmp_path).plan("x >= 0")
    opened = []
    original = DataFile

    def counted(source: Any) -> Any:
        opened.append(source)
        return original(source)

    monkeypatch.setattr(dataset, "DataFile", counted)
    for read in READERS.values():
        opened.clear()
        assert len(read(plan)) == 26
        assert len(opened) <= 2, "a file of each of two writers"
    (tmp_path / "7.parquet").unlink()
    with pytest.raises(PlanError, match=r"changed since .*7.parquet' is gone"):
        plan.to_duckdb(duckdb.connect())
    put(tmp_path / "7.parquet", {"x": [7], "y": [2]})
    with pytest.raises(PlanError, match=r"changed since .*7.parquet' was replaced"):
        plan.to_duckdb(duckdb.connect())


def test_indexed_files_with_other_columns_or_notes_are_checked(tmp_path: Path) -> None:
    day = pa.table({"d": pa.array([date(2020, 1, 1)]), "n": [1]})
    put(tmp_path / "0.parquet", day)
    put(tmp_path / "1.parquet", day.replace_schema_metadata({"writer": "b"}))
    table = sx.build_indexes(tmp_path, {"n": "exact"}, workers=1).table
    assert column(table.plan("n = 1"), "n") == [1, 1]
    legacy = {"org.apache.spark.legacyDateTime": ""}
    put(tmp_path / "1.parquet", day.replace_schema_metadata(legacy))
    table = sx.build_indexes(tmp_path, {"n": "exact"}, workers=1).table
    with pytest.raises(PlanError, match=r"1.parquet.* 'd': the file holds dates"):
        table.plan("n = 1").to_duckdb(duckdb.connect())
    put(tmp_path / "1.parquet", {"d": ["2020-01-01"], "n": [1]})
    table = sx.build_indexes(tmp_path, {"n": "exact"}, workers=1).table
    with pytest.raises(PlanError, match=r"1.parquet.* 'd'"):
        table.plan("n = 1").to_duckdb(duckdb.connect())


def test_staged_copies_are_read(tmp_path: Path) -> None:
    """What a commit names under a hidden path; Arrow leaves such names out itself."""
    put(tmp_path / "t" / "0.parquet", {"x": [1]})
    plan = sx.open_table(tmp_path / "t").plan("x = 1")
    hidden = tmp_path / "_hidden" / ".t"
    hidden.parent.mkdir()
    (tmp_path / "t").rename(hidden)
    put(hidden / "1.parquet", {"x": [2]})
    assert column(sx.open_table(hidden).plan("x > 0"), "x") == [1, 2]
    with pytest.raises(PlanError, match="is gone"):
        plan.to_arrow()


@pytest.mark.slow
def test_an_object_store_is_read_with_its_options(tmp_path: Path) -> None:
    uri = "s3://bucket/t"
    with s3_server() as server:
        for i, folder in enumerate(["p=a b", "p=c"]):
            path = put(tmp_path / "f", {"x": [i, i + 10]})
            server.objects[f"bucket/t/{folder}/{i}.parquet"] = path.read_bytes()
        table = sx.open_table(uri, storage_options=server.options)
        assert column(table.plan("x > 5"), "x") == [10, 11]
        plan = table.plan("p = 'a b'")
        assert column(plan, "p") == ["a b", "a b"]
        server.objects["bucket/t/p=a b/0.parquet"] = b"PAR1" * 30
        with pytest.raises(PlanError, match=r"Parquet file|changed"):
            plan.to_pandas()


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    encrypt(tmp_path / "0.parquet", rows(0), plaintext_footer=True)
    with pytest.raises(PlanError, match="may have encrypted columns"):
        sx.open_table(tmp_path).plan("id = 1").to_arrow()


@pytest.mark.parametrize("name", ["duckdb", "polars", "pandas"])
def test_a_package_that_is_missing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = build(put_all(tmp_path, [{"x": [1]}])).plan("x = 1")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EngineError, match=f"{name} is needed.* pip install {name}"):
        getattr(plan, f"to_{name}")()


def test_read_without_a_session_names_the_others(tmp_path: Path) -> None:
    plan = build(put_all(tmp_path, [{"x": [1]}])).plan("x = 1")
    with pytest.raises(EngineError, match=r"no session .*plan.to_pandas\(\)"):
        plan.read()


def test_metadata_of_pandas_makes_no_index(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="k"))
    put(tmp_path / "0.parquet", pa.Table.from_pandas(frame))
    found = build(tmp_path).plan("x = 2").to_pandas()
    assert found.reset_index(drop=True).to_dict("records") == [{"x": 2, "k": "b"}]
    assert list(found.columns) == ["x", "k"]


def test_decimals(tmp_path: Path) -> None:
    small = pa.array([Decimal("1.10"), Decimal("-9.99"), None], pa.decimal128(3, 2))
    large = pa.array([Decimal(10**30), Decimal(5), None], pa.decimal128(38, 0))
    put(tmp_path / "0.parquet", pa.table({"d": small, "e": large, "x": [0, 1, 2]}))
    table = build(tmp_path)
    assert column(table.plan("d >= 1.1"), "x") == [0]
    assert column(table.plan("d < 1.10001 AND e > 5"), "x") == [0]
    assert column(table.plan("e <= 1e29"), "x") == [1]
    assert column(table.plan("d <> -9.990 OR d IS NULL"), "x") == [0, 2]


def test_a_dictionary_is_the_column_of_its_values(tmp_path: Path) -> None:
    city = pa.array(["Rome", "Oslo", None]).dictionary_encode()
    put(tmp_path / "0.parquet", pa.table({"city": city, "x": [0, 1, 2]}))
    assert column(build(tmp_path).plan("city >= 'P'"), "x") == [0]


def test_a_dataset_of_many_files_reads_each_once(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [i]} for i in range(40)])
    assert sorted(column(build(tmp_path).plan("x >= 17"), "x")) == list(range(17, 40))


@pytest.mark.parametrize("is_deep", [False, True])
def test_hybrid_dates_are_refused(tmp_path: Path, is_deep: bool) -> None:
    day = date(1200, 1, 1)
    old = pa.table({"d": [[day]] if is_deep else [day], "x": [1]})
    marks = {"org.apache.spark.version": "2.4.8"}
    pq.write_table(old.replace_schema_metadata(marks), tmp_path / "0.parquet")
    with pytest.raises(PlanError, match="'d': the file holds dates of the old hybrid"):
        sx.open_table(tmp_path).plan("x = 1").to_arrow()
    pq.write_table(old, tmp_path / "0.parquet")
    found = sx.open_table(tmp_path).plan("x = 1").to_arrow().to_table()
    assert found["d"].to_pylist() == old["d"].to_pylist()


def test_files_of_the_same_columns_are_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are checked: of other types, or with other notes of their writer."""
    checked: list[object] = []
    compare = dataset._compare

    def noted(*given: Any, **named: Any) -> None:
        checked.append(given)
        compare(*given, **named)

    monkeypatch.setattr(dataset, "_compare", noted)
    days = {"d": [date(2020, 1, 1)], "x": [1]}
    put_all(tmp_path, [days] * 9)
    narrow = {**days, "x": pa.array([1], pa.int32())}
    put(tmp_path / "narrow.parquet", narrow)
    put(tmp_path / "same.parquet", narrow)
    assert sx.open_table(tmp_path).plan("x >= 1").to_arrow().count_rows() == 11
    assert len(checked) == 2
    old = pa.table(days).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    pq.write_table(old, tmp_path / "old.parquet")
    with pytest.raises(PlanError, match="'d': the file holds dates of the old hybrid"):
        sx.open_table(tmp_path).plan("x >= 1").to_arrow()


def test_rewritten_files_that_are_still_hidden_are_read(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [i]} for i in range(4)])
    build(tmp_path, {"x": "bitmap"})
    table = optimized(tmp_path, in_place=True).table
    plan = table.plan("x >= 1")
    assert any("_skipindex-" in path for path in plan.paths)
    assert sorted(column(plan, "x")) == [1, 2, 3]


@pytest.mark.parametrize("where", ["s = 'a'", "s < 'a'", "s >= 'b'", "s IN ('A', 'b')"])
def test_a_collation_of_duckdb_does_not_change_the_condition(
    tmp_path: Path, where: str
) -> None:
    put(tmp_path / "0.parquet", {"s": ["a", "B", "b", "A", None] * 10_000})
    plan = build(tmp_path, {"s": "minmax"}).plan(where)
    connection = pytest.importorskip("duckdb").connect()
    relations = [plan.to_duckdb(connection)]
    connection.execute("SET default_collation='NOCASE'")
    relations.append(plan.to_duckdb(connection))
    for relation in relations:
        assert len(relation.fetchall()) == plan.to_arrow().count_rows() > 0


@pytest.mark.parametrize("folder", ["", "p=1/q=2"])
def test_a_first_build_says_how_polars_reads_the_files(
    tmp_path: Path, folder: str
) -> None:
    (tmp_path / "t" / folder).mkdir(parents=True)
    put_all(tmp_path / "t" / folder, [{"x": [1, 2]}, {"x": [3]}])
    report = sx.build_indexes(tmp_path / "t", {"x": "bitmap"}, workers=1)
    call = re.search(r"pl\.scan_parquet\((.+?)\) on its files", str(report))
    assert call is not None
    rows = eval(f"pl.scan_parquet({call[1]})").collect()
    assert sorted(rows["x"]) == [1, 2, 3]
    assert rows.columns == ["x", *(["p", "q"] if folder else [])]
    with pytest.raises(pl.exceptions.PolarsError):
        pl.scan_parquet(tmp_path / "t").collect()
    again = sx.build_indexes(tmp_path / "t", {"x": "exact"}, workers=1)
    assert "Polars" not in str(again)
    beside = sx.build_indexes(
        put_all(tmp_path / "u", [{"x": [1]}]), {"x": "exact"}, sidecar=tmp_path / "s"
    )
    assert "Polars" not in str(beside)
    assert len(pl.scan_parquet(tmp_path / "u").collect()) == 1


def test_files_with_the_same_columns_are_compared_with_the_table_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    compare = dataset._compare

    def counted(table: Any, file: DataFile, *, exact: bool) -> None:
        compared.append(exact)
        compare(table, file, exact=exact)

    monkeypatch.setattr(dataset, "_compare", counted)
    files = [{"a": [i, 10]} for i in range(5)]
    table = build(put_all(tmp_path, [*files, {"a": [9], "b": [1]}]), {"a": "bitmap"})
    for n in (2, 0):
        for reader in READERS.values():
            reader(table.plan("a < 12"))
        assert len(compared) == n, "of the columns of two kinds of files"
        compared.clear()
    READERS["arrow"](table.plan("a < 12", case_sensitive=True))
    assert compared == [True, True]
