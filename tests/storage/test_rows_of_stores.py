"""Rows of objects of a store: the right ones, in few waits and few bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from benchmarks.moto_server import S3
from benchmarks.proxy import Proxy, proxy, round_trips
from skipindex.errors import PlanError
from skipindex.planner.rows import engines, selected
from skipindex.planner.rows.dataset import Files
from skipindex.storage.file_system.location import Location, location_of

DELAY = 0.25
FILES, ROWS = 3, 60_000
N_KEYS = 60_000


@pytest.fixture(scope="module")
def slow(s3: S3) -> Iterator[Proxy]:
    with proxy(s3.port, DELAY) as server:
        yield server


@cache
def table_of(file: int) -> pa.Table:
    numbers = np.arange(file * ROWS, (file + 1) * ROWS)
    return pa.table(
        {
            "id": numbers,
            "k": numbers * 7919 % N_KEYS,
            "s": [f"{n * 2654435761 % 2**32:0120x}" for n in numbers.tolist()],
            "l": [[n] for n in numbers.tolist()],
        }
    )


def written(s3: S3, **options: Any) -> Location:
    place = location_of(f"s3://{s3.new_bucket()}/t", s3.options)
    for i in range(FILES):
        sink = pa.BufferOutputStream()
        pq.write_table(
            table_of(i),
            sink,
            row_group_size=10_000,
            max_rows_per_page=1_500,
            write_batch_size=500,
            use_dictionary=False,
            compression="none",
            **options,
        )
        place.write(f"{i}.parquet", sink.getvalue().to_pybytes())
    sx.build_indexes(place, {"k": "exact"}, workers=1)
    return place


@pytest.fixture(scope="module")
def place(s3: S3) -> Location:
    """Files with offset indexes."""
    return written(s3, write_page_index=True)


def expected(keys: list[int], columns: list[str]) -> list[dict[str, Any]]:
    whole = pa.concat_tables(map(table_of, range(FILES)))
    mask = np.isin(whole["k"].to_numpy(), keys)
    return whole.filter(pa.array(mask)).select(columns).to_pylist()


@pytest.fixture
def without_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Files) -> None:
        raise AssertionError("read by a scan")

    monkeypatch.setattr(Files, "dataset", refuse)


@pytest.fixture
def by_pages(without_scan: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a scan is faster."""
    monkeypatch.setattr(engines, "MOST_BLOCKS", math.inf)
    monkeypatch.setattr(selected, "_is_faster_from_a_store", lambda _: True)


@pytest.mark.usefixtures("without_scan")
def test_a_look_up_waits_for_few_answers_of_few_bytes(
    place: Location, s3: S3, slow: Proxy
) -> None:
    seen = location_of(place.uri, {**s3.options, "endpoint": slow.endpoint})
    table = sx.open_table(seen)
    plan = table.plan("k = 77")
    assert len(plan.selections) == FILES
    n_bytes = int(table.state.sizes.sum())
    for read in (
        lambda: plan.to_pandas(columns=["id", "s"]).to_dict("records"),
        lambda: plan.to_polars(columns=["id", "s"]).collect().to_dicts(),
        lambda: plan.to_duckdb(columns=["id", "s"]).to_arrow_table().to_pylist(),
        lambda: plan.to_arrow(columns=["id", "s"]).to_table().to_pylist(),
        lambda: table.locate([77], "k").read(["id", "s"]).to_pylist(),
    ):
        slow.taken()
        assert read() == expected([77], ["id", "s"])
        requests = slow.taken()
        assert round_trips(requests) <= 6
        assert sum(one.n_bytes for one in requests) < 0.05 * n_bytes
        assert len(requests) < 40 * FILES


@pytest.mark.few(2)
@pytest.mark.usefixtures("by_pages")
@pytest.mark.parametrize("columns", [["s", "l"], ["l"], ["id"], None])
def test_rows_are_the_right_ones_with_any_columns(
    place: Location, columns: list[str] | None
) -> None:
    """Nested columns are read by row groups, of many files together."""
    plan = sx.open_table(place).plan("k IN (5, 9999, 20000)")
    wanted = columns or ["id", "k", "s", "l"]
    rows = plan.to_arrow(columns=columns).to_table()
    assert rows.to_pylist() == expected([5, 9999, 20000], wanted)


@pytest.mark.usefixtures("by_pages")
def test_without_offset_indexes_row_groups_are_read(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small columns of a row group at once, and large ones by Arrow."""
    plan = sx.open_table(written(s3)).plan("k = 77")
    for most in (1 << 20, 1 << 22):
        monkeypatch.setattr(selected, "MAX_RANGE", most)
        rows = plan.to_arrow(columns=["id", "s"]).to_table()
        assert rows.to_pylist() == expected([77], ["id", "s"])


@pytest.mark.usefixtures("by_pages")
def test_offset_indexes_are_not_trusted(s3: S3) -> None:
    """Whatever they say, the rows are those of the headers."""
    place = written(s3, write_page_index=True)
    source = place.open_input("0.parquet")
    metadata = pq.ParquetFile(source).metadata
    last = metadata.row_group(3).column(3)
    start = last.data_page_offset + last.total_compressed_size
    data = bytearray(place.read("0.parquet"))
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    rng = np.random.default_rng(1)
    for at in rng.integers(start, footer, (3, 60)):
        damaged = bytearray(data)
        for one in at.tolist():
            damaged[one] ^= int(rng.integers(1, 255))
        place.write("0.parquet", damaged)
        plan = sx.build_indexes(place, {"k": "exact"}, workers=1).table.plan("k = 77")
        rows = plan.to_arrow(columns=["id", "s"]).to_table()
        assert rows.to_pylist() == expected([77], ["id", "s"])


@pytest.mark.few(1)
@pytest.mark.usefixtures("by_pages")
@pytest.mark.parametrize("when", ["before", "after the footers"])
def test_an_object_that_changed_is_an_error(
    s3: S3, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of the same size and number of rows, and while it is read."""
    place = written(s3, write_page_index=True)
    plan = sx.open_table(place).plan("k = 77")
    (rows,) = {len(one.rows) for one in plan.selections if one.rows is not None}
    assert rows == 1
    data = bytearray(place.read("1.parquet"))
    data[5000] ^= 1
    if when == "before":
        place.write("1.parquet", data)
    else:
        held = selected._held_ahead

        def meanwhile(*given: Any) -> bool:
            place.write("1.parquet", data)
            return held(*given)

        monkeypatch.setattr(selected, "_held_ahead", meanwhile)
    with pytest.raises((PlanError, OSError), match="recondition"):
        plan.to_arrow(columns=["id", "s"]).to_table()


def test_many_rows_of_small_files_are_scanned(place: Location) -> None:
    """Where requests take longer than the bytes that they save."""
    plan = sx.open_table(place).plan("k < 300")
    dataset = plan.to_arrow()
    assert isinstance(dataset, ds.FileSystemDataset)
    assert dataset.to_table(["id"]).num_rows == len(expected([*range(300)], ["id"]))
