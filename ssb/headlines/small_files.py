"""Small files, and what becomes of Q3.1 to Q3.4 in better layouts of the same rows.

The flat table stands in 10,000 files, or in fewer where they would have too few rows.
``optimize`` joins them, and lays them out by the columns of Q3.x.  Each layout is asked
without and with skipping, cold and warm.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.dataset as ds

import skipindex as sx
from skipindex.build.column_requests import Request
from skipindex.planner.rows.condition import condition_of
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from ssb.files import data_files, forget, size_of
from ssb.grid.cells import FLAT
from ssb.grid.records import TimedQuery
from ssb.layouts import INDEXES, STATISTICS_ALONE, flat_rows
from ssb.queries import QUERIES, columns_of
from ssb.steps import Context, Effort, Found, Row, Rows, Step, spread
from ssb.timing import SWITCH, time_queries

STUDY: Final = "small files"
WRITE: Final = f"{STUDY} write"
"""How the names of the steps begin that write and index."""
FILES: Final = 10_000
ASKED: Final = tuple(query for query in QUERIES if query.name.startswith("Q3."))
BY: Final = ("c_region", "s_region", "c_city", "s_city")
"""Columns of Q3.x: nations follow the cities, and nearly all years are asked for."""
SMALL: Final = "small"
LAYOUTS: Final[Mapping[str, sx.Clustering]] = {
    SMALL: sx.Clustering(),
    "compacted": sx.Clustering(by=[]),
    "zorder": sx.Clustering(by=BY, curve="zorder"),
    "hilbert": sx.Clustering(by=BY, curve="hilbert"),
    "workload": sx.Clustering(by=sx.Workload([query.where for query in ASKED])),
}
"""The layouts by name; the first is written by Spark, the others of its files."""
NEEDED: Final[Request] = {name: INDEXES[name] for name in columns_of(ASKED)}
"""Row-level indexes of the columns that Q3.x filter."""
ALONE: Final = "layout alone"
SKIPPING: Final = "with skipping"
ALL: Final = "all"
"""The four queries together."""

_TEXTS: Final = tuple((query.name, query.sql(FLAT)) for query in ASKED)
_DONE: Final = "_headlines_done"


def steps() -> list[Step]:
    """Each layout is written, and then asked: warm and cold."""
    ways = {"write": _write, "warm": _warm, "cold": _cold}
    return [
        Step(f"{STUDY} {way}/{layout}", partial(run, layout=layout), after=_remove)
        for layout in LAYOUTS
        for way, run in ways.items()
    ]


def layouts(effort: Effort) -> list[str]:
    """Those that an effort has."""
    return effort.having(f"{WRITE}/", LAYOUTS)


def small_rows(n_rows: int, n_files: int, least: int) -> int:
    """The rows of a small file, of a table that was generated in ``n_files``.

    Each of these is cut into equally many, of ``least`` rows or more.

    >>> small_rows(6_001_215, 100, 600), small_rows(600_572, 100, 600)
    (601, 601)
    """
    of_file = -(-n_rows // n_files)
    wanted = max(least, n_rows // FILES)
    return -(-of_file // max(1, of_file // wanted))


def _folder(context: Context) -> Path:
    return context.work / STUDY.replace(" ", "-")


def _remove(context: Context) -> None:
    shutil.rmtree(_folder(context), ignore_errors=True)


def _ready(context: Context, layout: str) -> tuple[Path, float, float]:
    """The folder of a layout with its indexes, and the seconds to write and build.

    A layout that is there costs nothing again.
    """
    path = _folder(context) / layout
    if (path / _DONE).exists():
        return path, 0.0, 0.0
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    dataset = context.dataset
    if layout == SMALL:
        most = small_rows(dataset.n_rows, dataset.n_files, context.effort.rows)
        writer = flat_rows(context.spark, dataset).write
        began = time.perf_counter()
        writer.option("maxRecordsPerFile", most).parquet(str(path))
    else:
        small, *_ = _ready(context, SMALL)
        clustering = replace(LAYOUTS[layout], rows_per_file=dataset.rows_per_file)
        began = time.perf_counter()
        sx.open_table(small).optimize(
            context.spark, layout=clustering, indexes=STATISTICS_ALONE, into=path
        )
    written = time.perf_counter() - began
    built = sx.build_indexes(path, NEEDED, spark=context.spark)
    (path / _DONE).touch()
    os.sync()
    return path, written, built.seconds


def _write(context: Context, layout: str) -> Found:
    path, written, built = _ready(context, layout)
    table = sx.open_table(path)
    groups = row_groups(table)
    costs: Row = {
        "layout": layout,
        "query": ALL,
        "files": len(table),
        "write s": round(written, 2),
        "index s": round(built, 2),
        "data MB": round(float(table.state.sizes.sum()) / 1e6, 2),
        "index MB": round(size_of(path / "_skipindex") / 1e6, 2),
    }
    kept: Rows = [
        {
            "layout": layout,
            "query": query.name,
            "files": len(table),
            "by min/max": len(table.plan(query.where, kinds=["minmax"]).paths),
            "by all": len(table.plan(query.where).paths),
            f"row groups, {ALONE}": groups[query.name][0],
            f"row groups, {SKIPPING}": groups[query.name][1],
        }
        for query in ASKED
    ]
    note = f"{layout}: {len(table):,} files of {_rows_of(path)} rows"
    return Found([costs, *kept], (note,))


def _rows_of(path: Path) -> str:
    rows = [ds.dataset(str(file)).count_rows() for file in data_files(path)[:50]]
    return f"about {sum(rows) / len(rows):,.0f}"


def row_groups(table: sx.Table) -> Mapping[str, tuple[int, int]]:
    """By query, the row groups that footers leave: of all files, and of the plan's."""
    found = {}
    files = ds.dataset(table.plan("TRUE").files)
    for query in ASKED:
        plan = table.plan(query.where)
        expression = condition_of(plan.tree, table.state, pc.unique)
        kept = set(plan.files)
        left = {
            fragment.path: len(fragment.subset(filter=expression).row_groups)
            for fragment in files.get_fragments()
        }
        of_plan = sum(n for path, n in left.items() if path in kept)
        found[query.name] = (sum(left.values()), of_plan)
    return found


def _warm(context: Context, layout: str) -> Found:
    path, *_ = _ready(context, layout)
    context.spark.read.parquet(str(path)).createOrReplaceTempView(FLAT)
    timed = time_queries(
        context.spark, _TEXTS, folder=path, rounds=context.effort.small
    )
    return Found(rows_of(layout, "warm", timed))


def rows_of(layout: str, state: str, timed: Sequence[TimedQuery]) -> Rows:
    """A row for each side and query, and for the sums of each run."""
    rows: Rows = []
    sides = ((ALONE, [t.plain for t in timed]), (SKIPPING, [t.pruned for t in timed]))
    for side, (name, runs) in enumerate(sides):
        together = [sum(one) for one in zip(*runs, strict=True)]
        asked = [(t.query, one, [t]) for t, one in zip(timed, runs, strict=True)]
        for query, seconds, of in [(ALL, together, timed), *asked]:
            rows.append({
                "layout": layout,
                "state": state,
                "side": name,
                "query": query,
                **spread(seconds),
                "MB read": round(sum(t.n_bytes[side] for t in of) / 1e6, 3),
                "same": int(all(t.equal for t in of)),
            })  # fmt: skip
    return rows


def _cold(context: Context, layout: str) -> Found:
    """Each run begins with nothing in memory but the JVM's own code."""
    path, *_ = _ready(context, layout)
    spark = context.spark
    found: dict[str, dict[str, list[float]]] = {
        side: {name: [] for name in ("opening", *(name for name, _ in _TEXTS))}
        for side in (ALONE, SKIPPING)
    }
    try:
        for _ in range(context.effort.small):
            for side, times in found.items():
                sx.disable(spark)
                DEFAULT_SESSION.clear()
                forget(path)
                sx.enable(spark)
                spark.conf.set(SWITCH, str(side == SKIPPING).lower())
                began = time.perf_counter()
                spark.read.parquet(str(path)).createOrReplaceTempView(FLAT)
                times["opening"].append(time.perf_counter() - began)
                for name, text in _TEXTS:
                    began = time.perf_counter()
                    spark.sql(text).collect()
                    times[name].append(time.perf_counter() - began)
    finally:
        spark.conf.unset(SWITCH)
        sx.disable(spark)
    return Found(cold_rows(layout, found))


def cold_rows(layout: str, found: Mapping[str, Mapping[str, Sequence[float]]]) -> Rows:
    """A row for each side and query, and for the sums of each run, opening included."""
    return [
        {
            "layout": layout,
            "state": "cold",
            "side": side,
            "query": query,
            **spread(seconds),
        }
        for side, times in found.items()
        for query, seconds in {
            ALL: [sum(run) for run in zip(*times.values(), strict=True)],
            **times,
        }.items()
    ]
