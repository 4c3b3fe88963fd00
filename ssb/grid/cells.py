"""The cells of the grid: each layout is written once, and each cell links its files."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.expressions.domain import Domain
from skipindex.planner.plan import Plan
from skipindex.planner.stages.pack_cache import CacheSession
from ssb.data.generate import Dataset
from ssb.grid import truth as truths
from ssb.grid.index_sets import CAPPED, FULL, INDEX_SETS, NONE, IndexSet, build
from ssb.grid.layouts import FOR_WORKLOAD, GENERATED, Layout
from ssb.grid.records import (
    CellRecord,
    LayoutRecord,
    QueryFigures,
    Records,
    TimedQuery,
    cell_key,
    layout_key,
)
from ssb.grid.timing import time_queries
from ssb.progress import Progress
from ssb.queries import Query
from ssb.run import matches_per_file
from ssb.workloads.workload import EXTRA, SSB, Asked, columns_of

WARM_PLANS: Final = 3
"""Plans of each query after the first."""

Truth = Mapping[str, Collection[str]]
"""By query, the names of the files that hold a matching row."""


def plan_all(
    table: sx.Table, groups: Mapping[str, Sequence[Query]], truth: Truth
) -> tuple[QueryFigures, ...]:
    """Plan every query on a table, cold and warm.

    Args:
        table: with the indexes of the cell.
        groups: the queries, by the name of their group.
        truth: of this table.
    """
    return tuple(
        _figures(table, query, group, truth.get(query.name, ()))
        for group, queries in groups.items()
        for query in queries
    )


def _figures(
    table: sx.Table, query: Query, group: str, needed: Collection[str]
) -> QueryFigures:
    with CacheSession() as session:
        _, cold = timed_plan(table, query.where, session)
        warm: list[float] = []
        stages: list[dict[str, float]] = []
        for _ in range(WARM_PLANS):
            plan, seconds = timed_plan(table, query.where, session)
            warm.append(seconds)
            stages.append({stage.name: stage.seconds for stage in plan.stages})
        kept = {Path(path).name for path in plan.paths}
        last = plan.stages[-1]
        return QueryFigures(
            query=query.name,
            group=group,
            kept=len(kept),
            n_bytes=int(last.n_bytes),
            lost=len(set(needed) - kept),
            cold=cold,
            warm=median(warm),
            stages={name: median(s[name] for s in stages) for name in stages[0]},
            funnel={stage.name: int(stage.n_files) for stage in plan.stages},
        )


def timed_plan(
    table: sx.Table, where: str, session: CacheSession
) -> tuple[Plan, float]:
    """A plan, and the seconds until its files are known."""
    began = time.perf_counter()
    plan = table.plan(where, session=session)
    len(plan.paths)
    return plan, time.perf_counter() - began


FLAT: Final = "lineorder_flat"
CORE: Final = (NONE, "minmax", "bloom", FULL, CAPPED)
"""The sets that every layout gets."""
DEEP: Final = ("compacted", "hilbert")
"""The layouts that get every set."""
TIMED: Final = (
    (GENERATED, FULL),
    ("compacted", FULL),
    ("hilbert", FULL),
    ("hilbert", CAPPED),
    *((name, FULL) for name in FOR_WORKLOAD if name != "workload-curve"),
)
"""The cells whose queries run through Spark, by default."""
_TIMED_GROUPS: Final = (SSB, EXTRA)


@dataclass(frozen=True, slots=True)
class GridRun:
    """What all steps of a run share.

    Args:
        spark: the session.
        dataset: of SSB.
        asked: the queries.
        records: of finished steps.
        work: a folder for layouts; what is in it is made and deleted by the run.
        progress: told about every step.
        timed: the cells whose queries run through Spark.
        rounds: timed runs of each query and side.
    """

    spark: SparkSession
    dataset: Dataset
    asked: Asked
    records: Records
    work: Path
    progress: Progress
    timed: Collection[tuple[str, str]] = TIMED
    rounds: int = 3


def sets_of(layout: Layout, *, every: bool) -> list[IndexSet]:
    """The sets of indexes that a layout gets."""
    names = INDEX_SETS if every or layout.name in DEEP else CORE
    return [INDEX_SETS[name] for name in names]


def missing(run: GridRun, layout: Layout, sets: Sequence[IndexSet]) -> list[IndexSet]:
    """Those of the sets whose cells are not done."""
    return [one for one in sets if cell_key(layout.name, one.name) not in run.records]


def run_layout_cells(run: GridRun, layout: Layout, sets: Sequence[IndexSet]) -> None:
    """Write a layout if it is not there, run its missing cells, and delete it.

    A run that was stopped finds the layout, with the truth about it, again.
    """
    todo = missing(run, layout, sets)
    path = run.work / layout.name
    stored = run.work / f"{layout.name}.truth.json"
    if not todo and layout_key(layout.name) in run.records:
        return
    with run.progress.step("layout", f"layout {layout.name}"):
        if not stored.exists() or layout_key(layout.name) not in run.records:
            run.records.add(_written(run, layout, path, stored))
    needed = truths.load(stored)
    for indexes in todo:
        with run.progress.step("cell", f"{layout.name} with {indexes.name}"):
            run.records.add(_cell(run, layout, indexes, path, needed))
    shutil.rmtree(path)
    stored.unlink()


def warm_up(run: GridRun) -> None:
    """Start what the first build and the first plan would start at their expense."""
    folder = run.work / "warm-up"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(data_files(run.dataset.flat)[0], folder)
    columns = domains(run.dataset, run.asked.queries)
    build(INDEX_SETS[FULL], folder, columns, spark=run.spark)
    plan_all(sx.open_table(folder), run.asked.groups, {})
    shutil.rmtree(folder)


def _written(run: GridRun, layout: Layout, path: Path, stored: Path) -> LayoutRecord:
    stored.unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    seconds = layout.write(run.spark, run.dataset, path)
    shutil.rmtree(path / "_skipindex", ignore_errors=True)
    queries = [q for group in run.asked.groups.values() for q in group]
    found = matches_per_file(run.spark, sx.open_table(path), queries)
    truths.save(found, stored)
    files = data_files(path)
    rows = [pq.read_metadata(file).num_rows for file in files]
    return LayoutRecord(
        layout=layout.name,
        what=layout.what,
        files=len(files),
        rows=sum(rows),
        rows_per_file=(min(rows), max(rows)),
        n_bytes=sum(file.stat().st_size for file in files),
        seconds=seconds,
        matched={name: sum(by_file.values()) for name, by_file in found.items()},
        oracle={name: len(by_file) for name, by_file in found.items()},
        boxes=truths.boxes_of(run.dataset, path),
    )


def _cell(
    run: GridRun,
    layout: Layout,
    indexes: IndexSet,
    path: Path,
    needed: truths.Matches,
) -> CellRecord:
    groups = run.asked.groups
    columns = domains(run.dataset, [q for group in groups.values() for q in group])
    clone = run.work / f"{layout.name}-{indexes.name}"
    link(path, clone)
    seconds, notes = build(indexes, clone, columns, spark=run.spark)
    table = sx.open_table(clone)
    record = CellRecord(
        layout=layout.name,
        indexes=indexes.name,
        build_seconds=seconds,
        index_bytes=folder_bytes(clone / "_skipindex"),
        data_bytes=int(table.state.sizes.sum()),
        figures=plan_all(table, groups, needed),
        timed=_timed(run, clone) if (layout.name, indexes.name) in run.timed else (),
        notes=notes,
    )
    shutil.rmtree(clone)
    return record


def _timed(run: GridRun, clone: Path) -> tuple[TimedQuery, ...]:
    groups = run.asked.groups
    queries = [q for name in _TIMED_GROUPS for q in groups.get(name, ())]
    run.spark.read.parquet(str(clone)).createOrReplaceTempView(FLAT)
    texts = [(q.name, q.sql(FLAT)) for q in queries]
    return time_queries(run.spark, clone, texts, rounds=run.rounds)


def domains(dataset: Dataset, queries: Sequence[Query]) -> Mapping[str, Domain]:
    """The columns that queries name, with their domains in the flat table."""
    names = columns_of(queries)
    return {
        column.name: column.domain
        for column in sx.open_table(dataset.flat).columns
        if column.name in names and column.domain is not None
    }


def data_files(path: Path) -> list[Path]:
    """The data files of a layout, sorted."""
    return sorted(path.glob("*.parquet"))


def link(path: Path, clone: Path) -> None:
    """A folder with the same data files and no index, at no cost."""
    shutil.rmtree(clone, ignore_errors=True)
    clone.mkdir()
    for file in data_files(path):
        os.link(file, clone / file.name)


def folder_bytes(path: Path) -> int:
    """The bytes of all files below a folder; 0 where there is none."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
