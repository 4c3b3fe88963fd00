"""The fraction of the files that each index skips, by layout.

The layouts and the sets of indexes are those of the grid, and so are the figures.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Final

from ssb.grid.cells import Cells
from ssb.grid.index_sets import CAPPED, FULL, INDEX_SETS
from ssb.grid.layouts import grid_layouts
from ssb.grid.records import CellRecord, LayoutRecord, Records, cell_key, layout_key
from ssb.steps import Context, Effort, Found, Rows, Step, run_steps
from ssb.workloads.workload import SSB

STUDY: Final = "files skipped"
LAYOUTS: Final = (
    "compacted",
    "linear",
    "zorder",
    "hilbert",
    "workload-curve",
    "workload-answers",
)
SETS: Final = (
    *("minmax", "bloom", "bitmap", "range_bitmap"),
    *("run_length", "bit_sliced", FULL, CAPPED),
)
TIMED: Final = ("hilbert", FULL)
"""The cell whose queries run through Spark, without and with skipping."""
ADDED: Final = "added"
"""All queries but the 13."""
ORACLE: Final = "oracle"


def steps(lookups: int) -> list[Step]:
    """Each layout is written, indexed, planned over and deleted.

    Args:
        lookups: that are drawn from the data.
    """
    cells = Cells(lookups=lookups, seed=1, timed=[TIMED])
    return [
        Step(f"{STUDY}/{name}", partial(_run, layout=name, cells=cells))
        for name in LAYOUTS
    ]


def layouts(effort: Effort) -> list[str]:
    """Those that an effort has."""
    return effort.having(f"{STUDY}/", LAYOUTS)


def sets(effort: Effort, layout: str) -> list[str]:
    """The names of the sets of indexes that an effort has of a layout."""
    return effort.having(cell_key(layout, ""), SETS)


def _run(context: Context, layout: str, cells: Cells) -> Found:
    run = replace(
        context,
        work=context.work / STUDY.replace(" ", "-"),
        log=lambda line: context.log(f"  {line}"),
    )
    asked = [INDEX_SETS[name] for name in sets(context.effort, layout)]
    inner = cells.steps(grid_layouts()[layout], asked)
    run_steps(run, inner, warm_up=partial(cells.warm_up, run))
    shutil.rmtree(run.work, ignore_errors=True)
    return Found(rows_of(context.records, layout))


def rows_of(records: Records, layout: str) -> Rows:
    """The fraction skipped by each set of indexes, of the 13 queries and of others.

    The oracle is what is skipped if only files with a matching row are read.
    """
    written = records.get(layout_key(layout))
    cells = [records.get(cell_key(layout, name)) for name in SETS]
    done = [cell for cell in cells if isinstance(cell, CellRecord)]
    assert isinstance(written, LayoutRecord)
    groups = {
        group: [f.query for f in done[0].figures if (f.group == SSB) == (group == SSB)]
        for group in (SSB, ADDED)
    }
    rows: Rows = []
    for group, names in groups.items():
        whole = written.files * len(names)
        for cell in done:
            kept = [f.kept for f in cell.figures if f.query in names]
            rows.append({
                "layout": layout,
                "indexes": cell.indexes,
                "group": group,
                "skipped": round(1 - sum(kept) / whole, 4),
                "queries above 80 %": _above(kept, written.files),
                "queries": len(names),
                "lost": sum(f.lost for f in cell.figures if f.query in names),
                "index, of the data": round(cell.share, 4),
                "build s": round(cell.build_seconds, 2),
                "cold ms": round(1e3 * median(_times(cell, names, "cold")), 2),
                "warm ms": round(1e3 * median(_times(cell, names, "warm")), 2),
            })  # fmt: skip
        needed = [written.oracle[name] for name in names]
        rows.append({
            "layout": layout,
            "indexes": ORACLE,
            "group": group,
            "skipped": round(1 - sum(needed) / whole, 4),
            "queries above 80 %": _above(needed, written.files),
            "queries": len(names),
        })  # fmt: skip
    return rows


def _times(cell: CellRecord, names: Sequence[str], state: str) -> list[float]:
    """Seconds of a plan of each query."""
    return [getattr(f, state) for f in cell.figures if f.query in names]


def _above(kept: Sequence[int], files: int) -> int:
    return sum(n < 0.2 * files for n in kept)
