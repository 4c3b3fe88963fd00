"""Whether a stage can pay for itself: what it costs against all that it may save.

Stages run from the cheapest to the dearest: the paths, then the statistics, which
answer for all files at once, then filters, then bitmaps.  The last two are asked once
a file and condition.  Where that takes longer than reading every file that is left,
no answer can be worth it.

The figures are orders of magnitude of one core, chosen so that a stage is left out
only if it is hopeless; a wrong one costs time, and never a row.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from skipindex.table import TableState

SECONDS_PER_FILE: Final = 1e-3
"""To open a Parquet file and begin to read it, in Spark."""
BYTES_PER_SECOND: Final = 2.5e8
"""That one core decodes and filters."""
SECONDS_PER_QUESTION: Final = {False: 2e-5, True: 5e-5}
"""To ask one index of one file one condition: one that knows values only, one that
knows rows."""


SECONDS_PER_ROW: Final = 2e-10
"""More, for every row of a file: its bitmaps are as long."""


def row_seconds(n_rows: np.ndarray, n_questions: int) -> float:
    """About how long one process asks indexes that know rows.

    Args:
        n_rows: of the files that are asked about.
        n_questions: how many conditions are asked of each.
    """
    n_files = len(n_rows)
    once = n_files * SECONDS_PER_QUESTION[True] + n_rows.sum() * SECONDS_PER_ROW
    return float(n_questions * once)


def not_worth_it(
    table: TableState,
    left: np.ndarray,
    n_questions: int,
    *,
    positional: bool,
    kinds: Collection[str] | None,
) -> str:
    """Why a stage is not worth running, or empty if it may be.

    Args:
        table: the table.
        left: the files that are left to decide.
        n_questions: how many conditions have an index to ask, in each file.
        positional: whether the indexes know rows.
        kinds: those that the caller names, which are asked at any price; None if
            the caller names none.
    """
    if kinds is not None:
        return ""
    n_files = int(left.sum())
    reading = n_files * SECONDS_PER_FILE + table.sizes[left].sum() / BYTES_PER_SECOND
    asking = n_files * n_questions * SECONDS_PER_QUESTION[positional]
    if asking <= reading:
        return ""
    return (
        f"not worth it: to ask {n_questions} conditions of {n_files} files takes "
        f"about {asking * 1e3:.0f} ms, to read them {reading * 1e3:.0f} ms "
        "(kinds=… forces it)"
    )
