"""The layout that puts the rows of a workload's answers together."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import LayoutError
from skipindex.layout import Answers, CurveLayout, Workload, choose_layout
from skipindex.layout.workload.answers import MAX_CONDITIONS, MAX_TOLD, choose_answers
from skipindex.layout.workload.workload import BoundWorkload
from tests.layout.facts import N_ROWS, facts, files_of
from tests.quick_run import examples

N_FILES = 40
QUERIES = [
    "region = 'ASIA' AND year BETWEEN 1993 AND 1994 AND price < 300",
    "region = 'EUROPE' AND price < 100",
    "year = 1997 AND price >= 900",
    "(city = 'c07' OR city = 'c31') AND year <= 1995",
]
OTHERS = [
    "region = 'AFRICA' AND year BETWEEN 1995 AND 1996 AND price < 300",
    "region = 'AMERICA' AND price < 100",
    "year = 1994 AND price >= 900",
    "(city = 'c11' OR city = 'c44') AND year <= 1995",
]


def bound(rows: pa.Table, queries: list[str], **given: Any) -> BoundWorkload:
    return Workload(queries, **given).bind(rows.schema)


def answers_of(layout: CurveLayout) -> Answers:
    assert layout.answers is not None
    return layout.answers


def fitted(rows: pa.Table, queries: list[str] = QUERIES) -> CurveLayout:
    choice = choose_layout(
        rows, bound(rows, queries), n_files=N_FILES, method="answers"
    )
    assert answers_of(choice.layout).conditions
    return choice.layout


def matches(rows: pa.Table, where: str) -> np.ndarray:
    """The rows that match by DuckDB, which answers these queries as Spark does."""
    with duckdb.connect() as con:
        con.register("facts", rows)
        found = con.execute(f"SELECT coalesce({where}, false) AS m FROM facts")
        return np.array([m for (m,) in found.fetchall()], np.bool_)


def n_read(rows: pa.Table, files: np.ndarray, queries: list[str]) -> int:
    """Files that hold a matching row, all queries together."""
    return sum(len(np.unique(files[matches(rows, where)])) for where in queries)


def test_answers_are_in_few_files_and_other_literals_lose_little() -> None:
    rows = facts()
    files = files_of(fitted(rows), rows)
    curve = choose_layout(rows, bound(rows, QUERIES), n_files=N_FILES, method="curve")
    assert curve.layout.answers is None
    along = files_of(curve.layout, rows)
    share = N_ROWS / N_FILES
    ideal = sum(-(-int(matches(rows, where).sum()) // share) for where in QUERIES)
    assert n_read(rows, files, QUERIES) <= 2 * ideal < n_read(rows, along, QUERIES) / 2
    assert n_read(rows, files, OTHERS) <= 1.3 * n_read(rows, along, OTHERS)


def test_a_bit_of_the_signature_is_the_answer_of_its_query() -> None:
    rows = facts()
    answers = answers_of(fitted(rows))
    found = answers.signatures([rows[name] for name in answers.columns], len(rows))
    truth = [matches(rows, where) for where in QUERIES]
    truth.sort(key=np.sum)
    expected = np.zeros(N_ROWS, np.int64)
    for one in truth:  # the smallest first, in the most significant bit
        expected = expected << 1 | one
    assert (found == expected).all()
    assert not answers.left_out


def test_every_row_has_one_file_and_no_file_is_far_from_even() -> None:
    rows = facts()
    sizes = np.bincount(files_of(fitted(rows), rows), minlength=N_FILES)
    assert len(sizes) == N_FILES
    assert sizes.sum() == N_ROWS
    assert sizes.min() >= 0.3 * N_ROWS / N_FILES
    assert sizes.max() <= 2 * N_ROWS / N_FILES


def test_rows_of_one_small_signature_share_a_file() -> None:
    rows = facts()
    layout = fitted(rows)
    files = files_of(layout, rows)
    found = answers_of(layout).signatures(
        [rows[name] for name in answers_of(layout).columns], len(rows)
    )
    for signature in layout.known.tolist():
        own = files[found == signature]
        if len(own) < N_ROWS / N_FILES:
            assert len(set(own.tolist())) == 1


def test_stored_conditions_put_appended_rows_in_the_same_order() -> None:
    rows, appended = facts(), facts(3_000, seed=2)
    layout = fitted(rows)
    stored = Answers.from_json(json.loads(json.dumps(answers_of(layout).to_json())))
    assert stored.columns == answers_of(layout).columns
    again = CurveLayout.fit(appended, layout.base, n_files=10, answers=stored)
    arrays = [appended[name] for name in stored.columns]
    expected = answers_of(layout).signatures(arrays, len(appended))
    assert (stored.signatures(arrays, len(appended)) == expected).all()
    placed = again.assign([appended[name] for name in again.columns])
    order = np.argsort(placed.keys, kind="stable")
    assert (np.diff(expected[order]) >= 0).all()
    assert (np.diff(placed.files[order]) >= 0).all()
    assert n_read(appended, placed.files, QUERIES) <= 12


def test_one_row_alone_goes_where_it_went_in_company() -> None:
    rows = facts(500)
    layout = fitted(rows)
    together = files_of(layout, rows)
    for i in range(0, 500, 50):
        assert files_of(layout, rows.slice(i, 1)).tolist() == [together[i]]


VALUES: dict[str, list[Any]] = {
    "double": [None, -math.inf, -1.5, -0.0, 0.0, 2.0, math.inf, math.nan],
    "text": [None, "", "a", "ab", "é", "\U0001f600"],
    "exact": [None, Decimal("-1.50"), Decimal("0.00"), Decimal("0.01")],
    "flag": [None, False, True],
}
CONDITIONS = [
    "double >= 0",
    "double > 1e308",
    "double < 2 AND text > 'a'",
    "text = 'é' OR double IS NULL",
    "text IN ('a', 'ab') AND double IS NOT NULL",
    "text NOT IN ('a', 'é')",
    "flag",
    "NOT flag AND exact <= 0",
]


@examples(40)
@given(
    st.lists(st.tuples(*(st.sampled_from(v) for v in VALUES.values())), max_size=60),
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=4, unique=True),
    st.integers(1, 8),
)
def test_null_and_nan_match_as_in_spark_and_every_row_gets_a_file(
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
    answers = choose_answers(sample, bound(sample, queries), share=1)
    layout = CurveLayout.fit(sample, ["text"], n_files=n_files, answers=answers)
    placed = layout.assign([sample[name] for name in layout.columns])
    assert set(placed.files.tolist()) <= set(range(n_files))
    found = answers.signatures([sample[name] for name in answers.columns], len(sample))
    # DuckDB, like Spark, has NaN above infinity, and -0.0 equal to 0.0.
    together = " OR ".join(f"coalesce({where}, false)" for where in queries)
    assert ((found > 0) == matches(sample, together)).all()


def test_queries_that_most_rows_match_and_unknown_conditions_are_reported() -> None:
    rows = facts()
    asked = [*QUERIES, "price >= 10", "sin(price) > 0.5"]
    asked.append("city = 'c01' AND city LIKE '%0_' AND sin(1) > 0")
    answers = choose_answers(rows, bound(rows, asked), share=0.2)
    assert len(answers.conditions) == len(QUERIES) + 1
    assert "price >= 10" in " ".join(answers.left_out)
    assert sum("sin" in one.lower() for one in answers.left_out) == 2
    assert sum("LIKE" in one for one in answers.left_out) == 1


def test_the_share_caps_the_rows_and_weights_decide_what_is_in() -> None:
    rows = facts()
    asked = ["price < 100", "year = 1993"]
    rare = choose_answers(rows, bound(rows, asked, weights=[1, 9]), share=0.15)
    (left,) = rare.left_out
    assert "price" in left
    often = choose_answers(rows, bound(rows, asked, weights=[9, 1]), share=0.15)
    (left,) = often.left_out
    assert "year" in left
    none = choose_answers(rows, bound(rows, asked), share=0)
    assert not none.conditions
    layout = CurveLayout.fit(rows, ["price"], n_files=5, answers=none)
    assert np.bincount(files_of(layout, rows), minlength=5).min() > 0


def test_a_log_of_many_queries_is_merged_to_few_conditions() -> None:
    rows = facts(2_000)
    rng = np.random.default_rng(3)
    asked = [
        f"city = 'c{rng.integers(50):02}' AND price < {rng.integers(1, 30)}"
        for _ in range(1_200)
    ]
    answers = choose_answers(rows, bound(rows, asked), share=0.2)
    assert 1 < len(answers.conditions) <= MAX_CONDITIONS
    found = answers.signatures([rows[name] for name in answers.columns], len(rows))
    assert 0 < (found > 0).mean() <= 0.2
    assert (found >= 0).all()
    assert len(answers.left_out) == MAX_TOLD + 1
    assert answers.left_out[-1].endswith("more")


def test_partition_values_come_before_answers() -> None:
    rows = facts()
    layout = choose_layout(
        rows,
        bound(rows, QUERIES),
        n_files=N_FILES,
        method="answers",
        partition_by=["region"],
    ).layout
    assert answers_of(layout).conditions
    placed = layout.assign([rows[name] for name in layout.columns])
    order = np.argsort(placed.keys, kind="stable")
    regions = rows["region"].to_numpy(zero_copy_only=False)[order]
    assert (regions[1:] >= regions[:-1]).all()


@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_a_sample_of_no_or_few_rows_still_gives_a_layout(n_rows: int) -> None:
    rows = facts(100)
    workload = bound(rows, QUERIES)
    few = rows.slice(0, n_rows)
    layout = choose_layout(few, workload, n_files=3, method="answers").layout
    files = layout.assign([rows[name] for name in layout.columns]).files
    assert set(files.tolist()) <= {0, 1, 2}


def _damaged(**change: Any) -> dict[str, Any]:
    return answers_of(fitted(facts(500))).to_json() | change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2"),
        ({"conditions": None}, "damaged"),
        ({"conditions": [{"column": 99, "within": [[0, 1]]}]}, "column 99"),
        ({"conditions": [{"column": 0, "within": [[5, 1]]}]}, "codes"),
        ({"conditions": [{"column": 0, "within": [["a", "b"]]}]}, "column 0"),
        ({"conditions": ["java_method('a', 'b')"]}, "damaged"),
        ({"conditions": [{"all": []}] * 49}, "49 conditions"),
        ({"steps": [{}]}, "damaged"),
    ],
)
def test_damaged_answers_are_refused_in_one_sentence(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        Answers.from_json(_damaged(**change))
    assert "\n" not in str(caught.value)


def test_a_share_is_between_none_and_all_and_survives_json() -> None:
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(LayoutError, match="answers_share"):
            Workload(["a > 1"], answers_share=share)
    workload = Workload(["a > 1"], method="answers", answers_share=0.1)
    assert Workload.from_json(json.loads(json.dumps(workload.to_json()))) == workload
    old = {key: v for key, v in workload.to_json().items() if key != "answers_share"}
    assert Workload.from_json(old).answers_share == 0.2
