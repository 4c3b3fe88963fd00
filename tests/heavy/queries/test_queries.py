"""A slice of the random queries, and what the sweep itself would see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests.heavy.mutants.catalogue import ONE_FILE_MORE, of
from tests.heavy.mutants.run import applied
from tests.heavy.queries.judge import difference
from tests.heavy.queries.player import LATE, Outcome
from tests.heavy.queries.scripts import Script, Step
from tests.heavy.queries.sweep import CONF, Sweep
from tests.heavy.queries.texts import Draft

pytestmark = pytest.mark.spark

_JUDGED: Final = "spark.pruning.judged_columns.judged_columns"


@pytest.fixture
def sweep(spark: SparkSession, tmp_path: Path) -> Iterator[Sweep]:
    """On a session of its own, so that others are not pruned."""
    home = spark.newSession()
    for name, value in CONF.items():
        if name.startswith("spark.sql"):
            home.conf.set(name, value)
    made = Sweep(home, seed=7, work=tmp_path)
    yield made
    made.close()


def check(sweep: Sweep, cases: Sequence[int]) -> None:
    for case in cases:
        assert sweep.case(case) == ""
    assert sweep.tally.queries >= len(cases)
    assert sweep.tally.skipped > 0


@pytest.mark.slow
def test_queries_of_four_tables(sweep: Sweep) -> None:
    check(sweep, sorted({*range(0, 100, 7), *range(0, 100, 30)}))


@pytest.mark.slow
def test_more_queries(sweep: Sweep) -> None:
    case = 1000
    while sweep.tally.queries < 300:
        assert sweep.case(case) == ""
        case += 1
    assert 3 * sweep.tally.skipped >= sweep.tally.filters > 0


@pytest.mark.slow
def test_a_file_that_is_wrongly_skipped_is_noticed(sweep: Sweep) -> None:
    with applied(ONE_FILE_MORE):
        assert any(sweep.case(case, shrinks=False) for case in range(119, 150))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "first"),
    [
        ("spark.pruning.tables.ScannedTable.unchanged", 0),
        (f"{_JUDGED}: never scan.is_catalog_table", 210),
    ],
)
def test_a_planner_that_is_wrong_is_noticed(
    sweep: Sweep, function: str, first: int
) -> None:
    """At the table of the case ``first``, which is one that it is wrong about."""
    sweep.seed = 77
    [mutant] = of(function)
    with applied(mutant):
        assert any(sweep.case(first + i, shrinks=False) for i in range(30))


@pytest.mark.slow
def test_rows_that_spark_drops_by_its_own_filters_do_not_count(sweep: Sweep) -> None:
    sweep.seed = 95779574
    assert sweep.case(13) == ""
    assert sweep.tally.n_by_floats == 1


def script(*steps: Step) -> Script:
    return Script(steps, {}, {}, "text", False, "home", "setting", False, True)


def told(on: Outcome, off: Outcome, draft: Draft | None = None) -> str:
    return difference(script(Step("sql", draft or Draft("SELECT 1"))), ([on], [off]))


def test_the_judge() -> None:
    rows = Outcome(["(1,)", "(2,)"])
    assert told(rows, rows) == ""
    assert "1 are lost" in told(Outcome(["(1,)"]), rows)
    assert "1 too many" in told(rows, Outcome(["(1,)"]))
    assert "another order" in told(Outcome(rows.rows and rows.rows[::-1]), rows)
    limited = Draft("SELECT 1 LIMIT 1", within="SELECT 1")
    among = Outcome(["(1,)"], among=["(1,)", "(2,)"])
    assert told(Outcome(["(2,)"]), among, limited) == ""
    assert "not there" in told(Outcome(["(3,)"]), among, limited)
    assert "0 on" in told(Outcome([]), among, limited)


def test_the_judge_of_errors() -> None:
    rows = Outcome([])
    late, early = Outcome(error="DIVIDE", at_run=True), Outcome(error="NO_COLUMN")
    assert told(late, late) == ""
    assert told(rows, late) == ""  # the row that raises is in a file that is not read
    assert "an error with skipping on" in told(late, rows)
    assert "no error with skipping on" in told(rows, early)
    assert "another error" in told(late, early)


def test_the_judge_of_queries_at_once() -> None:
    def both(on: list[str], off: list[str]) -> str:
        step = Step("together", drafts=(Draft("SELECT 1"), Draft("SELECT 2")))
        return difference(script(step), ([Outcome(on)], [Outcome(off)]))

    rows = ["0: (1,)", "0: (2,)", "1: (3,)"]
    assert both(rows, rows) == ""
    assert both(rows, [f"0: {LATE}", "1: (3,)"]) == ""
    assert both(["1: (3,)"], [f"0: {LATE}", "1: (3,)"]) == ""
    assert "1 are lost" in both(rows[:2], [f"0: {LATE}", "1: (3,)"])
    assert "too many" in both([f"0: {LATE}", "1: (3,)"], rows)
    assert "are lost" in both(rows, ["0: NO_COLUMN", "1: (3,)"])
