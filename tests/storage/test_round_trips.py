"""How many answers of a store a plan waits for, whatever the number of files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from benchmarks.moto_server import S3
from benchmarks.proxy import Proxy, Request, proxy, round_trips
from skipindex.planner.stages import index_reader
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.source import formats
from skipindex.storage.file_system import store_input
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import Blob, reader
from skipindex.storage.pack.format import TAIL

DELAY = 0.25
"""Seconds: much longer than it takes to begin requests that do not wait for another."""


def rows_of(file: int) -> list[dict[str, Any]]:
    """Values that are in few files, and within the bounds of most."""
    values = [(file * 37 + j * 109) % 1000 for j in range(20)]
    both = zip(values, reversed(values), strict=True)
    return [{"x": x, "y": y, "z": str(x)} for x, y in both]


@pytest.fixture(scope="module")
def slow(s3: S3) -> Iterator[Proxy]:
    with proxy(s3.port, DELAY) as server:
        yield server


@pytest.fixture(scope="module", params=[pytest.param(6, marks=pytest.mark.slow), 60])
def place(request: pytest.FixtureRequest, s3: S3, slow: Proxy) -> Location:
    """A table with indexes, seen through the proxy."""
    uri = f"s3://{s3.new_bucket()}/t"
    direct = location_of(uri, s3.options)
    for i in range(request.param):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows_of(i)), sink)
        direct.write(f"{i:04d}.parquet", sink.getvalue().to_pybytes())
    indexes = {"x": ["bitmap"], "y": ["bitmap"], "z": ["bloom"]}
    sx.build_indexes(direct, indexes, workers=1).table.declare_exclusive()
    return location_of(uri, {**s3.options, "endpoint": slow.endpoint})


SMALL_GUESS = 64
"""Directories are larger than it, as those of many files are than the usual guess."""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("condition", "is_match", "most", "guess"),
    [
        ("x < -5", lambda _: False, 3, None),
        ("x = 37 AND y = 46", lambda row: (row["x"], row["y"]) == (37, 46), 4, None),
        ("x = 37 OR y = 46", lambda row: row["x"] == 37 or row["y"] == 46, 4, None),
        ("z = '37' AND x < 500", lambda row: row["z"] == "37", 4, None),
        ("x = 37 AND y = 46", lambda row: (row["x"], row["y"]) == (37, 46), 6, 1 << 14),
        (
            "x = 37 AND y = 46 AND z <> '5'",
            lambda row: (row["x"], row["y"]) == (37, 46),
            7,
            SMALL_GUESS,
        ),
    ],
)
def test_a_plan_waits_for_few_answers(
    place: Location,
    slow: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
    is_match: Callable[[dict[str, Any]], bool],
    most: int,
    guess: int | None,
) -> None:
    if guess is not None:
        monkeypatch.setattr(reader, "_GUESS", guess)
        monkeypatch.setattr(reader, "_BEGIN", guess)
        monkeypatch.setattr(reader, "_MOST", 0)
        monkeypatch.setattr(reader, "_PER_FILE", (0, 0, 0))
        monkeypatch.setattr(index_reader, "_WHOLE", 0)
    slow.taken()
    with CacheSession() as session:
        table = sx.open_table(place)
        plan = table.plan(condition, session=session)
    requests = slow.taken()
    assert round_trips(requests) <= most, [
        (f"{one.began - requests[0].began:.2f}", one.method, one.path)
        for one in requests
    ]
    assert plan.paths == [
        path for i, path in enumerate(table.paths) if any(map(is_match, rows_of(i)))
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("n_files", "n_rows", "kind"),
    [(800, 100, "bitmap"), (40, 20_000, "bitmap"), (40, 20_000, "bit_sliced")],
)
def test_the_guess_of_a_directory_is_enough_and_hardly_more(
    tmp_path: Path, n_files: int, n_rows: int, kind: str
) -> None:
    rng = np.random.default_rng(1)
    for i in range(n_files):
        values = rng.integers(0, 1 << 20, n_rows)
        pq.write_table(pa.table({"x": values}), tmp_path / f"{i:03}.parquet")
    state = sx.build_indexes(tmp_path, {"x": kind}, workers=1).table.state
    column = state.resolve("x")
    for use in state.maps(column):  # their parts are read too
        whole = use.entry.offset, use.entry.length
        assert index_reader._opening_ranges(use) == [whole]
    for use in state.blobs(column):
        *_, (start, length) = index_reader._opening_ranges(use)
        pack = state.location.read(f"{PACKS}/{use.pack.name}")
        end = memoryview(pack)[start : start + length]
        assert Blob.directory_range(use.entry, end) is None
        _, directory, _ = TAIL.unpack(end[-TAIL.size :])
        has_begin = length == use.entry.length  # with what is small before it
        assert length <= 2 * directory + (1 << (16 if has_begin else 14))


@pytest.mark.few(1)
def test_a_key_is_looked_up_by_few_bytes_of_a_large_index(
    s3: S3, slow: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_reader, "_WHOLE", 0)
    uri, n_rows = f"s3://{s3.new_bucket()}/t", 150_000
    direct = location_of(uri, s3.options)
    rng = np.random.default_rng(0)
    users = [rng.integers(0, n_rows, n_rows) for _ in range(3)]
    for i, values in enumerate(users):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"user": values}), sink)
        direct.write(f"{i}.parquet", sink.getvalue().to_pybytes())
    report = sx.build_indexes(direct, {"user": "exact"}, workers=1)
    key, many = int(users[0][7]), ", ".join(map(str, range(0, n_rows, 500)))
    options = {**s3.options, "endpoint": slow.endpoint}
    for condition, most in (
        (f"user = {key}", 120_000),
        (f"user < {n_rows // 2}", 60_000),  # as some value of many has a row
        (f"user IN ({many})", 2 * report.n_bytes),  # parts would be waited for in turn
    ):
        slow.taken()
        with CacheSession() as session:
            table = sx.open_table(uri, storage_options=options)
            plan = table.plan(condition, session=session)
        requests = slow.taken()
        packs = sum(one.n_bytes for one in requests if "/packs/" in one.path)
        assert packs < most
        assert round_trips(requests) <= 7
        assert plan.paths == report.table.plan(condition).paths
    slow.taken()
    with CacheSession() as session:
        table = sx.open_table(uri, storage_options=options)
        rows = table.locate([key], "user", session=session).read_all()
    packs = sum(one.n_bytes for one in slow.taken() if "/packs/" in one.path)
    assert packs < 120_000
    assert len(rows) == sum(int((values == key).sum()) for values in users)


def test_the_log_is_enough_and_nothing_else_is_listed(
    place: Location, slow: Proxy
) -> None:
    listed = sx.open_table(place)
    slow.taken()
    with CacheSession() as session:
        table = sx.open_table(place, trust="log")
        plan = table.plan("x < -5", session=session)
        requests = slow.taken()
        found = table.plan("x = 37 AND y = 46", session=session)
    assert round_trips(requests) <= 4
    lists = [one.path for one in requests if "list-type" in one.path]
    assert lists
    # Beside the log, the folders where another format would keep its own.
    own = [path for path in lists if "_skipindex" in path]
    assert own
    assert len(lists) - len(own) == len(formats._FOLDERS)
    assert plan.paths == []
    assert table.paths == listed.paths
    assert found.paths == listed.plan("x = 37 AND y = 46").paths
    assert table.state.listing[1].tag == listed.state.listing[1].tag is not None
    assert table.state.freshness == [""] * len(listed)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 22), st.integers(1, 1 << 17)), min_size=1)
)
def test_ranges_that_come_by_one_request_are_dealt_to_one_call(
    ranges: list[tuple[int, int]],
) -> None:
    ranges.sort()
    calls = list(store_input._dealt(ranges))
    assert [one for call in calls for one in call] == ranges
    ends = [max(start + length for start, length in call) for call in calls]
    for end, call in zip(ends, calls[1:], strict=False):
        assert call[0][0] - end > 1 << 16
    for call in calls:
        reach = itertools.accumulate((s + n for s, n in call), max)
        gaps = [s - end for end, (s, _) in zip(reach, call[1:], strict=False)]
        assert sum(gap > 1 << 16 for gap in gaps) < 8


def test_waiting_is_counted_by_what_is_under_way_at_once() -> None:
    def one(began: float, ended: float, path: str = "/") -> Request:
        return Request("GET", path, began, ended, 0)

    assert round_trips([]) == 0
    assert round_trips([one(0, 1), one(0, 1), one(0.5, 1.5)]) == 1
    assert round_trips([one(0, 1), one(1, 2), one(1.5, 3), one(3, 4)]) == 3
    assert round_trips([one(0, 1), one(1, 2, "/b?continuation-token=x&prefix=")]) == 1
