"""The planner without a driver: which files, results and rows it answers with."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

import skipindex as sx
from skipindex.source import AtVersion, DataFile
from skipindex.spark.pruning import answers, few_rows, query_planner
from skipindex.spark.pruning.answers import array_of
from skipindex.spark.pruning.partitions import Choice, Values, choice, nulls_first
from skipindex.spark.pruning.protocol import ROW_GROUPS
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.tables import ScannedTable, Tables, scanned_location
from skipindex.spark.pruning.verdicts import ENOUGH
from skipindex.storage.file_system.location import location_of
from skipindex.table import open_state
from tests.iceberg.catalogs import sql_catalog
from tests.iceberg.test_iceberg import add_file
from tests.spark.pruning.questions import (
    CLASSES,
    Reply,
    asked,
    attribute,
    equal,
    put,
    skipped,
)
from tests.spark.pruning.sides import asks, side
from tests.tables import build, put_all
from tests.tables import put as put_columns

LEGACY = {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}


OTHERS_OF_15 = ["month=1/0.parquet", "month=1/2.parquet", "month=2/3.parquet"]


def test_files_without_a_match_are_ruled_out(
    planner: QueryPlanner, table: Path
) -> None:
    assert skipped(planner, table, equal("id", 15)) == OTHERS_OF_15
    record = planner.records[-1]
    assert (record.n_files, record.n_skipped, record.problem) == (4, 3, "")


def test_a_replaced_file_is_not_ruled_out(planner: QueryPlanner, table: Path) -> None:
    """It may hold anything now, whatever its former content was."""
    skipped(planner, table, equal("id", 15))
    put(table / "month=1/2.parquet", 10)
    assert skipped(planner, table, equal("id", 15)) == [
        path for path in OTHERS_OF_15 if "2.parquet" not in path
    ]


def test_a_commit_counts_at_once(planner: QueryPlanner, table: Path) -> None:
    put(table / "month=1/4.parquet", 40)
    assert skipped(planner, table, equal("id", 15)) == OTHERS_OF_15
    sx.build_indexes(table, {"id": "bitmap"}, workers=1)
    assert "month=1/4.parquet" in skipped(planner, table, equal("id", 15))


def test_a_listing_that_began_while_a_question_waited_to_be_asked_is_its_own(
    planner: QueryPlanner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[None] = []
    current = Tables.current

    def counted(tables: Tables, *given: Any) -> ScannedTable:
        looked.append(None)
        return current(tables, *given)

    monkeypatch.setattr(Tables, "current", counted)
    for age, n_looks in ((0, 1), (0, 2), (30, 2), (0, 3)):
        assert len(skipped(planner, table, equal("id", 15), age=age)) == 3
        assert len(looked) == n_looks


def test_a_partition_column_of_the_folders_counts(
    planner: QueryPlanner, table: Path
) -> None:
    assert len(skipped(planner, table, equal("month", 1))) == 2


@pytest.mark.parametrize(
    "scan",
    [
        {"is_catalog_table": True},  # the catalog may say that month=1 holds month 2
        {"partitions": ()},  # of one folder: the files may have a column of the name
        {"partitions": (), "data": ("id", "month")},
    ],
)
def test_a_partition_column_that_spark_has_from_elsewhere_is_left_to_it(
    planner: QueryPlanner, table: Path, scan: Mapping[str, Any]
) -> None:
    assert skipped(planner, table, equal("month", 1), **scan) == []
    assert len(skipped(planner, table, equal("id", 15), **scan)) == 3


def test_names_are_those_of_the_scan(planner: QueryPlanner, table: Path) -> None:
    """Where capitals count, the files have no column ``ID``."""
    asked = {"data": ("ID",)}
    assert skipped(planner, table, equal("ID", 15), **asked) == OTHERS_OF_15
    exact = {"spark.sql.caseSensitive": "True"}
    found = skipped(planner, table, equal("ID", 15), **asked, settings=exact)
    assert found != OTHERS_OF_15, "values of another column"


@pytest.mark.parametrize(
    "scan",
    [
        {"settings": LEGACY},
        {"reader": LEGACY},
        {"options": {"int96rebasemode": "LEGACY"}},
    ],
)
def test_other_values_than_those_of_the_index_are_not_judged(
    planner: QueryPlanner, table: Path, scan: Mapping[str, Any]
) -> None:
    assert skipped(planner, table, equal("id", 15), **scan) == []
    assert "LEGACY" in planner.records[-1].problem


def test_names_that_are_read_otherwise_than_asked_are_not_judged(
    planner: QueryPlanner, table: Path
) -> None:
    reader = {"spark.sql.caseSensitive": "true"}
    assert skipped(planner, table, equal("id", 15), reader=reader) == []
    assert "caseSensitive" in planner.records[-1].problem
    alike = {"spark.sql.session.timeZone": "UTC", "skipindex.timeLimit": "9"}
    assert skipped(planner, table, equal("id", 15), reader=alike) == OTHERS_OF_15


def test_keys_of_a_join_are_conditions_too(planner: QueryPlanner, table: Path) -> None:
    assert skipped(planner, table, keys=[["id", [15, 16]]]) == OTHERS_OF_15
    assert len(skipped(planner, table, keys=[["id", []]])) == 4
    assert skipped(planner, table, equal("id", 15), keys=[["id", [3, 15]]]) == (
        OTHERS_OF_15
    )
    assert len(skipped(planner, table, equal("id", 15), keys=[["id", [3]]])) == 4
    assert skipped(planner, table, keys=[["unknown", [3]]]) == []


def test_the_keys_of_a_dimension_as_it_is_now(
    planner: QueryPlanner, table: Path, tmp_path: Path
) -> None:
    """It changes within a millisecond, so that the question stays the same."""
    path = put_columns(tmp_path / "d/0.parquet", {"k": [3, 15], "a": ["x", "y"]})
    is_y = asks("EqualTo", "a", "string", "y")
    keys = [["id", side(path.parent, {"k": "long", "a": "string"}, is_y)]]
    for _ in range(2):
        assert skipped(planner, table, keys=keys) == OTHERS_OF_15
    assert planner.records[-1].dimensions[0].n_keys == 1
    then = path.stat().st_mtime_ns
    put_columns(path, {"k": [15, 3], "a": ["x", "y"]})
    os.utime(path, ns=(then, then // 1_000_000 * 1_000_000 + (then % 1_000_000 == 0)))
    found = skipped(planner, table, keys=keys)
    assert len(found) == 3
    assert "month=1/0.parquet" not in found


def test_equal_keys_of_another_column_are_another_question(
    planner: QueryPlanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query may get the keys of one dimension alone, as the other one is late."""
    put_all(tmp_path / "t", [{"id": [i], "plain": [2 - i]} for i in range(3)])
    build(tmp_path / "t", {"*": "bitmap"})
    path = put_columns(tmp_path / "d/0.parquet", {"k": [2], "a": ["y"]})
    is_y = asks("EqualTo", "a", "string", "y")
    dimension = side(path.parent, {"k": "long", "a": "string"}, is_y)
    keys = [["id", dimension], ["plain", dimension]]
    more = {"data": ("id", "plain"), "partitions": (), "keys": keys}
    read = planner._dimensions.keys
    for number, name in enumerate(("2.parquet", "0.parquet")):

        def some(joins: Any, session: Any, number: int = number) -> Any:
            every = read(joins, session)
            return [
                (told, keys if i == number else None)
                for i, (told, keys) in enumerate(every)
            ]

        monkeypatch.setattr(planner._dimensions, "keys", some)
        found = skipped(planner, tmp_path / "t", **more)
        assert set(found) == {f"{i}.parquet" for i in range(3)} - {name}


def test_a_column_without_an_index_needs_no_keys(
    planner: QueryPlanner, tmp_path: Path
) -> None:
    """All files span the same keys."""
    numbers = {"id": [0, 39], "plain": [0, 39]}
    put_all(tmp_path / "t", [numbers] * 3)
    build(tmp_path / "t", {"*": "minmax"})
    path = put_columns(tmp_path / "d/0.parquet", {"k": [50], "a": ["y"]})
    is_y = asks("EqualTo", "a", "string", "y")
    keys = [["id", side(path.parent, {"k": "long", "a": "string"}, is_y)]]
    more = {"data": ("id", "plain"), "partitions": (), "keys": keys}
    assert skipped(planner, tmp_path / "t", **more) == []
    assert planner.records[-1].dimensions == ()
    put_all(tmp_path / "t", [{"id": [i, i], "plain": [0, 1]} for i in (1, 50, 3)])
    build(tmp_path / "t", {"*": "minmax"})
    assert len(skipped(planner, tmp_path / "t", **more)) == 2


def test_a_long_list_is_a_condition(planner: QueryPlanner, table: Path) -> None:
    asked = equal("id", 15)
    column, _ = asked["a"]
    values = [15, None, *range(1000, 10_000)]
    listed = {"c": f"{CLASSES}.InSet", "t": "boolean", "a": [column], "v": values}
    assert skipped(planner, table, listed) == OTHERS_OF_15
    assert planner.records[-1].condition.endswith("id IN (9001 keys)")


def first_rows(n: int, metadata: str = "{}") -> dict[str, Any]:
    column = json.dumps([attribute("id", metadata)])
    order = {"column": column, "direction": "DESC", "nulls": "NULLS LAST"}
    return {"first": {"n": n, "order": order}}


ANY_TEN = {"first": {"n": 10, "order": None}}


def test_files_after_the_first_rows_are_ruled_out(
    planner: QueryPlanner, table: Path
) -> None:
    """The greatest numbers are in ``month=2/3.parquet``."""
    assert skipped(planner, table, more=first_rows(10)) == [
        *("month=1/0.parquet", "month=1/2.parquet", "month=2/1.parquet")
    ]
    assert len(skipped(planner, table, more=first_rows(11))) == 2
    assert len(skipped(planner, table, more=ANY_TEN)) == 3
    assert len(skipped(planner, table, equal("id", 15), more=first_rows(1))) == 3
    assert planner.records[-1].condition.endswith("ORDER BY id DESC NULLS LAST LIMIT 1")


def test_enough_of_any_rows_need_no_file_that_is_not_known(
    planner: QueryPlanner, table: Path
) -> None:
    def results(**more: Any) -> str:
        reply = asked(planner, table, **more)
        return "" if reply is None else reply.results

    assert results(more=ANY_TEN) == ENOUGH.decode()
    assert results(more={"first": {"n": 41, "order": None}}) == ""
    assert results(more=first_rows(10)) == ""
    assert results(more=ANY_TEN, unlisted=OTHERS_OF_15) == ENOUGH.decode()
    eleven = {"first": {"n": 11, "order": None}}
    assert results(more=eleven, unlisted=OTHERS_OF_15) == ""


@pytest.mark.parametrize("asked", [first_rows(10), ANY_TEN])
def test_rows_count_of_files_that_spark_lists_alone(
    planner: QueryPlanner, table: Path, asked: Mapping[str, Any]
) -> None:
    unlisted = ["month=2/3.parquet", "month=1/0.parquet"]
    found = skipped(planner, table, more=asked, unlisted=unlisted)
    listed = {"month=1/2.parquet", "month=2/1.parquet"}
    assert len(listed - set(found)) == 1


def test_rows_of_a_replaced_file_do_not_count(
    planner: QueryPlanner, table: Path
) -> None:
    skipped(planner, table)
    put(table / "month=2/3.parquet", 0)
    state = planner.tables.current(scanned_location("file", None, str(table))).state
    assert state.paths[-1] == "month=2/3.parquet"
    found = skipped(planner, table, more=first_rows(10))
    assert found == ["month=1/0.parquet", "month=2/1.parquet"]


def test_an_order_of_other_values_than_those_of_the_files_is_left_to_spark(
    planner: QueryPlanner, table: Path
) -> None:
    padded = json.dumps({"__CHAR_VARCHAR_TYPE_STRING": "char(5)"})
    asked = first_rows(10, padded)
    assert skipped(planner, table, more=asked) == []
    assert planner.records[-1].problem == ""


def test_rows_that_only_spark_can_judge_do_not_count(
    planner: QueryPlanner, table: Path
) -> None:
    opaque = {"c": f"{CLASSES}.Rand", "t": "boolean"}
    assert skipped(planner, table, opaque, more=first_rows(10)) == []


def test_what_cannot_be_answered_rules_out_nothing(
    planner: QueryPlanner, table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        assert skipped(planner, table / "nowhere", equal("id", 15)) == []
    assert "TableError" in planner.records[-1].problem
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("scheme", "authority", "path", "full"),
    [
        (None, None, "/a b/t", "/a b/t"),
        ("file", None, "/a%20b/t", "/a%20b/t"),
        ("file", "", "/ü/t", "/ü/t"),
    ],
)
def test_folders_as_spark_spells_them(
    scheme: str | None, authority: str | None, path: str, full: str
) -> None:
    assert scanned_location(scheme, authority, path).full("") == full


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
def test_results_by_a_partition_column_from_elsewhere_are_left_to_spark(
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


COLUMNS = ("id", "plain")


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return sql_catalog(tmp_path)


def rows_iceberg(low: int) -> pa.Table:
    return pa.table({"id": range(low, low + 10), "plain": range(low + 50, low + 60)})


@pytest.fixture
def ice(catalog: SqlCatalog) -> Table:
    """Three files, ``id`` from 0 to 29 and ``plain`` from 50 to 79."""
    table = catalog.create_table("db.t", schema=rows_iceberg(0).schema)
    for low in (0, 10, 20):
        table.append(rows_iceberg(low))
    sx.open_table(table).build_indexes({"id": "exact", "plain": "exact"}, workers=1)
    return table


def folder(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def read(table: Table, **others: Any) -> dict[str, Any]:
    """What the driver says of a scan of the current snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    names = {str(field.field_id): field.name for field in table.schema().fields}
    return {
        "metadata": table.metadata_location,
        "snapshot": snapshot.snapshot_id,
        "is_current": True,
        "names": names,
    } | others


def n_skipped(planner: QueryPlanner, table: Table, *given: Any, **read_as: Any) -> int:
    """How many files need not be read under a condition."""
    files = skipped(
        planner, folder(table), equal(*given),
        data=COLUMNS, partitions=(), iceberg=read(table, **read_as),
    )  # fmt: skip
    return len(files)


def test_files_without_a_match_are_skipped(planner: QueryPlanner, ice: Table) -> None:
    assert n_skipped(planner, ice, "id", 15) == 2
    assert n_skipped(planner, ice, "plain", 15) == 3
    assert planner.records[-1].problem == ""


def test_columns_are_those_that_the_driver_reads(
    planner: QueryPlanner, ice: Table
) -> None:
    """It may have read the schema before another process changed it."""
    one, other = read(ice)["names"]
    swapped = {one: "plain", other: "id"}
    assert n_skipped(planner, ice, "id", 55, names=swapped) == 0
    assert n_skipped(planner, ice, "id", 15, names={}) == 0
    assert n_skipped(planner, ice, "id", 15, names={one: "id"}) == 2


def test_columns_have_the_types_that_the_driver_reads(
    planner: QueryPlanner, catalog: SqlCatalog
) -> None:
    small = pa.table({"id": pa.array([3], pa.int32()), "plain": [4]})
    table = catalog.create_table("db.t", schema=small.schema)
    table.append(small)
    sx.open_table(table).build_indexes({"id": "exact"}, workers=1)
    assert n_skipped(planner, table, "id", 7) == 0
    with table.update_schema() as update:
        update.update_column("id", LongType())
    assert n_skipped(planner, table, "id", 7) == 1


def test_the_snapshot_is_that_of_the_driver(planner: QueryPlanner, ice: Table) -> None:
    first = ice.history()[0].snapshot_id
    assert n_skipped(planner, ice, "id", 5, snapshot=first, is_current=False) == 0
    assert n_skipped(planner, ice, "id", 15, snapshot=first, is_current=False) == 1
    assert n_skipped(planner, ice, "id", 15) == 2
    assert n_skipped(planner, ice, "id", 15, snapshot=first) == 0
    assert f"snapshot {first}" in planner.records[-1].problem


def test_newer_metadata_are_read_anew(planner: QueryPlanner, ice: Table) -> None:
    assert n_skipped(planner, ice, "id", 15) == 2
    ice.append(rows_iceberg(30))
    assert n_skipped(planner, ice, "id", 35) == 3
    sx.open_table(ice).refresh_indexes(workers=1)
    assert n_skipped(planner, ice, "id", 15) == 3


def test_values_of_partitions_in_files_without_the_column(
    planner: QueryPlanner, catalog: SqlCatalog
) -> None:
    table = catalog.create_table("db.t", schema=rows_iceberg(0).schema)
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "by")
    uri = f"{table.location()}/data/added.parquet"
    path = Path(uri.removeprefix("file://"))
    path.parent.mkdir(parents=True)
    field = pa.field("plain", pa.int64(), metadata={"PARQUET:field_id": "2"})
    pq.write_table(pa.table([[1]], schema=pa.schema([field])), path)
    add_file(table, uri, Record(7), record_count=1)
    sx.open_table(table).build_indexes({"id": "exact", "plain": "exact"}, workers=1)
    assert n_skipped(planner, table, "id", 7) == 0
    assert n_skipped(planner, table, "plain", 7) == 1


def test_a_table_that_cannot_be_opened_is_read(
    planner: QueryPlanner, ice: Table
) -> None:
    reply = asked(
        planner, folder(ice), equal("id", 5),
        data=COLUMNS, partitions=(),
        iceberg=read(ice, metadata=f"{folder(ice)}/metadata/none.metadata.json"),
    )  # fmt: skip
    assert reply is not None
    assert reply.files == []
    assert "pyiceberg cannot read" in planner.records[-1].problem


def test_a_registered_table_is_opened_as_it_was(
    planner: QueryPlanner, ice: Table
) -> None:
    """The properties of its files, such as keys of a store, are those of the caller."""
    given = sx.open_table(ice).state
    planner.tables.give(given)
    assert n_skipped(planner, ice, "id", 15) == 2
    at = AtVersion(None, ice.metadata_location)
    opened = planner.tables.current(given.location, at).state.options.version
    assert opened.properties == given.options.version.properties != ()


FIRST = date(2021, 11, 28)
KINDS = st.sampled_from(["string", "int", "bigint", "date"])


@given(
    data=st.data(),
    kinds=st.lists(KINDS, min_size=1, max_size=3),
)
def test_a_choice_is_of_the_very_partitions(
    data: st.DataObject, kinds: list[str]
) -> None:
    texts = {
        "string": st.sampled_from(
            [*"abcdefghijklm", "10", "é", "\U0001f600", "\uffff"]
        ),
        "date": st.dates().map(str),
    }
    value = [
        st.none() | texts.get(kind, st.integers(-30, 30).map(str)) for kind in kinds
    ]
    rows = data.draw(
        st.dictionaries(st.tuples(*value), st.booleans(), min_size=1, max_size=60)
    )
    found = choice(
        sorted(((*row, is_left) for row, is_left in rows.items()), key=nulls_first),
        kinds,
    )
    for row, is_left in rows.items():
        assert (found is None or chosen(found, row, kinds)) == is_left


def chosen(found: Choice, row: Sequence[str | None], kinds: Sequence[str]) -> bool:
    """Whether Spark finds a partition by a choice."""
    return any(
        has(values, row[0], kinds[0])
        and (not below or chosen(below, row[1:], kinds[1:]))
        for values, below in found
    )


def has(values: Values, value: str | None, kind: str) -> bool:
    if isinstance(values, list):
        return value in values
    order: Callable[[str], Any] = str.encode if kind == "string" else str
    order = int if kind in {"int", "bigint"} else order
    return value is not None and (
        order(values["first"]) <= order(value) <= order(values["last"])
    )


def test_many_days_are_a_range() -> None:
    days = [str(FIRST + timedelta(i)) for i in range(400)]
    rows = [(day, "2022-01-01" <= day < "2022-11-11") for day in days]
    assert choice(rows, ["date"]) == [
        ({"first": "2022-01-01", "last": "2022-11-10"}, [])
    ]
    numbers = [(None, True), *((f"{i}", i > -12) for i in range(-30, 31))]
    assert choice(numbers, ["int"]) == [
        ({"first": "-11", "last": "30"}, []),
        ([None], []),
    ]
    ((listed, _),) = choice([*numbers, ("1_0", True)], ["int"]) or []
    assert isinstance(listed, list), "a text that is no number"
