"""Recorded final conditions are read as they were when they were recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skipindex.conditions.sql.parser import parse
from skipindex.expressions import And, Not, Or, Predicate, Unsupported, to_sql
from skipindex.spark.catalyst.conditions import conditions
from tests.spark.catalyst.recorded import HERE, TYPES, read

DIFFER = {
    "s = 5",  # ANSI mode casts text to a bigint
    "ntz > timestamp'2020-02-01 00:00:00'",
    "cast(ntz as timestamp) > timestamp'2020-02-01 00:00:00'",
    "i > (select max(k) from u)",
    "i = 3 and i = 4",
    "s = 'it''s \"q\" \\u65e5'",
}
"""Conditions of which the first and the last version make something else."""
RECORDED = sorted(HERE.glob("recorded_*.txt"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_a_version_hands_over_is_read_as_recorded(path: Path) -> None:
    some = [one for one in read(path) if one.json]
    assert len(some) > 100
    for one in some:
        result = conditions(one.json, TYPES)
        assert result.text == one.sql, one.condition
        if not any(map(holds_unsupported, result.parts)):
            assert to_sql(parse(one.sql)) == one.sql


def holds_unsupported(tree: Predicate) -> bool:
    match tree:
        case And(children) | Or(children):
            return any(map(holds_unsupported, children))
        case Not(child):
            return holds_unsupported(child)
    return isinstance(tree, Unsupported)


def test_what_versions_hand_over_differs_in_few_conditions() -> None:
    """Where they do not, the planner reads one SQL."""
    old, new = (
        {one.condition: one for one in read(path)}
        for path in (RECORDED[0], RECORDED[-1])
    )
    differ = {
        text for text in old.keys() & new.keys() if old[text].sql != new[text].sql
    }
    assert differ <= DIFFER


def test_nothing_is_judged_of_columns_of_other_types() -> None:
    other = {name: f"other than {kind}" for name, kind in TYPES.items()}
    for path in RECORDED:
        for one in read(path):
            text = conditions(one.json, other).text if one.json else ""
            words = re.findall(r"\w+", re.sub(r"'(?:\\.|[^'\\])*'", "", text))
            assert TYPES.keys().isdisjoint(words), text
