"""Columns of types that nobody here knows: all other columns are still judged."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.columns import spark_schema
from skipindex.spark.pruning.protocol import VERSION
from skipindex.spark.pruning.query_planner import SETTINGS, QueryPlanner
from skipindex.table.spark_json import ROW_METADATA
from tests.spark.pruning.questions import CLASSES
from tests.spark.reading.whole import settings
from tests.spark.versions import since
from tests.tables import put

INVENTED: Final[Sequence[tuple[Any, str]]] = (
    ("timestamp_ntz(9)", "timestamp_ntz(9)"),
    ("hologram", "hologram"),
    ("decimal(99,3)", "decimal(99,3)"),
    ("interval week", "interval week"),
    ({"type": "hologram", "of": "long"}, "hologram<bigint>"),
    ({"type": "udt", "class": "a.B", "sqlType": "long"}, "bigint"),
    (
        {"type": "array", "elementType": "hologram", "containsNull": True},
        "array<hologram>",
    ),
)
"""As Spark's JSON would spell a type, and as a catalog would."""
LONG: Final = ("long", "bigint")
NAMES: Final = ("a", "b", "c", "d")
FIELDS: Final = ("x", "y")


def field(name: str, spelled: Any) -> dict[str, Any]:
    return {"name": name, "type": spelled, "nullable": True, "metadata": {}}


def struct(fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def node(kind: str, dtype: str, **more: Any) -> dict[str, Any]:
    return {"c": f"{CLASSES}.{kind}", "t": dtype, **more}


def equal(column: dict[str, Any]) -> dict[str, Any]:
    """That a column has a value of the second file alone."""
    value = node("Literal", column["t"], v=15)
    return node("EqualTo", "boolean", a=[column, value])


class Drawn:
    """Four columns and a struct of two, some with invented types."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        kinds = dict.fromkeys((*NAMES, *FIELDS), LONG)
        for name in draw.sample(sorted(kinds), draw.randint(1, 4)):
            kinds[name] = draw.choice(INVENTED)
        self.invented = {name for name, kind in kinds.items() if kind is not LONG}
        inner = ",".join(f"{name}:{kinds[name][1]}" for name in FIELDS)
        self.types = {name: kinds[name][1] for name in NAMES}
        self.types["s"] = f"struct<{inner}>"
        fields = [field(name, kinds[name][0]) for name in NAMES]
        held = struct([field(name, kinds[name][0]) for name in FIELDS])
        self.schema = struct([*fields, field("s", held)])

    def column(self, name: str) -> dict[str, Any]:
        """As an expression: one of the four columns, or a field of the struct."""
        own = "s" if name in FIELDS else name
        kind = self.types[own]
        found = node("AttributeReference", kind, x=[own, kind, True, "{}"])
        if name in FIELDS:
            return node("GetStructField", "bigint", a=[found], x=[0, name], n=name)
        return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    for i in range(4):
        values = pa.array(range(10 * i, 10 * i + 10))
        pairs = [{"x": v, "y": v} for v in values.to_pylist()]
        columns = {**dict.fromkeys(NAMES, values), "s": pa.array(pairs)}
        put(root / f"{i}.parquet", columns)
    sx.build_indexes(root, {"*": ["bitmap"]}, workers=1)
    return root


@pytest.mark.parametrize("seed", range(12))
def test_only_columns_of_unknown_types_are_not_judged(
    planner: QueryPlanner, files: Path, seed: int
) -> None:
    drawn = Drawn(seed)
    question = {
        "version": VERSION,
        "root": str(files),
        "scheme": "file",
        "authority": None,
        "is_catalog_table": False,
        "data": json.dumps(drawn.schema),
        "data_types": drawn.types,
        "partitions": json.dumps(struct([])),
        "partitions_types": {},
        "settings": dict.fromkeys(SETTINGS),
        "reader": {},
        "options": {},
        "keys": [],
    }
    for name in (*NAMES, *FIELDS):
        asked = json.dumps([equal(drawn.column(name))])
        planner.answer(f"read 1 60 0\n{json.dumps(question)}\n{asked}")
        record = planner.records[-1]
        assert record.problem == ""
        assert record.n_skipped == (0 if name in drawn.invented else 3), name


@pytest.mark.parametrize("seed", range(12))
def test_a_schema_of_unknown_types_is_told_as_it_was_read(seed: int) -> None:
    drawn = Drawn(seed)
    text = json.dumps(drawn.schema)
    found = spark_schema(pa.schema([], {ROW_METADATA: text}))
    assert json.loads(found.json()) == drawn.schema
    known = [name for name in NAMES if name not in drawn.invented]
    assert {found[name].dataType.simpleString() for name in known} <= {"bigint"}


NANOS = {"spark.sql.timestampNanosTypes.enabled": "true"}


@pytest.mark.spark
@since(4, 3, what="a timestamp_ntz(9) that its own parser in Python does not know")
def test_a_preview_type_of_the_driver(pruned: SparkSession, tmp_path: Path) -> None:
    for i in range(4):
        times = pa.array([10**18 + i, None], pa.timestamp("ns"))
        path = tmp_path / f"p={i % 2}" / f"{i}.parquet"
        put(path, {"id": [2 * i, 2 * i + 1], "n": times})
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    with settings(pruned, NANOS):
        rows = pruned.read.parquet(str(tmp_path)).where("id = 5").select("id", "p")
        assert [tuple(row) for row in rows.collect()] == [(5, 0)]
        assert sx.last_plans(pruned)[-1].n_skipped == 3
        read = sx.read(tmp_path, "id = 5", spark=pruned).select("id", "p")
        assert [tuple(row) for row in read.collect()] == [(5, 0)]
