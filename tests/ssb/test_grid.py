"""The benchmark grid at a small scale, and the file that remembers what is done."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ssb import SsbError
from ssb.__main__ import main
from ssb.data.generate import Dataset
from ssb.grid.cells import Cells
from ssb.grid.command import problems
from ssb.grid.index_sets import FULL, INDEX_SETS, NONE
from ssb.grid.layouts import grid_layouts
from ssb.grid.records import (
    RECORDS,
    CellRecord,
    LayoutRecord,
    QueryFigures,
    Records,
    TimedQuery,
)
from ssb.grid.setting import Setting, write_run
from ssb.report.results import load
from ssb.steps import Context, Step, run_steps
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


@pytest.fixture(scope="module")
def cells(ssb_dataset: Dataset) -> Cells:
    drawn = _fewer(workload(ssb_dataset, lookups=7, seed=1))
    return Cells(lookups=7, seed=1, timed=[("hilbert", FULL)], rounds=1, drawn=drawn)


@pytest.fixture(scope="module")
def run(
    spark: SparkSession,
    ssb_dataset: Dataset,
    cells: Cells,
    tmp_path_factory: pytest.TempPathFactory,
) -> Context:
    """Two layouts with two sets of indexes, one cell timed."""
    results = tmp_path_factory.mktemp("grid")
    setting = Setting.of(ssb_dataset, lookups=7, seed=1)
    write_run(results, setting, "17")
    records = Records(results, dataclasses.asdict(setting))
    run = Context(spark, ssb_dataset, records, results / "work", lambda _: None)
    steps = [
        step
        for name in ("generated", "hilbert")
        for step in steps_of(cells, name, NONE, FULL)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssb.grid.layouts.SMALLER", 3)  # 70 files take long
        run_steps(run, steps)
    return run


def steps_of(cells: Cells, layout: str, *sets: str) -> list[Step]:
    return cells.steps(grid_layouts()[layout], [INDEX_SETS[name] for name in sets])


def _fewer(asked: Asked) -> Asked:
    """A query of each kind is enough for a test of the machinery."""
    kept = dict.fromkeys(asked.groups, 2) | {"drawn": 7}
    return Asked({name: found[: kept[name]] for name, found in asked.groups.items()})


@pytest.mark.slow
@pytest.mark.spark
def test_a_small_grid_loses_nothing_and_is_tight(run: Context, cells: Cells) -> None:
    assert problems(run.records) == []
    results = load(run.work.parent)
    assert list(results.cells) == [
        (layout, indexes)
        for layout in ("generated", "hilbert")
        for indexes in (NONE, FULL)
    ]
    n_queries = len(cells.asked(run).queries)
    for name, layout in results.layouts.items():
        none, full = (results.cells[name, one] for one in (NONE, FULL))
        assert [f.kept for f in none.figures] == [layout.files] * n_queries
        assert none.index_bytes == 0 < full.index_bytes
        assert {f.query: f.kept for f in full.figures} == layout.oracle
    assert results.layouts["generated"].files > 2 * results.layouts["hilbert"].files


@pytest.mark.slow
@pytest.mark.spark
def test_a_second_run_does_nothing_and_a_lost_cell_is_measured_again(
    run: Context, cells: Cells
) -> None:
    path = run.work.parent / RECORDS
    before = path.read_bytes()
    told: list[str] = []
    setting = json.loads((run.work.parent / "run.json").read_text())["setting"]
    records = Records(run.work.parent, setting)
    again = dataclasses.replace(run, records=records, log=told.append)
    run_steps(again, steps_of(cells, "hilbert", NONE, FULL))
    assert told == []
    assert path.read_bytes() == before
    assert not list(run.work.iterdir())

    run_steps(again, steps_of(cells, "hilbert", NONE, FULL, "minmax"))
    assert told == ["1 of 1: cell/hilbert/minmax"]
    assert path.read_bytes().startswith(before)
    assert not list(run.work.iterdir())


def test_the_report_needs_no_other_file(tmp_path: Path) -> None:
    page = pytest.importorskip("ssb.report.page", exc_type=ImportError)
    records = Records(tmp_path, SETTING)
    none = dataclasses.replace(CELL, indexes=NONE, index_bytes=0, timed=())
    for record in (LAYOUT, none, CELL):
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
    assert text.count("<svg") == 5
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
