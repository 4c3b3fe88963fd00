"""The final conditions of a query of Spark, as the planner reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that all hold, in SQL.

    Args:
        texts: one for each expression, in their order; what only Spark can compute
            reads ``opaque()``.
        zone: the time zone that they are for; None if none of them depends on one.
    """

    texts: tuple[str, ...]
    zone: str | None

    @property
    def text(self) -> str:
        """All of them as one condition."""
        return " AND ".join(self.texts) or "TRUE"


def conditions(json_text: str, columns: Mapping[str, str]) -> Conditions:
    """The expressions that ``ExpressionJson.java`` has written, for the planner.

    A row for which all expressions are TRUE is one for which all of the texts may be.

    Args:
        json_text: what ``ExpressionJson.json`` returns.
        columns: the types of the table's columns, by the names that the expressions
            have for them, as a catalog writes types (``catalogString``).  A column
            that is not named here, or has another type, is not understood.

    Example:
        >>> attribute = (
        ...     '{"c":"org.apache.spark.sql.catalyst.expressions.AttributeReference",'
        ...     '"t":"int","x":["k","int",true,"{}"]}'
        ... )
        >>> null = '"c":"org.apache.spark.sql.catalyst.expressions.IsNull"'
        >>> conditions(f'[{{{null},"t":"boolean","a":[{attribute}]}}]', {"k": "int"})
        Conditions(texts=('(k IS NULL)',), zone=None)
    """
    write = Translator(columns)
    texts = tuple(write.text(node) for node in read_nodes(json_text))
    return Conditions(texts, write.zone)
