"""The rules of ``docs/format.md``: every committed row counts exactly once."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.heavy.model.search import CASTS, DEEP, search
from tests.heavy.model.state import ALL_RULES, Rules

AT_MOST = 17
"""Steps; ``make model`` goes deeper."""
OF_ALL = 220_000
"""No cast of three parties has more states."""


NEEDED = {
    "nonce": "a lost answer",
    "looks_again": "a number that is free again",
    "each_file": "a partition that is dropped",
    "twins_first": "a publisher that sleeps",
    "looks_before_deleting": "a file that is written again",
    "shown_first": "a rewrite that is rewritten",
    "copies_wait": "a copy of a vacuum",
    "copies_count": "a damaged commit",
    "trash": "a rewrite that is rewritten",
    "old_by_path": "a copy of a vacuum",
    "copy_by_time": "a copy of an overwrite",
    "changes": "a rewrite from begin to end",
    "gone_is_shown": "a damaged commit",
}
"""By rule, a cast that goes wrong without it alone."""
FOUND_LATE = {"twins_first"}
"""Rules that are missed after seconds."""


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(field.name, marks=pytest.mark.slow)
        if field.name in FOUND_LATE
        else field.name
        for field in fields(Rules)
    ],
)
def test_each_rule_is_needed(rule: str) -> None:
    assert search(CASTS[NEEDED[rule]], ALL_RULES.without(rule)).problem


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
