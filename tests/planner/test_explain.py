"""Explanations: the funnel, who answered what, and why somebody did not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skipindex import Bloom, Table
from tests.tables import build, put, put_all, set_mtime


@pytest.fixture
def table(tmp_path: Path) -> Table:
    files = [
        {"a": [*range(100 * i, 100 * i + 100)], "s": [f"v{n % 3}" for n in range(100)]}
        for i in range(3)
    ]
    return build(put_all(tmp_path, files), {"a": ["bitmap", "bloom"], "s": "bitmap"})


def lines(table: Table, condition: str, **options: object) -> list[str]:
    text = table.plan_files(condition, **options).explain()
    numbers = re.sub(r"\d+\.\d", "#", text)
    return [re.sub(r"\s+", " ", line).strip() for line in numbers.splitlines()]


def test_the_whole_explanation(table: Table) -> None:
    assert lines(table, "a IN (5, 106) AND s = 'v2' AND soundex(s) = 'V2'") == [
        "1 of 3 files for: a IN (5, 106) AND s = 'v2' AND soundex(s) = 'V2'",
        "stage files MB ms index KB bitmaps",
        "all 3 #",
        "partition values 3 # # # 0",
        "min/max 2 # # # 0",
        "bloom 2 # # # 0",
        "bitmaps 1 # # # 4",
        "rows that match: 0 to 1; files where every row does: 0",
        "conditions",
        "a IN (5, 106): minmax ruled out 1 files",
        "s = 'v2': ruled out no file alone",
        "soundex(s) = 'V2': not judged, the function soundex",
    ]


def test_rows_that_match_in_words(table: Table) -> None:
    def rows(condition: str) -> str:
        (line,) = [x for x in lines(table, condition) if x.startswith("rows that")]
        return line.partition(";")[0]

    assert rows("a = 105") == "rows that match: 1"
    assert rows("a < 0") == "rows that match: 0"
    assert rows("a >= 0") == "rows that match: 300"
    assert rows("a >= 100 AND s LIKE '%1'") == "rows that match: 66"
    assert rows("a >= 100 AND soundex(s) = 'V1'") == "rows that match: 0 to 200"
    put(Path(table.location.full("new.parquet")), {"a": [1], "s": ["v1"]})
    again = table.refresh()
    (line,) = [x for x in lines(again, "a = 1") if x.startswith("rows that")]
    assert line.startswith("rows that match: 1 to unknown;")


def test_stages_that_were_not_run_say_why(table: Table) -> None:
    found = lines(table, "a = 105", kinds=["minmax"])
    assert "bloom - no such index on these columns" in found
    assert "bitmaps - no such index on these columns" in found
    assert "bloom - nothing is left to decide" in lines(table, "a < 0")


def test_conditions_that_rule_out_files_at_row_level_are_named(table: Table) -> None:
    found = lines(table, "a > 5 AND s = 'v0x'")
    assert "s = 'v0x': bitmaps ruled out 3 files" in found


def test_notes_come_last(table: Table) -> None:
    set_mtime(Path(table.location.full("1.parquet")), 1e9)
    found = lines(table.refresh(), "a = 105")
    assert found[-2:] == ["notes", "1 files: changed since it was indexed"]


def test_only_spark_can_type_a_partition(tmp_path: Path) -> None:
    put(tmp_path / "p=1.5" / "f.parquet", {"a": [1]})
    text = build(tmp_path, {"a": Bloom()}).plan_files("p = 2 AND a = 1").explain()
    assert "p = 2: not judged, only Spark can tell the partition column's type" in text
