"""The final conditions of a query of Spark, as the planner reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from skipindex.spark.catalyst.literals import INTEGERS
from skipindex.spark.catalyst.node import Node, read_nodes
from skipindex.spark.catalyst.sql_text import OPAQUE
from skipindex.spark.catalyst.translator import Translator

MANY: Final = 200
"""Integers of a list that are not written as text."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that all hold, in SQL.

    Args:
        texts: one for each other expression, in their order; what only Spark can
            compute reads ``opaque()``.
        zone: the time zone that they are for; None if none of them depends on one.
        lists: those that ask whether a column has one of many integers, with the name
            of the column.  As text they would take seconds to be read.
        shown: ``texts`` for people, where what only Spark can compute has its name.
    """

    texts: tuple[str, ...]
    zone: str | None
    lists: tuple[tuple[str, Sequence[int]], ...] = ()
    shown: tuple[str, ...] = field(default=(), compare=False)

    @property
    def text(self) -> str:
        """All of ``texts`` as one condition."""
        return " AND ".join(self.texts) or "TRUE"


def conditions(json_text: str, columns: Mapping[str, str]) -> Conditions:
    """The expressions that ``ExpressionJson.java`` has written, for the planner.

    A row for which all expressions are TRUE is one for which all of the texts may be,
    and a row for which all of the texts and lists certainly are TRUE is one for which
    all expressions are.  ``columns`` has the types of the table's columns, as a catalog
    writes types (``catalogString``), by the names that the expressions have for them.
    A column that is not in it, or has another type, is not understood.

    Example:
        >>> attribute = (
        ...     '{"c":"org.apache.spark.sql.catalyst.expressions.AttributeReference",'
        ...     '"t":"int","x":["k","int",true,"{}"]}'
        ... )
        >>> null = '"c":"org.apache.spark.sql.catalyst.expressions.IsNull"'
        >>> node = f'{{{null},"t":"boolean","a":[{attribute}]}}'
        >>> conditions(f"[{node}]", {"k": "int"}).texts
        ('(k IS NULL)',)
    """
    write = Translator(columns)
    texts: list[str] = []
    shown: list[str] = []
    lists: list[tuple[str, Sequence[int]]] = []
    for node in read_nodes(json_text):
        match node:
            case Node("InSet", children=[Node("AttributeReference") as column]) if (
                column.kind in INTEGERS
                and len(node.value) >= MANY
                and write.text(column) != OPAQUE
            ):
                # NULL in a list never makes a condition TRUE.
                values = [value for value in node.value if value is not None]
                lists.append((column.held[0], values))
            case _:
                text = write.text(node)
                texts.append(text)
                if OPAQUE in text:
                    text = Translator(columns, write.zone, for_people=True).text(node)
                shown.append(text.replace(OPAQUE, "{…}"))
    return Conditions(tuple(texts), write.zone, tuple(lists), tuple(shown))
