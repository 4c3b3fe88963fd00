"""``Table`` has the names that are meant, and plans are asked for in three ways."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.storage.file_system.location import location_of
from skipindex.table import open_state
from tests.tables import put, put_all

NAMES = {
    # What it is.
    *("columns", "files", "folder", "indexes", "n_bytes", "notes", "paths", "schema"),
    "state",
    # What it is asked.
    *("advise", "layout_quality", "locate", "plan", "plan_files", "propose_derived"),
    "refresh",
    *("history", "status", "usage", "verify", "warm"),
    # What changes the stored table.
    *("build_indexes", "compact_indexes", "drop_indexes", "refresh_indexes"),
    *("declare_derived", "declare_exclusive", "declare_layout", "declare_retention"),
    *("optimize", "remove_indexes", "vacuum"),
}

ASKED = "x = 1"


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    put_all(tmp_path, [{"x": pa.array([1])}, {"x": pa.array([2])}])
    return sx.build_indexes(tmp_path, {"x": "bitmap"}, workers=1).table


def test_its_names_are_those_that_are_meant(table: sx.Table) -> None:
    for names in (dir(sx.Table), dir(table)):
        assert {name for name in names if not name.startswith("_")} == NAMES


def test_each_of_its_names_says_what_it_is() -> None:
    undocumented = [
        name
        for name in NAMES - {"state"}
        if not inspect.getdoc(inspect.getattr_static(sx.Table, name))
    ]
    assert undocumented == []


def test_it_is_a_frozen_value_with_one_field(table: sx.Table) -> None:
    with pytest.raises(FrozenInstanceError):
        table.state = table.state  # type: ignore[misc]
    assert not hasattr(table, "__dict__")
    assert table == sx.Table(table.state)
    assert table != table.refresh()
    assert len({table, sx.Table(table.state)}) == 1


def test_a_table_goes_to_other_processes(table: sx.Table) -> None:
    there = pickle.loads(pickle.dumps(table))
    assert there.plan(ASKED).paths == table.plan(ASKED).paths == ["0.parquet"]


def test_a_plan_takes_the_table_first_or_by_name(table: sx.Table) -> None:
    expected = table.plan(ASKED).paths
    for where in (table, table.folder, Path(table.folder), location_of(table.folder)):
        assert sx.plan_files(where, ASKED).paths == expected
        assert sx.plan_files(where, predicate=ASKED).paths == expected
        assert sx.plan_files(ASKED, table=where).paths == expected
        assert sx.plan_files(predicate=ASKED, table=where).paths == expected
    assert table.plan_files(ASKED).paths == expected
    assert table.plan_files(predicate=ASKED).paths == expected


def test_build_indexes_needs_no_more_than_a_table(tmp_path: Path) -> None:
    """What is worth its bytes is chosen."""
    put(tmp_path / "0.parquet", {"x": [1, 2]})
    for build in (
        lambda: sx.build_indexes(tmp_path),
        sx.open_table(tmp_path).build_indexes,
    ):
        report = build()
        assert report.table.plan_files("x = 3").paths == []


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ([], {}),
        ([], {"predicate": ASKED}),
        ([], {"table": "/t"}),
        (["/t"], {}),
        (["/t", ASKED], {"table": "/t"}),
        (["/t"], {"table": "/t", "predicate": ASKED}),
    ],
)
def test_a_plan_is_for_one_table_and_one_predicate(
    first: list[Any], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"one table and one predicate"):
        sx.plan_files(*first, **named)


def test_an_option_of_a_plan_that_there_is_not_is_named(table: sx.Table) -> None:
    options: Any = {"limits": 1}
    with pytest.raises(TypeError, match="limits"):
        sx.plan_files(table, ASKED, **options)


@pytest.mark.parametrize("call", [sx.open_table, sx.build_indexes])
@pytest.mark.parametrize("wrong", [42, None, ["/a", "/b"]])
def test_what_is_no_table_is_refused_in_a_sentence(call: Any, wrong: Any) -> None:
    with pytest.raises(
        sx.TableError, match=r"not a table: .*accepted: a Table, a path"
    ):
        call(wrong)


def test_the_state_of_a_table_is_no_table(table: sx.Table) -> None:
    state: Any = open_state(table.folder)
    with pytest.raises(sx.TableError, match="not a table"):
        sx.open_table(state)
