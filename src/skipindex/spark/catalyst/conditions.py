"""The final conditions of a Spark query, as predicate trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from skipindex.expressions import And, Predicate, conjunction, to_sql
from skipindex.spark.catalyst.node import Node, read_nodes
from skipindex.spark.catalyst.translator import Translator


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that all hold.

    Args:
        parts: one for each expression, in their order.
        zone: the time zone that they are for; None if none of them depends on one.
    """

    parts: tuple[Predicate, ...]
    zone: str | None

    @property
    def tree(self) -> Predicate:
        """All of ``parts`` as one condition."""
        return conjunction(list(self.parts)) if self.parts else And(())

    @property
    def text(self) -> str:
        """The same in SQL."""
        return to_sql(self.tree)


def conditions(json_text: str, columns: Mapping[str, str]) -> Conditions:
    """The expressions that ``ExpressionJson.java`` has written, for the planner.

    A row for which all expressions are TRUE is one for which all of the conditions may
    be, and a row for which all of these certainly are TRUE is one for which all
    expressions are.  ``columns`` has the types of the table's columns, as a catalog
    writes types (``catalogString``), by the names that the expressions have for them.
    A column that is not in it, or has another type, is not understood.

    Example:
        >>> attribute = (
        ...     '{"c":"org.apache.spark.sql.catalyst.expressions.AttributeReference",'
        ...     '"t":"int","x":["k","int",true,"{}"]}'
        ... )
        >>> null = '"c":"org.apache.spark.sql.catalyst.expressions.IsNull"'
        >>> node = f'{{{null},"t":"boolean","a":[{attribute}]}}'
        >>> conditions(f"[{node}]", {"k": "int"}).text
        'k IS NULL'
    """
    translator = Translator(columns)
    parts = [translator.condition(_without_null(n)) for n in read_nodes(json_text)]
    return Conditions(tuple(parts), translator.zone)


def _without_null(node: Node) -> Node:
    """NULL in a list never makes a condition TRUE, and a set of integers has none."""
    if node.name != "InSet" or not isinstance(node.value, list):
        return node
    return replace(node, value=[one for one in node.value if one is not None])
