"""How many bitmaps and bytes a probe read, as a plan tells it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.indexes import IndexSpec
from tests.indexes.columns import encoded
from tests.indexes.memory_parts import opened
from tests.tables import build, forget_open_packs, packs, put


def rows_read(table: sx.Table, predicate: str) -> tuple[int, int]:
    """Bitmaps and bytes that the last stage read; a file map would spare it."""
    forget_open_packs()  # what one plan has read, the next does not read again
    plan = table.plan(predicate, without="file_map")
    assert plan.row_counts.lower.min() >= 0, "rows are counted, of every file"
    stage = plan.stages[-1]
    assert not stage.note
    record = plan.to_dict()["stages"][-1]
    assert (record["bitmaps"], record["index_bytes"]) == (
        stage.read.bitmaps,
        stage.read.n_bytes,
    )
    return stage.read.bitmaps, stage.read.n_bytes


@pytest.mark.parametrize("rows", [range(12), [3, 0, 7, 7, None, 1, 11, 9]], ids=repr)
def test_any_range_on_a_range_bitmap_reads_at_most_two_bitmaps(
    tmp_path: Path, rows: Any
) -> None:
    put(tmp_path / "0.parquet", {"a": pa.array(rows, pa.int64())})
    table = build(tmp_path, {"a": "range_bitmap"})
    counts = set()
    for low, high in combinations(range(1, 11), 2):
        n_bitmaps, n_bytes = rows_read(table, f"a BETWEEN {low} AND {high}")
        assert n_bitmaps <= 2, (low, high)
        assert n_bytes > 0
        counts.add(n_bitmaps)
    assert counts == {2} if None not in rows else {0, 2}
    for predicate in ("a < 5", "a <= 5", "a > 5", "a >= 5", "a = 7", "a IS NULL"):
        if None in rows or predicate != "a IS NULL":
            assert rows_read(table, predicate)[0] <= 2


def test_a_range_on_bins_reads_two_bitmaps_too(tmp_path: Path) -> None:
    """The default for 1,000 values in random order."""
    values = [(7919 * i) % 1000 for i in range(60_000)]
    put(tmp_path / "0.parquet", {"a": pa.array(values)})
    table = build(tmp_path, {"a": "range_bitmap"})
    for low, high in ((77, 78), (77, 400), (1, 998), (500, 999), (0, 3)):
        n_bitmaps, n_bytes = rows_read(table, f"a BETWEEN {low} AND {high}")
        assert n_bitmaps <= 2
        assert 0 < n_bytes < 40_000
        (task,) = table.plan(f"a BETWEEN {low} AND {high}").tasks
        assert task.matching is not None
        assert task.matching[0] <= 60 * (high - low + 1) <= task.matching[1]


@pytest.mark.parametrize(
    ("spec", "n_bitmaps"),
    [
        (sx.BitSliced(base=10, encoding="equality"), 30),
        (sx.BitSliced(base=2, encoding="range"), 9),
    ],
    ids=["base 10", "base 2, range-encoded"],
)
def test_256_distinct_values_make_30_and_9_bitmaps(
    tmp_path: Path, spec: IndexSpec, n_bitmaps: int
) -> None:
    """And no question reads more than one digit of each, or all slices."""
    values = [(7 * i) % 256 for i in range(1024)]
    index, _ = opened(spec, encoded([*values, None], pa.int64()))
    assert index.n_bitmaps == n_bitmaps  # type: ignore[attr-defined]
    put(tmp_path / "0.parquet", {"a": pa.array(values)})
    table = build(tmp_path, {"a": spec})
    equality = rows_read(table, "a = 77")
    assert equality[0] <= (3 if n_bitmaps == 30 else 8)
    assert equality[1] > 0
    assert rows_read(table, "a BETWEEN 77 AND 200")[0] <= n_bitmaps


def test_a_probe_reads_what_its_answer_needs_and_no_more(tmp_path: Path) -> None:
    """One bitmap of 1,000 for ``=``; a file that min/max skips costs nothing."""
    values = [(7 * i) % 1000 for i in range(60_000)]
    put(tmp_path / "0.parquet", {"a": pa.array(values)})
    put(tmp_path / "1.parquet", {"a": pa.array([v + 5000 for v in values])})
    table = build(tmp_path, {"a": "bitmap"})
    n_bitmaps, n_bytes = rows_read(table, "a = 77 OR a = 9000")
    assert n_bitmaps == 1
    assert n_bytes < 40_000 < 100_000 < min(p.stat().st_size for p in packs(tmp_path))
