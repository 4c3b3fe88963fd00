"""The record of queries: bounded, of many writers, and of no harm to a query."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex import api
from skipindex.advice.questions import names_in
from skipindex.errors import AdviceError, LayoutError, TableError
from skipindex.planner.recorded import RecordedQueries, drift
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import QUERIES
from skipindex.storage.file_system.sidecar import uri_of
from skipindex.table import queries
from skipindex.table.queries import Journal, Recording, hidden, recorded
from tests.tables import build, made, put, put_all

FILES = [{"x": [1, 2], "s": ["a", "b"]}, {"x": [3, 4], "s": ["c", "d"]}]


@pytest.fixture(autouse=True)
def nothing_recorded() -> Iterator[None]:
    yield
    api.record_queries(None)
    queries.flush()


def make(folder: Path) -> None:
    build(put_all(folder, FILES), {"x": "bitmap", "s": "bitmap"})


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    return sx.open_table(made(tmp_path / "t", make))


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def add(table: sx.Table, where: str = "x = 1", *, literals: bool = True) -> None:
    Recording("table", literals).add(
        table.state.location, where, zone="UTC", files=2, read=1, n_bytes=9, seconds=0.1
    )


def test_plans_are_recorded_beside_the_table(table: sx.Table) -> None:
    api.record_queries()
    table.plan("x = 3", timezone="UTC")
    sx.plan_files(table.folder, "s = 'zz'")
    queries.flush()
    first, second = recorded(table.state.location)
    size = Path(table.folder, "1.parquet").stat().st_size
    assert (first.where, first.zone, first.files, first.read) == ("x = 3", "UTC", 2, 1)
    assert first.n_bytes == size
    assert first.ms > 0
    assert (second.where, second.zone, second.read) == ("s = 'zz'", None, 0)


def test_nothing_is_recorded_unless_it_is_asked_for(table: sx.Table) -> None:
    table.plan("x = 3")
    table.advise(queries=["x = 3"])
    queries.flush()
    assert recorded(table.state.location) == []
    assert not Path(table.folder, QUERIES).exists()


def test_a_folder_records_many_tables(table: sx.Table, tmp_path: Path) -> None:
    other = build(put_all(tmp_path / "other", FILES), {"x": "bitmap"})
    api.record_queries(str(tmp_path / "record"))
    table.plan("x = 3")
    other.plan("x = 4")
    queries.flush()
    where = f"log:{tmp_path / 'record'}"
    assert [a.where for a in recorded(table.state.location, where)] == ["x = 3"]
    assert [a.where for a in recorded(other.state.location, where)] == ["x = 4"]
    assert recorded(table.state.location) == []


def test_a_table_without_indexes_gets_no_folder(tmp_path: Path) -> None:
    api.record_queries()
    sx.open_table(put_all(tmp_path, FILES)).plan("x = 3")
    queries.flush()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.parquet",
        "1.parquet",
    ]


def test_a_folder_that_refuses_loses_queries_and_raises_nothing(
    table: sx.Table,
) -> None:
    Path(table.folder, QUERIES).write_text("a file is in the way")
    add(table)
    queries.flush()
    assert recorded(table.state.location) == []


@pytest.mark.parametrize(
    ("where", "shape"),
    [
        ("city = 'Ro''me' AND x < -1.5e3", "city = ? AND x < -?"),
        ("x IN (1, 2, 3)", "x IN (?)"),
        ('`a 1` = "b" AND col_1 = 0x1F', "`a 1` = ? AND col_1 = ?"),
        ("d >= DATE '2024-01-01'", "d >= DATE ?"),
        ("name LIKE 'a\\'b%'", "name LIKE ?"),
    ],
)
def test_literals_are_hidden(where: str, shape: str) -> None:
    assert hidden(where) == shape


def test_hidden_literals_reach_no_file(table: sx.Table) -> None:
    add(table, "s = 'very secret' AND x = 4711", literals=False)
    queries.flush()
    (segment,) = segments(Path(table.folder, QUERIES))
    assert b"secret" not in segment.read_bytes()
    assert b"4711" not in segment.read_bytes()
    (asked,) = recorded(table.state.location)
    assert asked.is_hidden
    advice = table.advise(queries="log")
    assert {column.name for column in advice.columns} == {"s", "x"}
    with pytest.raises(LayoutError, match="with its literals"):
        sx.Workload("log").recorded(table.state.location)


GOOD = {
    "at": 1.5,
    "table": "",
    "where": "x = 1",
    "zone": None,
    "files": 2,
    "read": 1,
    "n_bytes": 9,
    "ms": 0.5,
}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[" * 20_000,
        b"{}",
        json.dumps(GOOD)[:-9].encode(),
        *(
            json.dumps(GOOD | bad).encode()
            for bad in (
                {"where": ""},
                {"where": 7},
                {"where": "x" * 5000},
                {"zone": ["UTC"]},
                {"zone": []},
                {"zone": 0},
                {"at": "now"},
                {"at": True},
                {"ms": float("nan")},
                {"n_bytes": -1},
                {"n_bytes": 1e300},
                {"read": 3},
                {"more": 1},
            )
        ),
    ],
)
def test_a_damaged_or_foreign_line_is_ignored(table: sx.Table, line: bytes) -> None:
    add(table)
    queries.flush()
    (segment,) = segments(Path(table.folder, QUERIES))
    mine = segment.read_bytes()
    table_uri = json.loads(mine)["table"]
    line = line.replace(b'"table": ""', f'"table": "{table_uri}"'.encode())
    other = segment.with_name(f"{1:013}-{'0' * 12}.jsonl")
    other.write_bytes(line + b"\n" + mine + line)  # and one that ends in a crash
    assert [asked.where for asked in recorded(table.state.location)] == ["x = 1"] * 2


def test_other_names_are_no_segments(table: sx.Table) -> None:
    add(table)
    queries.flush()
    (segment,) = segments(Path(table.folder, QUERIES))
    for name in ("notes.jsonl", f"{1:013}-{'g' * 12}.jsonl", "sub"):
        segment.with_name(name).write_bytes(segment.read_bytes())
    assert len(recorded(table.state.location)) == 1


def test_a_record_is_bounded_and_loses_the_oldest(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_BYTES", 4000)
    location = table.state.location
    every = []
    for i in range(30):
        journal = Journal(location, QUERIES)  # of a process each
        text = f"x = {i} AND s = '{'y' * 400}'"
        journal.write([{**GOOD, "where": text, "table": uri_of(location)}])
        time.sleep(0.002)  # segments are in the order of their names
        every.append(text)
        size = sum(
            path.stat().st_size for path in segments(Path(table.folder, QUERIES))
        )
        assert size <= 4000
    left = {asked.where for asked in recorded(location)}
    assert left == set(every[-len(left) :])


def test_a_process_begins_another_segment(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_MAX_SEGMENT", 1000)
    for i in range(40):
        add(table, f"x = {i}")
        if i % 7 == 0:
            queries.flush()
    queries.flush()
    files = segments(Path(table.folder, QUERIES))
    assert len(files) > 3
    assert all(path.stat().st_size <= 1000 for path in files)
    assert len(recorded(table.state.location)) == 40


def test_a_long_condition_is_not_recorded(table: sx.Table) -> None:
    add(table, f"x IN ({', '.join(map(str, range(2000)))})")
    queries.flush()
    assert recorded(table.state.location) == []


def test_recording_makes_no_request(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(
        queries.Journal, "write", lambda *_: calls.append("write"), raising=True
    )
    # A hundred plans may take longer than the seconds after which a thread writes.
    writer = queries._Writer()
    monkeypatch.setattr(writer, "_thread", threading.current_thread())
    monkeypatch.setattr(queries, "_WRITER", writer)
    api.record_queries()
    before = os.listdir(table.folder)  # noqa: PTH208
    for _ in range(100):
        table.plan("x = 3")
    assert calls == []
    assert os.listdir(table.folder) == before  # noqa: PTH208
    writer.flush()
    assert calls == ["write"]


def test_memory_is_bounded(table: sx.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = queries._Writer()
    monkeypatch.setattr(writer, "_thread", threading.current_thread())
    monkeypatch.setattr(queries, "_WRITER", writer)
    for _ in range(10_500):
        add(table)
    assert len(writer._waiting) == 10_000


def test_purge_deletes_what_was_asked(table: sx.Table) -> None:
    add(table, "s = 'secret'")
    queries.flush()
    assert table.verify().ok
    assert table.verify().orphans == ()
    table.vacuum()
    assert recorded(table.state.location)
    table.vacuum(purge=True)
    assert recorded(table.state.location) == []
    add(table, "s = 'later'")
    queries.flush()
    left = [asked.where for asked in recorded(table.state.location)]
    assert left == ["s = 'later'"], "a process does not write purged queries again"


def test_removal_deletes_the_record(table: sx.Table) -> None:
    add(table)
    queries.flush()
    table.remove_indexes()
    assert not Path(table.folder, "_skipindex").exists()


def test_a_sidecar_has_the_record(tmp_path: Path) -> None:
    put_all(tmp_path / "t", FILES)
    table = sx.open_table(tmp_path / "t", sidecar=tmp_path / "side")
    table = table.build_indexes({"x": "bitmap"}, workers=1).table
    api.record_queries()
    table.plan("x = 3")
    queries.flush()
    assert len(recorded(table.state.location)) == 1
    assert not (tmp_path / "t" / "_skipindex").exists()


def test_advice_and_builds_take_the_record(table: sx.Table) -> None:
    for _ in range(3):
        add(table, "x = 3")
    add(table, "s RLIKE 'a+'")
    add(table, "nothing = 1")
    add(table, "not a condition (")
    queries.flush()
    advice = table.advise(queries="log", max_bytes_ratio=100)
    assert {query.text for query in advice.queries} >= {"x = 3"}
    assert "not a condition" not in str(advice.queries)
    report: Any = table.build_indexes(queries="log", max_bytes_ratio=100, workers=1)
    wish = report.table.state.snapshot.properties.choice["wish"]
    assert "x = 3" in wish["queries"]
    assert wish["timezone"] == "UTC"


def test_a_record_without_queries_says_what_to_do(table: sx.Table) -> None:
    with pytest.raises(AdviceError, match=r"is recorded .*record_queries"):
        table.advise(queries="log")
    with pytest.raises(AdviceError, match="is recorded"):
        table.build_indexes(queries="log")


def test_a_list_that_has_the_word_is_a_condition(table: sx.Table) -> None:
    with pytest.raises(AdviceError, match="'log' ignored"):
        table.advise(queries=["log"])


def test_a_workload_has_the_weights_of_the_record(table: sx.Table) -> None:
    for where in ("x = 3", "x = 4", "x = 3"):
        add(table, where)
    queries.flush()
    workload = sx.Workload("log", method="answers").recorded(table.state.location)
    assert workload.queries == ("x = 3", "x = 4")
    assert (workload.weights, workload.method) == ((2.0, 1.0), "answers")
    assert workload.timezone == "UTC"
    with pytest.raises(LayoutError, match="list of conditions"):
        sx.Workload("x = 3")
    with pytest.raises(LayoutError, match="weights"):
        sx.Workload("log", weights=[1])


def test_drift_is_between_0_and_1() -> None:
    now = {"x = 1": 1, "x = 2": 1, "s = 'a'": 2.0}
    assert drift(now, {"x = 3": 5, "s = 'b'": 5}) == 0
    assert drift(now, {"x = 7": 1}) == 0.5
    assert drift(now, {"y = 7": 1}) == 1
    assert drift(now, {}) == 1
    assert drift({}, now) == 0


def test_since_leaves_out_older_queries(table: sx.Table) -> None:
    add(table)
    queries.flush()
    location = table.state.location
    assert RecordedQueries.of(location, since=time.time() - 60).n_queries == 1
    assert RecordedQueries.of(location, since=time.time() + 60).n_queries == 0


def test_a_place_is_a_text() -> None:
    with pytest.raises(TableError, match="not a place for queries"):
        api.record_queries(7)  # type: ignore[arg-type]


def test_names_of_a_shape(table: sx.Table) -> None:
    assert set(names_in(table.state, "s = ? AND x IN (?)")) == {"s", "x"}


def test_an_empty_record_is_no_error(tmp_path: Path) -> None:
    put(tmp_path / "t" / "0.parquet", {"x": [1]})
    assert recorded(location_of(tmp_path / "t"), "log:/nowhere/at/all") == []


def test_a_copy_of_a_table_has_its_record(table: sx.Table, tmp_path: Path) -> None:
    add(table)
    queries.flush()
    copy = shutil.copytree(table.folder, tmp_path / "copy")
    (asked,) = recorded(location_of(copy))
    assert asked.where == "x = 1"
    assert recorded(location_of(copy), f"log:{Path(table.folder, QUERIES)}") == []


def test_a_sample_of_queries_is_not_of_the_oldest_alone(table: sx.Table) -> None:
    for i in range(60):
        add(table, f"x = {i}")
    for i in range(60):
        add(table, f"s = '{i}'")
    queries.flush()
    weights = RecordedQueries.of(table.state.location).weights
    assert len(weights) == 40
    assert sum(weights.values()) == 120
    assert sum(where.startswith("s") for where in weights) > 10
