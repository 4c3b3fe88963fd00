"""The cells of the grid: each layout is written once, and each cell links its files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow.parquet as pq

import skipindex as sx
from skipindex.expressions.domain import Domain
from skipindex.planner.plan import Plan
from skipindex.planner.stages.pack_cache import CacheSession
from ssb.data.generate import Dataset
from ssb.files import data_files, linked, size_of
from ssb.grid import truth as truths
from ssb.grid.index_sets import FULL, INDEX_SETS, IndexSet, build
from ssb.grid.layouts import Layout
from ssb.grid.records import (
    CellRecord,
    LayoutRecord,
    QueryFigures,
    TimedQuery,
    cell_key,
    layout_key,
)
from ssb.queries import Query, columns_of
from ssb.run import matches_per_file
from ssb.steps import Context, Step
from ssb.timing import time_queries
from ssb.workloads.workload import EXTRA, SSB, Asked, workload

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
        for _ in range(WARM_PLANS):
            plan, seconds = timed_plan(table, query.where, session)
            warm.append(seconds)
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
_TIMED_GROUPS: Final = (SSB, EXTRA)


@dataclass(slots=True, kw_only=True)
class Cells:
    """What is asked of each layout with each set of indexes.

    Args:
        lookups: that are drawn from the data.
        seed: of the draw.
        timed: the cells whose queries run through Spark.
        rounds: timed runs of each query and side.
        drawn: the queries; None until they are drawn.
    """

    lookups: int
    seed: int
    timed: Collection[tuple[str, str]] = ()
    rounds: int = 3
    drawn: Asked | None = None

    def steps(self, layout: Layout, sets: Sequence[IndexSet]) -> list[Step]:
        """Write a layout, run its cells, and delete it.

        A run that was stopped finds the layout, with the truth about it, again.
        """
        delete = partial(_delete, name=layout.name)
        return [
            Step(layout_key(layout.name), partial(self._written, layout), delete),
            *(
                Step(
                    cell_key(layout.name, indexes.name),
                    partial(self._cell, layout, indexes),
                    delete,
                )
                for indexes in sets
            ),
        ]

    def asked(self, run: Context) -> Asked:
        """The queries."""
        if self.drawn is None:
            run.log("drawing look-ups")
            self.drawn = workload(run.dataset, lookups=self.lookups, seed=self.seed)
        return self.drawn

    def warm_up(self, run: Context) -> None:
        """Start what the first build and plan would start at their expense."""
        folder = run.work / "warm-up"
        linked(data_files(run.dataset.flat)[:1], folder)
        asked = self.asked(run)
        columns = domains(run.dataset, asked.queries)
        build(INDEX_SETS[FULL], folder, columns, spark=run.spark)
        plan_all(sx.open_table(folder), asked.groups, {})
        shutil.rmtree(folder)

    def _written(self, layout: Layout, run: Context) -> LayoutRecord:
        path, stored = _places(run, layout.name)
        stored.unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        seconds = layout.write(run.spark, run.dataset, path)
        shutil.rmtree(path / "_skipindex", ignore_errors=True)
        queries = self.asked(run).queries
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
        )

    def _cell(self, layout: Layout, indexes: IndexSet, run: Context) -> CellRecord:
        path, stored = _places(run, layout.name)
        if not stored.exists():  # the layout was deleted: a cell came later
            run.records.add(self._written(layout, run))
        asked = self.asked(run)
        clone = run.work / f"{layout.name}-{indexes.name}"
        linked(data_files(path), clone)
        columns = domains(run.dataset, asked.queries)
        seconds, notes = build(indexes, clone, columns, spark=run.spark)
        table = sx.open_table(clone)
        is_timed = (layout.name, indexes.name) in self.timed
        record = CellRecord(
            layout=layout.name,
            indexes=indexes.name,
            build_seconds=seconds,
            index_bytes=size_of(clone / "_skipindex"),
            data_bytes=int(table.state.sizes.sum()),
            figures=plan_all(table, asked.groups, truths.load(stored)),
            timed=self._timed(run, clone) if is_timed else (),
            notes=notes,
        )
        shutil.rmtree(clone)
        return record

    def _timed(self, run: Context, clone: Path) -> tuple[TimedQuery, ...]:
        groups = self.asked(run).groups
        queries = [q for name in _TIMED_GROUPS for q in groups.get(name, ())]
        run.spark.read.parquet(str(clone)).createOrReplaceTempView(FLAT)
        texts = [(q.name, q.sql(FLAT)) for q in queries]
        return time_queries(run.spark, texts, folder=clone, rounds=self.rounds)


def _places(run: Context, layout: str) -> tuple[Path, Path]:
    """The folder of a layout, and the truth about it, which is written last."""
    return run.work / layout, run.work / f"{layout}.truth.json"


def _delete(run: Context, name: str) -> None:
    path, stored = _places(run, name)
    shutil.rmtree(path, ignore_errors=True)
    stored.unlink(missing_ok=True)


def domains(dataset: Dataset, queries: Sequence[Query]) -> Mapping[str, Domain]:
    """The columns that queries name, with their domains in the flat table."""
    names = columns_of(queries)
    return {
        column.name: column.domain
        for column in sx.open_table(dataset.flat).columns
        if column.name in names and column.domain is not None
    }
