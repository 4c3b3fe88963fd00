"""Rows of a plan by the pages that hold them, and by engines' own readers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.errors import PlanError
from skipindex.planner.rows import engines, selected
from skipindex.planner.rows.dataset import Files
from skipindex.planner.rows.pages import NotPagedError
from skipindex.planner.rows.selected import Bytes
from skipindex.storage.thrift import read_struct
from tests.planner.rows.test_matching import check
from tests.quick_run import examples
from tests.strategies import predicates, tables
from tests.tables import build, put

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")

Read = Callable[..., list[dict[str, Any]]]

READERS: dict[str, Read] = {
    "arrow": lambda plan, **named: plan.to_arrow(**named).to_table().to_pylist(),
    "duckdb": lambda plan, **named: (
        plan.to_duckdb(duckdb.connect(), **named).to_arrow_table().to_pylist()
    ),
    "polars": lambda plan, **named: plan.to_polars(**named).collect().to_dicts(),
    "pandas": lambda plan, **named: plan.to_pandas(**named).to_dict("records"),
}


@pytest.fixture(params=READERS)
def read(request: pytest.FixtureRequest) -> Read:
    return READERS[request.param]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[Bytes]:
    """Pages are read however many there are; the bytes of each time."""
    result: list[Bytes] = []

    def always(size: Bytes, **_: object) -> bool:
        result.append(size)
        return True

    monkeypatch.setattr(engines, "MOST_BLOCKS", math.inf)
    monkeypatch.setattr(engines, "is_faster_than_arrow", always)
    monkeypatch.setattr(engines, "_is_faster_than_engines", always)
    return result


def events(folder: Path, n_files: int = 2, n_rows: int = 3000) -> sx.Table:
    """Files with pages of 100 rows in row groups of 1,000, with indexes on ``k``."""
    for i in range(n_files):
        numbers = np.arange(n_rows) + i * n_rows
        columns = {"id": numbers, "k": numbers * 7919 % 1000, "s": numbers.astype(str)}
        put(
            folder / f"{i}.parquet",
            columns,
            row_group_size=1000,
            max_rows_per_page=100,
            write_batch_size=100,
            use_dictionary=False,
        )
    return build(folder, {"k": "exact"})


@examples(40, whole=400)
@given(st.data())
def test_the_rows_are_those_of_the_oracle(data: st.DataObject) -> None:
    columns = data.draw(tables(min_rows=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "MOST_BLOCKS", math.inf)
        patch.setattr(engines, "is_faster_than_arrow", lambda _: True)
        patch.setattr(engines, "_is_faster_than_engines", lambda _, **__: True)
        check(
            data.draw(predicates(columns, two_columns=True)),
            columns,
            data.draw(st.lists(st.integers(0, 30), max_size=2)),
            kinds=data.draw(st.sampled_from([["minmax"], ["exact"]])),
        )


def test_only_the_pages_with_the_rows_are_read(
    tmp_path: Path, read: Read, sizes: list[Bytes]
) -> None:
    table = events(tmp_path)
    rows = read(table.plan("k = 17 AND id < 1000"), columns=["s", "id"])
    (number,) = [n for n in range(1000) if n * 7919 % 1000 == 17]
    assert rows == [{"s": str(number), "id": number}]
    last = sizes[-1]
    assert 0 < last.pages < last.groups / 4


def test_selections_are_those_of_the_indexes(tmp_path: Path) -> None:
    table = events(tmp_path, n_rows=1000)
    plan = table.plan("k < 3 OR id = 1500")
    first, second = plan.selections
    assert first.rows is not None
    assert second.rows is None
    assert first.exact
    assert not second.exact
    expected = [n for n in range(1000) if n * 7919 % 1000 < 3]
    assert first.rows.tolist() == expected
    every, _ = table.plan("id >= 0").selections
    assert every.rows is None
    assert every.exact


def test_few_rows_are_chosen_by_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row in many pages is read by pages, and a third of the rows by a scan."""
    found: list[bool] = []
    rows_at = selected.rows_at

    def noted(*given: Any) -> Any:
        result = rows_at(*given)
        found.append(result is not None)
        return result

    monkeypatch.setattr(engines, "rows_at", noted)
    n = 200_000
    numbers = np.arange(n)
    put(
        tmp_path / "0.parquet",
        {"id": numbers, "k": numbers * 7919 % n, "s": numbers.astype(str)},
        max_rows_per_page=10_000,
        use_dictionary=False,
    )
    table = build(tmp_path, {"k": "exact"})
    for where, by_pages in (("k = 5", [True]), (f"k < {n // 3}", [])):
        for read in READERS.values():
            found.clear()
            rows = read(table.plan(where), columns=["id"])
            assert found == by_pages
            assert len(rows) == (1 if by_pages else n // 3)


def test_a_residual_is_evaluated_on_the_rows_that_are_read(
    tmp_path: Path, read: Read, sizes: list[Bytes]
) -> None:
    table = events(tmp_path)
    plan = table.plan("k < 5 AND s LIKE '%1%' AND upper(s) <> '1'")
    expected = [
        str(n) for n in range(6000) if n * 7919 % 1000 < 5 and "1" in str(n) and n != 1
    ]
    assert [row["s"] for row in read(plan, columns=["s"])] == expected
    assert sizes
    with pytest.raises(PlanError, match="cannot be evaluated without Spark"):
        read(table.plan("k < 5 AND id + k = 9"))


def test_columns_of_many_kinds_beside_each_other(
    tmp_path: Path, read: Read, sizes: list[Bytes]
) -> None:
    inner = pa.struct({"a": pa.int64()})
    for i, name in enumerate(["p=1", "p=2"]):
        numbers = np.arange(100) + 100 * i
        table = pa.table(
            {
                "id": numbers if i else pa.array(numbers, pa.int32()),
                "n": pa.array([{"a": int(n)} for n in numbers], inner),
                "a.b": numbers * 2,
                "d": pa.array([f"d{n % 3}" for n in numbers]).dictionary_encode(),
                **({"late": numbers * 3} if i else {}),
            }
        )
        put(tmp_path / name / "0.parquet", table, row_group_size=30)
    schema = pa.schema(
        {
            "id": pa.int64(),
            "n": inner,
            "a.b": pa.int64(),
            "d": pa.string(),
            "late": pa.int64(),
            "p": pa.int32(),
        }
    )
    build(tmp_path, {"id": "exact"})
    table = sx.open_table(tmp_path, schema=schema)
    rows = read(table.plan("id IN (99, 100, 131)"))
    assert rows == [
        {
            "id": n,
            "n": {"a": n},
            "a.b": 2 * n,
            "d": f"d{n % 3}",
            "late": pd.NA if n < 100 and rows[0]["late"] is pd.NA else late,
            "p": 1 + n // 100,
        }
        for n, late in [(99, None), (100, 300), (131, 393)]
    ]
    assert sizes


def test_odd_pages_are_read_by_row_groups(
    tmp_path: Path, read: Read, sizes: list[Bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A codec with two meanings, a footer that is not parsed, a page not decoded."""
    numbers = np.arange(500)
    put(
        tmp_path / "0.parquet",
        {"id": numbers, "s": numbers.astype(str)},
        compression="lz4",
        row_group_size=100,
    )
    plan = build(tmp_path, {"id": "exact"}).plan("id IN (99, 100, 499)")
    expected = [{"id": n, "s": str(n)} for n in (99, 100, 499)]
    assert read(plan) == expected
    assert sizes[-1].pages == sizes[-1].groups

    def fails(*_: object) -> None:
        raise NotPagedError("odd")

    pq.write_table(
        pq.read_table(tmp_path / "0.parquet"), tmp_path / "0.parquet", row_group_size=99
    )
    plan = build(tmp_path, {"id": "exact"}).plan("id IN (99, 100, 499)")
    for name in ("decoded", "flat_columns", "wanted_pages"):
        with monkeypatch.context() as patch:
            patch.setattr(selected, name, fails)
            assert read(plan) == expected


def test_a_changed_file_is_an_error(
    tmp_path: Path, read: Read, sizes: list[Bytes]
) -> None:
    def stamped(path: Path, n_rows: int, like: os.stat_result | None) -> os.stat_result:
        put(path, {"x": [1] * n_rows}, compression="none")
        if like is not None:
            os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))
        return path.stat()

    path = tmp_path / "0.parquet"
    stat = stamped(path, 100, None)
    plan = build(tmp_path, {"x": "exact"}).plan("x = 1")
    assert len(read(plan)) == 100
    now = stamped(path, 101, stat)
    if now.st_size == stat.st_size:
        with pytest.raises(PlanError, match="has another number of rows"):
            read(plan)
    stamped(path, 100, None)
    with pytest.raises(PlanError, match=r"changed since .*0.parquet' was replaced"):
        read(plan)
    path.unlink()
    with pytest.raises(PlanError, match=r"changed since .*0.parquet' is gone"):
        read(plan)


def test_limits_and_unknown_columns(
    tmp_path: Path, read: Read, sizes: list[Bytes]
) -> None:
    table = events(tmp_path)
    with pytest.raises(PlanError, match=r"no column 'z' in the rows \(columns: id, k"):
        read(table.plan("k = 5"), columns=["z"])
    with pytest.raises(PlanError, match=r"columns='id' is not a list"):
        read(table.plan("k = 5"), columns="id")
    for method in ("to_pandas", "to_polars", "to_duckdb"):
        rows = getattr(table.plan("k = 5", limit=2), method)(columns=["id"])
        assert (
            rows.lazy().collect().height == 2
            if method == "to_polars"
            else (len(rows) == 2)
        )


def test_damaged_headers_are_never_believed() -> None:
    """A struct that has no end, a type that does not exist, a text that is too long."""
    for data in (b"", b"\x15", b"\x1d\x01", b"\x18\x7f12", b"\x15\x80"):
        with pytest.raises((IndexError, ValueError)):
            read_struct(data, 0)


@pytest.fixture
def without_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow reads no file, nor are pages looked for."""

    def refuse(_: Files) -> None:
        raise AssertionError("read by Arrow")

    monkeypatch.setattr(Files, "dataset", refuse)
    monkeypatch.setattr(engines, "MOST_BLOCKS", -1)


CONDITIONS = {
    "k < 10 AND id >= 500": lambda n: n * 7919 % 1000 < 10 and n >= 500,
    "k IN (1, 2, 99999999999) OR s = '7'": lambda n: (
        n * 7919 % 1000 in {1, 2} or n == 7
    ),
    "k NOT IN (1, 2) AND id < 9": lambda n: n * 7919 % 1000 not in {1, 2} and n < 9,
    "s > '99' AND s IS NOT NULL": lambda n: str(n) > "99",
    "id <= 99999999999999999999": lambda n: True,
    "s IS NULL OR id BETWEEN 5 AND 6": lambda n: n in {5, 6},
    "id >= 0": lambda n: True,
}


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.usefixtures("without_arrow")
def test_engines_scan_with_their_own_readers(
    tmp_path: Path, where: str, engine: str
) -> None:
    table = events(tmp_path)
    expected = [n for n in range(6000) if CONDITIONS[where](n)]
    found = READERS[engine](table.plan(where), columns=["s", "id"])
    assert sorted(row["id"] for row in found) == expected
    assert all(row["s"] == str(row["id"]) and len(row) == 2 for row in found)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.usefixtures("without_arrow")
def test_engines_scan_tables_with_folders(tmp_path: Path, engine: str) -> None:
    """What the folders decide is no part of the condition, and columns have no NaN."""
    for day in range(3):
        numbers = np.arange(100) + 100 * day
        columns = {"id": numbers, "day": numbers * 0, "f": numbers / 4}
        put(tmp_path / f"day={day}" / "0.parquet", columns)
    table = build(tmp_path, {"id": "minmax", "f": "minmax"})
    for where, expected in (
        ("day = 1 AND id < 150", range(100, 150)),
        ("day >= 1 AND id NOT IN (150, 250)", set(range(100, 300)) - {150, 250}),
        ("day = 2", range(200, 300)),
        ("(day = 0 AND id > 50) OR (day = 5 AND id > 60)", range(51, 100)),
    ):
        found = READERS[engine](table.plan(where), columns=["f", "id"])
        assert sorted(row["id"] for row in found) == sorted(expected), where
        assert all(row["f"] == row["id"] / 4 for row in found)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_folders_that_decide_otherwise_for_each_file(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of folders, and conditions with another residual for each file."""
    monkeypatch.setattr(engines, "MOST_BLOCKS", -1)
    for day in range(3):
        numbers = np.arange(100) + 100 * day
        put(tmp_path / f"day={day}" / "0.parquet", {"id": numbers, "day": numbers * 0})
    table = build(tmp_path)
    plan = table.plan("(day = 1 AND id < 150) OR (day = 2 AND id < 250)")
    expected = [*range(100, 150), *range(200, 250)]
    found = READERS[engine](plan, columns=["id"])
    assert sorted(row["id"] for row in found) == expected
    rows = READERS[engine](table.plan("day = 1 AND id < 150"), columns=["day", "id"])
    assert {row["day"] for row in rows} == {1}


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.usefixtures("without_arrow")
def test_times_are_compared_by_engines(tmp_path: Path, engine: str) -> None:
    start = datetime(2024, 1, 1)
    moments = [start + timedelta(hours=n) for n in range(48)]
    columns = {
        "id": range(48),
        "d": pa.array(moments, pa.date32()),
        "local": pa.array(moments, pa.timestamp("us")),
        "t": pa.array(moments, pa.timestamp("us", "UTC")),
        "flag": [n % 2 == 0 for n in range(48)],
    }
    put(tmp_path / "0.parquet", columns)
    table = sx.open_table(tmp_path)
    for where, expected in (
        ("d > '2024-01-01' AND id < 30", range(24, 30)),
        ("d IN (date'2024-01-02', date'2024-01-05')", range(24, 48)),
        ("t >= '2024-01-02 03:00:00'", range(26, 48)),
        ("t NOT IN (timestamp'2024-01-01 01:00:00') AND id < 3", [1, 2]),
        ("t = '2024-01-01 01:00:00' OR t = '2024-01-01 05:00:00'", [0, 4]),
        ("local < timestamp_ntz'2024-01-01 02:00:00'", [0, 1]),
    ):
        plan = table.plan(where, timezone="Europe/Paris")
        found = READERS[engine](plan, columns=["id", "t"])
        assert [row["id"] for row in found] == list(expected), where


NUMBERS: dict[str, tuple[Any, ...]] = {
    "f": (0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324, -1.5, None),
    "d": (*(Decimal(n).scaleb(-2) for n in (-5, 0, 5, 6, 150, 999)), None, None),
    "b": (True, False, None, None, True, True, False, False),
}


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ("f > 0", lambda x: x > 0),
        ("f <= 0", lambda x: x <= 0),
        ("f <= CAST('Infinity' AS DOUBLE)", lambda x: True),
        ("f < CAST('NaN' AS DOUBLE)", lambda x: True),
        ("f IN (1.5D, CAST('NaN' AS DOUBLE))", lambda x: x == 1.5),
        ("f >= CAST('NaN' AS DOUBLE) OR f < 1", lambda x: x < 1),
        ("f NOT IN (1.5D, 2.5D)", lambda x: x != 1.5),
        ("d >= 0.05 AND d < 9.99", lambda x: Decimal("0.05") <= x < 9),
        ("d IN (1.5, 1000000.25, 0.051)", lambda x: x == Decimal("1.5")),
        ("d < 0.051", lambda x: x <= Decimal("0.05")),
        ("d > -1000000", lambda x: True),
        ("d NOT IN (1.5)", lambda x: x != Decimal("1.5")),
        ("b AND id IS NOT NULL", lambda x: x),
        ("b = false", lambda x: not x),
        ("b >= true", lambda x: x),
    ],
)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.usefixtures("without_arrow")
def test_numbers_are_compared_by_engines(
    tmp_path: Path, engine: str, where: str, test: Callable[[Any], bool]
) -> None:
    """Floats of which none is NaN, decimals and booleans."""
    columns = {name: [*values] * 9 for name, values in NUMBERS.items()}
    decimals = pa.array(columns["d"], pa.decimal128(5, 2))
    put(tmp_path / "0.parquet", {"id": range(72), **columns, "d": decimals})
    table = build(tmp_path, {"*": "minmax"})
    found = READERS[engine](table.plan(where), columns=["id", "f", "d"])
    values = enumerate(columns[where[0]])
    expected = [n for n, x in values if x is not None and test(x)]
    assert [row["id"] for row in found] == expected


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "NaN, which bounds leave out": ({"x": [1, 2], "f": [1.0, math.nan]}, "x > 0"),
    "a narrower type": ({"x": pa.array([1, 2], pa.int32())}, "x > 0"),
    "a field of a struct": ({"x": [1, 2], "n": [{"a": 1}, None]}, "x > 0"),
    "a function": ({"x": [1, 2], "s": ["a", "b"]}, "upper(s) >= 'A'"),
    "a pattern": ({"x": [1, 2], "s": ["a", "b"]}, "s LIKE '%a%' OR x = 2"),
    "a float without bounds": ({"x": [1, 2], "f": [1.0, 2.0]}, "f > 0"),
    "two columns": ({"x": [1, 2], "y": [1, 2]}, "x >= y"),
}
ODD_CONDITIONS: dict[str, tuple[Any, str]] = {
    "NaN": ([1.0, math.nan, -1.0], "c > 0"),
    "zero, which has two signs": ([-0.0, 2.0, 1.0], "c IN (0, 2)"),
    "a narrow float": (pa.array([1.0, 2.0, 0.0], pa.float32()), "c > 0"),
    "a time of milliseconds": (
        pa.array([2, 3, 1], pa.timestamp("ms")),
        "c > TIMESTAMP_NTZ '1970-01-01 00:00:00.001'",
    ),
}


@pytest.fixture
def by_arrow(monkeypatch: pytest.MonkeyPatch) -> list[Files]:
    """The files that Arrow reads; no pages are looked for."""
    result: list[Files] = []
    dataset = Files.dataset

    def noted(own: Files) -> ds.FileSystemDataset:
        result.append(own)
        return dataset(own)

    monkeypatch.setattr(Files, "dataset", noted)
    monkeypatch.setattr(engines, "MOST_BLOCKS", -1)
    return result


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_what_engines_may_read_otherwise_is_read_by_arrow(
    tmp_path: Path, what: str, engine: str, by_arrow: list[Files]
) -> None:
    columns, where = ODD[what]
    put(tmp_path / "0.parquet", columns)
    wide = pa.table(columns)
    fields = [f.with_type(pa.int64()) if f.name == "x" else f for f in wide.schema]
    table = sx.open_table(tmp_path, schema=pa.schema(fields))
    found = READERS[engine](table.plan(where))
    assert [row["x"] for row in found] == [1, 2]
    assert by_arrow


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_files_with_old_times_beside_others_are_read_by_arrow(
    tmp_path: Path, engine: str, by_arrow: list[Files]
) -> None:
    times = pa.array([1, 2], pa.timestamp("us"))
    for i in range(2):
        table = pa.table({"x": [2 * i, 2 * i + 1], "t": times})
        pq.write_table(
            table, tmp_path / f"{i}.parquet", use_deprecated_int96_timestamps=i == 1
        )
    found = READERS[engine](build(tmp_path).plan("x > 0"), columns=["x", "t"])
    assert [row["x"] for row in found] == [1, 2, 3]
    assert by_arrow


@pytest.mark.parametrize("what", ODD_CONDITIONS)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_what_engines_may_compare_otherwise_is_compared_by_arrow(
    tmp_path: Path, what: str, engine: str, by_arrow: list[Files]
) -> None:
    values, where = ODD_CONDITIONS[what]
    put(tmp_path / "0.parquet", {"x": [1, 2, 3], "c": values})
    plan = build(tmp_path, {"*": "minmax"}).plan(where, timezone="UTC")
    found = READERS[engine](plan, columns=["x"])
    assert [row["x"] for row in found] == [1, 2]
    assert by_arrow


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_filter_on_top_of_a_scan_keeps_nan(tmp_path: Path, engine: str) -> None:
    for i, values in enumerate([[1.0, math.nan], [2.0, 3.0]]):
        put(tmp_path / f"{i}.parquet", {"f": values, "x": [2 * i, 2 * i + 1]})
    plan = build(tmp_path).plan("x >= 0")
    if engine == "duckdb":
        assert plan.to_duckdb().filter("f > 5").project("x").fetchall() == [(1,)]
    else:
        frame = plan.to_polars().filter(pl.col("f") > 5).select("x").collect()
        assert frame.rows() == [(1,)]
