"""Schemas in Spark's JSON, as Spark leaves them in Parquet footers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from skipindex.expressions import stored_name
from skipindex.source.partitions.inference import INSTANT

ROW_METADATA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_CHAR: Final = re.compile(r"(?<!var)char\(")
DEFAULTS: Final = frozenset({"EXISTS_DEFAULT", "CURRENT_DEFAULT"})
"""Notes of a column with DEFAULT, which Spark reads in files that lack the column."""
_CHAR_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATION: Final = "the column has a collation"
_PADDED: Final = "Spark pads a CHAR column to compare it"
_FIELD_KEYS: Final = (
    {"name", "type"},
    {"name", "type", "nullable"},
    {"name", "type", "nullable", "metadata"},
)
"""The keys of a field in the row metadata, which Spark does not read with others."""

_DECLARED: Final[Mapping[str, pa.DataType]] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": INSTANT,
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "decimal": pa.decimal128(10, 0),
}
"""Types as Spark's JSON names them; others have no index."""

Typed: TypeAlias = tuple[pa.Schema, Mapping[str, str]]
"""Columns under Spark's types, and which have no index, by name in SQL, and why."""


def declared_schema(text: str | bytes) -> Typed | None:
    """The columns of a schema in Spark's JSON; None where Spark cannot read it."""
    refused: dict[str, str] = {}
    try:
        fields = _fields(json.loads(text), (), refused)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return pa.schema(fields), refused


def given_schema(schema: pa.Schema) -> Typed:
    """The columns of a schema that a caller gives, as Arrow types or with Spark's JSON.

    The JSON stands in the metadata, where a footer has it too.
    """
    text = (schema.metadata or {}).get(ROW_METADATA)
    return (schema, {}) if text is None else declared_schema(text) or (schema, {})


def _fields(
    struct: Any, path: tuple[str, ...], refused: dict[str, str]
) -> list[pa.Field]:
    if struct["type"] != "struct" or not isinstance(struct["fields"], list):
        raise ValueError("no struct")
    result = []
    for field in struct["fields"]:
        name, notes = field["name"], field.get("metadata", {})
        if set(field) not in _FIELD_KEYS or not isinstance(name, str):
            raise ValueError("no field")
        inner = (*path, name)
        dtype = _declared(field["type"], inner, refused)
        why = ""
        if "__COLLATIONS" in notes:
            why = _COLLATION
        elif _CHAR.search(str(notes.get(_CHAR_TYPE, ""))):
            why = _PADDED
        if why:
            refused[stored_name(inner)] = why
        defaults = dict.fromkeys(DEFAULTS & notes.keys(), "")
        result.append(pa.field(name, dtype, metadata=defaults or None))
    return result


def has_default(field: pa.Field) -> bool:
    """Whether Spark reads a default in files that lack a column."""
    keys = {key.decode("utf-8", "replace") for key in field.metadata or ()}
    return not DEFAULTS.isdisjoint(keys)


def _declared(
    spelled: Any, path: tuple[str, ...], refused: dict[str, str]
) -> pa.DataType:
    """The type that Spark's JSON spells; notes it in ``refused`` if it has no order."""
    if isinstance(spelled, dict):
        match spelled["type"]:
            case "struct":
                return pa.struct(_fields(spelled, path, refused))
            case "array":
                return pa.list_(_declared(spelled["elementType"], path, {}))
            case "map":
                key = _declared(spelled["keyType"], path, {})
                return pa.map_(key, _declared(spelled["valueType"], path, {}))
            case other:
                refused[stored_name(path)] = f"only Spark knows the type {other}"
                return pa.null()
    if not isinstance(spelled, str):
        raise TypeError("no type")
    if spelled in _DECLARED:
        return _DECLARED[spelled]
    if match := _DECIMAL.fullmatch(spelled):
        precision, scale = map(int, match.groups())
        if 0 < precision <= 38:
            return pa.decimal128(precision, scale)
    if spelled.startswith("varchar("):
        return pa.string()
    if "collate" in spelled.lower():
        why = _COLLATION
    elif spelled.startswith("char("):
        why = _PADDED
    else:
        why = f"type {spelled} is not ordered as the stored values"
    refused[stored_name(path)] = why
    return pa.null()
