"""Worked examples of the sources, through the public calls.

The examples of curves and clustering are in ``tests/layout``, those of single
indexes in ``tests/indexes``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from skipindex.layout import CURVES
from skipindex.planner.evaluation import ROWS


def write_files(folder: Path, files: Sequence[Mapping[str, Any]]) -> None:
    for i, columns in enumerate(files):
        pq.write_table(pa.table(dict(columns)), folder / f"{i + 1}.parquet")


def test_check_24_only_the_second_of_four_sorted_files_is_read(tmp_path: Path) -> None:
    ages = [[1, 8], [9, 17, 18], [19, 30], [31, 80]]
    write_files(tmp_path, [{"age": own} for own in ages])
    table = sx.build_indexes(tmp_path, {"age": "minmax"}, workers=1).table
    plan = table.plan_files("age = 17")
    assert plan.paths == ["2.parquet"]
    assert [s.stage for s in plan.skipped] == ["min/max"] * 3


def test_check_30_row_level_and_skips_what_each_condition_alone_cannot(
    tmp_path: Path,
) -> None:
    """Both conditions hold in the file, but never in the same row."""
    columns = {
        "totalprice": [2, 18, 20, 50, 188],
        "city": [*2 * ["United ST001"], *2 * ["United ST005"], "United ST009"],
    }
    write_files(tmp_path, [columns])
    wanted = {"totalprice": ["bit_sliced", "bloom"], "city": ["bitmap", "bloom"]}
    table = sx.build_indexes(tmp_path, wanted, workers=1).table
    both = "totalprice < 19 AND city = 'United ST005'"
    for alone in both.split(" AND "):
        assert table.plan_files(alone).paths == ["1.parquet"]
    without_rows = table.plan_files(both, kinds=["minmax", "bloom"])
    assert without_rows.paths == ["1.parquet"]
    plan = table.plan_files(both)
    assert plan.paths == []
    assert plan.skipped[0].stage == ROWS


def test_check_35_bloom_helps_equality_and_not_ranges(tmp_path: Path) -> None:
    """On unordered rows min/max filters almost nothing, bitmaps do."""
    rng = np.random.default_rng(35)
    files = [
        {
            "price": rng.integers(0, 100_000, 1_000) * 2,
            "city": rng.integers(0, 250, 1_000),
        }
        for _ in range(20)
    ]
    write_files(tmp_path, files)
    wanted = {"price": ["bloom", "bit_sliced"], "city": "bit_sliced"}
    table = sx.build_indexes(tmp_path, wanted, workers=1).table

    def kept(predicate: str, *kinds: str) -> int:
        return len(table.plan_files(predicate, kinds=["minmax", *kinds]).paths)

    equality, interval = "price = 77777", "price BETWEEN 77001 AND 77031"
    row_level = "price < 2000 AND city = 7"
    assert kept(equality) == kept(interval) == kept(row_level) == 20
    assert kept(equality, "bloom") <= 2
    assert kept(interval, "bloom") == 20
    assert kept(equality, "bit_sliced") == 0
    assert 0 < kept(interval, "bit_sliced") < 10
    assert kept(row_level, "bit_sliced") < 10


def test_check_36_layouts_and_index_actions_are_there(tmp_path: Path) -> None:
    """Distribute by a curve, sort inside of files, write and drop indexes."""
    assert {"linear", "zorder", "hilbert"} <= set(CURVES)
    assert "sort_within" in inspect.signature(sx.write_table).parameters
    write_files(tmp_path, [{"a": [1, 3], "b": ["x", "y"]}])
    table = sx.build_indexes(tmp_path, {"a": "bitmap", "b": "bloom"}, workers=1).table
    assert table.plan_files("a = 2").paths == []
    table = sx.drop_indexes(table, columns=["a"])
    assert table.plan_files("a = 2").paths == ["1.parquet"]
    assert table.plan_files("b = 'xx'").paths == []
    table = sx.drop_indexes(table)
    assert table.plan_files("b = 'xx'").paths == ["1.parquet"]
