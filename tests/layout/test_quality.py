"""How well files are separated: depth, overlaps, look-ups and the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.errors import PredicateError
from skipindex.expressions.domain import Domain
from skipindex.layout.quality import _column
from skipindex.table import ColumnInfo
from skipindex.table.statistics import FileStats
from skipindex.table.summaries import Summary, summaries_to_arrow
from tests.quick_run import examples


def table_of(folder: Path, files: Sequence[Sequence[Any]]) -> sx.Table:
    for i, values in enumerate(files):
        pq.write_table(
            pa.table({"x": values, "n": [i] * len(values)}), folder / f"{i}.parquet"
        )
    return sx.build_indexes(folder, workers=1).table


def test_depth_and_overlaps_of_a_drawn_example(tmp_path: Path) -> None:
    # 0 .. 10, 5 .. 15 and 12 .. 20 form a chain; 30 .. 40 stands alone.
    table = table_of(tmp_path, [[0, 10], [5, 15], [12, 20], [30, 40]])
    found = table.layout_quality(columns=["x"]).columns[0]
    assert found.overlaps == (1 + 2 + 1 + 0) / 4
    assert found.depth == (2 + 2 + 2 + 1) / 4
    # The bounds 5, 10, 12 and 15 are in two ranges, the other four in one.
    assert found.look_up == (4 * 2 + 4 * 1) / 8 / 4


def test_sorted_files_are_perfect_and_equal_ones_are_not(tmp_path: Path) -> None:
    best, worst = tmp_path / "best", tmp_path / "worst"
    best.mkdir()
    worst.mkdir()
    apart = sx.open_table(
        table_of(best, [["a", "b"], ["c", "d"], ["e", "f"]])
    ).layout_quality()
    alike = sx.open_table(table_of(worst, [["a", "z"]] * 3)).layout_quality()
    assert (apart.columns[0].depth, apart.columns[0].overlaps) == (1, 0)
    assert (alike.columns[0].depth, alike.columns[0].overlaps) == (3, 2)
    assert apart.columns[0].look_up == 1 / 3
    assert alike.columns[0].look_up == 1


def test_files_without_known_bounds_overlap_everything(tmp_path: Path) -> None:
    table_of(tmp_path, [[1, 2], [3, 4]])
    pq.write_table(pa.table({"x": [9], "n": [9]}), tmp_path / "new.parquet")
    found = sx.open_table(tmp_path).layout_quality(columns=["x"]).columns[0]
    assert found.n_known == 2
    assert (found.depth, found.overlaps) == (2, 1)
    assert found.look_up == 2 / 3


def test_files_of_null_alone_overlap_nothing(tmp_path: Path) -> None:
    nothing = pa.array([None, None], pa.int64())
    found = (
        sx.open_table(table_of(tmp_path, [[1, 2], nothing, [3, 4]]))
        .layout_quality()
        .columns[0]
    )
    assert (found.n_known, found.depth, found.overlaps) == (3, 1, 0)
    assert found.look_up == 1 / 3


class _Files:
    """A table of nothing but statistics."""

    def __init__(self, stats: FileStats) -> None:
        self._stats = stats

    def __len__(self) -> int:
        return len(self._stats.bounded)

    def stats(self, _: ColumnInfo) -> FileStats:
        return self._stats


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=25)
)
def test_the_figures_are_those_of_the_definition(ends: list[tuple[int, int]]) -> None:
    ranges = [(min(pair), max(pair)) for pair in ends]
    domain = Domain("int", bits=64)
    summaries = summaries_to_arrow([Summary(0, None, a, b) for a, b in ranges], domain)
    stats = FileStats.from_arrow(summaries, pa.array([2] * len(ranges)))
    found = _column(_Files(stats), ColumnInfo("x", domain))  # type: ignore[arg-type]

    def holding(value: int) -> int:
        return sum(a <= value <= b for a, b in ranges)

    n = len(ranges)
    depths = [max(holding(v) for v in range(a, b + 1)) for a, b in ranges]
    overlaps = [sum(a <= d and c <= b for c, d in ranges) - 1 for a, b in ranges]
    asked = [holding(v) for pair in ranges for v in pair]
    assert found.depth == pytest.approx(np.mean(depths))
    assert found.overlaps == pytest.approx(np.mean(overlaps))
    assert found.look_up == pytest.approx(np.mean(asked) / n)


def test_the_gap_to_the_ideal_of_each_query(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    files = [rng.integers(0, 100, 50).tolist() for _ in range(10)]
    table_of(tmp_path, files)
    table = sx.build_indexes(tmp_path, {"x": "bitmap"}, workers=1).table
    n_matching = sum(value < 20 for values in files for value in values)
    found = table.layout_quality(["x < 20", sx.col("n") == 3])
    scattered, clustered = found.queries
    assert scattered.matching == (n_matching, n_matching)
    assert scattered.ideal == (-(-n_matching // 50),) * 2
    assert scattered.n_files == 10
    assert (clustered.n_files, clustered.ideal) == (1, (1, 1))
    text = str(found)
    assert "x < 20" in text
    assert "10 files, 500 rows known" in text


def test_without_row_indexes_the_ideal_is_between_two_bounds(tmp_path: Path) -> None:
    table = table_of(tmp_path, [[0, 10], [5, 15]])
    (found,) = table.layout_quality(["x = 7"]).queries
    assert found.matching == (0, 4)
    assert found.ideal == (0, 2)
    assert "0-2" in str(table.layout_quality(["x = 7"]))


def test_a_table_without_indexes_is_described_as_unknown(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    found = sx.open_table(tmp_path).layout_quality(["x = 2"])
    assert found.columns == ()
    assert found.queries[0].ideal == (0, None)
    assert "?" in str(found)
    with pytest.raises(PredicateError, match="nowhere"):
        sx.open_table(tmp_path).layout_quality(columns=["nowhere"])
