"""Choosing a layout for a workload by the bytes that its queries would skip."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import LayoutError
from skipindex.layout.curve_layout import CurveLayout
from skipindex.layout.ordering import sampled_column
from skipindex.layout.workload.answers import choose_answers
from skipindex.layout.workload.what_if import CodeMatrix, WhatIf
from skipindex.layout.workload.workload import ANSWERS_SHARE, BoundWorkload

MAX_COLUMNS: Final = 4
"""More columns cluster each one less; see ``CurveLayout``."""

_TRIAL_ROWS: Final = 20_000
"""Rows that rank candidates; the layout that is chosen is fitted to all."""

_ROWS_PER_FILE: Final = 100
"""The least number of them in each file; with fewer, bounds would be too narrow."""

_LEAST_GAIN: Final = 0.01
"""What a column or a change of bits must save, as a share of what is read."""

_CURVES: Final = ("hilbert", "zorder", "linear")
_RANGES: Final = (4, 16, 64)


@dataclass(frozen=True, slots=True)
class CurveChoice:
    """A clustering along a curve, before it is fitted.

    Args:
        columns: in order of importance.
        curve: its name.
        max_ranges: of the columns that get fewer bits than they could use.
        score: files read on the sample, by all queries together.
    """

    columns: tuple[str, ...]
    curve: str
    max_ranges: Mapping[str, int]
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class LayoutChoice:
    """The layout that was chosen for a workload, and what else was measured.

    Args:
        layout: fitted to the sample.
        curve: the best curve.
        scores: files read on the sample by method; ``"all"`` is without a layout.
    """

    layout: CurveLayout
    curve: CurveChoice
    scores: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What a table keeps of it: the columns, the curve, the answers."""
        result: dict[str, Any] = {
            "cluster_by": list(self.curve.columns),
            "curve": self.curve.curve,
            "max_ranges": dict(self.curve.max_ranges),
            "files_read_on_sample": dict(self.scores),
        }
        if self.layout.answers is not None:
            result["answers"] = self.layout.answers.to_json()
        return result


def choose_layout(
    sample: pa.Table,
    workload: BoundWorkload,
    *,
    n_files: int,
    method: str = "curve",
    partition_by: Sequence[str] = (),
    weights: npt.ArrayLike | None = None,
    answers_share: float = ANSWERS_SHARE,
) -> LayoutChoice:
    """The layout that lets the queries skip most files of a sample.

    ``method`` is ``"curve"``, or ``"answers"``, which only row-level indexes do justice
    to, and for which rows up to ``answers_share`` of all are put together.  Values of
    ``partition_by`` share a file only where they have too few rows to fill one.
    ``weights`` is what each row of the sample stands for; None is 1.
    """
    what_if = WhatIf(workload)
    codes = what_if.codes(sample)
    chosen = choose_curve(sample, workload, n_files=n_files, partition_by=partition_by)
    answers = None
    if method == "answers":
        answers = choose_answers(
            sample,
            workload,
            share=answers_share,
            partition_by=partition_by,
            weights=weights,
        )
    layout = CurveLayout.fit(
        sample,
        chosen.columns,
        n_files=n_files,
        curve=chosen.curve,
        partition_by=partition_by,
        max_ranges=chosen.max_ranges,
        weights=weights,
        answers=answers,
    )
    scores = {
        "all": float(n_files * workload.weights.sum()),
        method: _score(layout, sample, what_if, codes),
    }
    return LayoutChoice(layout, chosen, scores)


def choose_curve(
    sample: pa.Table,
    workload: BoundWorkload,
    *,
    n_files: int,
    partition_by: Sequence[str] = (),
) -> CurveChoice:
    """The columns, their bits and the curve that let the queries skip most.

    Columns are added one at a time while one helps, then columns are made coarser
    while that helps.
    """
    trial = _trial(
        sample, workload, partition_by, max(_TRIAL_ROWS, _ROWS_PER_FILE * n_files)
    )
    # Files of fewer rows than these would have bounds narrower than the truth.
    n_files = min(n_files, max(1, len(trial) // _ROWS_PER_FILE))
    what_if = WhatIf(workload)
    codes = what_if.codes(trial)
    candidates = [name for name in workload.columns if name not in partition_by]
    if not candidates:
        raise LayoutError(
            "the queries filter on partition columns alone, so there is nothing to "
            "cluster by"
        )

    def measured(
        columns: tuple[str, ...], curve: str, max_ranges: Mapping[str, int]
    ) -> CurveChoice:
        layout = CurveLayout.fit(
            trial,
            columns,
            n_files=n_files,
            curve=curve,
            partition_by=partition_by,
            max_ranges=max_ranges,
        )
        score = _score(layout, trial, what_if, codes)
        return CurveChoice(columns, curve, max_ranges, score)

    best = CurveChoice((), _CURVES[0], {}, math.inf)
    while len(best.columns) < min(MAX_COLUMNS, len(candidates)):
        tried = [
            measured((*best.columns, name), curve, {})
            for name in candidates
            if name not in best.columns
            for curve in (_CURVES if best.columns else _CURVES[:1])
        ]
        result = min(tried, key=lambda choice: choice.score)
        if not _is_better(result, best):
            break
        best = result
    for name in best.columns:
        coarser = [
            measured(best.columns, best.curve, {**best.max_ranges, name: n})
            for n in _RANGES
        ]
        result = min(coarser, key=lambda choice: choice.score)
        if _is_better(result, best):
            best = result
    return best


def _is_better(one: CurveChoice, other: CurveChoice) -> bool:
    return one.score < other.score * (1 - _LEAST_GAIN)


def _trial(
    sample: pa.Table, workload: BoundWorkload, partition_by: Sequence[str], n: int
) -> pa.Table:
    """Every k-th row, with the relevant columns only."""
    rows = np.arange(0, len(sample), max(1, -(-len(sample) // n)))
    names = dict.fromkeys((*workload.columns, *partition_by))
    columns = {name: sampled_column(sample, name) for name in names}
    return pa.table(columns).take(pa.array(rows))


def _score(
    layout: CurveLayout, sample: pa.Table, what_if: WhatIf, codes: CodeMatrix
) -> float:
    arrays = [sample.column(name) for name in layout.columns]
    return what_if.score(codes, layout.assign(arrays).files)
