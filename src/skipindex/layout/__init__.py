"""How rows are distributed over files, so that files can be skipped.

No part of it needs Spark; ``skipindex.spark.placement`` applies it to a DataFrame.
"""

from __future__ import annotations

from skipindex.layout.boundaries import Boundaries
from skipindex.layout.curve_layout import CurveLayout, n_files_for
from skipindex.layout.curves import CURVES, curve_named
from skipindex.layout.workload.answers import Answers
from skipindex.layout.workload.choice import (
    MAX_COLUMNS,
    LayoutChoice,
    choose_curve,
    choose_layout,
)
from skipindex.layout.workload.workload import Workload

__all__ = [
    "CURVES",
    "MAX_COLUMNS",
    "Answers",
    "Boundaries",
    "CurveLayout",
    "LayoutChoice",
    "Workload",
    "choose_curve",
    "choose_layout",
    "curve_named",
    "n_files_for",
]
