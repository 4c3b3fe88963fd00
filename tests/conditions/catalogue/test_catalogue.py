"""The conditions of the catalogue: everyone who is asked finds the rows of Spark.

The quick run asks for each condition the planner with all kinds of index, and of half
of them one other: a kind alone, an engine and so on.  The sweep ``conditions`` asks
all of them, and Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from skipindex.spark.catalyst.conditions import conditions
from tests.conditions.catalogue.entries import (
    BASE,
    Entry,
    entries,
    entry_of,
    templates,
)
from tests.conditions.catalogue.judges import (
    TYPES,
    parsed_truth,
    plan_of,
    plan_wrong,
    rows_wrong,
    wrong,
)
from tests.conditions.catalogue.tables import MADE, rows_of
from tests.conditions.catalogue.trees import versions
from tests.quick_run import RUN, spread

PARTS = 8
"""Parts of a long file, which run in several processes."""
QUICK = {"functions": 800}
"""Of each function there are conditions by all operators: a quick run asks for half."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table", MADE)
def test_all_find_the_rows_that_spark_finds(table: str, part: int) -> None:
    every = entries(table)
    if table in QUICK and not RUN.is_whole:
        every = [every[number] for number in spread(len(every), QUICK[table])]
    troubles = [trouble for entry in every[part::PARTS] for trouble in wrong(entry)]
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


def test_templates_are_conditions_on_one_column() -> None:
    of_integers = templates("i", "l")
    assert {"{v} = 1", "{v} IS NULL"} <= {*of_integers}
    assert not any(re.search(r"(?<![\w.'])[ildfs](?![\w'])", x) for x in of_integers)
    assert "{v} LIKE 'a%'" in templates("s")


def test_plans_are_exact_for_most_conditions() -> None:
    known = [one for one in entries() if one.known]
    assert len(known) > 2000
    assert sum(one.doubt == 0 for one in known) > 0.7 * len(known)
    assert sum(not one.refused for one in known) > 0.7 * len(known)


def test_the_oracle_evaluates_most_trees_that_are_parsed() -> None:
    """What a tree is apart from functions of columns, FALSE apart from NULL."""
    every = [one for one in entries("every") if one.known]
    assert sum(parsed_truth(one) is not None for one in every) > 0.7 * len(every)


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


# --- final conditions -----------------------------------------------------------

DIFFER = {
    "s = 5",  # ANSI mode casts text to a bigint
    "ntz > timestamp'2020-02-01 00:00:00'",
    "cast(ntz as timestamp) > timestamp'2020-02-01 00:00:00'",
    "i > (select max(k) from u)",
    "i = 3 and i = 4",
    "dte > current_date() - interval 3 days",  # they were recorded on two days
    "s = 'it''s \"q\" \\u65e5'",
}
"""Conditions of which the first and the last version make something else."""


def test_final_conditions_of_versions_differ_in_few_conditions() -> None:
    """Where they do not, the planner reads one SQL."""
    old, *_, new = versions().values()
    texts = old.keys() & new.keys()
    assert len(texts) > 100

    def read(trees: Mapping[str, str]) -> set[tuple[str, str]]:
        return {(text, conditions(trees[text], TYPES).text) for text in texts}

    assert {text for text, _ in read(old) ^ read(new)} <= DIFFER


def test_nothing_is_judged_of_columns_of_other_types() -> None:
    other = {name: f"other than {kind}" for name, kind in TYPES.items()}
    for trees in versions().values():
        for json in trees.values():
            text = conditions(json, other).text
            words = re.findall(r"\w+", re.sub(r"'(?:\\.|[^'\\])*'", "", text))
            assert TYPES.keys().isdisjoint(words), text
