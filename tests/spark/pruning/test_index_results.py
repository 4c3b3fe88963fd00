"""The results that the driver gets of indexes, without a driver."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.spark.pruning import answers
from skipindex.spark.pruning.answers import array_of
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.storage.file_system.location import location_of
from skipindex.table import open_state
from tests.spark.pruning.questions import (
    CLASSES,
    Reply,
    asked,
    attribute,
    equal,
    put,
)

FILES = [f"month={i % 2 + 1}/{i}.parquet" for i in (0, 2, 1, 3)]


def named(name: str, metadata: str = "{}") -> str:
    return json.dumps([attribute(name, metadata)])


def wanted(*functions: str, group: str | None = None) -> dict[str, Any]:
    """``count``, or ``min id``; or groups by a column."""
    listed = []
    for function in functions:
        name, _, column = function.partition(" ")
        listed.append({"name": name, "column": named(column) if column else None})
    by = None if group is None else named(group)
    return {"answer": {"group": by, "functions": listed}}


ALL = wanted("count", "min id", "max id", "count id")


def test_results_over_all_files(planner: QueryPlanner, table: Path) -> None:
    assert asked(planner, table, more=ALL) == Reply(FILES, "40\t0\t39\t40\n")
    assert asked(planner, table, equal("id", 15), more=ALL) == Reply(
        FILES, "1\t15\t15\t1\n"
    )
    assert asked(planner, table, equal("id", 99), more=ALL) == Reply(
        FILES, "0\t\t\t0\n"
    )
    assert planner.records[-1].answered == "count(*), min(id), max(id), count(id)"


def test_groups(planner: QueryPlanner, table: Path) -> None:
    reply = asked(planner, table, more=wanted("count", group="month"))
    assert reply == Reply(FILES, "1\t20\n2\t20\n")
    reply = asked(planner, table, equal("id", 15), more=wanted(group="month"))
    assert reply == Reply(FILES, "2\n")
    assert planner.records[-1].answered == "groups by month"


def test_files_that_spark_does_not_list_do_not_count(
    planner: QueryPlanner, table: Path
) -> None:
    for more, results in (
        (ALL, "20\t10\t29\t20\n"),
        (wanted("count", group="month"), "1\t10\n2\t10\n"),
    ):
        reply = asked(planner, table, more=more, unlisted=[FILES[0], FILES[3]])
        assert reply == Reply(FILES[1:3], results)


def test_a_replaced_file_does_not_count(planner: QueryPlanner, table: Path) -> None:
    asked(planner, table)
    put(table / FILES[1], 100)
    for more, results in (
        (ALL, "30\t0\t39\t30\n"),
        (wanted("count", group="month"), "1\t10\n2\t20\n"),
    ):
        reply = asked(planner, table, more=more)
        assert reply == Reply([FILES[0], *FILES[2:]], results)


def test_a_new_file_does_not_count(planner: QueryPlanner, table: Path) -> None:
    put(table / "month=1" / "4.parquet", 100)
    assert asked(planner, table, more=ALL) == Reply(FILES, "40\t0\t39\t40\n")


@pytest.mark.parametrize(
    "scan",
    [
        {"is_catalog_table": True},  # the catalog may say that month=1 holds month 2
        {"partitions": (), "data": ("id", "month")},
    ],
)
def test_a_partition_column_that_spark_has_from_elsewhere_is_left_to_it(
    planner: QueryPlanner, table: Path, scan: Mapping[str, Any]
) -> None:
    more: Sequence[Any] = (wanted("max month"), wanted("count", group="month"))
    for one in (*more, wanted("count month")):
        assert asked(planner, table, more=one, **scan) is None
    assert asked(planner, table, equal("month", 1), more=ALL, **scan) is None


def test_columns_that_are_read_otherwise_are_left_to_spark(
    planner: QueryPlanner, table: Path
) -> None:
    column = named("id", json.dumps({"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}))
    for name in ("count", "min", "max"):
        functions = [{"name": name, "column": column}]
        more = {"answer": {"group": None, "functions": functions}}
        assert asked(planner, table, more=more) is None
    more = {"answer": {"group": column, "functions": []}}
    assert asked(planner, table, more=more) is None


def test_a_condition_that_only_spark_can_judge(
    planner: QueryPlanner, table: Path
) -> None:
    opaque = {"c": f"{CLASSES}.Rand", "t": "boolean"}
    assert asked(planner, table, opaque, more=ALL) is None
    assert planner.records == type(planner.records)()


def test_many_groups_are_left_to_spark(
    planner: QueryPlanner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = wanted("count", group="id")
    reply = asked(planner, table, more=more)
    assert reply is not None
    assert len(reply.results.splitlines()) == 40
    monkeypatch.setattr(answers, "MAX_ROWS", 39)
    assert asked(planner, table, more=more) is None


def test_a_column_whose_values_are_not_counted_is_left_to_spark(
    planner: QueryPlanner, tmp_path: Path
) -> None:
    """The rows are known by an index; of the other column, that some are NULL."""
    table = tmp_path / "counted"
    table.mkdir()
    ids = pa.array(range(10), pa.int64())
    months = pa.array([None, *range(1, 10)], pa.int32())
    pq.write_table(pa.table({"id": ids, "month": months}), table / "0.parquet")
    sx.build_indexes(table, {"id": "bitmap", "month": "minmax"}, workers=1)
    scan: Mapping[str, Any] = {"partitions": (), "data": ("id", "month")}
    condition = equal("id", 5)
    reply = asked(planner, table, condition, more=wanted("count"), **scan)
    assert reply == Reply(["0.parquet"], "1\n")
    more = wanted("count month")
    assert asked(planner, table, condition, more=more, **scan) is None


def test_files_without_a_match_are_no_answer(
    planner: QueryPlanner, table: Path
) -> None:
    """They are not read anyway; the file without an index has to be."""
    put(table / FILES[1], 10)
    assert asked(planner, table, equal("id", 99), more=ALL) is None


def test_so_many_rows(planner: QueryPlanner, table: Path) -> None:
    def are_there(n: int, *conjuncts: Any, unlisted: Sequence[str] = ()) -> bool:
        more = {"answer": {"rows": n}}
        return (
            asked(planner, table, *conjuncts, more=more, unlisted=unlisted) is not None
        )

    assert are_there(1, equal("id", 15))
    assert planner.records[-1].answered == "1 rows"
    assert not are_there(1, equal("id", 99))
    assert not are_there(2, equal("id", 15))
    assert not are_there(1, equal("id", 15), unlisted=["month=2/1.parquet"])
    assert are_there(40)
    assert not are_there(41)
    put(table / "month=2" / "1.parquet", 80)
    assert not are_there(1, equal("id", 15))


def test_values_that_some_files_lack(planner: QueryPlanner, tmp_path: Path) -> None:
    table = tmp_path / "n"
    for i, values in enumerate(([1, None, 3], [None, None], [5, 5])):
        path = table / f"month={i}" / "0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array(values, pa.int64())}), path)
    sx.build_indexes(table, {"id": "bitmap"}, workers=1)
    reply = asked(planner, table, more=ALL)
    assert reply is not None
    assert reply.results == "7\t1\t5\t4\n"
    reply = asked(planner, table, more=wanted("count", group="id"))
    assert reply is not None
    assert sorted(reply.results.splitlines()) == ["\t3", "1\t1", "3\t1", "5\t2"]


def test_a_column_without_an_index(planner: QueryPlanner, tmp_path: Path) -> None:
    """It has statistics, which tell the number of NULLs, and no rows apart."""
    path = tmp_path / "c" / "month=1" / "0.parquet"
    path.parent.mkdir(parents=True)
    numbers = pa.array([1, None], pa.int64())
    pq.write_table(pa.table({"id": numbers, "plain": numbers}), path)
    sx.build_indexes(tmp_path / "c", {"id": "bitmap"}, workers=1)
    scan = {"data": ("id", "plain")}
    reply = asked(planner, tmp_path / "c", more=wanted("count plain"), **scan)
    assert reply is not None
    assert reply.results == "1\n"
    more = wanted("count plain", group="plain")
    assert asked(planner, tmp_path / "c", more=more, **scan) is None
    assert asked(planner, tmp_path / "c", more=wanted("max plain"), **scan) is not None
    more = wanted("max plain")
    assert asked(planner, tmp_path / "c", equal("id", 1), more=more, **scan) is None


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pa.string(), [None, "", "\t\n\U0001f600"]),
        (pa.int64(), [-(1 << 63), (1 << 63) - 1]),
        (pa.int8(), [-128, None]),
        (pa.bool_(), [True, None, False]),
        (pa.decimal128(38, 3), [Decimal(-(10**34)), Decimal("0.001"), None]),
        (pa.decimal128(9, 2), [Decimal("-1.25")]),
        (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
        (pa.timestamp("us", "UTC"), [datetime(1969, 1, 1, tzinfo=UTC), None]),
        (pa.timestamp("us"), [datetime(2038, 1, 1, 0, 0, 0, 1)]),
    ],
    ids=str,
)
def test_values_in_the_type_of_their_column(
    tmp_path: Path, dtype: pa.DataType, values: Sequence[Any]
) -> None:
    expected = pa.array(values, dtype)
    pq.write_table(pa.table({"c": expected}), tmp_path / "0.parquet")
    state = open_state(location_of(tmp_path))
    column = state.resolve("c")
    assert column.domain is not None
    keys = column.domain.encode(expected).to_pylist()
    found = array_of(keys, state, column)
    assert (found.type, found) == (dtype, expected)


def test_a_text_that_is_no_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": ["a"]}), tmp_path / "0.parquet")
    state = open_state(location_of(tmp_path))
    found = array_of([b"\xff", None], state, state.resolve("c"))
    assert found.view(pa.binary()).to_pylist() == [b"\xff", None]
