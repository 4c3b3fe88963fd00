"""The properties of a table, as commits have them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from skipindex.errors import CorruptIndexError
from skipindex.log.properties import (
    NO_PROPERTIES,
    TableProperties,
    schema_of,
    schema_record,
)

LAYOUT = {"cluster_by": ["x"], "curve": "hilbert", "of a newer version": 1}


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"layout": LAYOUT},
        {"layout": {}, "runs": {"targets": []}, "derived": {}, "rewrites": {}},
        {"cube_file": {"name": "x"}, "cubes": [], "choice": {}},
        {"indexes": {"a": None}, "more": {"deep": [1, None]}, "others": 3},
        {"indexes": None, "more": None},
        {"indexes": 7},
    ],
)
def test_what_is_read_is_written_back(record: dict[str, Any]) -> None:
    properties, notes = TableProperties.from_json(record)
    assert properties.to_json() == record
    assert notes == ()


def test_a_damaged_property_is_left_out_with_a_note() -> None:
    record = {"layout": 3, "derived": {"columns": {}}, "runs": {}, "more": 1}
    properties, notes = TableProperties.from_json(record)
    assert properties.to_json() == {"derived": {"columns": {}}, "more": 1}
    assert [note.split(":")[0] for note in notes] == [
        "property 'layout' ignored",
        "property 'runs' ignored",
    ]


def test_a_schema_is_read_again_and_a_damaged_one_is_left_out() -> None:
    schema = pa.schema({"a": pa.int64(), "b": pa.list_(pa.string())})
    record = schema_record(schema)
    properties, notes = TableProperties.from_json({"schema": record})
    assert properties.schema is not None
    assert schema_of(properties.schema) == schema
    assert notes == ()
    text = record["arrow"]
    for damaged in ("", text[:40], "AAAA" + text[4:], "é", 3, None, "A" * (1 << 21)):
        left, notes = TableProperties.from_json({"schema": {"arrow": damaged}})
        assert left.schema is None
        assert notes[0].startswith("property 'schema' ignored"), damaged


@pytest.mark.parametrize("value", [None, [], "layout", 3])
def test_properties_are_an_object(value: object) -> None:
    with pytest.raises(CorruptIndexError, match="properties are not an object"):
        TableProperties.from_json(value)


def test_news_replace_what_they_name_and_nothing_else() -> None:
    known = TableProperties(layout=LAYOUT, runs={}, others={"more": 1})
    news = TableProperties(layout={"curve": None}, indexes={}, others={"new": 2})
    assert (known | news).to_json() == {
        "layout": {"curve": None},
        "runs": {},
        "indexes": {},
        "more": 1,
        "new": 2,
    }
    assert known | NO_PROPERTIES == known
    assert NO_PROPERTIES | known == known


def runs_to(columns: list[str], *runs: str) -> dict[str, Any]:
    shape, size = {"cluster_by": columns}, {"cube_size": 9}
    return {"shape": shape, "size": size, "runs": dict.fromkeys(runs, 0)}


def test_new_runs_come_to_those_that_are_known() -> None:
    """What another writer has recorded meanwhile stays."""
    known = TableProperties(runs={"targets": [runs_to(["x"], "a", "b")]})
    for columns, expected in (
        (["x"], [runs_to(["x"], "a", "b", "c")]),
        (["y"], [runs_to(["x"], "a", "b"), runs_to(["y"], "c")]),
    ):
        news = TableProperties(runs={"targets": [runs_to(columns, "c")]})
        assert (known | news).runs == {"targets": expected}
    assert known.runs == {"targets": [runs_to(["x"], "a", "b")]}, "it is a value"


def test_appends_do_not_make_commits_longer_and_longer() -> None:
    known = NO_PROPERTIES
    for i in range(1001):
        known |= TableProperties(runs={"targets": [runs_to(["x"], str(i))]})
    assert known.runs is not None
    (target,) = known.runs["targets"]
    assert target == runs_to(["x"], *map(str, range(1000)))
