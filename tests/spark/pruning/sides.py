"""Dimensions as the driver writes them, written here, and the keys that they leave."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skipindex.conditions.functions.zones import OffsetsOf, no_offsets
from skipindex.spark.pruning.dimensions import MAX_BYTES, Dimensions, Session
from skipindex.spark.pruning.protocol import Dimension

CLASSES = "org.apache.spark.sql.catalyst.expressions"
_CATALOG = {"long": "bigint", "integer": "int", "short": "smallint"}
"""Types of Spark's JSON that a catalog writes otherwise."""


def schema(
    types: Mapping[str, str], notes: Mapping[str, Mapping[str, str]] | None = None
) -> str:
    """Columns in Spark's JSON; ``notes`` are the metadata of some."""
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": (notes or {}).get(name, {}),
        }
        for name, kind in types.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def catalog(kind: str) -> str:
    return _CATALOG.get(kind, kind)


def attribute(name: str, kind: str) -> dict[str, Any]:
    held = [name, catalog(kind), True, "{}"]
    return {"c": f"{CLASSES}.AttributeReference", "t": catalog(kind), "x": held}


def asks(function: str, name: str, kind: str, *values: Any) -> dict[str, Any]:
    """A condition on one column."""
    column = attribute(name, kind)
    literals = [
        {"c": f"{CLASSES}.Literal", "t": column["t"], "v": value} for value in values
    ]
    return {
        "c": f"{CLASSES}.{function}",
        "t": "boolean",
        "a": [column, *literals],
    }


def both(kind: str, *conditions: Mapping[str, Any]) -> dict[str, Any]:
    return {"c": f"{CLASSES}.{kind}", "t": "boolean", "a": list(conditions)}


def side(
    folder: Path, types: Mapping[str, str], *conjuncts: Mapping[str, Any], **others: Any
) -> dict[str, Any]:
    """A folder as the driver writes it, joined by ``k``."""
    found = [
        (str(path.relative_to(folder)), path.stat())
        for path in sorted(folder.rglob("*.parquet"))
    ]
    return {
        "scheme": "file",
        "authority": None,
        "root": str(folder),
        "paths": [name for name, _ in found],
        "sizes": [stat.st_size for _, stat in found],
        "millis": [stat.st_mtime_ns // 1_000_000 for _, stat in found],
        "key": "k",
        "data": schema(types),
        "data_types": {name: catalog(kind) for name, kind in types.items()},
        "partitions_types": {},
        "is_catalog_table": False,
        "reader": {},
        "options": {},
        "conjuncts": json.dumps(conjuncts),
        "keys": [],
        **others,
    }


def session(
    timezone: str | None = "UTC",
    offsets: OffsetsOf = no_offsets,
    *,
    case_sensitive: bool = False,
    most_bytes: int = MAX_BYTES,
) -> Session:
    return Session(timezone, offsets, case_sensitive, most_bytes)


def keys_of(
    asked: Mapping[str, Any],
    dimensions: Dimensions | None = None,
    settings: Session | None = None,
) -> list[Any] | str:
    """The keys, or why they are not known."""
    reader = dimensions or Dimensions()
    ((told, keys),) = reader.keys([("key", Dimension(**asked))], settings or session())
    assert (keys is None) == (told.n_keys is None) == bool(told.problem)
    return told.problem if keys is None else sorted(keys)


def age(folder: Path) -> None:
    """Let the files be old enough to be kept in memory."""
    then = time.time_ns() - 60 * 10**9
    for path in folder.rglob("*.parquet"):
        os.utime(path, ns=(then, then))
