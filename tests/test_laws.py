"""Each law has tests that guard it, and mutants that prove that they do."""

from __future__ import annotations

import re

import pytest

from tests.heavy.catalogue import SWEEPS
from tests.heavy.mutants.catalogue import MUTANTS
from tests.laws import LAWS, PAGE, ROOT, Law, with_table


def test_they_are_those_of_the_architecture() -> None:
    page = (PAGE.parent / "architecture.md").read_text()
    listed = page[page.index("## The laws") : page.index("## Files and columns")]
    names = re.findall(r"^\d\. \*([^*]+)\*", listed, re.MULTILINE)
    assert names == [law.name for law in LAWS]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_each_has_quick_tests_sweeps_and_mutants(law: Law) -> None:
    for path in law.quick:
        files = [ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py")
        assert any(file.name.startswith("test_") for file in files), path
        assert (ROOT / path).exists(), path
    assert law.heavy
    assert set(law.heavy) <= SWEEPS.keys()
    assert law.mutants


def test_each_mutant_breaks_one() -> None:
    proofs = {mutant.name for law in LAWS for mutant in law.mutants}
    assert sorted({mutant.name for mutant in MUTANTS} - proofs) == []


def test_the_page_has_the_table_of_today() -> None:
    page = PAGE.read_text()
    assert with_table(page) == page, "run python -m tests.laws"
