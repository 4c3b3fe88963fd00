"""Behind a slow store: the answers are the same, and what was read is counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.moto_server import folder_server
from benchmarks.proxy import Proxy, proxy
from ssb.latency.data import BUCKET, FOLDER, cut, indexed
from ssb.latency.readers import READERS, Store
from ssb.latency.run import compared, measure, pruned, whole
from ssb.queries import Query

pytest.importorskip("localbucket")

N_FILES = 8
DELAY = 0.002
REVENUE = "sum(lo_revenue) AS revenue"
ONE_FILE = Query("one", "lo_orderdate = 19970103", REVENUE)
ALL = Query("all", "lo_quantity < 25", f"c_city, {REVENUE}", group_by="c_city")
NONE = Query("none", "lo_orderdate = 19990101", REVENUE)


def rows(n_files: int) -> pa.Table:
    """Dates that grow, all else in any order; sums that 32 bits do not hold."""
    n_rows = 100 * n_files
    rng = np.random.default_rng(1)
    return pa.table({
        "lo_orderdate": pa.array(19970101 + np.arange(n_rows) // 100, pa.int32()),
        "lo_quantity": pa.array(rng.integers(1, 51, n_rows), pa.int32()),
        "lo_revenue": pa.array(rng.integers(10**9, 2 * 10**9, n_rows), pa.int32()),
        "c_city": [f"UNITED KI{n}" for n in rng.integers(0, 10, n_rows)],
    })  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with one layout in two files; for reading only."""
    folder = tmp_path_factory.mktemp("latency") / "lineorder_flat"
    folder.mkdir()
    table = rows(N_FILES)
    for i in range(2):
        part = table.slice(50 * N_FILES * i, 50 * N_FILES)
        pq.write_table(part, folder / f"{i}.parquet")
    return folder.parent


@pytest.fixture(scope="module")
def served(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, Proxy]]:
    work = tmp_path_factory.mktemp("served")
    files = sorted((data / "lineorder_flat").glob("*.parquet"))
    cut(files, work / BUCKET / FOLDER, N_FILES)
    with folder_server(work) as server, proxy(server.port, DELAY) as slow:
        indexed(Store(f"{BUCKET}/{FOLDER}", server.options), {"lo_orderdate": "bitmap"})
        options = {**server.options, "endpoint": slow.endpoint}
        yield Store(f"{BUCKET}/{FOLDER}", options), slow


def test_cut_files_hold_the_same_rows_in_order(data: Path, tmp_path: Path) -> None:
    files = sorted((data / "lineorder_flat").glob("*.parquet"))
    found = cut(files, tmp_path / "cut", N_FILES)
    assert len(found) == N_FILES
    assert pa.concat_tables(map(pq.read_table, found)) == rows(N_FILES)
    assert {pq.read_metadata(file).num_rows for file in found} == {100}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_the_rows_of_the_files_that_it_reads(
    name: str, served: tuple[Store, Proxy]
) -> None:
    store, slow = served
    reader = READERS[name]
    table = rows(N_FILES).to_pylist()
    day = sum(r["lo_revenue"] for r in table if r["lo_orderdate"] == 19970103)
    few = [row for row in table if row["lo_quantity"] < 25]
    cities = {
        city: sum(r["lo_revenue"] for r in few if r["c_city"] == city)
        for city in {row["c_city"] for row in few}
    }
    expected = {
        ONE_FILE: [(day,)],
        ALL: sorted(cities.items(), key=repr),
        NONE: [(0,)],
    }
    for query, answer in expected.items():
        found = whole(store, slow, reader, query) + pruned(store, slow, reader, query)
        assert [one.rows for one in found] == [answer] * 4
    assert day > 2**32


@pytest.mark.slow
def test_every_reader_query_and_state_has_a_row(served: tuple[Store, Proxy]) -> None:
    store, slow = served
    readers = {name: READERS[name] for name in ("DuckDB", "Polars")}
    found = list(measure(store, slow, readers, [ONE_FILE, ALL], repeat=1))
    assert [(r["query"], r["reader"], r["state"]) for r in found] == [
        (query, reader, state)
        for query in ("one", "all")
        for reader in readers
        for state in ("cold", "warm")
    ]
    assert all(row["same"] for row in found)
    assert {(r["query"], r["files"], r["files_plan"]) for r in found} == {
        ("one", N_FILES, 1),
        ("all", N_FILES, N_FILES),
    }


@pytest.mark.slow
def test_another_answer_is_shown(served: tuple[Store, Proxy]) -> None:
    store, slow = served
    reader = READERS["DuckDB"]
    before = whole(store, slow, reader, ONE_FILE)
    after = pruned(store, slow, reader, NONE)
    expected = before[0].rows
    row: dict[str, Any] = compared([before[0]], [after[0]], expected)
    assert row["same"] == 0
    assert compared([before[0]], [before[1]], expected)["same"] == 1
