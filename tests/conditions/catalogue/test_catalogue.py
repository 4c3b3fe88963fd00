"""The conditions of the catalogue: everyone who is asked finds the rows of Spark.

The quick run asks for each condition the planner with all kinds of index, and by turns
one kind alone and one engine; the sweep ``conditions`` asks all of them, and Spark.
"""

from __future__ import annotations

import pytest

from tests.conditions.catalogue.entries import BASE, Entry, entries, entry_of
from tests.conditions.catalogue.judges import plan_of, plan_wrong, rows_wrong, wrong
from tests.conditions.catalogue.tables import MADE, rows_of

PARTS = 4
"""Parts of a long file, which run in several processes."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table", MADE)
def test_all_find_the_rows_that_spark_finds(table: str, part: int) -> None:
    troubles = [
        trouble
        for number, entry in enumerate(entries(table))
        if number % PARTS == part
        for trouble in wrong(entry)
    ]
    assert not troubles, "\n".join(troubles[:20])


def test_every_condition_was_asked_once() -> None:
    every = entries()
    keys = [(one.table, one.zone, one.text) for one in every]
    assert len(keys) == len(set(keys)), sorted(keys)
    assert [str(one) for one in every if BASE not in one.truths] == []
    assert all(entry_of(one.table, one.zone, one.line) == one for one in every)
    assert all(
        len(t) in {len(rows_of(one.table)), rows_of(one.table).n_calm}
        for one in every
        for t in one.known
    )


def test_plans_are_exact_for_most_conditions() -> None:
    known = [one for one in entries() if one.known]
    assert len(known) > 2000
    assert sum(one.doubt == 0 for one in known) > 0.75 * len(known)
    assert sum(not one.refused for one in known) > 0.75 * len(known)


LIE = Entry("hours", "UTC", "t < TIMESTAMP '2024-10-27 00:00:00'")


@pytest.mark.parametrize(
    ("truth", "trouble"),
    [
        ("++++--------", ""),
        ("+++++-------", "skips files with the rows [4]"),
        ("+-++--------", "counts 2 to 2 rows in the file 0, of which match [0]"),
    ],
)
def test_a_wrong_plan_is_noticed(truth: str, trouble: str) -> None:
    plan = plan_of("hours", LIE.text, "UTC")
    assert plan_wrong("hours", plan, truth) == trouble


def test_a_failure_names_the_condition_who_was_asked_and_the_rows() -> None:
    assert rows_wrong([0, 2], "++-") == "rows too many: [2], lacking: [1], of 2"
    lie = Entry("hours", "UTC", LIE.text, {BASE: "++++-+------"})
    (first, *_) = wrong(lie)
    assert first == (
        "hours.txt [UTC]: t < TIMESTAMP '2024-10-27 00:00:00'\n"
        "    the plan: skips files with the rows [5]"
    )
