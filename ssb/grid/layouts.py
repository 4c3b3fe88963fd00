"""The layouts of the grid: how each of them is written."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.layout.workload.workload import METHODS
from ssb.data.generate import Dataset
from ssb.layouts import CLUSTER_BY
from ssb.queries import QUERIES

SMALLER: Final = 10
"""Times as many files as other layouts have: the data as they come in, to be joined."""
STATISTICS_ALONE: Final = {"*": "minmax"}
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


def flat_rows(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """The flat table as it was generated."""
    return spark.read.parquet(str(dataset.flat))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _small_files(spark: SparkSession, dataset: Dataset, path: Path) -> float:
    most = max(1, dataset.rows_per_file // SMALLER)
    writer = flat_rows(spark, dataset).write.option("maxRecordsPerFile", most)
    return _timed(lambda: writer.parquet(str(path)))


def _compacted(spark: SparkSession, dataset: Dataset, path: Path) -> float:
    small = path.with_name(f"{path.name}-source")
    shutil.rmtree(small, ignore_errors=True)
    _small_files(spark, dataset, small)
    layout = sx.Clustering(by=[], rows_per_file=dataset.rows_per_file)
    seconds = _timed(
        lambda: sx.open_table(small).optimize(
            spark, layout=layout, indexes=STATISTICS_ALONE, into=path
        )
    )
    shutil.rmtree(small)
    return seconds


def _along(curve: str) -> Write:
    def write(spark: SparkSession, dataset: Dataset, path: Path) -> float:
        layout = sx.Clustering(
            by=CLUSTER_BY, curve=curve, rows_per_file=dataset.rows_per_file
        )
        return _written(flat_rows(spark, dataset), path, layout)

    return write


def _for_workload(method: str) -> Write:
    def write(spark: SparkSession, dataset: Dataset, path: Path) -> float:
        asked = sx.Workload([query.where for query in QUERIES], method=method)
        layout = sx.Clustering(by=asked, rows_per_file=dataset.rows_per_file)
        return _written(flat_rows(spark, dataset), path, layout)

    return write


def _written(rows: DataFrame, path: Path, layout: sx.Clustering) -> float:
    return _timed(
        lambda: sx.write_table(
            rows, path, layout=layout, indexes=STATISTICS_ALONE, overwrite=True
        )
    )
