"""Which conditions of a dimension are judged, without a driver: it is written here."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.planner.plan import plan_files
from skipindex.spark.pruning.dimensions import JoinedConditions, joined_conditions
from skipindex.spark.pruning.protocol import Dimension
from tests.tables import put, put_all

CLASSES = "org.apache.spark.sql.catalyst.expressions"
TYPES = {"k": "long", "a": "string", "b": "integer", "z": "timestamp"}
CATALOG = {"long": "bigint", "integer": "int"}


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dimension, and a fact whose files have one key each; for reading only."""
    return write(tmp_path_factory.mktemp("star"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The same, to be changed."""
    return write(tmp_path)


def write(folder: Path) -> Path:
    times = pa.array([0, 10**15, None], pa.timestamp("us", "UTC"))
    numbers = pa.array([5, 6, None], pa.int32())
    columns = {"k": [1, 2, 3], "a": ["x", "y", "z"], "b": numbers, "z": times}
    put(folder / "d" / "0.parquet", columns)
    put_all(folder / "f", [{"key": [i, i], "own": [i, 0]} for i in (1, 2, 3)])
    associated = {
        name: sx.via("key", folder / "d", "k", name[-1]) for name in ("a", "nb", "nz")
    }
    sx.build_indexes(folder / "f", {}, associated=associated, workers=1)
    return folder


def attribute(name: str, kind: str = "") -> dict[str, Any]:
    kind = kind or CATALOG.get(TYPES.get(name, "string"), TYPES.get(name, "string"))
    held = [name, kind, True, "{}"]
    return {"c": f"{CLASSES}.AttributeReference", "t": kind, "x": held}


def asks(function: str, name: str, value: Any = None) -> dict[str, Any]:
    """A condition on one column."""
    column = attribute(name)
    operands = [column]
    if value is not None:
        kind = column["t"]
        operands.append({"c": f"{CLASSES}.Literal", "t": kind, "v": value})
    return {"c": f"{CLASSES}.{function}", "t": "boolean", "a": operands}


def both(kind: str, *conditions: Mapping[str, Any]) -> dict[str, Any]:
    return {"c": f"{CLASSES}.{kind}", "t": "boolean", "a": list(conditions)}


def schema(types: Mapping[str, str], default: str = "") -> str:
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"EXISTS_DEFAULT": "7"} if name == default else {},
        }
        for name, kind in types.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def side(star: Path, *conjuncts: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """The dimension as the driver writes it."""
    stats = [
        (path.name, path.stat()) for path in sorted((star / "d").glob("*.parquet"))
    ]
    return {
        "scheme": "file",
        "authority": None,
        "root": str(star / "d"),
        "paths": [name for name, _ in stats],
        "sizes": [stat.st_size for _, stat in stats],
        "millis": [stat.st_mtime_ns // 1_000_000 for _, stat in stats],
        "key": "k",
        "data": schema(TYPES),
        "data_types": {name: CATALOG.get(kind, kind) for name, kind in TYPES.items()},
        "partitions_types": {},
        "reader": {},
        "options": {},
        "conjuncts": json.dumps(conjuncts),
        **others,
    }


def judged(
    star: Path, asked: Mapping[str, Any], column: str = "key"
) -> JoinedConditions | None:
    state = sx.open_table(star / "f").state
    return joined_conditions(state, column, Dimension(**asked))


def files(star: Path, *conjuncts: Mapping[str, Any]) -> list[str] | None:
    """What is left of the fact by these conditions; None if none is judged."""
    found = judged(star, side(star, *conjuncts))
    if found is None:
        return None
    return plan_files(found.predicate, table=star / "f", timezone="UTC").paths


IS_X = asks("EqualTo", "a", "x")
ONE, TWO, THREE = ("0.parquet",), ("1.parquet",), ("2.parquet",)


@pytest.mark.parametrize(
    ("conjunct", "expected", "are_all"),
    [
        (IS_X, ONE, True),
        (both("Not", IS_X), TWO + THREE, True),
        (asks("IsNull", "b"), THREE, True),
        (asks("GreaterThan", "b", 5), TWO, True),
        (asks("LessThan", "z", 5), ONE, True),
        (both("And", IS_X, asks("EqualTo", "k", 2)), ONE, False),
        (both("Or", IS_X, asks("EqualTo", "k", 2)), ONE + TWO + THREE, False),
        (both("Not", both("And", IS_X, asks("EqualTo", "k", 2))), None, False),
    ],
)
def test_a_condition_is_judged_or_left_open(
    star: Path,
    conjunct: dict[str, Any],
    expected: tuple[str, ...] | None,
    are_all: bool,
) -> None:
    found = judged(star, side(star, conjunct))
    assert found is not None
    assert found.are_all == are_all
    left = files(star, conjunct)
    assert left is not None
    assert tuple(left) == (expected or ONE + TWO + THREE)


def test_conditions_are_shown_by_the_names_of_the_dimension(star: Path) -> None:
    found = judged(star, side(star, IS_X, asks("GreaterThan", "b", 5)))
    assert found is not None
    assert found.text == "(a = 'x') AND (b > 5)"


@pytest.mark.parametrize("conjunct", [asks("EqualTo", "own", 1), asks("No", "a", "x")])
def test_what_is_not_understood_is_not_judged(
    star: Path, conjunct: dict[str, Any]
) -> None:
    assert judged(star, side(star, conjunct)) is None


def test_a_long_list_is_left_open(star: Path) -> None:
    listed = {
        "c": f"{CLASSES}.InSet",
        "t": "boolean",
        "a": [attribute("b")],
        "v": list(range(1000)),
    }
    assert judged(star, side(star, listed)) is None
    found = judged(star, side(star, listed, IS_X))
    assert found is not None
    assert not found.are_all


def with_types(**types: str) -> dict[str, str]:
    return {"data": schema(TYPES | types)}


@pytest.mark.parametrize(
    "others",
    [
        {"key": "b"},
        {"root": "/nowhere"},
        {"scheme": "s3a", "authority": "bucket"},
        {"paths": ["1.parquet"]},
        {"sizes": [7]},
        {"millis": [0]},
        {"paths": [], "sizes": [], "millis": []},
        {"options": {"datetimerebasemode": "LEGACY"}},
        {"reader": {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}},
        {"reader": {"spark.sql.caseSensitive": "true"}},
        {"data": "{}"},
        with_types(a="binary"),
        with_types(a="string collate UTF8_LCASE"),
        with_types(k="integer"),
        with_types(A="string"),
        {"data": schema(TYPES, default="a")},
        {"data": schema(TYPES, default="k")},
        {"partitions_types": {"a": "string"}},
        {"partitions_types": {"k": "bigint"}},
        {"conjuncts": "[]"},
    ],
)
def test_another_dimension_than_the_one_looked_up_is_not_judged(
    star: Path, others: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a region, that of the bucket is looked for in the network for seconds.
    monkeypatch.setenv("AWS_REGION", "eu-test-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://127.0.0.1:1")
    assert judged(star, side(star, IS_X)) is not None
    try:
        found = judged(star, side(star, IS_X, **others))
    except (sx.SkipIndexError, OSError):
        found = None
    assert found is None


def test_another_column_of_the_fact_is_not_judged(star: Path) -> None:
    assert judged(star, side(star, IS_X), column="own") is None
    assert judged(star, side(star, IS_X), column="KEY") is not None


def rewrite(star: Path) -> None:
    path = star / "d" / "0.parquet"
    table = pq.read_table(path)
    before = path.stat()
    pq.write_table(table.set_column(0, "k", pa.array([2, 1, 3])), path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10_000_000))


def within_the_millisecond(star: Path) -> None:
    """Spark has no finer times, so its listing looks as it did."""
    path = star / "d" / "0.parquet"
    before = path.stat()
    later = before.st_mtime_ns // 1_000_000 * 1_000_000 + 1
    os.utime(path, ns=(before.st_atime_ns, later + (later == before.st_mtime_ns)))


def add(star: Path) -> None:
    put(star / "d" / "1.parquet", {"k": [9], "a": ["x"]})


@pytest.mark.parametrize("change", [rewrite, within_the_millisecond, add])
def test_a_dimension_that_changed_is_not_judged(
    own: Path, change: Callable[[Path], None]
) -> None:
    before = side(own, IS_X)
    change(own)
    assert judged(own, side(own, IS_X)) is None
    assert judged(own, before) is None
    sx.open_table(own / "f").refresh_indexes(workers=1)
    assert judged(own, side(own, IS_X)) is not None
    if change is not within_the_millisecond:
        assert judged(own, before) is None


def test_a_key_of_another_type_is_not_judged(star: Path) -> None:
    types = pa.schema([("key", pa.int32()), ("own", pa.int64())])
    fact = sx.open_table(star / "f", schema=types)
    asked = Dimension(**side(star, IS_X))
    assert joined_conditions(fact.state, "key", asked) is None


def test_without_an_index_nothing_is_judged(own: Path) -> None:
    sx.open_table(own / "f").drop_indexes(columns=["a"])
    assert judged(own, side(own, IS_X)) is None
    found = judged(own, side(own, asks("GreaterThan", "b", 5)))
    assert found is not None
