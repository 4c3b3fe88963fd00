"""Rows of one file inside of the rows that are left: counted as one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.planner.stages import rows as rows_module
from tests.tables import build, edit_blobs, forget_open_packs, put

N_ROWS = 7_000
KINDS = ("minmax", "bitmap", "bit_sliced", "range_bitmap", "run_length")
SPECS: dict[str, Any] = {
    "exact": {"few": "bitmap", "a": "bit_sliced", "b": sx.RangeBitmap(max_bitmaps=100)},
    "bins": {
        "few": sx.BitSliced(base=10, encoding="equality"),
        "a": sx.BitSliced(max_slices=4),
        "b": sx.RangeBitmap(max_bitmaps=7),
    },
    "two kinds": {
        "few": ["bitmap", "run_length"],
        "a": [sx.BitSliced(max_slices=3), "bitmap"],
        "b": [sx.RangeBitmap(max_bitmaps=7), "bit_sliced"],
    },
    "not all": {"few": "bitmap", "a": "bit_sliced"},
}
CONDITIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "few = 7 AND a BETWEEN 300 AND 399": lambda few, a, _: (
        (few == 7) & (a >= 300) & (a <= 399)
    ),
    "few = 7 AND a = 511": lambda few, a, _: (few == 7) & (a == 511),
    "few = 7 AND a < 0": lambda few, a, _: (few == 7) & (a < 0),
    "few = 7 AND a IN (5, 6, 7, 100)": lambda few, a, _: (
        (few == 7) & np.isin(a, (5, 6, 7, 100))
    ),
    "few < 150 AND a > 500 AND b BETWEEN 20 AND 60": lambda few, a, b: (
        (few < 150) & (a > 500) & (b >= 20) & (b <= 60)
    ),
    "few > 2 AND a > 500": lambda few, a, _: (few > 2) & (a > 500),
    "few = 7 AND (a < 300 OR b < 20)": lambda few, a, b: (
        (few == 7) & ((a < 300) | (b < 20))
    ),
    "few IN (7, 8) AND a >= 512 AND b <> 3": lambda few, a, b: (
        np.isin(few, (7, 8)) & (a >= 512) & (b != 3) & (b == b)
    ),
    "few = 7 AND b IS NULL": lambda few, _, b: (few == 7) & (b != b),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, sx.Table]:
    """The same rows with every choice of indexes."""
    return {
        name: build(written(tmp_path_factory.mktemp("rows")), specs)
        for name, specs in SPECS.items()
    }


def written(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    for i in range(3):
        b = rng.integers(0, 100, N_ROWS).astype(float)
        b[rng.random(N_ROWS) < 0.1] = np.nan
        columns = {
            "few": rng.integers(0, 300, N_ROWS),
            "a": rng.integers(0, 1000, N_ROWS),
            "b": pa.array(b, from_pandas=True).cast(pa.int64()),
        }
        put(folder / f"{i}.parquet", columns)
    return folder


@pytest.mark.parametrize("specs", SPECS)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("few", [1, 64, 10**9])
def test_counts_enclose_the_rows_that_match(
    tables: dict[str, sx.Table],
    specs: str,
    condition: str,
    few: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether indexes are asked inside of the rows that are left, or never."""
    monkeypatch.setattr(rows_module, "FEW", few)
    plan = tables[specs].plan(condition, kinds=KINDS)
    counts = plan.row_counts
    for i, path in enumerate(plan.table.paths):
        data = pq.read_table(plan.table.location.full(path)).to_pandas()
        matching = int(CONDITIONS[condition](data.few, data.a, data.b).sum())
        assert counts.lower[i] <= matching <= counts.upper[i], path
        if specs == "exact":
            assert counts.lower[i] == matching == counts.upper[i], path
        assert path in plan.paths or not matching


def test_a_damaged_last_index_leaves_the_rows_of_the_others(tmp_path: Path) -> None:
    """And is noted once a file."""

    def scramble(blob: bytearray) -> None:
        if b'"column": "a"' in blob:
            for at in range(20, len(blob) // 3 * 3, len(blob) // 30):
                blob[at] ^= 0xFF

    condition = "few = 7 AND a BETWEEN 300 AND 399"
    build(written(tmp_path), SPECS["exact"])
    forget_open_packs()
    edit_blobs(tmp_path, scramble)
    table = sx.open_table(tmp_path)
    plan = table.plan(condition, kinds=KINDS)
    low, high = plan.row_counts.lower, plan.row_counts.upper
    few = table.plan("few = 7", kinds=KINDS).row_counts
    assert (high == few.lower).all()
    assert not low.any()
    assert sum(int(note.split()[0]) for note in plan.notes) == 3
