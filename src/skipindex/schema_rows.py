"""Schemas as Spark writes them down, in JSON, in a Parquet footer or beside a table.

Where a footer has one, Spark takes the table's columns from it: also one that the file
itself lacks, whose values are then NULL or a default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from skipindex.schema import ROW_METADATA, not_by_bytes

_TYPES: Final = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)")
_DEFAULTS: Final = ("EXISTS_DEFAULT", "CURRENT_DEFAULT")


def declared_schema(schema: pa.Schema) -> tuple[pa.Schema, dict[str, str]]:
    """A given schema, and why some of its columns cannot be indexed."""
    metadata = schema.metadata or {}
    return schema, {**not_by_bytes(metadata), **_with_default(_fields(metadata))}


def as_rows_say(
    schema: pa.Schema, refused: Mapping[str, str], metadata: Mapping[bytes, bytes]
) -> tuple[pa.Schema, dict[str, str]]:
    """The schema of a footer, with the columns that Spark takes from it.

    Args:
        schema: by the Parquet types.
        refused: columns of it that are not indexed, and why.
        metadata: of the footer.
    """
    fields = _fields(metadata)
    if not fields:
        return schema, dict(refused)
    own = {field.name: field for field in schema}
    columns = [
        own.get(name) or pa.field(name, _arrow_type(field["type"]))
        for name, field in fields.items()
    ]
    return pa.schema(columns, schema.metadata), {**refused, **_with_default(fields)}


def _fields(metadata: Mapping[bytes, bytes]) -> dict[str, dict[str, Any]]:
    """The columns by name; none if Spark cannot read the text either."""
    text = metadata.get(ROW_METADATA, b'{"fields": []}')
    try:
        fields = {str(field["name"]): field for field in json.loads(text)["fields"]}
        if all("type" in field for field in fields.values()):
            return fields
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    return {}


def _with_default(fields: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {
        name: "files that lack the column have its default"
        for name, field in fields.items()
        if any(key in (field.get("metadata") or {}) for key in _DEFAULTS)
    }


def _arrow_type(spelled: object) -> pa.DataType:
    """The type of a column that the file lacks; null where it is not indexed."""
    if not isinstance(spelled, str):
        return pa.null()
    found = _DECIMAL.fullmatch(spelled)
    if found is None:
        return _TYPES.get(spelled, pa.null())
    precision, scale = map(int, found.groups())
    return pa.decimal128(precision, scale) if 0 < precision <= 38 else pa.null()
