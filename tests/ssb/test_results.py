"""The figures of the report that follow from records, and its tables."""

from __future__ import annotations

import doctest
from collections.abc import Sequence

import pytest

from ssb.grid.index_sets import FULL, NONE
from ssb.grid.records import CellRecord, LayoutRecord, QueryFigures, TimedQuery
from ssb.report.results import (
    Results,
    break_even,
    gains,
    losses,
)
from ssb.report.sentences import gained

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
        others={"peers": [], "latency": []},
    )


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


@pytest.mark.parametrize(
    "module",
    [
        "ssb.progress",
        "ssb.report.charts",
        "ssb.report.tables",
        "ssb.report.text",
        "ssb.workloads.drawn",
        "ssb.queries",
    ],
)
def test_examples_of_docstrings_run(module: str) -> None:
    loaded = pytest.importorskip(module, exc_type=ImportError)
    found = doctest.testmod(loaded, optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed
