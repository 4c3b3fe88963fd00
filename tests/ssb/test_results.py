"""The figures of the report that follow from records, and its tables."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ssb.grid.index_sets import FULL, NONE
from ssb.grid.records import CellRecord, LayoutRecord, QueryFigures, TimedQuery
from ssb.report import tables
from ssb.report.others import records_table, sums_table
from ssb.report.results import (
    Results,
    Timing,
    break_even,
    gains,
    losses,
)
from ssb.report.sentences import gained
from ssb.report.text import BuildCost, gain_of
from ssb.run import Outcome

QUERIES = ("Q1.1", "Q1.2")


def timed(query: str, plain: float, pruned: float, *, equal: bool = True) -> TimedQuery:
    return TimedQuery(
        query=query,
        plain=(plain, plain + 1, plain - 1),
        pruned=(pruned, pruned, pruned),
        n_bytes=(1000, 100),
        files=(10, 3),
        equal=equal,
    )


def cell(
    layout: str, indexes: str, kept: int, queries: Sequence[TimedQuery] = ()
) -> CellRecord:
    return CellRecord(
        layout=layout,
        indexes=indexes,
        build_seconds=0.0 if indexes == NONE else 5.0,
        index_bytes=0 if indexes == NONE else 100,
        data_bytes=1000,
        figures=tuple(
            QueryFigures(
                query=query,
                group="ssb",
                kept=kept,
                n_bytes=kept * 100,
                lost=0,
                cold=0.2,
                warm=0.1,
                stages={"min/max": 0.01, "row indexes": 0.09},
                funnel={"min/max": 10, "row indexes": kept},
            )
            for query in QUERIES
        ),
        timed=tuple(queries),
    )


def layout(name: str) -> LayoutRecord:
    return LayoutRecord(
        layout=name,
        what="rows in files",
        files=10,
        rows=100,
        rows_per_file=(10, 10),
        n_bytes=1000,
        seconds=2.0,
        matched=dict.fromkeys(QUERIES, 15),
        oracle=dict.fromkeys(QUERIES, 3),
    )


def results_of(*cells: CellRecord) -> Results:
    names = dict.fromkeys(one.layout for one in cells)
    return Results(
        run={},
        layouts={name: layout(name) for name in names},
        cells={(one.layout, one.indexes): one for one in cells},
        studies=[],
        others={"peers": [], "latency": []},
    )


def test_a_timing_sums_medians_and_averages_factors() -> None:
    both = Timing.of([timed("Q1.1", 8.0, 2.0), timed("Q1.2", 4.0, 4.0)])
    assert (both.plain, both.pruned) == (12.0, 6.0)
    assert both.factor == pytest.approx(2.0)
    assert both.n_bytes == (2000, 200)


@pytest.mark.parametrize(
    ("plain", "pruned", "after"),
    [(3.0, 2.0, 5), (3.0, 2.4, 9), (2.0, 2.0, None), (2.0, 3.0, None)],
)
def test_break_even_counts_queries(
    plain: float, pruned: float, after: int | None
) -> None:
    assert break_even(5.0, [timed("Q1.1", plain, pruned)] * 2) == after
    assert break_even(5.0, []) is None


def test_gains_compare_the_generated_data_with_each_timed_cell() -> None:
    slow = [timed(query, 8.0, 4.0) for query in QUERIES]
    fast = [timed(query, 4.0, 1.0) for query in (*QUERIES, "range")]
    found = results_of(cell("generated", FULL, 5, slow), cell("hilbert", FULL, 3, fast))
    assert gains(found) == [
        ("hilbert", FULL, 16.0, 2.0, pytest.approx(8.0)),
        ("generated", FULL, 16.0, 8.0, pytest.approx(2.0)),
    ]
    assert gained(found)[0].startswith(
        "From the data as generated, unpruned, to the layout hilbert with the indexes "
        "full, the 13 queries take 2.0 s, not 16.0 s: 8.0 times faster"
    )
    assert gains(results_of(cell("hilbert", FULL, 3, fast))) == []


def test_every_loss_is_told() -> None:
    good = [timed(query, 3.0, 1.0) for query in QUERIES]
    fine = results_of(
        cell("hilbert", NONE, 10),
        cell("hilbert", "minmax", 6),
        cell("hilbert", FULL, 3, good),
    )
    assert losses(fine) == []
    bad = results_of(
        cell("hilbert", NONE, 10),
        cell("hilbert", "minmax", 10),
        cell("hilbert", "bloom", 10),
        cell("hilbert", FULL, 4, [timed("Q1.1", 2.0, 3.0)]),
    )
    assert [(loss.where, loss.what) for loss in losses(bad)] == [
        ("hilbert with minmax", "no file is skipped for any query"),
        ("hilbert with bloom", "no file is skipped for any query"),
        (
            "hilbert with bloom",
            "0.0 MB of indexes skip no file that min/max does not skip",
        ),
        (
            "hilbert with full: Q1.1",
            "1.50 times the unpruned time (3.00 s, not 2.00 s); 3 of 10 files are read",
        ),
        ("hilbert with full", "the build never pays for itself"),
        ("hilbert with full: Q1.1", "4 files are read, 3 hold a match"),
        ("hilbert with full: Q1.2", "4 files are read, 3 hold a match"),
    ]


def test_kept_files_stand_beside_oracle_and_ideal() -> None:
    found = results_of(cell("hilbert", NONE, 10), cell("hilbert", FULL, 4))
    table = tables.kept_table(found)
    assert list(table.heads) == ["files kept", "hilbert"]
    assert list(table.rows) == [
        ("queries", 2),
        ("files in all", 20),
        (NONE, 20),
        (FULL, 8),
        ("oracle", 6),
        ("ideal", 4),
    ]


def test_a_build_that_does_not_pay_says_never() -> None:
    slower = [timed("Q1.1", 2.0, 3.0)]
    found = results_of(cell("hilbert", "minmax", 4), cell("hilbert", FULL, 4, slower))
    table = tables.cost_table(found)
    assert [row[-1] for row in table.rows] == [None, "never"]
    assert tables.is_number([row[-1] for row in table.rows])


def test_texts_that_begin_with_a_number_stand_at_the_left() -> None:
    assert tables.is_number([1, 2.5, None, "10.0 %", "1.50 to 2.50"])
    assert not tables.is_number(["1.5 times the unpruned time"])


def test_records_of_others_are_shown_and_summed() -> None:
    records = [
        {"peer": "a", "query": "Q1.1", "kept": 3, "gain": 4.0, "right": True},
        {"peer": "a", "query": "Q1.2", "kept": 5, "gain": 1.0, "right": False},
        {"peer": "b", "query": "Q1.1", "kept": None, "gain": None, "note": "cannot"},
    ]
    whole = records_table("all", records)
    assert list(whole.heads) == ["peer", "query", "kept", "gain", "right", "note"]
    assert whole.rows[0] == ("a", "Q1.1", 3, 4.0, "yes", None)
    sums = sums_table(records)
    assert sums is not None
    assert list(sums.heads) == ["peer", "queries", "kept", "gain", "right"]
    assert list(sums.rows) == [
        ("a", 2, 8, pytest.approx(2.0), "no"),
        ("b", 1, None, None, None),
    ]
    assert sums_table([{"peer": "a", "s": 2.0}]) is None


def test_gains_of_the_quick_run_in_plain_words() -> None:
    first = Outcome(
        query="Q1.1",
        matched=3,
        files=10,
        kept={"minmax": 8, "bloom": 6, "bitmaps": 4},
        oracle=4,
        lost=(),
        n_bytes=(10_000_000, 4_000_000),
        plan_seconds=0.01,
        seconds=(4.0, 2.0),
        equal=True,
        counted=(3, 3),
    )
    last = replace(first, seconds=(1.5, 1.0))
    costs = {
        "unordered": BuildCost(3.0, 2_500_000, 10_000_000),
        "clustered": BuildCost(0.0, 1_000_000, 10_000_000),
    }
    assert gain_of({"unordered": [first], "clustered": [last]}, costs).splitlines() == [
        (
            "unordered: 1 queries read 4 of 10 files and 4 of 10 MB, and take 2.0 s, "
            "not 4.0 s: 2.0 times faster."
        ),
        "  Its indexes are 2.5 MB, 25 % of the data, and were built in 3.0 s.",
        (
            "clustered: 1 queries read 4 of 10 files and 4 of 10 MB, and take 1.0 s, "
            "not 1.5 s: 1.5 times faster."
        ),
        "  Its indexes are 1.0 MB, 10 % of the data.",
        (
            "From the first layout, unpruned, to the last one, pruned: 4.0 s "
            "become 1.0 s; in the geometric mean a query is 4.0 times faster."
        ),
    ]


@pytest.mark.parametrize(
    "module",
    [
        "ssb.grid.progress",
        "ssb.report.charts",
        "ssb.report.results",
        "ssb.report.tables",
        "ssb.report.text",
        "ssb.workloads.drawn",
        "ssb.workloads.workload",
    ],
)
def test_examples_of_docstrings_run(module: str) -> None:
    loaded = pytest.importorskip(module, exc_type=ImportError)
    found = doctest.testmod(loaded)
    assert found.attempted
    assert not found.failed
