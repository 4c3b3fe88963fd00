"""How rows are distributed over files, so that files can be skipped.

No part of it needs Spark: ``skipindex.spark.cluster`` applies it to a DataFrame.
"""

from __future__ import annotations

from skipindex.layout.boundaries import Boundaries
from skipindex.layout.clustering import Axis, Clustering, Placement, n_files_for
from skipindex.layout.curves import (
    CURVES,
    Curve,
    curve,
    hilbert,
    interleave,
    linear,
)
from skipindex.layout.cuts import FileCuts

__all__ = [
    "CURVES",
    "Axis",
    "Boundaries",
    "Clustering",
    "Curve",
    "FileCuts",
    "Placement",
    "curve",
    "hilbert",
    "interleave",
    "linear",
    "n_files_for",
]
