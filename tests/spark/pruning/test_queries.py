"""Queries have the same rows with skipping, and cost what `queries/*.txt` say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skipindex.planner.plan import plan_files
from tests.conditions.functions.test_wall_clocks import shifted
from tests.heavy.mutants.catalogue import ONE_FILE_MORE
from tests.heavy.mutants.run import applied
from tests.spark.pruning.records import Record, quick, read, records
from tests.spark.versions import SPARK

pytestmark = pytest.mark.spark

RECORDS = records()
QUICK = quick(RECORDS)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(
            one,
            id=one.place,
            marks=() if one.place in QUICK else pytest.mark.slow,
        )
        for one in RECORDS
    ],
)
def test_a_query_costs_what_its_record_says(
    check: Callable[[Record], str], record: Record
) -> None:
    if record.since > SPARK:
        pytest.skip(f"Spark {record.since} is the first that takes it")
    if told := check(record):
        pytest.fail(told, pytrace=False)


IN_ONE = "world numbers\n\nSELECT id\nFROM t WHERE id = 77\n=> "
OF = "world numbers\n\nSELECT {} FROM t\n=> rows 2"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{IN_ONE}reads t 1 of 10\n=> rows 1", ""),
        (f"{IN_ONE}reads t 2 of 10", "'reads t 2 of 10', and it reads t 1 of 10"),
        (f"{IN_ONE}reads t 1 of 9", "'reads t 1 of 9', and it reads t 1 of 10"),
        (f"{IN_ONE}from indexes", "'from indexes', and it reads 1 of 10"),
        (f"{IN_ONE}planner reads", "'planner reads', and it has 1 scans"),
        (f"{IN_ONE}row groups 1 of 2", "'row groups 1 of 2', and it reads"),
        (f"{IN_ONE}fails X", "'fails X', and it has the error ''"),
        (f"{IN_ONE}tells no 1 of 10", "'tells no 1 of 10', and it does"),
        (OF.format("max(id)"), "'rows 2', and it has 1"),
        (OF.format("uuid()"), "200 rows for 200, lost ["),
        (OF.format("x"), "it is not understood: [UNRESOLVED_COLUMN"),
        (OF.format("raise_error(id)"), "it fails: "),
    ],
)
def test_what_differs_is_named(
    check: Callable[[Record], str], text: str, told: str
) -> None:
    (record,) = read(text, "a.txt")
    found = check(record)
    if told:
        assert found.startswith(f"a.txt:3: {told}")
        assert record.text in found
    else:
        assert found == ""


def test_a_file_that_is_wrongly_skipped_is_noticed(
    check: Callable[[Record], str],
) -> None:
    (record,) = read(f"{IN_ONE}rows 1", "a.txt")
    with applied(ONE_FILE_MORE):
        found = check(record)
    assert found.startswith("a.txt:3: 0 rows for 1, lost ['Row(id=77)'], added []")


@pytest.mark.parametrize(
    ("place", "n_hours"), [("to_date(t) >", 35), ("date_trunc", 13)]
)
def test_times_are_by_the_rules_of_the_driver(
    check: Callable[[Record], str],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    n_hours: int,
) -> None:
    """Whatever Python takes for the rules, and exactly the files with matches."""
    assert plan_files.__kwdefaults__ is not None
    monkeypatch.setitem(plan_files.__kwdefaults__, "offsets", shifted)
    (record,) = [one for one in RECORDS if f"hours WHERE {place}" in one.text]
    assert record.costs == [f"reads hours {n_hours} of 48", f"rows {n_hours}"]
    if told := check(record):
        pytest.fail(told, pytrace=False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT 1\n=> rows 1", r"a.txt:1: 'SELECT 1' \(a file begins"),
        (f"{IN_ONE}reads nothing", r"a.txt:5: '=> reads nothing' \(accepted: reads"),
        (f"{IN_ONE}costs 3", "a.txt:5: '=> costs 3'"),
        (f"{IN_ONE}rows 1\nLIMIT 3", "a.txt:6: 'LIMIT 3' after what"),
        ("world numbers\n\nSELECT 1;\n", "a.txt:3: no query, or no cost of it"),
        ("world numbers\n\n=> rows 1", "a.txt:3: no query, or no cost of it"),
        (
            "world numbers\n\n-- Why.\nset a b",
            r"a.txt:4: 'set a b' \(accepted: set NAME",
        ),
    ],
)
def test_a_line_that_says_nothing_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        list(read(text, "a.txt"))


TEXT = """world star
set a = 1

-- Why.
set b = 2 = 3
SELECT 1;
SELECT
2;
=> rows 1

set c = 4

since 4.1
SELECT 3
=> rows 1
=> may fail
"""


def test_settings_hold_for_a_paragraph_or_until_the_next_without_queries() -> None:
    found = list(read(TEXT, "a.txt"))
    assert [(one.place, one.text) for one in found] == [
        ("a.txt:6", "SELECT 1"),
        ("a.txt:7", "SELECT\n2"),
        ("a.txt:14", "SELECT 3"),
    ]
    of_both = {"a": "1", "b": "2 = 3"}
    assert [one.settings for one in found] == [of_both, of_both, {"c": "4"}]
    assert [one.since for one in found] == [(), (), (4, 1)]
    assert [[*one.costs] for one in found] == [["rows 1"]] * 2 + [
        ["rows 1", "may fail"]
    ]


def test_each_kind_of_record_has_one_in_a_quick_run() -> None:
    assert {one.kind for one in RECORDS if one.place in QUICK} == {
        one.kind for one in RECORDS
    }
    assert len(QUICK) < len(RECORDS)
