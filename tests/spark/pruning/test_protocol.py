"""Messages of the driver: what is missing or of another version skips nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from skipindex.errors import PlanError
from skipindex.spark.driver import sources
from skipindex.spark.pruning import protocol
from skipindex.spark.pruning.protocol import (
    Dimension,
    First,
    Function,
    Order,
    Question,
    Read,
    read_report,
)
from skipindex.spark.pruning.query_planner import SETTINGS, QueryPlanner
from skipindex.spark.pruning.tables import Tables
from skipindex.storage import disk_cache
from tests.spark.pruning.questions import equal, make

PAGE = Path(__file__).parents[3] / "docs/reference/driver-protocol.md"
PLACE = {"scheme": None, "authority": None, "root": "/t"}
SCAN = {
    **PLACE,
    "data": '{"type": "struct", "fields": []}',
    "data_types": {"id": "bigint"},
    "partitions_types": {},
    "is_catalog_table": False,
    "reader": {},
    "options": {},
}
DIMENSION = {
    **SCAN,
    "key": "k",
    "paths": ["a"],
    "sizes": [1],
    "millis": [2],
    "conjuncts": "[]",
    "keys": [["b", [7]]],
}
QUESTION = {
    **SCAN,
    "version": protocol.VERSION,
    "settings": dict.fromkeys(SETTINGS),
    "keys": [["id", [1]], ["id", DIMENSION]],
}
OPTIONAL = {
    "offsets": [-2211753600, 3600],
    "derived": {"year": "year(t)"},
    "listing": 3,
    "listed": "01",
    "folders": ["p=1"],
    "first": {"n": 1, "order": {"column": "[]", "direction": "ASC", "nulls": ""}},
    "answer": {"group": None, "functions": [{"name": "count", "column": None}]},
}
READ = {"number": 1, "scan": 2, "listed": 3, "read": 4, "unknown": 5}
MESSAGES: dict[str, tuple[dict[str, Any], Callable[[str], Any]]] = {
    "question": (QUESTION | OPTIONAL, lambda text: Question.read(f"{text}\n[]")),
    "read": (READ, read_report),
    "problem": ({"problem": "why", "root": "/t", "number": 1}, read_report),
}
MAPS = {"settings", "reader", "options", "data_types", "partitions_types", "derived"}
"""Members that are objects of any names."""
MAY_LACK = {
    *("scheme", "authority", "order", "group", "column", "functions"),
    *("problem", "number", "root"),
    *OPTIONAL,
}
"""In one message at least."""


def objects(found: Any) -> Iterator[dict[str, Any]]:
    """All objects with members of ours in a message, itself among them."""
    if isinstance(found, list):
        for one in found:
            yield from objects(one)
    elif isinstance(found, dict):
        yield found
        yield from objects([value for name, value in found.items() if name not in MAPS])


@pytest.mark.parametrize("name", MESSAGES)
def test_a_member_that_lacks_or_is_another_is_named(name: str) -> None:
    message, read = MESSAGES[name]
    message = deepcopy(message)
    for one in objects(message):
        for member, value in list(one.items()):
            if member not in MAY_LACK:
                del one[member]
                with pytest.raises(PlanError, match=f"{member}.None"):
                    read(json.dumps(message))
            one[member] = 1.5
            with pytest.raises(PlanError, match=rf"{member}.1\.5"):
                read(json.dumps(message))
            one[member] = value
    read(json.dumps(message))


def test_the_parts_of_a_question() -> None:
    found = Question.read(f"{json.dumps(QUESTION | OPTIONAL)}\n[7]")
    assert found.conjuncts == "[7]"
    assert found.location().root == "/t"
    (_, keys), (_, side) = found.keys
    assert keys == [1]
    assert isinstance(side, Dimension)
    assert (side.key, side.sizes, side.keys) == ("k", [1], [("b", [7])])
    assert found.is_listed(2).tolist() == [False, True]
    assert found.first == First(
        n=1, order=Order(column="[]", direction="ASC", nulls="")
    )
    assert found.answer is not None
    assert found.answer.functions == [Function(name="count", column=None)]
    plain = Question.read(json.dumps(QUESTION))
    assert (plain.listing, plain.first, plain.answer) == (None, None, None)
    assert plain.is_listed(2).tolist() == [True, True]
    assert read_report(json.dumps(READ)) == Read(
        number=1, scan=2, listed=3, read=4, unknown=5
    )


def test_a_driver_of_another_version_reads_all(tmp_path: Path) -> None:
    make(tmp_path)
    planner = QueryPlanner(Tables())
    for version, n_records in ((1, 1), (None, 2)):
        question = {**QUESTION, "root": str(tmp_path), "version": version, "keys": []}
        text = f"read 1 60 0\n{json.dumps(question)}\n{json.dumps([equal('id', 1)])}"
        assert planner.answer(text) == protocol.NO_ANSWER
        assert len(planner.records) == n_records
        assert f"the driver has version {version}" in planner.records[-1].problem


def test_a_session_chooses_the_cache_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "_given", [])
    make(tmp_path / "t")
    question = {**QUESTION, "root": str(tmp_path / "t"), "keys": []}
    for folder in ("cache", None):
        path = folder and str(tmp_path / folder)
        question["settings"] = {**dict.fromkeys(SETTINGS), disk_cache.DIR_SETTING: path}
        text = f"read 1 60 0\n{json.dumps(question)}\n{json.dumps([equal('month', 1)])}"
        assert QueryPlanner(Tables()).answer(text) != protocol.NO_ANSWER
        assert list((tmp_path / "cache").iterdir())


def test_the_driver_has_the_same_version() -> None:
    text = sources("4.3.0", "2.13.18")["skipindex.Question"]
    found = re.search(r"VERSION = (\d+)", text)
    assert found is not None
    assert int(found[1]) == protocol.VERSION


def test_the_page_names_every_member() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"in version {protocol.VERSION}." in page
    for message, _ in MESSAGES.values():
        for one in objects(message):
            for member in one:
                assert f"`{member}`" in page, member
