"""The answers that the driver gets, without a driver: what is asked is written here."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.tables import ScannedTable, Tables, scanned_location
from skipindex.spark.pruning.verdicts import ENOUGH
from tests.spark.pruning.questions import (
    CLASSES,
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
