"""Rows by keys, in the order of the keys: those of the files, by every way."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import PlanError
from skipindex.planner.rows import selected
from tests.planner.rows.test_by_keys import TYPES
from tests.tables import build, put, put_all


def expected(folder: Path, keys: list[Any]) -> list[dict[str, Any]]:
    """The rows of each key, file by file."""
    rows: dict[Any, list[dict[str, Any]]] = {}
    for path in sorted(folder.rglob("*.parquet")):
        for row in pq.ParquetFile(path).read().to_pylist():
            rows.setdefault(row["c"], []).append(row)
    return [row for key in keys if key is not None for row in rows.get(key, [])]


@pytest.fixture(params=["pages", "scan"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    by_pages = request.param == "pages"
    monkeypatch.setattr(selected, "is_faster_than_arrow", lambda _: by_pages)
    return str(request.param)


@pytest.mark.few(10)
@pytest.mark.parametrize("kind", ["exact", "bit_sliced", "bloom", "minmax"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.usefixtures("way")
def test_rows_are_those_of_the_files(tmp_path: Path, kind: str, name: str) -> None:
    dtype, values = TYPES[name]
    rng = random.Random(f"{kind} {name}")
    for i, n in enumerate([0, 1, 40, 900]):
        some = rng.sample(values, rng.randint(1, len(values)))
        column = [None if rng.random() < 0.2 else rng.choice(some) for _ in range(n)]
        columns = {
            "n": pa.array(range(n), pa.int64()),
            "c": pa.array(column, dtype),
            "s": pa.array([[i]] * n, pa.list_(pa.int64())),
        }
        put(tmp_path / f"{i}.parquet", columns, row_group_size=300)
    try:
        table = build(tmp_path, {"c": kind})
    except sx.SkipIndexError:
        return  # no index of this kind has the type
    for n_keys in (0, 1, 3, 30):
        keys = [rng.choice(values) for _ in range(n_keys)]
        keys += [None, *keys[:2]] * rng.randint(0, 1)
        rows = table.locate(pa.array(keys, dtype), "c").read()
        assert rows.to_pylist() == expected(tmp_path, keys)
        assert rows.schema == pa.schema(
            {"n": pa.int64(), "c": dtype, "s": pa.list_(pa.int64())}
        )


@pytest.mark.usefixtures("way")
def test_some_columns_of_files_with_and_without_an_index(tmp_path: Path) -> None:
    put_all(tmp_path, [{"c": [7, 1, 7], "x": [1, 2, 3]}, {"c": [7, 8], "x": [4, 5]}])
    table = build(tmp_path, {"c": "exact"})
    put(tmp_path / "00.parquet", {"c": [8, 7, None], "x": [6, 7, 8]})
    located = table.refresh().locate([8, 7, 99, None, 8], "c")
    assert located.read(["x"]).to_pylist() == [
        {"x": x} for x in (6, 5, 1, 3, 7, 4, 6, 5)
    ]
    assert located.read([]).num_rows == 8
    assert located.read(["x", "c"]).column_names == ["x", "c"]
    assert table.refresh().locate([], "c").read().num_rows == 0
    for columns, why in ((["y"], "no column 'y'"), ("x", "columns='x' is not a list")):
        with pytest.raises(PlanError, match=why):
            located.read(columns)


@pytest.mark.usefixtures("way")
def test_folders_missing_columns_and_fields_of_structs(tmp_path: Path) -> None:
    put(tmp_path / "p=1" / "0.parquet", {"s": [{"a": 1}, {"a": 2}], "late": [3, 4]})
    put(tmp_path / "p=__HIVE_DEFAULT_PARTITION__/1.parquet", {"s": [{"a": 2}, None]})
    fields = {"s": pa.struct({"a": pa.int64()}), "late": pa.int64(), "p": pa.int32()}
    for kind in ("exact", "bloom"):
        build(tmp_path, {"s.a": kind})
        table = sx.open_table(tmp_path, schema=pa.schema(fields))
        rows = table.locate([2], "s.a").read()
        found = sorted(rows.to_pylist(), key=lambda row: row["p"] is None)
        assert found == [
            {"s": {"a": 2}, "late": 4, "p": 1},
            {"s": {"a": 2}, "late": None, "p": None},
        ]
        assert table.locate([2], "s.a").read(["p"]).schema.types == [pa.int32()]


@pytest.mark.parametrize("kind", ["exact", "bloom"])
@pytest.mark.usefixtures("way")
def test_a_file_that_changed_is_an_error(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path / "0.parquet", {"c": [1, 2]}, compression="none")
    stat = path.stat()
    located = build(tmp_path, {"c": kind}).locate([2], "c")
    assert located.read().to_pylist() == [{"c": 2}]
    put(path, {"c": [2, 3]}, compression="none")
    assert path.stat().st_size == stat.st_size
    with pytest.raises(PlanError, match=r"changed since .*0.parquet' was replaced"):
        located.read()
    put(path, {"c": [2]}, compression="none")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(PlanError, match=r"changed since .*0.parquet' "):
        located.read()
    path.unlink()
    with pytest.raises(PlanError, match=r"changed since .*0.parquet' is gone"):
        located.read()


def test_places_are_a_stream_that_is_read_again(tmp_path: Path) -> None:
    put_all(tmp_path, [{"c": [1, 2]}, {"c": [2]}])
    located = build(tmp_path, {"c": "exact"}).locate([2], "c")
    for _ in range(2):
        assert [batch.num_rows for batch in located] == [1, 1]
        assert pa.table(located) == located.read_all()
    assert located.read_all().schema == located.schema


def test_few_keys_of_many_rows_read_few_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key in 200,000 rows is found and read by its page alone, in any order."""
    n = 200_000
    numbers = pa.array([i * 7919 % n for i in range(n)])
    columns = {"c": numbers, "x": pa.array(range(n))}
    put(tmp_path / "0.parquet", columns, max_rows_per_page=5_000, use_dictionary=False)
    table = build(tmp_path, {"c": "exact"})
    sizes: list[selected.Bytes] = []

    def noted(size: selected.Bytes) -> bool:
        sizes.append(size)
        return True

    monkeypatch.setattr(selected, "is_faster_than_arrow", noted)
    for keys in ([5], [9, 5, 199_999, 5]):
        rows = table.locate(keys, "c").read(["x", "c"])
        assert rows["c"].to_pylist() == keys
        assert [x * 7919 % n for x in rows["x"].to_pylist()] == keys
        assert 0 < sizes[-1].pages < sizes[-1].whole / 8
