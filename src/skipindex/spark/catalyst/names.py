"""Columns and struct fields, before and after Spark has resolved them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from skipindex.conditions.trees.calls import call
from skipindex.conditions.trees.operands import Operand
from skipindex.expressions import Reference
from skipindex.source.parquet.spark_json import DEFAULTS
from skipindex.spark.catalyst.node import Form, Held, Node, Writer

_DECLARED: Final = "__CHAR_VARCHAR_TYPE_STRING"
_HARMLESS: Final = DEFAULTS | {"comment"}
"""The schema of the files has defaults too, and the table uses it."""

_NEWER: Final[Sequence[Sequence[Held]]] = ([], [[]], [[], False])
"""What a function holds in newer versions: WITHIN GROUP, and whether Spark calls it."""


def _is_harmless(metadata: str) -> bool:
    """Whether a column's metadata says nothing of its values."""
    # Other keys pad or hide a column.
    return all(
        key in _HARMLESS or (key == _DECLARED and str(value).startswith("varchar("))
        for key, value in json.loads(metadata).items()
    )


def _reference(parts: Sequence[str]) -> Reference | None:
    """The column of a name in parts; SQL has no empty ones."""
    return Reference(tuple(parts)) if all(parts) else None


def _field(parent: Operand, key: str) -> Reference | None:
    """A field of a struct, or the value of a key of a map."""
    return Reference((*parent.parts, key)) if isinstance(parent, Reference) else None


def _attribute(write: Writer, node: Node) -> Operand | None:
    match node.held:
        case [str(name), kind, bool(), str(metadata)] if (
            kind == node.kind
            and write.columns.get(name) == kind
            and _is_harmless(metadata)
        ):
            return _reference((name,))
    return None


def _struct_field(write: Writer, node: Node) -> Operand | None:
    match node.children:
        case [Node(name="AttributeReference" | "GetStructField") as parent] if (
            node.field
        ):
            return _field(write.operand(parent), node.field)
    return None


def _named(_write: Writer, node: Node) -> Operand | None:
    match node.held:
        case [[*parts]] if parts and all(isinstance(part, str) for part in parts):
            return _reference(parts)
    return None


def _extracted(write: Writer, node: Node) -> Operand | None:
    """A field of a struct, or the value of a key of a map: the table tells."""
    match node.held, node.children:
        case (
            [],
            [
                Node(name="UnresolvedAttribute" | "UnresolvedExtractValue") as parent,
                Node(name="Literal", kind="string", value=str(key)),
            ],
        ) if key:
            return _field(write.operand(parent), key)
    return None


def _function(write: Writer, node: Node) -> Operand | None:
    name = function_name(node)
    return call(name, list(map(write.operand, node.children))) if name else None


def function_name(node: Node) -> str:
    """The name of a function that is not looked up yet; empty if it is no such one."""
    held = list(node.held)
    if not node.children and held[1:2] == [[]]:  # the list of its arguments
        del held[1]
    match node.name, held:
        case "UnresolvedFunction", [
            [str(name)],
            False,
            None,
            False | None,
            *more,
        ] if more in _NEWER:
            return name.lower()
    return ""


NAMES: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "AttributeReference": Form(
            _attribute,
            "`name`",
            "the table has a column of that name and type, whose metadata is at most a "
            "comment, or `VARCHAR`",
        ),
        "GetStructField": Form(_struct_field, "`name.field`", "of a column"),
        "UnresolvedAttribute": Form(_named, "`name`"),
        "UnresolvedExtractValue": Form(
            _extracted, "`name.field`", "of a column, by a literal name"
        ),
        "UnresolvedFunction": Form(
            _function,
            "`name(…)`",
            "one name, without DISTINCT, FILTER and IGNORE NULLS",
        ),
    }
)
"""The classes that name something.  A ``Column`` of PySpark holds unresolved ones."""
