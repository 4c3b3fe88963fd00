"""A small table of facts, and where a layout sends its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skipindex.layout import CurveLayout

N_ROWS = 12_000


def facts(n_rows: int = N_ROWS, *, seed: int = 1) -> pa.Table:
    """Columns that are independent but for the region of a city; some NULLs."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 50, n_rows)
    regions = np.array(["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"])
    price = rng.integers(0, 1000, n_rows).astype(float)
    return pa.table(
        {
            "city": [f"c{i:02}" for i in city],
            "region": regions[city % 5],
            "year": pa.array(
                rng.integers(1992, 1999, n_rows), mask=rng.random(n_rows) < 0.02
            ),
            "price": price,
            "other": rng.integers(0, 1000, n_rows),
        }
    )


def files_of(layout: CurveLayout, rows: pa.Table) -> np.ndarray:
    return layout.assign([rows[name] for name in layout.columns]).files
