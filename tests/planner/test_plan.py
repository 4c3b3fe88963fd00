"""Plans: what is read, what is not, and how much is known of both."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex import col
from skipindex.api.types import Verdict
from skipindex.conditions.sql.parser import parse
from skipindex.errors import (
    CorruptIndexError,
    PredicateError,
    TableError,
    UnknownIndexError,
)
from skipindex.indexes import index_types
from skipindex.planner.stages import planning_stages
from skipindex.storage.file_system.location import location_of
from tests import oracle
from tests.quick_run import examples
from tests.strategies import integers_of, predicates, tables, to_arrow, values_of
from tests.tables import build, forget_open_packs, put, put_all


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of ten rows; ``a`` is sorted over them, ``b`` is not."""
    files = [
        {
            "a": [*range(10 * i, 10 * i + 10)],
            "b": [n % 7 for n in range(10)],
            "n": pa.array([None if i == 1 else n for n in range(10)], pa.int64()),
        }
        for i in range(3)
    ]
    return put_all(tmp_path, files)


def test_without_an_index_every_file_is_read(folder: Path) -> None:
    plan = sx.plan_files("a = 5", table=folder)
    assert plan.paths == ["0.parquet", "1.parquet", "2.parquet"]
    assert plan.skipped == []
    assert plan.notes == ["3 files: the table has no index"]
    assert plan.count_bounds == (0, None)
    assert all(task.n_rows is None and task.matching is None for task in plan.tasks)


@pytest.mark.parametrize("form", [str, Path, sx.open_table, location_of])
def test_a_table_is_named_in_many_ways(folder: Path, form: Any) -> None:
    build(folder)
    assert sx.plan_files("a = 5", table=form(folder)).paths == ["0.parquet"]


def test_text_and_builder_plan_the_same(folder: Path) -> None:
    table = build(folder)
    for predicate in ("a < 10 AND NOT b = 3", (col("a") < 10) & ~(col("b") == 3)):
        plan = table.plan(predicate)
        assert plan.paths == ["0.parquet"]
        assert parse(plan.where) == parse("a < 10 AND NOT b = 3")


def test_files_are_full_paths(folder: Path) -> None:
    plan = build(folder).plan("a = 15")
    assert plan.files == [f"{folder}/1.parquet"]
    assert plan.spark_paths == [f"file:{folder}/1.parquet"]
    assert repr(plan) == "Plan(1 of 3 files, 'a = 15')"


def test_other_libraries_take_paths_as_they_are(folder: Path) -> None:
    plan = sx.plan_files("a = 15", table=folder)
    assert json.loads(json.dumps(plan.paths)) == plan.paths
    for paths in (plan.paths, plan.files, plan.spark_paths):
        assert type(paths) is list, "pyarrow, DuckDB and Spark's load() take no other"
    plan.paths.clear()
    assert plan.paths, "the plan is not changed by what is done to its list"


def test_tasks_say_what_is_known(folder: Path) -> None:
    table = build(folder, {"a": "bitmap", "b": "bitmap"})
    first, second = table.plan("a < 15 AND b = 3").tasks
    assert (first.path, first.size) == ("0.parquet", table.state.sizes[0])
    assert (first.n_rows, first.verdict) == (10, Verdict.READ)
    assert first.matching == second.matching == (1, 1)
    assert first.residual == "b = 3", "a < 15 holds for every row"
    assert second.residual == "a < 15 AND b = 3"


def test_a_file_whose_every_row_matches_has_no_residual(folder: Path) -> None:
    plan = build(folder).plan("a >= 10")
    assert [t.verdict for t in plan.tasks] == [Verdict.ALL] * 2
    assert [t.residual for t in plan.tasks] == ["TRUE"] * 2
    assert plan.count_bounds == (20, 20)


def test_bitmaps_can_prove_that_every_row_matches(tmp_path: Path) -> None:
    """Where bounds cannot: 5 might be in the file."""
    put(tmp_path / "f.parquet", {"b": [1, 9, 9]})
    table = build(tmp_path, {"b": "bitmap"})
    for condition in ("b IN (1, 9)", "b <> 5", "b < 2 OR b > 8"):
        (task,) = table.plan(condition).tasks
        assert (task.verdict, task.residual) == (Verdict.ALL, "TRUE"), condition
        (task,) = table.plan(condition, kinds=["minmax"]).tasks
        assert task.verdict is Verdict.READ, condition


def test_skipped_files_carry_their_proof(folder: Path) -> None:
    table = build(folder, {"a": "bitmap", "b": "bitmap"})
    plan = table.plan("a >= 10 AND a = b")
    two = "a = b: minmax: a values in {}, no NULL; b values in 0 .. 6, no NULL"
    assert {s.path: s.reason for s in plan.skipped} == {
        "0.parquet": "a >= 10: minmax: values in 0 .. 9, no NULL",
        "1.parquet": two.format("10 .. 19"),
        "2.parquet": two.format("20 .. 29"),
    }
    plan = table.plan("a IN (15, 25) AND b = 6")
    proofs = {s.path: (s.stage, s.reason) for s in plan.skipped}
    assert proofs == {
        "0.parquet": ("min/max", "a IN (15, 25): minmax: values in 0 .. 9, no NULL"),
        "1.parquet": (
            "row indexes",
            "a IN (15, 25) AND b = 6: no row of the file (bitmap)",
        ),
        "2.parquet": (
            "row indexes",
            "a IN (15, 25) AND b = 6: no row of the file (bitmap)",
        ),
    }
    for skipped in plan.skipped:
        stat = (folder / skipped.path).stat()
        assert (skipped.size, skipped.mtime) == (stat.st_size, stat.st_mtime_ns)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("n = 5", "n = 5: minmax: only NULL"),
        ("n IS NOT NULL", "n IS NOT NULL: minmax: only NULL"),
        ("a IS NULL", "a IS NULL: minmax: values in 10 .. 19, no NULL"),
        ("a < 5 OR n = 1", "a < 5: minmax: values in 10 .. 19, no NULL; n = 1: minmax"),
        ("a = 5 AND a = 6", "the condition is never true"),
        ("a = NULL", "the condition is never true"),
        ("FALSE", "the condition is never true"),
    ],
)
def test_proofs_in_words(folder: Path, condition: str, reason: str) -> None:
    plan = build(folder).plan(condition)
    proof = {s.path: s.reason for s in plan.skipped}["1.parquet"]
    assert proof.startswith(reason)


def test_a_bloom_filter_proves_absence(folder: Path) -> None:
    table = build(folder, {"b": sx.Bloom(error_rate=1e-9)})
    put(folder / "3.parquet", {"a": [1, 2], "b": [0, 60], "n": [1, 1]})
    table = build(folder, {"b": sx.Bloom(error_rate=1e-9)})
    plan = table.plan("b = 40")
    stages = {s.path: s.stage for s in plan.skipped}
    assert stages == {
        **{f"{i}.parquet": "min/max" for i in range(3)},
        "3.parquet": "value filters",
    }
    assert plan.skipped[3].reason == "b = 40: bloom index holds none of the values"


def test_the_funnel_narrows_from_stage_to_stage(folder: Path) -> None:
    table = build(folder, {"a": ["bitmap", "bloom"], "b": "bitmap"})
    plan = table.plan("a IN (5, 15) AND b = 6")
    assert [stage.name for stage in plan.stages] == [
        "partition values",
        "min/max",
        "file maps",
        "value filters",
        "row indexes",
    ]
    assert [stage.n_files for stage in plan.stages] == [3, 2, 2, 2, 0]
    sizes = table.state.sizes
    assert [stage.n_bytes for stage in plan.stages][1] == sizes[0] + sizes[1]
    assert plan.stages[-1].read.bitmaps > 0
    assert plan.stages[-1].read.n_bytes > 0


def test_stages_that_have_nothing_to_do_say_so(folder: Path) -> None:
    table = build(folder, {"a": "bitmap"})
    notes = [stage.note for stage in table.plan("a = 99").stages]
    assert notes == ["", "", *3 * ["no undecided file remains"]]
    notes = [stage.note for stage in table.plan("b = 5").stages]
    assert notes[:3] == ["", "", "no file map on these columns"]
    assert notes[3:] == 2 * ["no such index on these columns"]


def test_kinds_limit_what_may_be_used(folder: Path) -> None:
    table = build(folder, {"a": ["bitmap", "bloom"]})
    assert table.plan("a = 15", kinds=[]).paths == table.paths
    assert table.plan("a = 15", kinds=["minmax"]).paths == ["1.parquet"]
    plan = table.plan("a = 15", kinds="bitmap")
    assert (plan.paths, plan.count_bounds) == (["1.parquet"], (1, 1))
    assert plan.stages[1].note == "not among the kinds to use"
    plan = table.plan("a > 15", kinds=["bloom"])
    assert plan.paths == table.paths
    with pytest.raises(UnknownIndexError, match="unknown index kind 'bitmp'"):
        table.plan("a = 15", kinds=["bitmp"])


def test_partition_values_prune_whatever_the_kinds(tmp_path: Path) -> None:
    for p in (1, 2):
        put(tmp_path / f"p={p}" / "f.parquet", {"a": [1]})
    plan = sx.plan_files("p = 2", table=tmp_path, kinds=[])
    assert plan.paths == ["p=2/f.parquet"]
    assert plan.skipped[0].reason == "p = 2: partition: values in 1 .. 1, no NULL"
    assert plan.tasks[0].verdict is Verdict.ALL
    assert plan.count_bounds == (0, None), "nobody counted the rows"


def test_to_dict_is_json(folder: Path) -> None:
    table = build(folder, {"a": "bitmap", "b": "bloom"})
    put(folder / "new.parquet", {"a": [1], "b": [1], "n": [1]})
    plan = table.refresh().plan("a = 15 AND b = 1")
    record = json.loads(json.dumps(plan.to_dict()))
    assert record["files"] == plan.paths
    assert record["where"] == "a = 15 AND b = 1"
    assert [s["path"] for s in record["skipped"]] == ["0.parquet", "2.parquet"]
    assert [t["verdict"] for t in record["tasks"]] == ["some rows may match"] * 2
    assert record["stages"][0]["name"] == "partition values"
    assert record["notes"] == ["1 files: never indexed"]


def test_a_constant_needs_no_index(folder: Path) -> None:
    table = sx.open_table(folder)
    assert table.plan("TRUE").tasks[0].verdict is Verdict.ALL
    assert table.plan("FALSE").paths == []
    assert table.plan("NULL").paths == []


def test_the_same_condition_twice_is_asked_once(folder: Path) -> None:
    table = build(folder, {"a": "bitmap"})
    once = table.plan("a = 15").stages[-1].read
    twice = table.plan("a = 15 OR (a = 15 AND a = 15)").stages[-1].read
    assert twice.bitmaps == once.bitmaps


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("a =", "a ="),
        ("", "condition"),
        ("a = 1 GROUP BY a", "GROUP"),
        ("nope = 1", "no column 'nope' in '.*' .columns: a, b, n."),
        ("a = 1 OR NOT nope IN (1)", "no column 'nope'"),
        ("A.x = 1", "column 'a' is not a struct"),
    ],
)
def test_a_question_that_is_wrong_is_one_sentence(
    folder: Path, condition: str, text: str
) -> None:
    with pytest.raises(PredicateError, match=text) as error:
        sx.plan_files(condition, table=folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "predicate",
    [None, 1, True, ["a = 1"], col("a")],
    ids=["None", "1", "True", "list", "column"],
)
def test_what_is_no_predicate_is_one_sentence(folder: Path, predicate: Any) -> None:
    with pytest.raises(PredicateError, match=r"not a predicate: .*accepted: SQL text"):
        sx.plan_files(predicate, table=folder)


def test_a_wrong_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="does not exist"):
        sx.plan_files("a = 1", table=tmp_path / "nowhere")


def test_names_are_matched_as_the_session_does(folder: Path) -> None:
    table = build(folder)
    assert table.plan("A = 5").paths == ["0.parquet"]
    with pytest.raises(PredicateError, match="no column 'A'"):
        table.plan("A = 5", case_sensitive=True)


def test_an_index_that_fails_when_it_is_asked_is_only_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its header may be right and a part of it damaged."""
    table = build(folder, {"b": ["range_bitmap", "bitmap", "bloom"]})
    before = table.plan("b = 3").paths
    forget_open_packs()
    kinds = {kind.name: kind for kind in index_types().values()}
    for name, error in (
        ("bitmap", CorruptIndexError("part 1")),
        ("bloom", OSError("the network")),
    ):

        class Broken:
            fault = error

            def probe(self, atom: Any) -> None:
                raise self.fault

        kind = type(kinds[name])  # of several kinds
        whole = kind.open

        def opened(
            self: Any, *args: Any, n: str = name, w: Any = whole, b: Any = Broken
        ) -> Any:
            return b() if self.name == n else w(self, *args)

        monkeypatch.setattr(kind, "open", opened)
    plan = table.plan("b = 3", without="file_map")
    assert plan.paths == before
    assert plan.count_bounds == (3, 3), "the other index still answers"
    assert plan.notes == [
        "3 times: index not used: the network",
        "3 times: index not used: part 1",
    ]


def test_a_file_of_more_rows_than_a_bitmap_numbers_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(folder, {"b": "bitmap"})
    monkeypatch.setattr(planning_stages, "MAX_ROWS", 9)
    plan = table.plan("b = 3")
    assert plan.paths == table.paths
    assert plan.count_bounds == (0, 30)


def test_planning_reads_no_data_file(folder: Path) -> None:
    """Only its footer, of the first one, when the table is opened."""
    table = build(folder, {"a": "bitmap"})
    for path in folder.glob("*.parquet"):
        path.unlink()
    assert table.plan("a = 15").count_bounds == (1, 1)


def rows_of(path: Path, columns: Mapping[str, Sequence[Any]], start: int) -> Any:
    n = pq.read_metadata(path).num_rows
    return {name: values[start : start + n] for name, values in columns.items()}, n


@examples(40, whole=140)
@given(st.data())
def test_the_residual_keeps_the_same_rows_of_its_file(data: st.DataObject) -> None:
    """What is certain of a file is left out of its residual, and nothing else."""
    columns = data.draw(tables())
    tree = data.draw(predicates(columns))
    wanted = dict.fromkeys(columns, data.draw(st.sampled_from([[], ["bitmap"]])))
    integers = integers_of(columns)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = to_arrow(columns)
        cut = data.draw(st.integers(0, 30))
        put_all(folder, [table.slice(0, cut), table.slice(cut)])
        plan = build(folder, wanted).plan(tree, timezone="UTC")
        start = 0
        for path in sorted(folder.glob("*.parquet")):
            rows, n = rows_of(path, values_of(columns), start)
            start += n
            expected = oracle.matching(tree, rows, integers=integers)
            for task in plan.tasks:
                if task.path == path.name:
                    residual = parse(task.residual)
                    found = oracle.matching(residual, rows, integers=integers)
                    assert found == expected, task.residual


@pytest.mark.parametrize("condition", ["x IN (0, 4, 8, 12)", "x NOT IN (1, 5, 9, 13)"])
@pytest.mark.parametrize(
    "spec",
    [sx.BitSliced(max_slices=2), sx.RangeBitmap(max_bitmaps=2)],
    ids=str,
)
def test_where_all_rows_may_match_none_is_counted(
    tmp_path: Path, spec: Any, condition: str
) -> None:
    """Values are known up to bins, in each of which some match and some do not."""
    table = build(put_all(tmp_path, [{"x": [*range(16)]}]), {"x": spec})
    plan = table.plan(condition)
    assert plan.count_bounds == (0, 16)
    (task,) = plan.tasks
    assert task.verdict is Verdict.READ
    assert task.matching == (0, 16)


def test_an_or_is_certain_where_one_of_its_sides_is(tmp_path: Path) -> None:
    """By the statistics alone: no bitmap makes up for what they lose."""
    put_all(tmp_path, [{"a": [5, 9], "b": [1, 2]}, {"a": [1, 2], "b": [1, 2]}])
    table = build(tmp_path, {"*": "minmax"})
    plan = table.plan("a >= 5 OR b = 77")
    assert plan.paths == ["0.parquet"]
    assert plan.tasks[0].verdict is Verdict.ALL
    assert plan.count_bounds == (2, 2)
