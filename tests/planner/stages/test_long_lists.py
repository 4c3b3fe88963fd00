"""Lists of many keys, and NULL: the same files and counts as row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

from skipindex import col
from tests.tables import build, put_all

N_FILES: Final = 8
N_ROWS: Final = 2000
SPANS: Final = {"dense": 5_000, "mixed": 200_000, "sparse": 1 << 40}
"""From how many numbers the keys of all files are."""


def files_of(span: int, rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Keys of a narrow range in every other file, and of the whole range in others."""
    base = -(1 << 62)
    files = []
    for i in range(N_FILES):
        width = span // (8 if i % 2 else 1)
        keys = base + int(rng.integers(span)) % (span - width + 1)
        files.append(
            {
                "k": keys + rng.integers(0, width, N_ROWS),
                "j": rng.integers(0, 400, N_ROWS),
            }
        )
    return files


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", ["exact", "run_length", "bitmap", "bit_sliced"])
@pytest.mark.parametrize("span", SPANS.values(), ids=list(SPANS))
def test_files_and_rows_with_one_of_many_keys(
    tmp_path: Path, kind: str, span: int
) -> None:
    rng = np.random.default_rng(span)
    files = files_of(span, rng)
    nulls = [rng.random(N_ROWS) < i % 3 / 10 for i in range(N_FILES)]
    stored_files = [
        {**file, "k": pa.array(file["k"], mask=mask)}
        for file, mask in zip(files, nulls, strict=True)
    ]
    table = build(put_all(tmp_path, stored_files), {"k": kind, "j": "exact"})
    stored = np.unique(np.concatenate([file["k"] for file in files]))
    lists = [
        stored[:: 2 * N_ROWS // 100],  # of all files
        np.unique(files[1]["k"])[-90:],  # neighbours, hardly in another file
        stored[0] - 1000 + np.arange(900),  # beside the keys of each file
        np.arange(stored[-1] - 500, stored[-1] + 500),  # with the greatest
    ]
    others = np.unique(rng.integers(0, 800, 70))
    for keys in lists:
        one, other = col("k").isin(keys.tolist()), col("j").isin(others.tolist())
        has = [np.isin(file["k"], keys) for file in files]
        also = [np.isin(file["j"], others) for file in files]
        for condition, rows in (
            (one, has),
            (~one, [~a for a in has]),
            (one & other, [a & b for a, b in zip(has, also, strict=True)]),
            (~one & other, [~a & b for a, b in zip(has, also, strict=True)]),
        ):
            plan = table.plan(condition, kinds=["minmax", kind, "exact"])
            marks = [a & ~mask for a, mask in zip(rows, nulls, strict=True)]
            names = [f"{i}.parquet" for i, some in enumerate(marks) if some.any()]
            assert sorted(plan.paths) == names
            count = int(sum(some.sum() for some in marks))
            assert plan.count_bounds == (count, count)
