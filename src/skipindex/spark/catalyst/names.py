"""Columns and the fields of structs, before and after Spark has looked them up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from skipindex.spark.catalyst.node import Held, Node
from skipindex.spark.catalyst.sql_text import call_text, field_text, name_text
from skipindex.spark.catalyst.writer import Form, Writer
from skipindex.table.spark_json import DEFAULTS

_DECLARED: Final = "__CHAR_VARCHAR_TYPE_STRING"
_HARMLESS: Final = DEFAULTS | {"comment"}
"""The schema of the files tells of defaults too, and the table goes by that."""

_NEWER: Final[Sequence[Sequence[Held]]] = ([], [[]], [[], False])
"""What a function holds in newer versions: WITHIN GROUP, and whether Spark calls it."""


def _is_harmless(metadata: str) -> bool:
    """Whether a column's metadata says nothing of its values."""
    # Other keys pad or hide a column.
    return all(
        key in _HARMLESS or (key == _DECLARED and str(value).startswith("varchar("))
        for key, value in json.loads(metadata).items()
    )


def _attribute(write: Writer, node: Node) -> str | None:
    match node.held:
        case [str(name), kind, bool(), str(metadata)] if (
            kind == node.kind
            and write.columns.get(name) == kind
            and _is_harmless(metadata)
        ):
            return name_text((name,))
    return None


def _struct_field(write: Writer, node: Node) -> str | None:
    match node.children:
        case [Node(name="AttributeReference" | "GetStructField") as parent] if (
            node.field
        ):
            return field_text(write.text(parent), node.field)
    return None


def _named(_write: Writer, node: Node) -> str | None:
    match node.held:
        case [[*parts]] if parts and all(isinstance(part, str) for part in parts):
            return name_text(parts)
    return None


def _extracted(write: Writer, node: Node) -> str | None:
    """A field of a struct, or the value of a key of a map: the table tells."""
    match node.held, node.children:
        case (
            [],
            [
                Node(name="UnresolvedAttribute" | "UnresolvedExtractValue") as parent,
                Node(name="Literal", kind="string", value=str(key)),
            ],
        ) if key:
            return field_text(write.text(parent), key)
    return None


def _function(write: Writer, node: Node) -> str | None:
    held = list(node.held)
    if not node.children and held[1:2] == [[]]:  # the list of its arguments
        del held[1]
    match held:
        case [[str(name)], False, None, False | None, *more] if more in _NEWER:
            return call_text(name, [write.text(child) for child in node.children])
    return None


NAMES: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "AttributeReference": Form(
            _attribute,
            "`name`",
            "the table has a column of that name and type, and its metadata is no more "
            "than a comment, or `VARCHAR`",
        ),
        "GetStructField": Form(_struct_field, "`name.field`", "of a column"),
        "UnresolvedAttribute": Form(_named, "`name`"),
        "UnresolvedExtractValue": Form(
            _extracted, "`name.field`", "of a column, by a text"
        ),
        "UnresolvedFunction": Form(
            _function,
            "`name(…)`",
            "one name, without DISTINCT, FILTER and IGNORE NULLS",
        ),
    }
)
"""The classes that name something.  A ``Column`` of PySpark holds unresolved ones."""
