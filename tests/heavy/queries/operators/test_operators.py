"""A few random cases of every form, and what the sweep itself would see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.heavy.mutants.catalogue import ONE_FILE_MORE
from tests.heavy.mutants.run import applied
from tests.heavy.queries.operators.cases import Case, Step
from tests.heavy.queries.operators.forms import FORMS, forms_here
from tests.heavy.queries.operators.sweep import CONF, Sweep
from tests.heavy.queries.operators.watch import at_most

pytestmark = pytest.mark.spark
PAGE = Path(__file__).parents[4] / "docs/evaluated-again.md"
FEW = 5
"""Cases of each form where time does not matter."""


@pytest.fixture(scope="module")
def home(spark: SparkSession) -> SparkSession:
    """A session of its own, so that others are not pruned."""
    home = spark.newSession()
    for name, value in CONF.items():
        if name.startswith("spark.sql"):
            home.conf.set(name, value)
    return home


@pytest.fixture(scope="module")
def sweep(
    home: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sweep]:
    """One world for the cases of all forms."""
    made = Sweep(home, seed=7, work=tmp_path_factory.mktemp("sweep"))
    yield made
    made.close()


def check(sweep: Sweep, form: str, cases: range) -> None:
    if form not in forms_here():
        pytest.skip("this version of Spark does not have it")
    sweep.forms = [form]
    for case in cases:
        assert sweep.case(case, shrinks=False) == ""


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form(sweep: Sweep, form: str) -> None:
    check(sweep, form, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_more_forms(home: SparkSession, tmp_path: Path, seed: int) -> None:
    sweep = Sweep(home, seed=seed, work=tmp_path)
    try:
        case = 0
        while sweep.queries < 150:
            assert sweep.case(case) == ""
            case += 1
        assert 4 * sweep.n_fewer >= sweep.n_answers > 0
    finally:
        sweep.close()


@pytest.mark.slow
def test_a_file_that_is_wrongly_skipped_is_noticed(sweep: Sweep) -> None:
    sweep.forms = ["star", "subquery", "window"]
    with applied(ONE_FILE_MORE):
        told = (sweep.case(case, shrinks=False) for case in range(30))
        assert any("are lost" in one for one in told)


def test_a_case_is_that_of_its_seed(sweep: Sweep) -> None:
    sweep.forms = forms_here()
    assert str(sweep.drawn(11)[1]) == str(sweep.drawn(11)[1])
    assert str(sweep.drawn(11)[1]) != str(sweep.drawn(12)[1])


def test_smaller_cases() -> None:
    steps = (Step("do", "x"), Step("ask", "SELECT «0»", ("a = 1",)))
    case = Case("chain", steps, {"s": "1"}, on_first=True)
    assert [len(one.steps) for one in case.smaller()] == [1, 1, 2, 2]
    assert "SELECT true" in str(list(case.smaller())[-1])


def test_a_query_that_does_not_end_is_cancelled(home: SparkSession) -> None:
    text = "SELECT count(*) FROM range(40000) a JOIN range(90000) b ON a.id + b.id < 0"
    with pytest.raises(Exception, match="cancel"), at_most(home, 0.5):
        home.sql(text).collect()


def test_the_page_names_every_form() -> None:
    named = re.findall(r"\| `(\w+)`[^|]*\|$", PAGE.read_text(), re.MULTILINE)
    assert set(named) == set(FORMS)
