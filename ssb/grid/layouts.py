"""The layouts of the grid: how each of them is written."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.layout.workload.workload import METHODS
from ssb.data.generate import Dataset
from ssb.layouts import (
    ASKED,
    CLUSTER_BY,
    STATISTICS_ALONE,
    flat_rows,
    write_along,
)

SMALLER: Final = 10
"""Times as many files as other layouts have: the data as they come in, to be joined."""
_CURVES: Final = {
    "linear": "sorted by the four columns, one after the other",
    "zorder": "along a Z-order curve over the four columns",
    "hilbert": "along a Hilbert curve over the four columns",
}
_METHODS: Final = {
    "curve": "along a curve whose columns are chosen for the 13 queries",
    "answers": "the answers of the 13 queries together, all other rows along a curve",
}
FOR_WORKLOAD: Final[Mapping[str, str]] = {
    f"workload-{method}": _METHODS.get(method, f"for the 13 queries, by {method!r}")
    for method in sorted(METHODS, key=[*_METHODS, *METHODS].index)
}
"""The layouts for a workload, one for each method of the library, and what each is."""

Write = Callable[[SparkSession, Dataset, Path], float]
"""Writes the layout to a new folder; the seconds of what the layout itself costs."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to distribute the rows over files.

    Args:
        name: of it.
        what: it is, in one line.
        write: writes it.
    """

    name: str
    what: str
    write: Write


def grid_layouts() -> Mapping[str, Layout]:
    """All layouts by name, in the order of the report."""
    found = [
        Layout(
            "compacted",
            "in the order of generation, small files joined by optimize",
            _compacted,
        ),
        *(Layout(name, what, _along(name)) for name, what in _CURVES.items()),
        *(
            Layout(name, what, _for_workload(name.removeprefix("workload-")))
            for name, what in FOR_WORKLOAD.items()
        ),
    ]
    return {layout.name: layout for layout in found}


def _compacted(spark: SparkSession, dataset: Dataset, path: Path) -> float:
    small = path.with_name(f"{path.name}-source")
    most = max(1, dataset.rows_per_file // SMALLER)
    writer = flat_rows(spark, dataset).write.mode("overwrite")
    writer.option("maxRecordsPerFile", most).parquet(str(small))
    layout = sx.Clustering(by=[], rows_per_file=dataset.rows_per_file)
    began = time.perf_counter()
    sx.open_table(small).optimize(
        spark, layout=layout, indexes=STATISTICS_ALONE, into=path
    )
    seconds = time.perf_counter() - began
    shutil.rmtree(small)
    return seconds


def _along(curve: str) -> Write:
    return partial(write_along, by=CLUSTER_BY, curve=curve)


def _for_workload(method: str) -> Write:
    return partial(write_along, by=sx.Workload(ASKED, method=method))
