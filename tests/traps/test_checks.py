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
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import skipindex as sx
from skipindex.layout import CURVES, CurveLayout
from skipindex.planner.stages.records import ROWS


def write_files(folder: Path, files: Sequence[Mapping[str, Any]]) -> None:
    for i, columns in enumerate(files):
        pq.write_table(pa.table(dict(columns)), folder / f"{i + 1}.parquet")


def test_check_12_partitions_then_files_then_row_groups(tmp_path: Path) -> None:
    """Each of three stages drops what the one before it could not."""
    rng = np.random.default_rng(12)
    letters = np.array([*"ABFKLMRST"])
    names = ["".join(word) for word in rng.choice(letters, (8_000, 4))]
    rows = pa.table(
        {
            "first_name": ["Tho" + name if name[0] == "T" else name for name in names],
            "last_name": ["Frank" + n if n[0] == "F" else n for n in reversed(names)],
        }
    )
    fitted = CurveLayout.fit(rows, rows.column_names, n_files=16)
    keys, files = fitted.assign(rows.columns)
    for city in ("london", "newyork", "oslo"):
        (tmp_path / f"birthplace={city}").mkdir()
        for i in range(16):
            own = np.flatnonzero(files == i)
            part = rows.take(pa.array(own[np.argsort(keys[own])]))
            path = tmp_path / f"birthplace={city}" / f"{i:02}.parquet"
            pq.write_table(part, path, row_group_size=50)
    table = sx.build_indexes(tmp_path, workers=1).table
    plan = table.plan(
        "first_name LIKE 'Tho%' AND last_name LIKE 'Frank%' AND birthplace = 'newyork'"
    )
    by_stage = {stage.name: stage.n_files for stage in plan.stages}
    assert by_stage["partition values"] == 16
    assert 0 < by_stage["min/max"] <= 4
    wanted = (ds.field("first_name") >= "Tho") & (ds.field("first_name") < "Thp")
    wanted &= (ds.field("last_name") >= "Frank") & (ds.field("last_name") < "Franl")
    files_left = ds.dataset([tmp_path / path for path in plan.paths])
    groups = [
        fragment.subset(wanted).num_row_groups / fragment.num_row_groups
        for fragment in files_left.get_fragments()
    ]
    assert np.mean(groups) < 0.5
    read = files_left.to_table(filter=wanted)
    everywhere = ds.dataset(str(tmp_path / "birthplace=newyork"))
    assert len(read) == len(everywhere.to_table(filter=wanted)) > 0


def test_check_14_compaction_alone_skips_nothing_and_clustering_does(
    tmp_path: Path,
) -> None:
    """Small files, the same rows in fewer files, and along a curve."""
    rng = np.random.default_rng(14)
    rows = pa.table({name: rng.integers(0, 1000, 10_000) for name in "ab"})
    curve = CurveLayout.fit(rows, ["a", "b"], n_files=10).assign(rows.columns).files
    order = np.arange(10_000)
    layouts: dict[str, Any] = {
        "raw": order // 100,
        "compacted": order // 1000,
        "clustered": curve,
    }
    kept = {}
    for name, files in layouts.items():
        (tmp_path / name).mkdir()
        for i in range(int(files.max()) + 1):
            own = rows.take(pa.array(np.flatnonzero(files == i)))
            pq.write_table(own, tmp_path / name / f"{i:03}.parquet")
        table = sx.build_indexes(tmp_path / name, workers=1).table
        plan = table.plan("a BETWEEN 300 AND 320 AND b BETWEEN 600 AND 620")
        kept[name] = len(plan.paths)
    assert kept["raw"] == 100
    assert kept["compacted"] == 10
    assert kept["clustered"] <= 2


def test_check_24_only_the_second_of_four_sorted_files_is_read(tmp_path: Path) -> None:
    ages = [[1, 8], [9, 17, 18], [19, 30], [31, 80]]
    write_files(tmp_path, [{"age": own} for own in ages])
    table = sx.build_indexes(tmp_path, {"age": "minmax"}, workers=1).table
    plan = table.plan("age = 17")
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
        assert table.plan(alone).paths == ["1.parquet"]
    without_rows = table.plan(both, kinds=["minmax", "bloom"])
    assert without_rows.paths == ["1.parquet"]
    plan = table.plan(both)
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
        return len(table.plan(predicate, kinds=["minmax", *kinds]).paths)

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
    assert {"hash", "linear", "zorder", "hilbert"} <= set(CURVES)
    assert "sort_within" in inspect.signature(sx.Clustering).parameters
    write_files(tmp_path, [{"a": [1, 3], "b": ["x", "y"]}])
    table = sx.build_indexes(tmp_path, {"a": "bitmap", "b": "bloom"}, workers=1).table
    assert table.plan("a = 2").paths == []
    table = table.drop_indexes(columns=["a"])
    assert table.plan("a = 2").paths == ["1.parquet"]
    assert table.plan("b = 'xx'").paths == []
    table = table.drop_indexes()
    assert table.plan("b = 'xx'").paths == ["1.parquet"]
