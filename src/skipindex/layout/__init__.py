"""How rows are distributed over files, so that files can be skipped.

No part of it needs Spark; ``skipindex.spark.placement`` applies it to a DataFrame.
"""

from __future__ import annotations

from skipindex.layout.boundaries import Boundaries
from skipindex.layout.clustering import Axis, Clustering, n_files_for
from skipindex.layout.curves import (
    CURVES,
    Curve,
    curve,
    hash_curve,
    hilbert,
    interleave,
    linear,
)
from skipindex.layout.cuts import FileCuts
from skipindex.layout.interface import Layout, Placement
from skipindex.layout.workload.choice import (
    MAX_COLUMNS,
    Choice,
    CurveChoice,
    choose_curve,
    choose_layout,
)
from skipindex.layout.workload.query_tree import QueryTree
from skipindex.layout.workload.workload import BoundWorkload, Workload

__all__ = [
    "CURVES",
    "MAX_COLUMNS",
    "Axis",
    "BoundWorkload",
    "Boundaries",
    "Choice",
    "Clustering",
    "Curve",
    "CurveChoice",
    "FileCuts",
    "Layout",
    "Placement",
    "QueryTree",
    "Workload",
    "choose_curve",
    "choose_layout",
    "curve",
    "hash_curve",
    "hilbert",
    "interleave",
    "linear",
    "n_files_for",
]
