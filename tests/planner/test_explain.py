"""Explanations: the funnel, who answered what, and why somebody did not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skipindex import Bloom, Table, open_table
from skipindex.errors import PlanError
from skipindex.planner import file_tasks
from skipindex.source import DataFile
from skipindex.source.parquet.files import footer_of
from skipindex.storage.thrift import read_struct, varint
from tests.tables import build, put, put_all, set_mtime


@pytest.fixture
def table(tmp_path: Path) -> Table:
    files = [
        {"a": [*range(100 * i, 100 * i + 100)], "s": [f"v{n % 3}" for n in range(100)]}
        for i in range(3)
    ]
    return build(put_all(tmp_path, files), {"a": ["bitmap", "bloom"], "s": "bitmap"})


def lines(table: Table, condition: str, **options: object) -> list[str]:
    text = table.plan(condition, **options).explain()
    numbers = re.sub(r"\d+\.\d", "#", text)
    return [re.sub(r"\s+", " ", line).strip() for line in numbers.splitlines()]


def test_the_whole_explanation(table: Table) -> None:
    assert lines(table, "a IN (5, 106) AND s = 'v2' AND soundex(s) = 'V2'") == [
        "1 of 3 files for: a IN (5, 106) AND s = 'v2' AND soundex(s) = 'V2'",
        "stage files MB ms index KB bitmaps",
        "all 3 #",
        "partition values 3 # # # 0",
        "min/max 2 # # # 0",
        "file maps 2 # # # 4",
        "value filters 2 # # # 0",
        "row indexes 1 # # # 4",
        (
            "rows that match: 0 to 1, in 1 of 1 row groups of these files; "
            "files where all match: 0"
        ),
        "conditions",
        "a IN (5, 106): minmax ruled out 1 files",
        "bitmap: ruled out no file by this condition alone",
        "bloom: ruled out no file",
        "s = 'v2': ruled out no file alone",
        "bitmap: ruled out no file by this condition alone",
        "soundex(s) = 'V2': not judged, the function soundex",
        "together, row by row: bitmap ruled out 1 more files",
        "no row of these files matches a IN (5, 106) AND s = 'v2'",
    ]


def together(table: Table, condition: str) -> dict[str, Any] | None:
    plan = table.plan(condition, kinds=["minmax", "bitmap"])
    told: dict[str, Any] | None = plan.to_dict()["together"]
    assert ("together, row by row" in plan.explain()) == (told is not None)
    return told


def test_what_an_and_rules_out_beyond_its_conditions(table: Table) -> None:
    # Of 5, 106 and 207 the texts are v2, v0 and v1: numbers in a file modulo 3.
    assert together(table, "a IN (5, 106, 207) AND s = 'v0'") == {
        "text": "a IN (5, 106, 207) AND s = 'v0'",
        "n_files": 2,
        "kinds": ("bitmap",),
    }
    every = together(table, "a IN (5, 106, 207) AND s = 'v0' AND a > 106")
    assert every is not None
    assert every["n_files"] == 1  # min/max of the last condition ruled out one alone
    opaque = "a IN (5, 106) AND s = 'v1' AND soundex(s) = 'V2'"
    assert together(table, opaque) == {
        "text": "a IN (5, 106) AND s = 'v1'",
        "n_files": 2,
        "kinds": ("bitmap",),
    }


def test_what_conditions_rule_out_below_an_or(table: Table) -> None:
    condition = "(a IN (5, 106) AND s = 'v1') OR (a = 208 AND s = 'v1')"
    found = together(table, condition)
    assert found is not None
    assert found["text"] == "a IN (5, 106) AND s = 'v1' OR a = 208 AND s = 'v1'"
    assert found["n_files"] == 3


@pytest.mark.parametrize(
    "condition",
    [
        "a = 5",
        "a > 5 AND s = 'v0x'",
        "a >= 0 AND s = 'v0x' AND s LIKE 'v%'",
        "s = 'v0x' OR s = 'v1x'",
        "a < 0 AND s = 'v1'",
        "a IN (5, 106, 207) AND s IN ('v0', 'v1', 'v2')",
    ],
)
def test_what_one_condition_rules_out_is_not_called_together(
    table: Table, condition: str
) -> None:
    assert together(table, condition) is None


def test_together_counts_each_file_once(table: Table) -> None:
    """Files that are skipped: by a condition alone, or by all together."""
    plan = table.plan("a IN (5, 106) AND s = 'v1'", kinds=["minmax", "bitmap"])
    told = plan.to_dict()
    assert len(told["skipped"]) == 3
    alone = sum(sum(one["removed"].values()) for one in told["conditions"])
    assert alone + told["together"]["n_files"] == 3
    assert json.loads(json.dumps(told["together"])) is not None


def test_rows_that_match_in_words(table: Table) -> None:
    def rows(condition: str) -> str:
        (line,) = [x for x in lines(table, condition) if x.startswith("rows that")]
        return line.partition(", in ")[0]

    assert rows("a = 105") == "rows that match: 1"
    assert rows("a < 0") == "rows that match: 0"
    assert rows("a >= 0") == "rows that match: 300"
    assert rows("a >= 100 AND s LIKE '%1'") == "rows that match: 66"
    assert rows("a >= 100 AND soundex(s) = 'V1'") == "rows that match: 0 to 200"
    put(Path(table.state.location.full("new.parquet")), {"a": [1], "s": ["v1"]})
    again = table.refresh()
    (line,) = [x for x in lines(again, "a = 1") if x.startswith("rows that")]
    assert line.startswith("rows that match: 1 to unknown;")


def test_row_groups_with_a_match_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(1000) * 7919 % 1000
    sizes = [100, 300, 1000]
    for i, size in enumerate(sizes):
        columns = {"a": values + i, "s": [f"v{n // 500}" for n in range(1000)]}
        put(tmp_path / f"{i}.parquet", columns, row_group_size=size)
    table = build(tmp_path, {"a": "exact"})
    found = sum(
        len({np.flatnonzero(values + i == a)[0] // size for a in (5, 900)})
        for i, size in enumerate(sizes)
    )
    assert 3 < found < 6
    plan = table.plan("a IN (5, 900)")
    assert plan.row_groups == plan.to_dict()["row_groups"] == (found, 15)
    words = f"rows that match: 6, in {found} of 15 row groups of these files; files"
    assert words in plan.explain()
    assert table.plan("a = 0").row_groups == (1, 10)
    assert table.plan("a < 0").row_groups == (0, 0)
    assert table.plan("a >= 0").row_groups == (15, 15)
    assert table.plan("a >= 0 AND soundex(s) = 'V0'").row_groups == (15, 15)
    monkeypatch.setattr(file_tasks, "_MOST_ROWS", 3)
    assert table.plan("a IN (5, 900)").row_groups is None
    assert table.plan("a = 5").row_groups is not None


def test_row_groups_that_no_manifest_has_are_not_told(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a new file, and of the files of a manifest of an older version."""
    folder = Path(table.state.location.full(""))
    put(folder / "new.parquet", {"a": [105], "s": ["v1"]})
    plan = table.refresh().plan("a = 105")
    assert plan.row_groups is plan.to_dict()["row_groups"] is None
    assert "row groups of" not in plan.explain()
    put(folder / "0.parquet", {"a": [5], "s": ["v1"]})
    monkeypatch.setattr(DataFile, "row_groups", lambda _: None)
    again = build(folder, {"a": "bitmap"})
    assert again.plan("a IN (5, 106)").row_groups is None
    assert again.plan("a = 106").row_groups == (1, 1)


def test_row_groups_are_known_as_spark_places_them(tmp_path: Path) -> None:
    """Of a file whose footer has another size of a row group, they are not known."""
    file = tmp_path / "0.parquet"
    columns = {"a": np.arange(600) * 7919 % 1000, "s": ["v1"] * 600}
    put(file, columns, row_group_size=200)
    table = build(tmp_path, {"a": "exact"})
    (known,) = table.state.row_groups(np.array([0]))
    assert known is not None
    groups = read_struct(footer_of(pa.OSFile(str(file))), 0)[0][4]
    for (rows, begin, size), group in zip(known.tolist(), groups, strict=True):
        chunk = group[1][0][3]
        assert (rows, begin, size) == (200, chunk.get(11) or chunk[9], group[6])
    told = varint(groups[1][6] << 1)
    assert file.read_bytes().count(told) == 1
    other = varint((groups[1][6] + 1) << 1)
    file.write_bytes(file.read_bytes().replace(told, other))
    table = build(tmp_path, {"a": "exact"})
    assert table.plan("a = 5").count() == 1
    assert table.state.row_groups(np.array([0])) == [None]


def test_stages_that_were_not_run_say_why(table: Table) -> None:
    found = lines(table, "a = 105", kinds=["minmax"])
    assert "value filters - no such index on these columns" in found
    assert "row indexes - no such index on these columns" in found
    assert "value filters - no undecided file remains" in lines(table, "a < 0")


def test_conditions_that_rule_out_files_at_row_level_are_named(table: Table) -> None:
    found = lines(table, "a > 5 AND s = 'v0x'", kinds=["minmax", "bitmap"])
    assert "s = 'v0x': row indexes ruled out 3 files" in found


def test_a_column_without_an_index_is_told_in_words(tmp_path: Path) -> None:
    put_all(tmp_path, [{"a": [1]}, {"a": [5]}])
    plan = build(tmp_path, {"a": "minmax"}).plan("a = 1")
    reason = "the column has only statistics"
    assert f"\n    other kinds: {reason}" in plan.explain()
    assert plan.conditions[0].unused == {"other kinds": reason}


def test_conditions_that_a_file_map_rules_out_are_named(table: Table) -> None:
    assert "s = 'v0x': file_map ruled out 3 files" in lines(table, "s = 'v0x'")


def test_notes_come_last(table: Table) -> None:
    set_mtime(Path(table.state.location.full("1.parquet")), 1e9)
    found = lines(table.refresh(), "a = 105")
    assert found[-2:] == ["notes", "1 files: changed since it was indexed"]


def test_only_spark_can_type_a_partition(tmp_path: Path) -> None:
    put(tmp_path / "p=0x1F" / "f.parquet", {"a": [1]})
    text = build(tmp_path, {"a": Bloom()}).plan("p = 2 AND a = 1").explain()
    assert (
        "p = 2: not judged, only Spark knows the type of the partition column" in text
    )


def test_the_story_of_one_file(table: Table) -> None:
    plan = table.plan("a IN (5, 106) AND s = 'v2' AND soundex(s) = 'V2'")
    assert plan.explain(file="0.parquet").splitlines() == [
        "0.parquet: read, some rows may match",
        "  still to be checked: a IN (5, 106) AND s = 'v2' AND soundex(s) = 'V2'",
        "  index: up to date",
        "  rows that match: 0 to 1",
        "  rows for which each condition is true",
        "    a IN (5, 106): 1",
        "    s = 'v2': 33",
    ]
    told = plan.to_dict(file="1.parquet")
    assert told["verdict"] == "skipped by row indexes"
    assert told["matching"] == (0, 0)
    assert told["conditions"][0] == {"text": "a IN (5, 106)", "rows": (1, 1)}
    assert told["evidence"][0]["kinds"] == ["bitmap"]
    assert json.loads(json.dumps(told))["path"] == "1.parquet"
    with pytest.raises(PlanError, match=r"no file 'x\.parquet' in .* as '0\.parquet'"):
        plan.explain(file="x.parquet")


def test_the_story_of_a_file_says_how_an_exact_index_is_stored(tmp_path: Path) -> None:
    days = np.arange(4_000) * 7919 % 300
    put(tmp_path / "f.parquet", {"day": days.tolist(), "week": (days // 7).tolist()})
    table = build(tmp_path, {"day": "exact", "week": "exact"})
    plan = table.plan("day = 20 AND week = 2")
    text = plan.explain(file="f.parquet")
    assert "    day: stored as run_length\n    week: stored as mapping\n" in text
    encodings = plan.to_dict(file="f.parquet")["encodings"]
    assert encodings == {"day": "run_length", "week": "mapping"}


def test_the_story_of_a_file_that_changed(table: Table) -> None:
    set_mtime(Path(table.state.location.full("1.parquet")), 1e9)
    text = table.refresh().plan("a = 105").explain(file="1.parquet")
    assert "index: changed since it was indexed" in text
    assert "rows that match: not known" in text


def test_conditions_as_values(table: Table) -> None:
    plan = table.plan("a IN (5, 106) AND (s = 'zz' OR soundex(s) = 'V2')")
    first, second, opaque = plan.to_dict()["conditions"]
    assert first["removed"] == {"minmax": 1}
    assert first["unused"]["bitmap"].startswith("ruled out no file")
    assert second["column"] == "s"
    assert opaque["reason"] == "the function soundex"


def test_supported_conditions_skip_beside_unsupported_ones(table: Table) -> None:
    plan = table.plan("a = 105 AND regexp_like(s, 'v')")
    assert plan.paths == ["1.parquet"]
    assert "regexp_like(s, 'v'): not judged, the function regexp_like" in plan.explain()


def test_evidence_names_what_is_stored(table: Table) -> None:
    plan = table.plan("a = 105")
    manifest = table.state.snapshot.manifest
    at = list(manifest.paths).index("0.parquet")
    (first, _) = plan.skipped
    assert first.footer_crc == manifest.files["footer_crc"][at].as_py()
    assert first.n_rows == 100
    (evidence,) = first.evidence
    assert evidence.kinds == ("minmax",)
    assert evidence.facts == {"null": False, "low": "0", "high": "99", "exact": True}
    put(Path(table.state.location.full("0.parquet")), {"a": [1, 400], "s": ["v", "w"]})
    again = build(Path(table.state.location.full("")), {"a": "bloom"})
    absent = again.plan("a IN (105, 7)", kinds=["minmax", "bloom"]).skipped[0]
    assert absent.evidence[0].facts == {"absent": ["7", "105"]}
    both = again.plan("a < -1 OR a > 1000").skipped[0]
    assert [e.condition for e in both.evidence] == ["a < -1", "a > 1000"]
    again = "(a < -1 AND s = 'x') OR (a > 1000 AND s = 'v1') OR (a < -1 AND s = 'v2')"
    repeated = table.plan(again).skipped[0]
    assert [e.condition for e in repeated.evidence] == ["a < -1", "a > 1000"]


def test_a_table_without_indexes_has_no_statistics_of_a_column(tmp_path: Path) -> None:
    table = open_table(put_all(tmp_path, [{"a": [1]}]))
    assert "other kinds: there is no index" in table.plan("a = 5").explain()
    assert repr(table.columns) == "[ColumnInfo('a', int)]"
