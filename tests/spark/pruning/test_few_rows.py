"""Rows that the planner reads, and ranges that tasks read, without a driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.spark.pruning import few_rows, query_planner
from skipindex.spark.pruning.protocol import ROW_GROUPS
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.table import DataFile
from tests.spark.pruning.questions import Reply, asked, equal, put

WANTED: Mapping[str, Any] = {"columns": ["id"], "bytes": 1000, "rows": 100}
NONE = Reply([], "")


def rows(
    planner: QueryPlanner, table: Path, *conjuncts: Mapping[str, Any], **wanted: Any
) -> Reply | None:
    """What the planner replies to a question for rows."""
    return asked(
        planner, table, *conjuncts, purpose="rows", wanted={**WANTED, **wanted}
    )


def test_rows_that_can_match_are_read(planner: QueryPlanner, table: Path) -> None:
    reply = rows(planner, table, equal("id", 15))
    assert reply is not None
    assert len(reply.files) == 3
    assert reply.rows == {"month=2/1.parquet": [{"id": 15}]}
    (plan,) = planner._asked.values()
    assert (plan.n_rows, plan.n_skipped) == (1, 3)
    assert plan.n_bytes > 0
    assert not planner.records  # the driver tells whether it takes them


def test_files_without_an_index_of_rows_are_read_whole(
    planner: QueryPlanner, table: Path
) -> None:
    reply = rows(planner, table, equal("month", 2))
    assert reply is not None
    assert reply.rows is not None
    read = {path: len(some) for path, some in reply.rows.items()}
    assert read == {"month=2/1.parquet": 10, "month=2/3.parquet": 10}


def test_no_column_is_wanted(planner: QueryPlanner, table: Path) -> None:
    reply = rows(planner, table, equal("id", -1), columns=[])
    assert reply == Reply(reply.files if reply else [], "", {})


@pytest.mark.parametrize(
    "limit", [{"rows": 19}, {"bytes": 1}, {"columns": ["none"]}], ids=str
)
def test_other_rows_are_left_to_spark(
    planner: QueryPlanner, table: Path, limit: Mapping[str, Any]
) -> None:
    assert rows(planner, table, equal("month", 2), **limit) == NONE


def test_many_files_are_left_to_spark(
    planner: QueryPlanner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "_FILES", 1)
    assert rows(planner, table, equal("month", 2)) == NONE


def test_new_files_are_left_to_spark(planner: QueryPlanner, table: Path) -> None:
    put(table / "month=1" / "new.parquet", 15)
    assert rows(planner, table, equal("id", 15)) == NONE


@pytest.mark.parametrize("changed", ["month=2/1.parquet", "month=1/0.parquet"])
def test_a_file_that_changes_meanwhile(
    planner: QueryPlanner,
    table: Path,
    changed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(*arguments: Any) -> Any:
        os.utime(table / changed, ns=(10**18, 10**18))
        return few_rows.few_rows(*arguments)

    monkeypatch.setattr(query_planner, "few_rows", late)
    assert rows(planner, table, equal("id", 15)) == NONE


def test_a_column_of_another_type_is_left_to_spark(
    planner: QueryPlanner, tmp_path: Path
) -> None:
    for name, dtype in (("same", pa.int64()), ("narrow", pa.int32())):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "0.parquet"
        pq.write_table(pa.table({"id": pa.array([1, 2], dtype)}), file)
        sx.build_indexes(tmp_path / name, {"id": "bitmap"}, workers=1)
    same = rows(planner, tmp_path / "same", equal("id", 2))
    assert same is not None
    assert same.rows == {"0.parquet": [{"id": 2}]}
    narrow = rows(planner, tmp_path / "narrow", equal("id", 2))
    assert narrow is None or narrow.rows is None


@pytest.fixture
def grouped(tmp_path: Path) -> Path:
    """Files of ten row groups of ten numbers each, two of which share one."""
    for i in range(3):
        numbers = [*range(100 * i, 100 * i + 99), 5]
        path = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table({"id": numbers}), path, row_group_size=10)
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    return tmp_path


def middles(path: Path) -> list[int]:
    """Where Spark takes row groups to be."""
    metadata = pq.ParquetFile(path).metadata
    chunks = [metadata.row_group(i).column(0) for i in range(metadata.num_row_groups)]
    begins = [c.dictionary_page_offset or c.data_page_offset for c in chunks]
    sizes = [c.total_compressed_size for c in chunks]
    return [begin + size // 2 for begin, size in zip(begins, sizes, strict=True)]


def ranges(
    planner: QueryPlanner, table: Path, value: int, **scan: Any
) -> Mapping[str, list[int]]:
    """The numbers of the row groups to read of files, where these are not all."""
    scan = {"takes_ranges": True, "partitions": ()} | scan
    reply = asked(planner, table, equal("id", value), **scan)
    found: dict[str, list[int]] = {}
    for name, places in (reply.ranges if reply else {}).items():
        pairs = [*zip(places[1::2], places[2::2], strict=True)]
        assert pairs == sorted(pairs)
        assert places[0] == len(middles(table / name))
        found[name] = [
            number
            for number, middle in enumerate(middles(table / name))
            for begin, end in pairs
            if begin <= middle < end
        ]
    return found


def test_row_groups_with_a_match_are_told(planner: QueryPlanner, grouped: Path) -> None:
    assert ranges(planner, grouped, 5) == {
        "0.parquet": [0, 9],
        "1.parquet": [9],
        "2.parquet": [9],
    }
    for value, name, group in [(0, "0", 0), (9, "0", 0), (10, "0", 1), (198, "1", 9)]:
        assert ranges(planner, grouped, value) == {f"{name}.parquet": [group]}
    assert ranges(planner, grouped, 99) == {}


@pytest.mark.parametrize(
    "scan",
    [
        {"takes_ranges": False},
        {"purpose": "estimate"},
        {"settings": {ROW_GROUPS: "false"}},
        {"more": {"first": {"n": 1, "order": None}}},
        {"more": {"answer": {"rows": 1, "functions": []}}},
    ],
    ids=str,
)
def test_no_row_groups_are_told(
    planner: QueryPlanner, grouped: Path, scan: Mapping[str, Any]
) -> None:
    assert ranges(planner, grouped, 5, **scan) == {}


def test_ranges_are_asked_for_again_when_spark_lists(
    planner: QueryPlanner, grouped: Path
) -> None:
    scan: Mapping[str, Any] = {"takes_ranges": True, "partitions": ()}
    assert asked(planner, grouped, equal("id", 5), purpose="ahead", **scan) == NONE


def test_a_changed_file_is_read_whole(planner: QueryPlanner, grouped: Path) -> None:
    assert len(ranges(planner, grouped, 5)) == 3
    os.utime(grouped / "1.parquet", ns=(10**18, 10**18))
    assert [*ranges(planner, grouped, 5)] == ["0.parquet", "2.parquet"]


def test_unknown_row_groups_are_read_whole(
    planner: QueryPlanner, grouped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [*range(99), 5]
    path = grouped / "1.parquet"
    pq.write_table(pa.table({"id": numbers}), path, row_group_size=10)
    monkeypatch.setattr(DataFile, "row_groups", lambda _: None)
    sx.build_indexes(grouped, {"id": "exact"}, workers=1)
    assert [*ranges(planner, grouped, 5)] == ["0.parquet", "2.parquet"]
