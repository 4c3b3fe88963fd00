"""The rules of ``docs/format.md``: every committed row counts exactly once."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.model.search import CASTS, DEEP, search
from tests.model.state import NEW_RULES, OLD_RULES, Rules

AT_MOST = 17
"""Steps; ``make model`` goes deeper."""
OF_ALL = 130_000
"""No cast of three parties has more states."""


@pytest.mark.parametrize("name", CASTS)
def test_the_rules_of_format_2_lose_or_double_rows(name: str) -> None:
    found = search(CASTS[name], OLD_RULES)
    assert found.problem
    assert len(found.way) <= 40


NEEDED = {
    "nonce": "a lost answer",
    "looks_again": "a number that is free again",
    "each_file": "a partition that is dropped",
    "names": "a copy of an overwrite",
    "twins_first": "a publisher that sleeps",
    "looks_before_deleting": "a file that is written again",
    "new_is_there": "a foreign record",
    "all_visible": "a file that is deleted",
    "stands": "a vacuum that sleeps",
}
"""By rule, a cast that goes wrong without it alone."""


@pytest.mark.parametrize("rule", [field.name for field in fields(Rules)])
def test_each_rule_is_needed(rule: str) -> None:
    assert search(CASTS[NEEDED[rule]], NEW_RULES.without(rule)).problem


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASTS)
def test_with_all_rules_nothing_goes_wrong(name: str) -> None:
    """All that three parties can do, whatever order they do it in."""
    found = search(CASTS[name])
    assert not found.problem, str(found)
    assert found.whole
    assert found.n_states < OF_ALL


@pytest.mark.few(3)
@pytest.mark.parametrize("name", DEEP)
def test_nor_where_there_are_more_parties(name: str) -> None:
    found = search(DEEP[name], depth=AT_MOST)
    assert not found.problem, str(found)
    assert found.depth == AT_MOST
