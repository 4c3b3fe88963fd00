"""Derived partitions: folders that were made of a column rule out its values."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.errors import PredicateError
from tests.tables import kept, put

HIDDEN = {"year": "year(ctime)", "month": "month(ctime)", "day": "day(ctime)"}
DAYS = [date(2021, 12, 11), date(2021, 12, 12), date(2022, 11, 29), date(2022, 11, 30)]
DAYS += [date(2022, 12, 1), date(2023, 1, 1)]


def folder_of(day: date) -> str:
    return f"year={day.year}/month={day.month:02}/day={day.day:02}"


@pytest.fixture
def logs(tmp_path: Path) -> sx.Table:
    """A file a day, of a timestamp that Spark stores as year, month and day."""
    for day in DAYS:
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        moments = [noon - timedelta(hours=12), noon, noon + timedelta(hours=11), None]
        columns = {
            "ctime": pa.array(moments, pa.timestamp("us", "UTC")),
            "other": pa.array([noon] * 4, pa.timestamp("us", "UTC")),
        }
        put(tmp_path / folder_of(day) / "f.parquet", columns)
    return sx.open_table(tmp_path).declare_derived(HIDDEN, timezone="UTC")


def days(table: sx.Table, condition: Any, **options: Any) -> list[date]:
    paths = kept(table, condition, **{"timezone": "UTC", **options})
    return [day for day in DAYS if f"{folder_of(day)}/f.parquet" in paths]


def test_check_20_a_greater_than_keeps_the_day_of_the_literal(logs: sx.Table) -> None:
    """``>`` widens to ``>=`` of the folder, although 'year/month' are inferred ints."""
    at = "'2022-11-30 12:00:00'"
    assert days(logs, f"ctime > {at}") == DAYS[3:]
    assert days(logs, f"ctime >= {at}") == DAYS[3:]
    assert days(logs, f"ctime < {at}") == DAYS[:4]
    assert days(logs, f"ctime <= {at}") == DAYS[:4]
    assert days(logs, f"ctime = TIMESTAMP {at}") == [DAYS[3]]
    assert days(logs, f"ctime <=> TIMESTAMP {at}") == [DAYS[3]]
    assert days(logs, "ctime < TIMESTAMP '2022-11-30 00:00:00'") == DAYS[:3]


def test_check_21_substring_of_a_timestamp(logs: sx.Table) -> None:
    assert days(logs, "substring(ctime, 1, 10) >= '2021-12-12'") == DAYS[1:]
    assert days(logs, "'2021-12-12' > substring(ctime, 1, 10)") == DAYS[:1]
    assert days(logs, "CAST(ctime AS DATE) = '2022-12-01'") == [DAYS[4]]
    assert days(logs, "month(ctime) = 12") == [DAYS[0], DAYS[1], DAYS[4]]
    assert days(logs, "year(ctime) = 2022 AND day(ctime) > 28") == DAYS[2:4]


def test_check_22_mirrored_operands_and_the_condition_as_it_was(logs: sx.Table) -> None:
    text = "TIMESTAMP '2022-11-30 00:00:00' < ctime"
    plan = logs.plan(text, timezone="UTC")
    assert days(logs, text) == DAYS[3:]
    assert plan.where == text
    assert {task.residual for task in plan.tasks} == {
        "ctime > TIMESTAMP '2022-11-30 00:00:00'"
    }
    twice = logs.refresh().plan(f"{text} AND {text}", timezone="UTC")
    assert twice.paths == plan.paths


@pytest.mark.parametrize(
    "condition",
    [
        "substring(ctime, 2, 10) = '2022-11-30'",
        "substring(ctime, 1, 10) IS NOT NULL",
        "ctime > 'no time at all'",
        "ctime > other",
        "ctime > current_timestamp() - make_interval(40, 1, 0, 1)",
        "substring(ctime, 1, 10) >= upper(other)",
        "other > TIMESTAMP '2030-01-01 00:00:00'",
        "ctime IS NULL",
        "ctime > TIMESTAMP '2022-11-30 12:00:00' OR other IS NULL",
    ],
)
def test_check_23_what_must_not_be_rewritten(logs: sx.Table, condition: str) -> None:
    assert days(logs, condition) == DAYS


def test_the_moment_of_a_plan_is_a_literal(logs: sx.Table) -> None:
    now = datetime(2022, 12, 1, 11, tzinfo=UTC)
    assert days(logs, "ctime > current_timestamp()", now=now) == DAYS[4:]
    assert days(logs, "ctime >= now() - INTERVAL 35 HOURS", now=now) == DAYS[3:]
    assert days(logs, "ctime > current_timestamp()") == []


def test_the_session_may_have_another_zone_than_the_writer(logs: sx.Table) -> None:
    """The folders bound instants, so the wall clock of a literal decides."""
    text = "ctime >= TIMESTAMP '2022-12-01 05:00:00'"
    assert days(logs, text, timezone="UTC") == DAYS[4:]
    assert days(logs, text, timezone="+06:00") == DAYS[3:]


def test_without_the_writers_zone_a_folder_is_a_day_wider(tmp_path: Path) -> None:
    for day in DAYS:
        put(tmp_path / folder_of(day) / "f.parquet", {"ctime": pa.array([], _INSTANT)})
    table = sx.open_table(tmp_path, derived=sx.Derived(HIDDEN))
    assert days(table, "ctime < TIMESTAMP '2022-11-30 00:00:00Z'") == DAYS[:4]
    assert days(table, "ctime < TIMESTAMP '2022-11-27 00:00:00Z'") == DAYS[:2]


_INSTANT = pa.timestamp("us", "UTC")


def test_hours_and_unpadded_folders(tmp_path: Path) -> None:
    for hour in (0, 9, 23):
        place = tmp_path / f"y=2020/m=2/d=29/h={hour}" / "f.parquet"
        put(place, {"t": pa.array([datetime(2020, 2, 29, hour)], pa.timestamp("us"))})
    parts = {"y": "year(t)", "m": "month(t)", "d": "dayofmonth(t)", "h": "hour(t)"}
    table = sx.open_table(tmp_path).declare_derived(parts)
    found = kept(table, "t < TIMESTAMP_NTZ '2020-02-29 09:30:00'", timezone="UTC")
    assert [path.split("/")[3] for path in found] == ["h=0", "h=9"]


@pytest.mark.parametrize(
    ("derivation", "folders", "condition", "expected"),
    [
        ("CAST(d AS DATE)", ["2020-01-01", "2020-01-02"], "d > DATE '2020-01-01'", [1]),
        ("date_format(d, 'yyyy-MM')", ["2020-01", "2020-02"], "d = '2020-02-03'", [1]),
        ("trunc(d, 'MM')", ["2020-01-01", "2020-02-01"], "d >= '2020-02-01'", [1]),
        ("substring(s, 1, 2)", ["ab", "b"], "s >= 'abz'", [0, 1]),
        ("substring(s, 1, 2)", ["ab", "b"], "s LIKE 'b%'", [1]),
        ("left(s, 2)", ["ab", "b"], "s = 'abcdef'", [0]),
        ("upper(s)", ["AB", "B"], "s IN ('ab', 'aB')", [0]),
        ("upper(s)", ["AB", "B"], "upper(s) LIKE 'B%'", [1]),
        ("upper(s)", ["AB", "B"], "s IN ('ab', 'é')", [0, 1]),  # 'é' is Java's affair
        ("upper(s)", ["AB", "B"], "s > 'x'", [0, 1]),
        ("i DIV 10", ["0", "1"], "i BETWEEN 3 AND 9", [0]),
        ("i - i % 10", ["0", "10"], "i = 13", [1]),
        ("i % 4", ["0", "3"], "i IN (7, 11)", [1]),
        ("pmod(i, 4)", ["0", "3"], "i = -1", [1]),
        ("i % 4", ["0", "3"], "i = 7 OR i IS NULL", [0, 1]),
        ("i % 4", ["0", "__HIVE_DEFAULT_PARTITION__"], "i = 7", [1]),
        ("i % 4", ["0", "x"], "i = 7", [1]),
        ("i + 1", ["2147483647", "3"], "i = 2", [1]),
        ("year(d)", ["2020", "nonsense"], "d = '2019-01-01'", [1]),
        ("year(d)", ["2020", "999999999999999999"], "d = '2020-01-01'", [0]),
        ("replace(s, 'A', 'a')", ["xa", "q"], "replace(s, 'a', 'A') = 'xA'", [0, 1]),
        ("replace(s, 'A', 'a')", ["xa", "q"], "REPLACE(S, 'A', 'a') = 'xa'", [0]),
        ("upper(s)", ["AB", "B"], "lower(s) LIKE 'B%'", [0, 1]),
        ("i % 4", ["0", "3"], "i % 3 = 0", [0, 1]),
        ("i % 4", ["0", "3"], "(i + 0) % 4 = 3", [0, 1]),
        ("substring(s, 1, 1)", ["タ", "ン"], "left(s, 1) NOT LIKE 'タ%'", [0, 1]),
        ("substring(s, 1, 1)", ["タ", "ン"], "s LIKE 'ン%'", [1]),
        ("date_format(d, 'yyyy')", ["2019", "2020"], "d = '2020-06-01'", [1]),
        ("date_format(d, 'yyyy')", ["2019", "2020"], "d = '2020-01-01'", [0, 1]),
    ],
)
def test_generated_forms(
    tmp_path: Path,
    derivation: str,
    folders: list[str],
    condition: str,
    expected: list[int],
) -> None:
    schema = pa.schema([("d", pa.date32()), ("s", pa.string()), ("i", pa.int32())])
    for folder in folders:
        put(tmp_path / f"p={folder}" / "f.parquet", schema.empty_table())
    table = sx.open_table(tmp_path).declare_derived({"P": derivation})
    found = kept(table, condition)
    assert sorted(found) == sorted(f"p={folders[i]}/f.parquet" for i in expected)


def test_the_declaration_is_committed_and_taken_back(logs: sx.Table) -> None:
    text = "ctime > TIMESTAMP '2022-12-31 00:00:00'"
    folder = logs.state.location
    assert days(sx.open_table(folder), text) == DAYS[5:]
    assert days(sx.open_table(folder, derived=sx.Derived()), text) == DAYS
    table = sx.build_indexes(sx.open_table(folder), {"other": []}, workers=1).table
    table = table.drop_indexes()  # the statistics leave out the same files
    assert days(table, text) == DAYS[5:]
    assert days(table.declare_derived({}), text) == DAYS


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"nope": "year(ctime)"}, "no partition column 'nope' .*year, month, day"),
        ({"year": "year(nope)"}, "no column 'nope'"),
        ({"year": "rand()"}, r"cannot derive a partition by 'rand\(\)'"),
        ({"year": "ctime"}, "expected a function of one column"),
        ({"year": "datediff(ctime, other)"}, "expected a function of one column"),
        ({"year": "year("}, "is not closed"),
    ],
)
def test_wrong_declarations_are_refused(
    logs: sx.Table, columns: dict[str, str], problem: str
) -> None:
    with pytest.raises(PredicateError, match=problem):
        sx.open_table(logs).declare_derived(columns)


def test_a_declaration_that_no_longer_fits_keeps_the_files(logs: sx.Table) -> None:
    table = sx.open_table(
        logs.state.location, derived=sx.Derived({"gone": "year(ctime)"})
    )
    plan = table.plan("ctime > TIMESTAMP '2030-01-01 00:00:00Z'")
    assert len(plan.paths) == len(DAYS)
    assert any("derived partition 'gone' not used" in note for note in plan.notes)


def test_skipped_files_say_why(logs: sx.Table) -> None:
    plan = logs.plan("ctime > TIMESTAMP '2022-12-31 00:00:00Z'")
    assert {s.stage for s in plan.skipped} == {"partition values"}
    assert "what the partition columns were made of" in plan.skipped[0].reason
