"""Daily appends and incremental runs: what they rewrite, and what queries read then."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.incremental import FULL, Outcome, lived
from skipindex.rewrite.selection.target import RATIO

DAYS = 30
N_ROWS = 30_000
UNIFORM, DATED = "two uniform columns", "order date and customer"


def shares(case: str, ratio: float | None) -> tuple[float, np.ndarray]:
    """Bytes, and files of each day, as shares of a full rewrite on each day."""
    one, full = (lived(case, way, n_rows=N_ROWS, days=DAYS) for way in (ratio, FULL))
    return one.n_bytes[-1] / full.n_bytes[-1], files(one) / files(full)


def files(one: Outcome) -> np.ndarray:
    return np.array(one.kept)


def test_uniform_columns_read_few_more_files_for_half_of_the_bytes() -> None:
    n_bytes, n_files = shares(UNIFORM, RATIO)
    assert n_bytes <= 0.5
    assert n_files.mean() <= 1.25
    assert n_files.max() <= 1.45


def test_days_that_lie_apart_are_left_alone_though_some_rows_are_late() -> None:
    n_bytes, n_files = shares(DATED, RATIO)
    assert n_bytes <= 2 / (DAYS + 1), "each day is clustered once"
    assert n_files.mean() <= 1.1


@pytest.mark.slow
@pytest.mark.parametrize(("less", "more"), [(0.0, 2.0), (2.0, 8.0)])
def test_a_larger_ratio_buys_files_with_bytes(less: float, more: float) -> None:
    (few_bytes, many_files), (many_bytes, few_files) = (
        shares(UNIFORM, ratio) for ratio in (less, more)
    )
    assert few_bytes < many_bytes
    assert few_files.mean() < many_files.mean()
