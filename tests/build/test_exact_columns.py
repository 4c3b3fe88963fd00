"""``exact`` on many columns: functions of others, packs, and what comes later."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.expressions.domain import domain_of
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.kinds import exact
from tests.tables import kept, put

N_ROWS = 4000


def rows_of(seed: int) -> dict[str, Any]:
    """Cities with their nations and regions; nations are not those of each file."""
    draw = np.random.default_rng(seed)
    city = draw.integers(0, 250, N_ROWS)
    nation = (city // 10 + seed) % 25
    return {
        "region": [f"region {n % 5}" for n in nation.tolist()],
        "nation": nation,
        "city": [f"city {c}" for c in city.tolist()],
        "price": draw.integers(0, 10**6, N_ROWS),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(4):
        put(tmp_path / "table" / f"{i}.parquet", rows_of(i))
    return tmp_path / "table"


CONDITIONS = {
    "city = 'city 7' AND nation = 1": lambda r: (
        (r["city"] == "city 7") & (r["nation"] == 1)
    ),
    "city IN ('city 7', 'city 200') AND region = 'region 2'": lambda r: (
        np.isin(r["city"], ["city 7", "city 200"]) & (r["region"] == "region 2")
    ),
    "NOT nation BETWEEN 1 AND 23 AND price < 300": lambda r: (
        ~np.isin(r["nation"], range(1, 24)) & (r["price"] < 300)
    ),
    "region LIKE '%4' AND price > 999800": lambda r: (
        (r["region"] == "region 4") & (r["price"] > 999_800)
    ),
}


def check(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    table = sx.open_table(folder)
    for condition, holds in CONDITIONS.items():
        expected = [
            name
            for name, rows in files.items()
            if holds({key: np.array(value) for key, value in rows.items()}).any()
        ]
        assert kept(table, condition) == expected
        assert table.plan(condition).count() is not None
    assert table.verify().ok


def size(folder: Path) -> int:
    packs = folder.glob("_skipindex/packs/*.puffin")
    return sum(path.stat().st_size for path in packs)


def bytes_of_exact(folder: Path) -> int:
    packs = sx.open_table(folder).state.snapshot.manifest.packs
    blobs = [blob for pack in packs for blob in pack.blobs]
    return sum(blob.length for blob in blobs if blob.meta.kind == "exact")


def test_functions_are_found_in_each_file(folder: Path, tmp_path: Path) -> None:
    files = {f"{i}.parquet": rows_of(i) for i in range(4)}
    one_by_one = tmp_path / "copy"
    shutil.copytree(folder, one_by_one)
    for name in files["0.parquet"]:
        sx.build_indexes(one_by_one, {name: "exact"}, workers=1)
    sx.build_indexes(folder, {"city": "exact", "price": "exact"}, workers=1)
    without = size(folder)
    for path in folder.glob("_skipindex"):
        shutil.rmtree(path)
    sx.build_indexes(folder, {"*": "exact"}, workers=1)
    assert size(folder) < min(1.2 * without, 0.9 * size(one_by_one))
    check(folder, files)
    check(one_by_one, files)


def test_files_that_come_later_are_judged_by_their_own_rows(folder: Path) -> None:
    sx.build_indexes(folder, {"*": "exact"}, workers=1)
    files = {f"{i}.parquet": rows_of(i) for i in range(4)}
    other = rows_of(5)
    other["nation"][17] = 24 - other["nation"][17]
    files["4.parquet"] = other
    put(folder / "4.parquet", other)
    sx.open_table(folder).refresh_indexes()
    check(folder, files)
    before = bytes_of_exact(folder)
    sx.open_table(folder).compact_indexes()
    assert len(sx.open_table(folder).state.snapshot.manifest.packs) == 1
    assert bytes_of_exact(folder) <= before
    check(folder, files)


def test_an_index_does_not_depend_on_that_of_another_column(folder: Path) -> None:
    sx.build_indexes(folder, {"*": "exact"}, workers=1)
    files = {f"{i}.parquet": rows_of(i) for i in range(4)}
    table = sx.open_table(folder).drop_indexes(columns=["city"])
    assert kept(table, "nation = 1 AND price < 200") == [
        name
        for name, rows in files.items()
        if ((rows["nation"] == 1) & (rows["price"] < 200)).any()
    ]
    assert table.compact_indexes().verify().ok


def test_little_memory_builds_the_same_answers(folder: Path) -> None:
    sx.build_indexes(folder, {"*": "exact"}, workers=1, memory="300MB")
    check(folder, {f"{i}.parquet": rows_of(i) for i in range(4)})


def test_columns_that_begin_alike_are_not_compared_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sensors that are silent at first, and attributes that are seldom set."""
    compared = 0
    by_code_of = exact._Whole.by_code_of

    def counted(one: Any, other: Any) -> Any:
        nonlocal compared
        compared += 1
        return by_code_of(one, other)

    monkeypatch.setattr(exact._Whole, "by_code_of", counted)
    rng = np.random.default_rng(1)
    columns, domain = [], domain_of(pa.int64())
    for i in range(12):
        values = rng.integers(0, 200 + i, 20_000)
        values[:1000] = 0
        columns.append(EncodedColumn(f"c{i}", pa.array(values), domain))
    sx.Exact().build_together(columns)
    assert compared < len(columns)
