"""Catalyst's expressions as ``ExpressionJson.java`` writes them, and their forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from skipindex.conditions.trees.operands import Operand

Held: TypeAlias = Any
"""JSON: what an expression holds beside its children."""

_PACKAGES: Final = (
    "org.apache.spark.sql.catalyst.expressions.",
    "org.apache.spark.sql.catalyst.analysis.",
)


@dataclass(frozen=True, slots=True)
class Node:
    """An expression.

    Args:
        name: its class, without the package; empty if that is not Spark's.
        kind: its type as a catalog writes it; empty if it is not resolved.
        children: its operands; of a chain of AND, or of OR, all of them.
        held: what else it holds, in the order in which Spark lists it.
        value: of a literal, or the values of a set, in Catalyst's own form.
        field: of a struct, the name of the field.
    """

    name: str
    kind: str = ""
    children: tuple[Node, ...] = ()
    held: tuple[Held, ...] = ()
    value: Any = None
    field: str = ""

    def is_literal(self) -> bool:
        """Whether it is a literal, NULL too."""
        return self.name == "Literal"


def read_nodes(text: str) -> list[Node]:
    """The expressions that ``ExpressionJson.json`` has written, in their order."""
    return [_node(one) for one in json.loads(text)]


def _node(written: dict[str, Any]) -> Node:
    return Node(
        _name(written["c"]),
        written.get("t", ""),
        tuple(map(_node, written.get("a", ()))),
        tuple(written.get("x", ())),
        written.get("v"),
        written.get("n", ""),
    )


def _name(class_name: str) -> str:
    for package in _PACKAGES:
        name = class_name.removeprefix(package)
        if name != class_name and name.isidentifier():
            return name
    return ""


class Writer(Protocol):
    """Makes operands of expressions."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of the table's columns, as a catalog writes them."""

    def operand(self, node: Node, *, compared: bool = False) -> Operand:
        """The expression as an operand.

        It is ``compared`` if it meets values of its own type alone.
        """

    def compared_operands(self, operands: Sequence[Node]) -> list[Operand]:
        """Operands of a comparison; literals in the form that says most there."""

    def takes_zone(self, zone: str | None) -> bool:
        """Whether it is the zone of all others; None is that of the session."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the expressions of one class are read.

    Args:
        read: the expression as an operand; None if not all that it holds is understood.
        sql: what it is in SQL, for readers.
        only: what is understood of the class, for readers; empty for all of it.
    """

    read: Callable[[Writer, Node], Operand | None]
    sql: str
    only: str = ""
