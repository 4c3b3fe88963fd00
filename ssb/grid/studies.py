"""Studies of one parameter each, on a copy of the flat table with few columns.

*columns*: a Hilbert curve over the first 1 to 6 columns.  *file size*: the same rows in
more or fewer files, which shows the planning time against the number of files too.
*cube size*: rows that come in batches, each followed by an incremental optimize.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame

import skipindex as sx
from ssb.grid.cells import GridRun, folder_bytes
from ssb.grid.layouts import STATISTICS_ALONE, flat_rows, rows_per_file
from ssb.grid.records import StudyRecord, study_key
from ssb.layouts import CLUSTER_BY
from ssb.queries import QUERIES
from ssb.run import matches_per_file
from ssb.workloads.workload import columns_of

COLUMNS: Final = (*CLUSTER_BY, "lo_discount", "lo_quantity")
"""In the order in which the study adds them."""
FACTORS: Final = (0.1, 0.25, 1.0, 4.0)
"""Of the rows of a file."""
CUBES: Final = (0.2, 1.0)
"""Sizes of a cube, as parts of the data."""
BATCHES: Final = 4
_PLANS: Final = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One value of one parameter.

    Args:
        study: which parameter.
        label: of the value.
        run: measures it.
    """

    study: str
    label: str
    run: Callable[[], StudyRecord]

    @property
    def key(self) -> str:
        """Of the record."""
        return study_key(self.study, self.label)


def study_steps(run: GridRun) -> list[Step]:
    """All steps of all studies; none has run yet."""
    steps = [
        Step("columns", str(n), partial(_columns, run, n))
        for n in range(1, 1 + len(COLUMNS))
    ]
    steps += [
        Step("file size", f"{factor:g}", partial(_file_size, run, factor))
        for factor in FACTORS
    ]
    steps += [
        Step("cube size", f"{share:g}", partial(_cube_size, run, share))
        for share in CUBES
    ]
    return steps


def run_studies(run: GridRun, steps: Sequence[Step]) -> None:
    """Run the steps that are not done."""
    for step in steps:
        if step.key not in run.records:
            with run.progress.step("study", f"{step.study}: {step.label}"):
                run.records.add(step.run())


def _columns(run: GridRun, n: int) -> StudyRecord:
    table, figures = _clustered(
        run, COLUMNS[:n], rows_per_file(run.dataset), STATISTICS_ALONE
    )
    return _done(table, "columns", str(n), n, figures)


def _file_size(run: GridRun, factor: float) -> StudyRecord:
    rows = max(1, round(rows_per_file(run.dataset) * factor))
    bitmaps = dict.fromkeys(columns_of(QUERIES), "bitmap")
    table, figures = _clustered(run, CLUSTER_BY, rows, bitmaps)
    rowwise = [table.plan(q.where) for q in QUERIES]
    figures |= {
        "kept by bitmaps [files]": sum(len(plan.paths) for plan in rowwise),
        "plan, bitmaps [ms]": _plan_ms(table, None),
        "indexes [MB]": folder_bytes(Path(table.folder) / "_skipindex") / 1e6,
    }
    return _done(table, "file size", f"{factor:g}", factor, figures)


def _clustered(
    run: GridRun, by: Sequence[str], rows: int, indexes: Mapping[str, str]
) -> tuple[sx.Table, dict[str, float]]:
    """Write the few columns, clustered, and count what the 13 queries read of it."""
    path = _folder(run)
    layout = sx.Clustering(by=by, rows_per_file=rows)
    rows_of_few = flat_rows(run.spark, run.dataset).select(*_names())
    with warnings.catch_warnings():
        # That many columns work badly is what the study shows.
        warnings.filterwarnings("ignore", "clustering by", UserWarning)
        table = sx.write_table(rows_of_few, path, layout=layout, indexes=indexes)
    kept = [len(table.plan(q.where, kinds=["minmax"]).paths) for q in QUERIES]
    truth = matches_per_file(run.spark, table, QUERIES)
    return table, {
        "kept by min/max [files]": sum(kept),
        "oracle [files]": sum(map(len, truth.values())),
        "plan, min/max [ms]": _plan_ms(table, ["minmax"]),
    }


def _cube_size(run: GridRun, share: float) -> StudyRecord:
    """Write a first batch, then append and optimize; sums over the other batches."""
    path = _folder(run)
    first, *others = _batches(run)
    layout = sx.Clustering(by=CLUSTER_BY, rows_per_file=rows_per_file(run.dataset))
    table = sx.write_table(first, path, layout=layout, indexes=STATISTICS_ALONE)
    cube_size = max(1, int(share * BATCHES * table.state.sizes.sum()))
    sums = Counter[str]()
    for batch in others:
        table = sx.append(batch, table)
        sums["kept after appends [files]"] += _kept(table)
        report = table.optimize(run.spark, cube_size=cube_size)
        table = report.table
        sums["kept after optimizes [files]"] += _kept(table)
        sums["bytes"] += report.bytes_in
        sums["ms"] += round(report.seconds * 1e3)
    n_bytes, ms = sums.pop("bytes"), sums.pop("ms")
    figures = {
        **sums,
        "rewritten [MB]": n_bytes / 1e6,
        "rewritten [times the data]": n_bytes / int(table.state.sizes.sum()),
        "optimizes [s]": ms / 1e3,
    }
    return _done(table, "cube size", f"{share:g}", share, figures)


def _batches(run: GridRun) -> list[DataFrame]:
    """The few columns of the flat table, in the order of generation."""
    files = sorted(map(str, run.dataset.flat.glob("*.parquet")))
    ends = [i * len(files) // BATCHES for i in range(BATCHES + 1)]
    return [
        run.spark.read.parquet(*files[begin:end]).select(*_names())
        for begin, end in pairwise(ends)
        if begin < end
    ]


def _kept(table: sx.Table) -> int:
    """The files that the 13 queries keep by min/max, together."""
    return sum(len(table.plan(q.where, kinds=["minmax"]).paths) for q in QUERIES)


def _plan_ms(table: sx.Table, kinds: Sequence[str] | None) -> float:
    """The milliseconds of a later plan, the median over the 13 queries."""
    found = []
    for query in QUERIES:
        timed = []
        for _ in range(_PLANS):
            began = time.perf_counter()
            len(table.plan(query.where, kinds=kinds).paths)
            timed.append(time.perf_counter() - began)
        found.append(min(timed))
    return median(found) * 1e3


def _names() -> tuple[str, ...]:
    """The columns of the copy: what the queries name, and the clustering columns."""
    return tuple(sorted({*columns_of(QUERIES), *COLUMNS}))


def _folder(run: GridRun) -> Path:
    path = run.work / "study"
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _done(
    table: sx.Table, study: str, label: str, value: float, figures: Mapping[str, float]
) -> StudyRecord:
    files = len(table)
    shutil.rmtree(table.folder)
    return StudyRecord(
        study=study, label=label, value=value, files=files, figures=figures
    )
