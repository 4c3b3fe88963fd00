"""The benchmark grid at a small scale, and the file that remembers what is done."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skipindex.expressions.domain import domain_of
from skipindex.layout.workload.workload import METHODS
from ssb import SsbError
from ssb.__main__ import main
from ssb.data.generate import Dataset
from ssb.grid.cells import GridRun, run_layout_cells, sets_of
from ssb.grid.command import problems, run_all
from ssb.grid.index_sets import CAPPED, FULL, INDEX_SETS, NONE
from ssb.grid.layouts import grid_layouts
from ssb.grid.progress import Progress
from ssb.grid.records import (
    RECORDS,
    CellRecord,
    LayoutRecord,
    QueryFigures,
    Records,
    StudyRecord,
    TimedQuery,
    cell_key,
    key_of,
)
from ssb.grid.setting import Setting, write_run
from ssb.grid.studies import run_studies, study_steps
from ssb.report.results import load
from ssb.workloads.workload import Asked, workload

SETTING = {"scale": 0.01, "files": 10, "seed": 1}
FIGURES = QueryFigures(
    query="Q1.1",
    group="ssb",
    kept=3,
    n_bytes=300,
    lost=0,
    cold=0.2,
    warm=0.1,
    stages={"min/max": 0.1},
    funnel={"min/max": 3},
)
TIMED = TimedQuery(
    query="Q1.1",
    plain=(1.0, 1.2),
    pruned=(0.5, 0.4),
    n_bytes=(1000, 100),
    files=(10, 3),
    equal=True,
)
CELL = CellRecord(
    layout="hilbert",
    indexes=FULL,
    build_seconds=2.0,
    index_bytes=50,
    data_bytes=1000,
    figures=(FIGURES,),
    timed=(TIMED,),
    notes=("a note",),
)
LAYOUT = LayoutRecord(
    layout="hilbert",
    what="a curve",
    files=10,
    rows=100,
    rows_per_file=(9, 11),
    n_bytes=1000,
    seconds=3.0,
    matched={"Q1.1": 11},
    oracle={"Q1.1": 3},
    boxes=((0.0, 0.5, 0.1, 1.0),),
)
STUDY = StudyRecord(
    study="columns", label="2", value=2, files=10, figures={"oracle [files]": 3.0}
)


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    records = Records(tmp_path, SETTING)
    for record in (LAYOUT, CELL, STUDY):
        assert key_of(record) not in records
        records.add(record)
    again = Records(tmp_path, SETTING)
    assert list(again) == [LAYOUT, CELL, STUDY] == list(records)
    assert again.get(cell_key("hilbert", FULL)) == CELL


def test_records_of_another_setting_are_not_used(tmp_path: Path) -> None:
    Records(tmp_path, SETTING).add(CELL)
    other = Records(tmp_path, SETTING | {"seed": 2})
    assert list(other) == []
    other.add(dataclasses.replace(CELL, index_bytes=1))
    assert list(Records(tmp_path, SETTING)) == [CELL]


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_line_that_was_cut_off_is_measured_again(tmp_path: Path, cut: int) -> None:
    Records(tmp_path, SETTING).add(LAYOUT)
    whole = (tmp_path / RECORDS).read_bytes()
    Records(tmp_path, SETTING).add(CELL)
    (tmp_path / RECORDS).write_bytes((tmp_path / RECORDS).read_bytes()[:-cut])
    # A cut of the line feed alone leaves a whole record.
    left = Records(tmp_path, SETTING)
    assert list(left) == ([LAYOUT, CELL] if cut == 1 else [LAYOUT])
    left.add(CELL)
    assert list(Records(tmp_path, SETTING)) == [LAYOUT, CELL]
    assert (tmp_path / RECORDS).read_bytes().startswith(whole)


def test_the_ideal_is_the_files_that_matches_would_fill() -> None:
    assert LAYOUT.ideal("Q1.1") == 2
    assert dataclasses.replace(LAYOUT, matched={"Q1.1": 0}).ideal("Q1.1") == 0
    assert dataclasses.replace(LAYOUT, matched={"Q1.1": 100}).ideal("Q1.1") == 10


def test_lost_files_and_other_answers_are_problems(tmp_path: Path) -> None:
    records = Records(tmp_path, SETTING)
    records.add(CELL)
    assert problems(records) == []
    lost = dataclasses.replace(FIGURES, lost=2)
    differs = dataclasses.replace(TIMED, equal=False)
    records.add(dataclasses.replace(CELL, figures=(lost,), timed=(differs,)))
    assert problems(records) == [
        "hilbert with full: Q1.1 lost 2 files",
        "hilbert with full: Q1.1: answers differ",
    ]


def test_progress_tells_the_step_and_the_time_left() -> None:
    lines: list[str] = []
    progress = Progress(lines.append)
    progress.expect("cell", 2)
    assert progress.seconds_left() is None
    with progress.step("cell", "first"):
        pass
    with progress.step("cell", "second"):
        pass
    assert lines[0] == "1 of 2: first"
    assert lines[1].startswith("2 of 2, about 0 s left: second")
    assert progress.seconds_left() == 0


def test_a_set_asks_for_what_a_column_can_have() -> None:
    columns = {"n": domain_of(pa.int32()), "word": domain_of(pa.string())}
    assert INDEX_SETS["key_set"].request(columns) == {
        "n": ["minmax", "key_set"],
        "word": ["minmax"],
    }
    assert INDEX_SETS["ngram_bloom"].request(columns) == {
        "n": ["minmax"],
        "word": ["minmax", "ngram_bloom"],
    }


@pytest.fixture(scope="module")
def run(
    spark: SparkSession, ssb_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> GridRun:
    """Two layouts with two sets of indexes, one cell timed."""
    results = tmp_path_factory.mktemp("grid")
    setting = Setting.of(ssb_dataset, lookups=7, seed=1)
    write_run(results, setting, "17")
    run = GridRun(
        spark=spark,
        dataset=ssb_dataset,
        asked=_fewer(workload(ssb_dataset, lookups=7, seed=1)),
        records=Records(results, dataclasses.asdict(setting)),
        work=results / "work",
        progress=Progress(lambda _: None),
        timed=[("hilbert", FULL)],
        rounds=1,
    )
    layouts = [grid_layouts()[name] for name in ("generated", "hilbert")]
    sets = {one.name: [INDEX_SETS[NONE], INDEX_SETS[FULL]] for one in layouts}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssb.grid.layouts.SMALLER", 3)  # 70 files take long
        run_all(run, layouts, sets, studies=False)
    return run


def _fewer(asked: Asked) -> Asked:
    """A query of each kind is enough for a test of the machinery."""
    kept = dict.fromkeys(asked.groups, 2) | {"drawn": 7}
    return Asked({name: found[: kept[name]] for name, found in asked.groups.items()})


@pytest.mark.slow
@pytest.mark.spark
def test_a_small_grid_loses_nothing_and_is_tight(run: GridRun) -> None:
    assert problems(run.records) == []
    results = load(run.work.parent)
    assert list(results.cells) == [
        (layout, indexes)
        for layout in ("generated", "hilbert")
        for indexes in (NONE, FULL)
    ]
    n_queries = len(run.asked.queries)
    for name, layout in results.layouts.items():
        none, full = (results.cells[name, one] for one in (NONE, FULL))
        assert [f.kept for f in none.figures] == [layout.files] * n_queries
        assert none.index_bytes == 0 < full.index_bytes
        assert {f.query: f.kept for f in full.figures} == layout.oracle
    assert results.layouts["generated"].files > 2 * results.layouts["hilbert"].files


@pytest.mark.slow
@pytest.mark.spark
def test_queries_read_less_and_answer_the_same(run: GridRun) -> None:
    cell = load(run.work.parent).cells["hilbert", FULL]
    assert [timed.query for timed in cell.timed] == ["Q1.1", "Q1.2", "equal", "range"]
    for timed in cell.timed:
        assert timed.equal
        assert timed.files[1] <= timed.files[0] == 7
    whole, pruned = (sum(t.n_bytes[i] for t in cell.timed) for i in (0, 1))
    assert 0 < pruned < whole


@pytest.mark.slow
@pytest.mark.spark
def test_a_second_run_does_nothing_and_a_lost_cell_is_measured_again(
    run: GridRun,
) -> None:
    path = run.work.parent / RECORDS
    before = path.read_bytes()
    steps: list[str] = []
    setting = json.loads((run.work.parent / "run.json").read_text())["setting"]
    again = dataclasses.replace(
        run,
        records=Records(run.work.parent, setting),
        progress=Progress(steps.append),
    )
    hilbert = grid_layouts()["hilbert"]
    sets = {"hilbert": [INDEX_SETS[NONE], INDEX_SETS[FULL]]}
    run_all(again, [hilbert], sets, studies=False)
    assert steps == []
    assert path.read_bytes() == before
    assert not list(run.work.iterdir())

    more = [*sets["hilbert"], INDEX_SETS["minmax"]]
    again.progress.expect("cell")
    again.progress.expect("layout")
    run_layout_cells(again, hilbert, more)
    assert [step.rpartition(": ")[2] for step in steps] == [
        "layout hilbert",
        "hilbert with minmax",
    ]
    assert path.read_bytes().startswith(before)


@pytest.mark.spark
@pytest.mark.slow
def test_a_value_of_each_study(run: GridRun, tmp_path: Path) -> None:
    records = Records(tmp_path, SETTING)
    studied = dataclasses.replace(run, records=records, work=tmp_path / "work")
    of_each = {step.study: step for step in study_steps(studied)}
    studied.progress.expect("study", len(of_each))
    run_studies(studied, list(of_each.values()))
    found = {r.study: r for r in records if isinstance(r, StudyRecord)}
    columns, size, cube = (
        found[name].figures for name in ("columns", "file size", "cube size")
    )
    assert columns["kept by min/max [files]"] >= columns["oracle [files]"] > 0
    assert size["kept by bitmaps [files]"] == size["oracle [files]"]
    assert cube["rewritten [times the data]"] > 0
    assert not list(studied.work.iterdir())


def test_the_report_needs_no_other_file(tmp_path: Path) -> None:
    page = pytest.importorskip("ssb.report.page", exc_type=ImportError)
    records = Records(tmp_path, SETTING)
    none = dataclasses.replace(CELL, indexes=NONE, index_bytes=0, timed=())
    one_more = dataclasses.replace(STUDY, label="3", value=3)
    studies = [
        dataclasses.replace(
            one, figures={"kept by min/max [files]": 4.0, "oracle [files]": 3.0}
        )
        for one in (STUDY, one_more)
    ]
    for record in (LAYOUT, none, CELL, *studies):
        records.add(record)
    known = {name: {"some": "value"} for name in ("machine", "versions")}
    run = {"setting": SETTING | {"files": 11}, "date": "today", "command": "a <b>"}
    (tmp_path / "run.json").write_text(json.dumps(known | run))
    rows = [{"engine": "one", "files": 3, "s": 0.5}, {"engine": "two", "s": None}]
    (tmp_path / "peers.json").write_text(json.dumps(rows))
    with pytest.raises(SsbError, match="no finished cell"):
        page.write_report(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps(known | run | {"setting": SETTING}))
    text = page.write_report(tmp_path).read_text()
    assert not re.search(r'(?:src|href)="(?!#)', text)
    assert text.count("<svg") == 6
    for words in ("Where skipping does not pay", "Beside other engines", "a &lt;b&gt;"):
        assert words in text
    stored = json.loads((tmp_path / "report.json").read_text())
    assert len(stored["cells"]) == 2
    assert stored["peers"] == rows
    assert (tmp_path / "csv" / "peers-00.csv").read_text().splitlines() == [
        "engine,files,s",
        "one,3,0.5",
        "two,,",
    ]


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SsbError, match="'python -m ssb grid' has written"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--layouts", "hilbert,sorted"], "no layout is named 'sorted': accepted is"),
        (["--indexes", "btree"], "no set of indexes is named 'btree': accepted is"),
        (["--timed", "hilbert"], "no cell is named 'hilbert': accepted is a layout"),
        (["--rounds", "0"], "cannot run queries 0 times: accepted is 1 or more"),
        (["--scale", "0"], "no SSB data at scale 0.0: accepted is"),
    ],
)
def test_impossible_runs_are_refused_before_spark_starts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    out = tmp_path / "data"
    assert main(["grid", "--out", str(out), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_a_report_of_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert main(["report", "--results", str(tmp_path)]) == 2
    assert "no results in" in capsys.readouterr().err


def test_layouts_that_come_later_are_found_by_their_method() -> None:
    named = {f"workload-{method}" for method in METHODS}
    assert named <= set(grid_layouts())


def test_a_layout_has_every_set_or_few() -> None:
    every = {one.name for one in sets_of(grid_layouts()["linear"], every=True)}
    assert every == set(INDEX_SETS)
    few = [one.name for one in sets_of(grid_layouts()["linear"], every=False)]
    assert few == [NONE, "minmax", "bloom", FULL, CAPPED]
