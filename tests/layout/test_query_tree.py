"""Query trees: rows cut by the queries' own literals."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skipindex as sx
from skipindex.errors import LayoutError, PredicateError
from skipindex.layout import (
    CurveLayout,
    QueryTree,
    Workload,
    choose_curve,
    choose_layout,
)
from skipindex.layout.workload.grow import LEAST_FILL, MOST_FILL
from skipindex.layout.workload.what_if import Boxes, WhatIf
from tests.layout.facts import N_ROWS, facts, files_of

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


def test_a_tree_reads_less_than_half_of_the_best_curve() -> None:
    rows = facts()
    workload = Workload(QUERIES).bind(rows.schema)
    choice = choose_layout(rows, workload, n_files=40)
    assert choice.method == "tree"
    assert choice.scores["tree"] < choice.scores["curve"] < choice.scores["all"]
    assert choice.scores["tree"] <= choice.scores["curve"] / 1.5


def test_what_if_counts_the_files_that_the_planner_keeps(tmp_path: Path) -> None:
    rows = facts(2_000)
    asked = [*QUERIES, "year IS NULL", "year IS NOT NULL AND NOT price IN (1, 2)"]
    workload = Workload(asked).bind(rows.schema)
    tree = QueryTree.fit(rows, workload, n_files=12)
    files = files_of(tree, rows)
    what_if = WhatIf(workload)
    expected = what_if.n_read(what_if.codes(rows), files).tolist()
    table = write(rows, files, tmp_path)
    found = [len(table.plan(query, kinds=["minmax"]).paths) for query in asked]
    assert found == expected
    assert sum(found) < 0.7 * 12 * len(asked)


def test_files_are_as_many_as_asked_and_none_is_small() -> None:
    rows = facts()
    workload = Workload(QUERIES).bind(rows.schema)
    for n_files in (1, 2, 7, 40, 100):
        tree = QueryTree.fit(rows, workload, n_files=n_files)
        assert tree.n_files == n_files
        sizes = np.bincount(files_of(tree, rows), minlength=n_files)
        share = N_ROWS / n_files
        # A leaf of several files is cut along the curve, which may stray further.
        assert sizes.min() >= LEAST_FILL * share * 0.75
        assert sizes.max() <= MOST_FILL * share * 1.25


def test_a_stored_tree_sends_rows_the_same_way() -> None:
    rows = facts()
    tree = QueryTree.fit(rows, Workload(QUERIES).bind(rows.schema), n_files=30)
    stored = QueryTree.from_json(json.loads(json.dumps(tree.to_json())))
    appended = facts(3_000, seed=2)
    arrays = [appended[name] for name in tree.columns]
    assert stored.columns == tree.columns
    assert stored.n_files == tree.n_files
    for found, expected in zip(stored.assign(arrays), tree.assign(arrays), strict=True):
        assert np.array_equal(found, expected)


def test_appended_rows_are_skipped_as_the_first_ones_are(tmp_path: Path) -> None:
    rows, appended = facts(), facts(seed=3)
    workload = Workload(QUERIES).bind(rows.schema)
    tree = QueryTree.fit(rows, workload, n_files=30)
    what_if = WhatIf(workload)
    first = what_if.score(what_if.codes(rows), files_of(tree, rows))
    second = what_if.score(what_if.codes(appended), files_of(tree, appended))
    assert second <= first * 1.1


def test_one_row_alone_goes_where_it_went_in_company() -> None:
    rows = facts(500)
    tree = QueryTree.fit(rows, Workload(QUERIES).bind(rows.schema), n_files=9)
    together = files_of(tree, rows)
    for i in range(0, 500, 50):
        assert files_of(tree, rows.slice(i, 1)).tolist() == [together[i]]


VALUES: dict[str, list[Any]] = {
    "double": [None, -math.inf, -1.5, -0.0, 0.0, 2.0, math.inf, math.nan],
    "text": [None, "", "a", "a\0", "ab", "é", "\U0001f600"],
    "exact": [None, Decimal("-1.50"), Decimal("0.00"), Decimal("0.01")],
    "flag": [None, False, True],
}
CONDITIONS = [
    "double >= 0",
    "double > 1e308",
    "double < 2 AND text > 'a'",
    "text LIKE 'a%'",
    "text = 'é' OR double IS NULL",
    "exact > 0.005",
    "flag",
    "NOT flag AND exact <= 0",
]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(*(st.sampled_from(v) for v in VALUES.values())), max_size=60),
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=4),
    st.integers(1, 8),
)
def test_rows_that_no_query_and_no_column_tells_apart_stay_together(
    rows: list[tuple[Any, ...]], queries: list[str], n_files: int
) -> None:
    types = [pa.float64(), pa.string(), pa.decimal128(9, 2), pa.bool_()]
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    sample = pa.table(
        {
            name: pa.array(list(values), dtype)
            for name, values, dtype in zip(VALUES, columns, types, strict=True)
        }
    )
    tree = QueryTree.fit(sample, Workload(queries).bind(sample.schema), n_files=n_files)
    files = files_of(tree, sample)
    assert len(files) == len(rows)
    assert set(files.tolist()) <= set(range(n_files))
    if not tree.needs_salt:
        seen: dict[str, int] = {}
        for row, file in zip(rows, files.tolist(), strict=True):
            # -0.0 is 0.0, and all else is told apart by how it prints.
            assert seen.setdefault(repr(row).replace("-0.0,", "0.0,"), file) == file


def test_check_06_one_constant_row_fills_all_files_of_a_tree() -> None:
    rows = facts(1).take(pa.array(np.zeros(800, np.int64)))
    tree = QueryTree.fit(rows, Workload(QUERIES).bind(rows.schema), n_files=8)
    assert tree.needs_salt
    sizes = np.bincount(files_of(tree, rows), minlength=8)
    assert sizes.min() >= 50


def test_null_rows_go_to_one_side_and_can_be_cut_off() -> None:
    rows = facts()
    tree = QueryTree.fit(rows, Workload(["year IS NULL"]).bind(rows.schema), n_files=50)
    of_nulls = files_of(tree, rows)[rows["year"].is_null().to_numpy()]
    assert len(set(of_nulls.tolist())) == 1


def test_partition_values_come_before_the_queries() -> None:
    rows = facts()
    workload = Workload(QUERIES).bind(rows.schema)
    tree = QueryTree.fit(rows, workload, n_files=40, partition_by=["region"])
    files = files_of(tree, rows)
    for number in range(40):
        assert len(rows.filter(pa.array(files == number))["region"].unique()) == 1


def test_weights_decide_between_queries() -> None:
    rows = facts(4_000)
    queries = ["price < 100", "other < 100"]

    def kept(*weights: float) -> list[int]:
        workload = Workload(queries, weights=weights).bind(rows.schema)
        what_if = WhatIf(workload)
        tree = QueryTree.fit(rows, workload, n_files=10)
        return what_if.n_read(what_if.codes(rows), files_of(tree, rows)).tolist()

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
    for method, kind in {"tree": QueryTree, "curve": CurveLayout}.items():
        choice = choose_layout(rows, bound, n_files=10, method=method)
        assert isinstance(choice.layout, kind)


def test_a_workload_survives_json() -> None:
    workload = Workload(
        ["a > 1", sx.col("b").is_null()], weights=[2, 1], timezone="UTC", method="tree"
    )
    again = Workload.from_json(json.loads(json.dumps(workload.to_json())))
    assert again == workload


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Workload([]), "no queries"),
        (lambda: Workload("a > 1"), "list of conditions"),
        (lambda: Workload(["a > 1"], method="best one"), "no method is named"),
        (lambda: Workload(["a > 1"], weights=[1, 2]), "2 weights for 1 queries"),
        (lambda: Workload(["a > 1"], weights=[0]), "1 weights for 1 queries"),
        (lambda: Workload(["a > 1"], weights=[-1]), "1 weights for 1 queries"),
        (lambda: Workload(["sin(price) > 1"]).bind(facts(1).schema), "no query has"),
        (lambda: QueryTree.from_json({"format": 2}), "format 2"),
        (lambda: QueryTree.from_json({"format": 1}), "damaged"),
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


def test_values_of_another_type_are_refused_by_name() -> None:
    rows = facts(500)
    tree = QueryTree.fit(rows, Workload(["year = 1993"]).bind(rows.schema), n_files=3)
    with pytest.raises(LayoutError, match="'year'"):
        tree.assign([pa.array(["x"]) for _ in tree.columns])


def test_row_sizes_give_files_of_equal_size() -> None:
    rows = facts()
    heavy = rows["region"].to_numpy(zero_copy_only=False) == "ASIA"
    sizes = np.where(heavy, 20.0, 1.0)
    workload = Workload(QUERIES).bind(rows.schema)
    tree = QueryTree.fit(rows, workload, n_files=20, weights=sizes)
    share = sizes.sum() / 20
    found = np.bincount(files_of(tree, rows), weights=sizes, minlength=20)
    assert found.min() >= LEAST_FILL * share * 0.75
    assert found.max() <= MOST_FILL * share * 1.25


def test_boxes_leave_null_out_of_the_bounds_of_values() -> None:
    codes = np.array([[0, 5, 6, 0, 0, 3, 4]], np.uint16)
    boxes = Boxes.of_runs(codes, np.array([0, 3, 5]))
    assert boxes.low.tolist() == [[5, 0, 3]]
    assert boxes.high.tolist() == [[6, 0, 4]]
    assert boxes.nulls.tolist() == [[True, True, False]]
    assert boxes.growing().low.tolist() == [[5, 5, 3]]
    assert boxes.growing(backwards=True).low.tolist() == [[3, 3, 3]]
    assert boxes.growing(backwards=True).nulls.tolist() == [[True, True, False]]


def test_values_below_the_sample_are_no_null() -> None:
    rows = facts()
    tree = QueryTree.fit(rows, Workload(["year IS NULL"]).bind(rows.schema), n_files=50)
    sent = tree.assign([pa.array([None, 1900, 1992], pa.int64())]).files
    assert sent[0] < sent[1]


def test_salt_deals_out_a_heavy_row_wherever_it_stands() -> None:
    rows = pa.table({"x": [1] * 900 + [5] * 100})
    tree = QueryTree.fit(rows, Workload(["x < 3"]).bind(rows.schema), n_files=10)
    assert tree.needs_salt
    salt = np.random.default_rng(6).integers(-(2**63), 2**63 - 1, 1_000)
    together = tree.assign([rows["x"]], salt=salt).files
    assert set(together[:900].tolist()) == set(range(9))
    assert set(together[900:].tolist()) == {9}
    backwards = tree.assign([rows["x"].combine_chunks()[::-1]], salt=salt[::-1]).files
    assert (backwards[::-1] == together).all()


@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_a_sample_of_no_or_few_rows_still_gives_a_layout(n_rows: int) -> None:
    rows = facts(100)
    workload = Workload(QUERIES).bind(rows.schema)
    for method in ("best", "tree", "curve"):
        few = rows.slice(0, n_rows)
        layout = choose_layout(few, workload, n_files=3, method=method).layout
        assert layout.n_files == 3
        files = layout.assign([rows[name] for name in layout.columns]).files
        assert set(files.tolist()) <= {0, 1, 2}


@given(st.integers(0, 1000), st.sampled_from([(), ("region",)]))
@settings(max_examples=15, deadline=None)
def test_a_tree_without_data_has_the_same_leaves(seed: int, parts: Any) -> None:
    """Its steps are literals of the queries, and each row goes to the same leaf."""
    rows = facts(1_000).take(pa.array(np.random.default_rng(seed).permutation(1_000)))
    workload = Workload(QUERIES).bind(rows.schema)
    tree = QueryTree.fit(
        rows, workload, n_files=9, inside=("city", "price"), partition_by=parts
    )
    left = tree.without_data(parts)
    if parts:
        assert left is None, "its forks are at values of the partition column"
        return
    assert left is not None
    literals = {own.column: set(own.values) for own in WhatIf(workload).steps}
    for steps in left.steps:
        assert set(steps.values) <= literals.get(steps.column, set())
    assert any(len(own.values) > 60 for own in tree.steps)
    again = QueryTree.from_json(json.loads(json.dumps(left.to_json())))
    assert again.without_data(()).to_json() == left.to_json()  # type: ignore[union-attr]

    def leaves_of(one: QueryTree) -> list[int]:
        arrays = [rows.column(name) for name in one.columns]
        firsts = np.array([leaf.first_file for leaf in one.leaves])
        order = np.sort(firsts)
        found = one.assign(arrays).files
        return list(order[np.searchsorted(order, found, side="right") - 1])

    assert leaves_of(again) == leaves_of(tree)
