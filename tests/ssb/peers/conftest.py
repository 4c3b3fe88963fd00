from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

N_FILES = 6
N_ROWS = 300


def rows_of(i: int) -> pa.Table:
    """Dates that grow from file to file, and all else in every file."""
    rng = np.random.default_rng(i)
    dates = 19970101 + 10 * i + rng.integers(0, 10, N_ROWS)
    quantities = rng.integers(1, 51, N_ROWS)
    return pa.table({
        "lo_orderdate": pa.array(dates, pa.int32()),
        "lo_quantity": pa.array(quantities, pa.int32()),
        "lo_revenue": pa.array(rng.integers(1, 1_000_000, N_ROWS), pa.int32()),
        "c_city": [f"UNITED KI{n}" if n else "CHINA    4" for n in quantities % 10],
    })  # fmt: skip


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with one layout; for reading only."""
    data = tmp_path_factory.mktemp("peers")
    folder = data / "lineorder_flat"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for i in range(N_FILES):
        pq.write_table(rows_of(i), folder / f"part-{i}.parquet")
    return data


@pytest.fixture(scope="session")
def files(data: Path) -> list[Path]:
    return sorted((data / "lineorder_flat").glob("*.parquet"))
