"""Layouts that are chosen for a workload, and what min/max would let it skip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.conditions.bound_predicate import Leaf, leaves
from skipindex.errors import LayoutError, PredicateError
from skipindex.expressions.atoms import Range
from skipindex.layout import (
    CurveLayout,
    Workload,
    choose_curve,
    choose_layout,
)
from skipindex.layout.workload.what_if import Boxes, WhatIf
from tests.layout.facts import facts, files_of

QUERIES = [
    "region = 'ASIA' AND year BETWEEN 1993 AND 1994",
    "region = 'EUROPE' AND price < 100",
    "year = 1997 AND price >= 900",
    "(city = 'c07' OR city = 'c31') AND year <= 1995",
]


def write(rows: pa.Table, files: np.ndarray, folder: Path) -> sx.Table:
    for number in np.unique(files):
        own = rows.take(pa.array(np.flatnonzero(files == number)))
        pq.write_table(own, folder / f"{number:03}.parquet")
    return sx.build_indexes(folder, workers=1).table


def test_what_if_counts_the_files_that_the_planner_keeps(tmp_path: Path) -> None:
    rows = facts(2_000)
    asked = [*QUERIES, "year IS NULL", "year IS NOT NULL AND NOT price IN (1, 2)"]
    workload = Workload(asked).bind(rows.schema)
    layout = CurveLayout.fit(rows, ["year", "region"], n_files=12)
    files = files_of(layout, rows)
    what_if = WhatIf(workload)
    expected = what_if.n_read(what_if.codes(rows), files).tolist()
    table = write(rows, files, tmp_path)
    found = [len(table.plan(query, kinds=["minmax"]).paths) for query in asked]
    assert found == expected
    assert sum(found) < 0.7 * 12 * len(asked)


def test_weights_decide_between_queries() -> None:
    rows = facts(4_000)
    queries = ["price < 100", "other < 100"]

    def kept(*weights: float) -> list[int]:
        workload = Workload(queries, weights=weights).bind(rows.schema)
        what_if = WhatIf(workload)
        layout = choose_layout(rows, workload, n_files=10).layout
        return what_if.n_read(what_if.codes(rows), files_of(layout, rows)).tolist()

    assert kept(1, 0)[0] == kept(0, 1)[1] == 1
    assert kept(1, 0)[1] > 1 < kept(0, 1)[0]


def test_the_curve_is_chosen_by_the_columns_that_are_asked() -> None:
    rows = facts()
    asked = Workload(["year = 1993 AND other > 2", "year = 1996"]).bind(rows.schema)
    choice = choose_curve(rows, asked, n_files=40)
    assert choice.columns[0] == "year"
    assert "city" not in choice.columns
    assert choice.score <= 16


def test_a_curve_may_give_a_column_fewer_bits() -> None:
    rows = facts()
    columns = ["city", "price"]
    wide = CurveLayout.fit(rows, columns, n_files=40)
    narrow = CurveLayout.fit(rows, columns, n_files=40, max_ranges={"city": 4})
    assert wide.axes[1].bits == narrow.axes[1].bits
    assert narrow.axes[0].bits < wide.axes[0].bits


def test_the_method_is_the_one_that_was_asked_for() -> None:
    rows = facts(2_000)
    bound = Workload(QUERIES).bind(rows.schema)
    for method in ("answers", "curve"):
        choice = choose_layout(rows, bound, n_files=10, method=method)
        assert (choice.layout.answers is not None) is (method == "answers")


def test_times_of_a_zone_with_summer_time_are_cut_where_they_are() -> None:
    """Not a day before and after."""
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    for zone, text in (("Europe/Berlin", "10:00:00"), ("UTC", "09:00:00")):
        workload = Workload([f"t >= '2026-01-05 {text}'"], timezone=zone)
        (tree,) = workload.bind(schema).trees
        (leaf,) = leaves(tree)
        assert isinstance(leaf, Leaf)
        assert leaf.atom == Range("t", 1_767_603_600_000_000, None)


def test_a_workload_survives_json() -> None:
    workload = Workload(
        ["a > 1", sx.col("b").is_null()],
        weights=[2, 1],
        timezone="UTC",
        method="answers",
    )
    again = Workload.from_json(json.loads(json.dumps(workload.to_json())))
    assert again == workload


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Workload([]), "no queries"),
        (lambda: Workload("a > 1"), "list of conditions"),
        (lambda: Workload(["a > 1"], method="best one"), "no method is named"),
        (lambda: Workload(["a > 1"], method="tree"), "accepted: 'curve', 'answers'"),
        (lambda: Workload(["a > 1"], weights=[1, 2]), "2 weights for 1 queries"),
        (lambda: Workload(["a > 1"], weights=[0]), "1 weights for 1 queries"),
        (lambda: Workload(["a > 1"], weights=[-1]), "1 weights for 1 queries"),
        (lambda: Workload(["sin(price) > 1"]).bind(facts(1).schema), "no query has"),
    ],
)
def test_impossible_workloads_are_refused_in_one_sentence(
    make: Any, message: str
) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_query_on_a_column_that_is_not_there_names_the_columns() -> None:
    with pytest.raises(PredicateError, match="no column 'nowhere'"):
        Workload(["nowhere = 1"]).bind(facts(1).schema)


def test_boxes_leave_null_out_of_the_bounds_of_values() -> None:
    codes = np.array([[0, 5, 6, 0, 0, 3, 4]], np.uint16)
    boxes = Boxes.of_runs(codes, np.array([0, 3, 5]))
    assert boxes.low.tolist() == [[5, 0, 3]]
    assert boxes.high.tolist() == [[6, 0, 4]]
    assert boxes.nulls.tolist() == [[True, True, False]]


@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_a_sample_of_no_or_few_rows_still_gives_a_layout(n_rows: int) -> None:
    rows = facts(100)
    workload = Workload(QUERIES).bind(rows.schema)
    for method in ("answers", "curve"):
        few = rows.slice(0, n_rows)
        layout = choose_layout(few, workload, n_files=3, method=method).layout
        assert layout.n_files == 3
        files = layout.assign([rows[name] for name in layout.columns]).files
        assert set(files.tolist()) <= {0, 1, 2}
