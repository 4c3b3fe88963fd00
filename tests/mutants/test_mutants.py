"""The mutants fit the source, and some of them are run; ``make mutants`` runs all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import run
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.run import mutated, survives

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_the_source(mutant: Mutant) -> None:
    compile(mutated(mutant), mutant.module, "exec")
    assert all((run.ROOT / test).is_file() for test in mutant.tests)


def test_mutants_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(MUTANTS)


def test_a_mutant_that_does_not_fit_is_out_of_date() -> None:
    gone = Mutant("gone", "expressions/bounds.py", "no such text", "", "", ())
    with pytest.raises(ValueError, match="'gone' is out of date"):
        mutated(gone)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["merge-or-as-and", "hive-null", "decimal-rounded"])
def test_mutants_are_caught(name: str) -> None:
    assert survives(BY_NAME[name]) == ""


@pytest.mark.slow
def test_a_harmless_change_survives(tmp_path: Path) -> None:
    same = Mutant(
        "same",
        "planner/simplify.py",
        "def simplify(",
        "def  simplify(",
        "nothing is wrong",
        ("tests/planner/test_simplify.py",),
    )
    assert "passed" in survives(same)
