"""The fraction of the files that each index skips, in four layouts.

The layouts and the sets of indexes are those of the grid, and so are the figures.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from typing import Final

from ssb.grid.cells import GridRun, run_layout_cells, warm_up
from ssb.grid.index_sets import FULL, INDEX_SETS
from ssb.grid.layouts import grid_layouts
from ssb.grid.records import CellRecord, LayoutRecord, Records, cell_key, layout_key
from ssb.headlines.steps import Context, Found, Rows, Step
from ssb.progress import Progress
from ssb.workloads.workload import SSB, workload

STUDY: Final = "files skipped"
LAYOUTS: Final = ("linear", "zorder", "hilbert", "workload-curve", "workload-answers")
SETS: Final = (
    *("minmax", "bloom", "key_set", "bitmap", "range_bitmap"),
    *("run_length", "bit_sliced", FULL),
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
    return [
        Step(f"{STUDY}/{name}", partial(_run, layout=name, lookups=lookups))
        for name in LAYOUTS
    ]


def _run(context: Context, layout: str, lookups: int) -> Found:
    work = context.work / STUDY.replace(" ", "-")
    progress = Progress(lambda line: context.log(f"  {line}"))
    run = GridRun(
        spark=context.spark,
        dataset=context.dataset,
        asked=workload(context.dataset, lookups=lookups, seed=1),
        records=context.records,
        work=work,
        progress=progress,
        timed=[TIMED],
    )
    sets = [INDEX_SETS[name] for name in SETS]
    progress.expect("layout")
    progress.expect("cell", sum(cell_key(layout, s) not in run.records for s in SETS))
    warm_up(run)
    run_layout_cells(run, grid_layouts()[layout], sets)
    shutil.rmtree(work, ignore_errors=True)
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


def _above(kept: Sequence[int], files: int) -> int:
    return sum(n < 0.2 * files for n in kept)
