"""The benchmark grid at a small scale, and the file that remembers what is done."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ssb.data.generate import Dataset
from ssb.grid.cells import Cells
from ssb.grid.index_sets import FULL, INDEX_SETS
from ssb.grid.layouts import grid_layouts
from ssb.grid.records import (
    RECORDS,
    CellRecord,
    LayoutRecord,
    QueryFigures,
    Records,
    TimedQuery,
    cell_key,
    layout_key,
)
from ssb.grid.setting import Setting, write_run
from ssb.headlines.command import problems
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
        for name in ("compacted", "hilbert")
        for step in steps_of(cells, name, FULL)
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
    n_queries = len(cells.asked(run).queries)
    for name in ("compacted", "hilbert"):
        layout = run.records.get(layout_key(name))
        full = run.records.get(cell_key(name, FULL))
        assert isinstance(layout, LayoutRecord)
        assert isinstance(full, CellRecord)
        assert len(full.figures) == n_queries
        assert {f.query: f.kept for f in full.figures} == layout.oracle


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
    run_steps(again, steps_of(cells, "hilbert", FULL))
    assert told == []
    assert path.read_bytes() == before
    assert not list(run.work.iterdir())

    run_steps(again, steps_of(cells, "hilbert", FULL, "minmax"))
    assert told == ["1 of 1: cell/hilbert/minmax"]
    assert path.read_bytes().startswith(before)
    assert not list(run.work.iterdir())
